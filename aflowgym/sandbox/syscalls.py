"""The system calls that a program may make, with their numbers on each architecture.

This is a list of what is allowed; whatever is not in it is refused, so a call that a later kernel
brings is refused too. What a Python program needs to compute, to read its standard library and to
keep files in its own folder is there. What is not: processes and threads, signals to anybody,
sockets, shared memory, tracing, mounts, keys, other people's limits, changing owners, modes, times
and attributes of files, making folders, links and devices.

A few calls are allowed by their arguments only (`BY_ARGUMENT`); `filter` has the rules.

Sources: the kernel's `asm/unistd_64.h` and `asm-generic/unistd.h`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

#: Name -> (number on x86_64, number on aarch64); None where an architecture does not have it.
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
    "pwrite64": (18, 68),
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
    "sendfile": (40, 71),
    "exit": (60, 93),
    "uname": (63, 160),
    "fcntl": (72, 25),
    "ftruncate": (77, 46),
    "getdents": (78, None),
    "getcwd": (79, 17),
    "rename": (82, None),
    "unlink": (87, None),
    "readlink": (89, None),
    "umask": (95, 166),
    "gettimeofday": (96, 169),
    "getrlimit": (97, 163),
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
    "unlinkat": (263, 35),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "readlinkat": (267, 78),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "pselect6": (270, 72),
    "ppoll": (271, 73),
    "dup3": (292, 24),
    "pipe2": (293, 59),
    "prlimit64": (302, 261),
    "getrandom": (318, 278),
    "statx": (332, 291),
    "getcpu": (309, 168),
    "close_range": (436, 436),
    "restart_syscall": (219, 128),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "rt_sigsuspend": (130, 133),
}
BY_ARGUMENT: Final = frozenset({"fcntl", "ioctl", "open", "openat", "prlimit64", "renameat2"})


class Architecture(NamedTuple):
    """What the filter must know of a machine.

    Attributes:
        name: As `platform.machine()` writes it.
        audit: The number by which the kernel tells a filter under which ABI a call was made.
        calls: Numbers of the allowed calls, by name.
    """

    name: str
    audit: int
    calls: dict[str, int]


_AUDIT: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def architecture(machine: str) -> Architecture | None:
    """The table of a machine; None where there is none, and then nothing may run there."""
    if machine not in _AUDIT:
        return None
    place = list(_AUDIT).index(machine)
    calls = {name: both[place] for name, both in NUMBERS.items()}
    known = {name: number for name, number in calls.items() if number is not None}
    return Architecture(machine, _AUDIT[machine], known)
