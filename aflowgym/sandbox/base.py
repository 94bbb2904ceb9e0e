"""The common parts of all sandboxes: limits, levels, and the encoding of calls and outcomes.

The limit on CPU time stops a program that computes for too long, regardless of the load of the
machine. The limit on elapsed time also stops a program that sleeps. If a program exceeds a limit,
the `Outcome` contains the name of the limit.
"""

from __future__ import annotations

import marshal
import signal
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Self

from aflowgym.answers.code import Outcome
from aflowgym.sandbox import values
from toolgym.errors import ConfigurationError
from toolgym.forks import renew_in_child
from toolgym.sanitize import escape_control_tokens

MB: Final = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of a call. All limits must be positive.

    Attributes:
        cpu_seconds: CPU time in whole seconds.
        seconds: Elapsed time in seconds.
        job_seconds: Elapsed time in seconds for all calls of a job. Later calls time out.
        memory_mb: Address space in MB, in addition to the address space of an idle worker.

    Raises:
        ConfigurationError: If a limit is not positive.
    """

    cpu_seconds: int = 4
    seconds: float = 10.0
    job_seconds: float = 30.0
    memory_mb: int = 512

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigurationError(f"Limits: {field.name} must be above zero.")


Kind = Literal["walled", "subset", "unsafe"]


class SandboxRefused(ConfigurationError):
    """Raised if no sandbox works on this machine.

    The message contains the reason and a recommendation.
    """


@dataclass(frozen=True)
class Level:
    """The level of protection that a sandbox provides.

    Attributes:
        kind: `walled` (seccomp and Landlock), `subset` (the interpreter `pydantic-monty`, which
            supports only a subset of Python), or `unsafe`.
        walls: The mechanisms that confine programs.
        proved: The self-test's escape attempts that were blocked.
        gaps: Known leaks and missing features.
    """

    kind: Kind
    walls: tuple[str, ...]
    proved: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def is_safe(self) -> bool:
        """Whether the sandbox is designed to confine hostile programs."""
        return self.kind != "unsafe"

    def __str__(self) -> str:
        lines = [f"sandbox: {self.kind}" + ("" if self.is_safe else " (NOT SAFE)")]
        for name, entries in (("walls", self.walls), ("proved", self.proved), ("gaps", self.gaps)):
            lines += [f"  {name}: {'; '.join(entries)}"] if entries else []
        return "\n".join(lines)


_LONGEST_ERROR: Final = 600


def encode(
    program: str, function: str, arguments: str, keywords: str = "{}", setup: str = ""
) -> bytes:
    """Encode a call for a child process that runs the same version of Python."""
    return marshal.dumps((program, function, arguments, keywords, setup))


def result_of(content: bytes) -> Outcome:
    """Return the outcome of a call from the bytes that the child process wrote before exiting."""
    if not content:
        return Outcome(error="exit: the program ended the process")
    value, error = values.outcome(content)
    return Outcome(value, printable(error))


def crash_of(number: int) -> Outcome:
    """Return the outcome of a call whose process was killed by a signal."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = str(number)
    return Outcome(error=f"crash: {name}")


def printable(error: str) -> str:
    """Return an error message as one short line without control tokens."""
    line = "".join(c if c.isprintable() else " " for c in error[:_LONGEST_ERROR])
    return escape_control_tokens(line)


class SandboxBase:
    """Base class of sandboxes, with `close` and support for `with`, forking and pickling.

    Args:
        workers: Maximum number of parallel jobs.
        limits: Limits of each call.

    Attributes:
        closed: Whether `close` was called.
    """

    closed = False

    def __init__(self, workers: int = 2, limits: Limits | None = None) -> None:
        self.workers, self.limits = workers, limits or Limits()
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Initialize the sandbox without processes; also called in a forked child."""

    def close(self) -> None:
        """Close the sandbox."""
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.workers, self.limits)
