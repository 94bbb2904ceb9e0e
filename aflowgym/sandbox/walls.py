"""Restrict processes by Landlock, seccomp, capabilities and resource limits, using only `ctypes`.

Landlock (`landlock(7)`) restricts access to files: a path can be opened only if access to it was
granted. The worker enforces a set of Landlock rules when it starts. Each child enforces the same
rules again, which also protects the memory of the worker. seccomp restricts system calls; see
`filter`. Restrictions by Landlock, seccomp and `no_new_privs` cannot be undone.

All functions raise `OSError` if the kernel rejects a request.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
from typing import Final

_libc: Final = ctypes.CDLL(None, use_errno=True)
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _NO_NEW_PRIVS = 1, 4, 22, 38

WRITE_FILE, READ_FILE, READ_DIR = 1 << 1, 1 << 2, 1 << 3
READING: Final = READ_FILE | READ_DIR
#: Access rights that a rule for a file may grant.
_OF_FILES: Final = WRITE_FILE | READ_FILE
FILE_BYTES: Final = 8 << 20  # for the result; a program cannot write to any other file
OPEN_FILES: Final = 32
#: Number of access rights in each version. Versions that are not listed add none.
_ACCESS_BITS: Final = ((5, 16), (3, 15), (2, 14), (1, 13))


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, *values: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _check(_libc.prctl(option, *padded), f"prctl {option}")


def _syscall(number: int, *values: object) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *values))


def landlock_version() -> int:
    """Return the version of the Landlock ABI, or 0 if Landlock is missing or disabled."""
    return max(0, _syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1)))


class Ruleset:
    """A set of Landlock rules: the paths that can be opened after `enforce`.

    Args:
        version: Version of Landlock. Later versions also restrict TCP connections, and signals to
            processes outside the sandbox.
    """

    def __init__(self, version: int) -> None:
        self.handled = (1 << next(bits for since, bits in _ACCESS_BITS if version >= since)) - 1
        words = [self.handled]
        if version >= 4:
            words.append(0b11)  # bind, connect
        if version >= 6:
            words.append(0b11)  # abstract sockets, signals
        attributes = struct.pack(f"={len(words)}Q", *words)
        size = ctypes.c_size_t(len(attributes))
        self._fd = _check(_syscall(_CREATE, attributes, size, ctypes.c_uint(0)), "landlock")

    def grant(self, path: str, access: int) -> None:
        """Allow this access to a path and to everything below it."""
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            allowed = access if os.path.isdir(path) else access & _OF_FILES
            rule = struct.pack("=Qi", allowed & self.handled, fd)
            done = _syscall(_ADD, ctypes.c_int(self._fd), ctypes.c_int(1), rule, ctypes.c_uint(0))
            _check(done, f"landlock, {path}")
        finally:
            os.close(fd)

    def enforce(self) -> None:
        """Enforce the rules for this process and its future children."""
        _check(_syscall(_RESTRICT, ctypes.c_int(self._fd), ctypes.c_uint(0)), "landlock")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class Filter:
    """A seccomp filter that was built by `filter.assembled`."""

    def __init__(self, assembled: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(assembled, len(assembled))
        address = ctypes.cast(self._buffer, ctypes.c_void_p)
        self._program = _Program(len(assembled) // 8, address)

    def enforce(self) -> None:
        """Enforce the filter for this process. Call `forgo_privileges` before this method."""
        _prctl(_SET_SECCOMP, 2, ctypes.addressof(self._program))


def forgo_privileges() -> None:
    """Give up all capabilities, including those of root, and the ability to regain them."""
    header, none = struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", 0, 0, 0, 0, 0, 0)
    _check(_libc.capset(header, none), "capset")
    _prctl(_NO_NEW_PRIVS, 1)


def hide() -> None:
    """Prevent other processes from tracing this one and its children, and disable core dumps."""
    _prctl(_SET_DUMPABLE, 0)


def die_with(parent: int) -> None:
    """Let the kernel end this process when its parent ends.

    Raise ProcessLookupError if the parent has already ended.
    """
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        raise ProcessLookupError("the parent is gone")


def limit(kind: int, amount: int, spare: int = 0) -> None:
    """Permanently lower a resource limit of this process.

    The hard limit exceeds the soft limit by `spare`.
    """
    both = (amount, amount + spare)
    ceiling = resource.getrlimit(kind)[1]
    if ceiling != resource.RLIM_INFINITY:
        both = (min(both[0], ceiling), min(both[1], ceiling))
    resource.setrlimit(kind, both)


def limit_space(memory: int) -> None:
    """Limit the address space in bytes, the file size, the number of descriptors, and so on."""
    limit(resource.RLIMIT_CORE, 1)  # smaller than any core dump; 0 would still allow one to a pipe
    limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    for name in ("RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE", "RLIMIT_SIGPENDING"):
        if hasattr(resource, name):
            limit(getattr(resource, name), 0)
    with contextlib.suppress(ValueError):  # for systems that do not have it
        limit(resource.RLIMIT_AS, memory)


def limit_program(cpu_seconds: int) -> None:
    """Set the resource limits for a program, which also prevent it from forking.

    At the CPU limit, the program receives SIGXCPU. If it ignores the signal, it is killed a second
    later.
    """
    limit(resource.RLIMIT_CPU, cpu_seconds, spare=1)
    limit(resource.RLIMIT_NPROC, 0)
