"""What one call of a program may use.

The CPU limit is the one that stops a busy program, and it counts the same on a busy machine; the
clock behind it stops one that sleeps. Both are far above what the solution of a task needs. A
program is told nothing of them, and what exceeds one is an `Outcome` with the name of the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal

from toolgym.errors import ConfigurationError

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


# What a sandbox protects from, in words that can be printed, and the refusal where it cannot.
#
# A level is a report, not a switch: the walls that stand, what the self-test tried against them,
# and what is known to get through. It belongs into the record of a run.

Kind = Literal["bubblewrap", "walled", "subset", "unsafe"]


class SandboxRefused(ConfigurationError):
    """No safe place to run programs could be had; the message says why, and what to do."""


@dataclass(frozen=True)
class Level:
    """How programs are held.

    Attributes:
        kind: `walled` (seccomp and Landlock), `bubblewrap` (the same inside bubblewrap), `subset`
            (the interpreter `pydantic-monty`, which is not the whole of Python), or `unsafe`.
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
        """Is it meant to hold a hostile program?"""
        return self.kind != "unsafe"

    def __str__(self) -> str:
        lines = [f"sandbox: {self.kind}" + ("" if self.is_safe else " (NOT SAFE)")]
        for name, told in (("walls", self.walls), ("proved", self.proved), ("gaps", self.gaps)):
            lines += [f"  {name}: {'; '.join(told)}"] if told else []
        return "\n".join(lines)
