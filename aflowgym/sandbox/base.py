"""The base of every sandbox: limits, a level, and the forms of a call and its outcome.

The CPU limit is the one that stops a busy program, and it counts the same on a busy machine; the
clock behind it stops one that sleeps. Both are far above what the solution of a task needs. A
program is told nothing of them, and what exceeds one is an `Outcome` with the name of the limit.

A level is a report, not a switch: the walls that stand, what the self-test tried against them, and
what is known to get through. It belongs into the record of a run.

A call goes in as bytes and comes out in the form of `values`, the same for every kind of process,
with walls or without; an end without a result is told in words.
"""

from __future__ import annotations

import marshal
import signal
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Self

from aflowgym.answers.code import Outcome
from aflowgym.operators.context import Job
from aflowgym.sandbox import values
from toolgym.errors import ConfigurationError
from toolgym.forks import renew_in_child
from toolgym.sanitize import escape_control_tokens

MB: Final = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of a call, all above zero.

    Attributes:
        cpu_seconds: Whole seconds of computing.
        seconds: Seconds by the clock.
        job_seconds: Seconds by the clock for all calls of a job; those that come later time out.
        memory_mb: Address space beyond that of an idle worker.
        file_mb: The size of a file in the temporary folder.
        folder_mb: The size of all files there together.
        files: How many files there may be.
        open_files: Descriptors that are open at the same time; 16 to 1024.
        program_mb: Source and arguments together.

    Raises:
        ConfigurationError: A limit is not above zero, or open_files is not from 16 to 1024.
    """

    cpu_seconds: int = 4
    seconds: float = 10.0
    job_seconds: float = 30.0
    memory_mb: int = 512
    file_mb: int = 8
    folder_mb: int = 16
    files: int = 100
    open_files: int = 32
    program_mb: int = 4

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigurationError(f"Limits: {field.name} must be above zero.")
        if not 16 <= self.open_files <= 1024:
            raise ConfigurationError("Limits: open_files must be from 16 to 1024.")


Kind = Literal["walled", "subset", "unsafe"]


class SandboxRefused(ConfigurationError):
    """No safe place to run programs could be had; the message says why, and what to do."""


@dataclass(frozen=True)
class Level:
    """The report of a sandbox on how programs are held.

    Attributes:
        kind: `walled` (seccomp and Landlock), `subset` (the interpreter `pydantic-monty`, which is
            not the whole of Python), or `unsafe`.
        walls: What stands between a program and the machine.
        proved: What the self-test tried and saw refused.
        gaps: What is known to get through, or not to work.
    """

    kind: Kind
    walls: tuple[str, ...]
    proved: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def is_safe(self) -> bool:
        """Whether it is meant to hold a hostile program."""
        return self.kind != "unsafe"

    def __str__(self) -> str:
        lines = [f"sandbox: {self.kind}" + ("" if self.is_safe else " (NOT SAFE)")]
        for name, entries in (("walls", self.walls), ("proved", self.proved), ("gaps", self.gaps)):
            lines += [f"  {name}: {'; '.join(entries)}"] if entries else []
        return "\n".join(lines)


_LONGEST_ERROR: Final = 600


def content_of(job: Job, call: tuple[str, str]) -> bytes:
    """The content of a call for a child; what a test expects is nowhere in it."""
    return encode(job.program, job.function, *call, job.setup)


def encode(program: str, function: str, arguments: str, keywords: str, setup: str = "") -> bytes:
    """A call as a child reads it."""
    call = {
        "program": program,
        "function": function,
        "arguments": arguments,
        "keywords": keywords,
        "setup": setup,
    }
    return marshal.dumps(call)  # for a child of the same Python


def result_of(content: bytes) -> Outcome:
    """The outcome of a call whose process ended by itself, from what it wrote."""
    if not content:
        return Outcome(error="exit: the program ended the process")
    value, error = values.outcome(content)
    return Outcome(value, printable(error))


def crash_of(number: int) -> Outcome:
    """The outcome of a call whose process was ended by a signal."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = str(number)
    return Outcome(error=f"crash: {name}")


def printable(error: str) -> str:
    """An error's text, which a program may have written: one line, short, no control tokens."""
    line = "".join(c if c.isprintable() else " " for c in error[:_LONGEST_ERROR])
    return escape_control_tokens(line)


class SandboxBase:
    """The base of sandboxes that have `run`: `close` and `with`.

    Args:
        workers: How many jobs run at the same time.
        limits: Of each call.

    Attributes:
        closed: It has been closed.
    """

    closed = False

    def __init__(self, workers: int, limits: Limits | None) -> None:
        self.workers, self.limits = workers, limits or Limits()
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin without processes, also in a process that was forked off."""

    def run(self, job: Job) -> Sequence[Outcome]:
        """One outcome for each call of a job, in order."""
        raise NotImplementedError

    def close(self) -> None:
        """End it."""
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.workers, self.limits)
