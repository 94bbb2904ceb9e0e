"""What a sandbox protects from, in words that can be printed, and the refusal where it cannot.

A level is a report, not a switch: the walls that stand, what the self-test tried against them, and
what is known to get through. It belongs into the record of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolgym.errors import ConfigurationError

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
