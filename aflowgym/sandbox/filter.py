"""The seccomp filter: a small program that the kernel runs before each system call.

It is written in the classic BPF of `seccomp(2)`: load a word of the call's description, compare,
jump forward or return. The order is: the ABI (a call by another one, as of 32-bit programs, kills
the process), the calls that are allowed, those that are allowed by an argument, and then a refusal
for all the rest: `ENOSYS` for what is newer than the common numbering of architectures, so that
the C library falls back to what it used before, and `EPERM` for the others.

A filter cannot follow a pointer, so no rule is about a path. Paths are Landlock's (`walls`).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from aflowgym.sandbox.syscalls import BY_ARGUMENT, Architecture

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000
EPERM: Final = _ERRNO | 1
ENOTTY: Final = _ERRNO | 25
ENOSYS: Final = _ERRNO | 38
EOPNOTSUPP: Final = _ERRNO | 95
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ABI, _ARGUMENTS = 0, 4, 16
_X32: Final = 0x40000000
#: From here on a call has the same number everywhere.
_COMMON: Final = 424
_WRITE_ONLY, _READ_WRITE, _MODE, _TRUNCATE, _NAMELESS = 0o1, 0o2, 0o3, 0o1000, 0o20000000
#: Duplicate a descriptor, read and set its flags: no owner, no lease, no size of a pipe.
FCNTL: Final = (0, 1, 2, 3, 4, 1030)
#: Plain, without replacing, exchanged: no whiteout, which is a device.
RENAME: Final = (0, 1, 2)
#: Terminal or not, its size, bytes that wait, close-on-exec: what `open` and `isatty` ask.
IOCTL: Final = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)


class Instruction(NamedTuple):
    """One instruction; the jumps count instructions to leave out."""

    code: int
    true: int
    false: int
    operand: int


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _argument(place: int, *, upper: bool = False) -> Instruction:
    """Half of an argument; both architectures put the lower half first."""
    return _load(_ARGUMENTS + 8 * place + 4 * upper)


def _end(answer: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, answer)


def _one_of(place: int, values: tuple[int, ...], otherwise: int) -> list[Instruction]:
    """Allow if the lower half of an argument is one of these."""
    tests = [Instruction(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [_argument(place), *tests, _end(otherwise), _end(ALLOW)]


def _opening(place: int) -> list[Instruction]:
    """Refuse a file without a name, and to empty one that is opened for reading.

    Linux does the second and old Landlocks let it. The answer to the first (`O_TMPFILE`) is that of
    a file system that has none of these, and who asked takes a file with a name.
    """
    return [
        _argument(place),
        Instruction(_ANY_BIT, 0, 1, _NAMELESS),
        _end(EOPNOTSUPP),
        Instruction(_ANY_BIT, 0, 4, _TRUNCATE),
        Instruction(_AND, 0, 0, _MODE),
        Instruction(_EQUAL, 2, 0, _WRITE_ONLY),
        Instruction(_EQUAL, 1, 0, _READ_WRITE),
        _end(EPERM),
        _end(ALLOW),
    ]


def _reading_limits() -> list[Instruction]:
    """Only one's own limits, and only reading them: no process, no new value."""
    zero = [
        Instruction(_EQUAL, 0, 5, 0),
        _argument(2),
        Instruction(_EQUAL, 0, 3, 0),
        _argument(2, upper=True),
        Instruction(_EQUAL, 0, 1, 0),
    ]
    return [_argument(0), *zero, _end(ALLOW), _end(EPERM)]


def _by_argument() -> dict[str, list[Instruction]]:
    return {
        "fcntl": _one_of(1, FCNTL, EPERM),
        "ioctl": _one_of(1, IOCTL, ENOTTY),
        "open": _opening(1),
        "openat": _opening(2),
        "prlimit64": _reading_limits(),
        "renameat2": _one_of(4, RENAME, EPERM),
    }


def instructions(machine: Architecture) -> list[Instruction]:
    """The whole filter for a machine."""
    filter_ = [
        _load(_ABI),
        Instruction(_EQUAL, 1, 0, machine.audit),
        _end(KILL),
        _load(_NUMBER),
        Instruction(_AT_LEAST, 0, 1, _X32),
        _end(KILL),
    ]
    for name, number in machine.calls.items():
        if name not in BY_ARGUMENT:
            filter_ += [Instruction(_EQUAL, 0, 1, number), _end(ALLOW)]
    for name, rule in _by_argument().items():
        if name in machine.calls:
            # A rule returns on every way through it, so what it loads is nobody else's.
            filter_ += [Instruction(_EQUAL, 0, len(rule), machine.calls[name]), *rule]
    return [*filter_, Instruction(_AT_LEAST, 0, 1, _COMMON), _end(ENOSYS), _end(EPERM)]


def assembled(machine: Architecture) -> bytes:
    """The filter as the kernel reads it, eight bytes an instruction."""
    return b"".join(struct.pack("=HBBI", *each) for each in instructions(machine))
