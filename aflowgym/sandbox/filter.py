"""The seccomp filter: a small program that the kernel runs before each system call.

The filter is written in the classic BPF language of `seccomp(2)`, whose instructions load a word of
data about the system call, compare values, jump forward or return. The filter checks each system
call in this order:

* A call through another ABI, such as the 32-bit ABI, kills the process.
* Calls on the allow-list are allowed.
* A few calls are allowed only with certain arguments.
* All other calls are rejected. Calls with numbers above the start of the numbering shared by all
  architectures return `ENOSYS`, so that the C library uses an older call instead. The others return
  `EPERM`.

A seccomp filter cannot dereference pointers, so no rule can depend on a path. Access to paths is
restricted by Landlock (`walls`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

# System calls that a program may make, with their numbers on each architecture.
#
# This is an allow-list: all other calls are refused, including calls of later kernels. The list has
# the calls that a Python program needs to compute and to read its standard library. It does not
# have processes and threads, signals to other processes, sockets, shared memory, tracing, mounts,
# keys and limits, and no call that moves, removes or changes files.
#
# A few calls are allowed with certain arguments only (`BY_ARGUMENT`). `filter` has the rules.
#
# Sources: the kernel's `asm/unistd_64.h` and `asm-generic/unistd.h`.

#: Name -> (number on x86_64, number on aarch64); None if an architecture does not have it.
NUMBERS: Final[Mapping[str, tuple[int, int | None]]] = {
    "read": (0, 63),
    "write": (1, 64),
    "open": (2, None),
    "close": (3, 57),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "poll": (7, None),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "ioctl": (16, 29),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, None),
    "pipe": (22, None),
    "select": (23, None),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "dup": (32, 23),
    "dup2": (33, None),
    "pause": (34, None),
    "nanosleep": (35, 101),
    "getitimer": (36, 102),
    "alarm": (37, None),
    "setitimer": (38, 103),
    "getpid": (39, 172),
    "exit": (60, 93),
    "uname": (63, 160),
    "fcntl": (72, 25),
    "getdents": (78, None),
    "getcwd": (79, 17),
    "readlink": (89, None),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "times": (100, 153),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getppid": (110, 173),
    "getpgrp": (111, None),
    "getpgid": (121, 155),
    "getsid": (124, 156),
    "getgroups": (115, 158),
    "sigaltstack": (131, 132),
    "time": (201, None),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "getdents64": (217, 61),
    "fadvise64": (221, 223),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "openat": (257, 56),
    "newfstatat": (262, 79),
    "readlinkat": (267, 78),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "pselect6": (270, 72),
    "ppoll": (271, 73),
    "dup3": (292, 24),
    "pipe2": (293, 59),
    "getrandom": (318, 278),
    "statx": (332, 291),
    "getcpu": (309, 168),
    "close_range": (436, 436),
    "restart_syscall": (219, 128),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "rt_sigsuspend": (130, 133),
}
BY_ARGUMENT: Final = frozenset({"fcntl", "ioctl", "open", "openat"})


class Architecture(NamedTuple):
    """The constants of an architecture that the filter needs, such as system call numbers.

    Attributes:
        name: Name of the machine type, as returned by `platform.machine()`.
        audit: The audit architecture number (`AUDIT_ARCH_*`) that the kernel passes to the filter
            to identify the ABI of a call.
        calls: Numbers of the allowed system calls, by name.
    """

    name: str
    audit: int
    calls: dict[str, int]


_AUDIT: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def architecture(machine: str) -> Architecture | None:
    """Return the numbers for a machine type.

    The result is None if the machine type is not supported.
    """
    if machine not in _AUDIT:
        return None
    place = list(_AUDIT).index(machine)
    calls = {name: both[place] for name, both in NUMBERS.items()}
    numbered = {name: number for name, number in calls.items() if number is not None}
    return Architecture(machine, _AUDIT[machine], numbered)


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
#: Starting at this number, a call has the same number on all architectures.
_COMMON: Final = 424
_WRITE_ONLY, _READ_WRITE, _MODE, _TRUNCATE, _NAMELESS = 0o1, 0o2, 0o3, 0o1000, 0o20000000
#: Duplicate a descriptor, read and set its flags: no owner, no lease, no size of a pipe.
FCNTL: Final = (0, 1, 2, 3, 4, 1030)
#: Queries of `open` and `isatty`: terminal or not, its size, waiting bytes, close-on-exec.
IOCTL: Final = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)


class Instruction(NamedTuple):
    """One instruction. The jump offsets count the instructions to skip."""

    code: int
    true: int
    false: int
    operand: int


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _argument(place: int) -> Instruction:
    """Load the lower half of an argument, which both architectures store first."""
    return _load(_ARGUMENTS + 8 * place)


def _end(answer: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, answer)


def _one_of(place: int, values: tuple[int, ...], otherwise: int) -> list[Instruction]:
    """Allow the call if the lower half of an argument is one of these values."""
    tests = [Instruction(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [_argument(place), *tests, _end(otherwise), _end(ALLOW)]


def _opening(place: int) -> list[Instruction]:
    """Refuse to open unnamed files, and to truncate a file that is opened for reading.

    Linux allows truncation in this case, and old versions of Landlock do not prevent it. The error
    for an unnamed file (`O_TMPFILE`) is that of a file system without support for such files, so
    that the caller uses a named file instead.
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


def _by_argument() -> dict[str, list[Instruction]]:
    return {
        "fcntl": _one_of(1, FCNTL, EPERM),
        "ioctl": _one_of(1, IOCTL, ENOTTY),
        "open": _opening(1),
        "openat": _opening(2),
    }


def instructions(machine: Architecture) -> list[Instruction]:
    """Return the complete filter for a machine type."""
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
            # every path through a rule returns, so later rules do not depend on the value that it
            # loads
            filter_ += [Instruction(_EQUAL, 0, len(rule), machine.calls[name]), *rule]
    return [*filter_, Instruction(_AT_LEAST, 0, 1, _COMMON), _end(ENOSYS), _end(EPERM)]


def assembled(machine: Architecture) -> bytes:
    """Return the filter in the kernel's binary format, with eight bytes per instruction."""
    return b"".join(struct.pack("=HBBI", *each) for each in instructions(machine))
