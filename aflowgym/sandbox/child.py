"""The forked child process: it reads a call, restricts itself, and writes the program's result.

The child reads the call from a file descriptor that the worker passes on without reading the call.
Therefore no program, argument or value is ever in the memory of the worker, which all later
children inherit. Before the program starts, the restrictions are applied, and all file descriptors
are closed except for the result's descriptor and three descriptors for `/dev/null`.

The program runs in a module other than `__main__`, with a minimal environment and a seeded `random`
module, so that the same program returns the same value.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import marshal
import os
import random
import sys
import types
from collections.abc import Callable
from typing import Any, Final, NoReturn

from aflowgym.sandbox import values

RESULT, BEGUN = 3, 4
BEGUN_WELL: Final = b"+"
MODULE: Final = "program"
FILE: Final = "<program>"
SETUP: Final = "<setup>"
_LONGEST_ERROR: Final = 500
#: Upper bound on descriptor numbers: the limit of a worker is lower, and inherited numbers are low.
_MOST_DESCRIPTORS: Final = 4096
_NAMES: Final = {"inf": float("inf"), "nan": float("nan"), "set": set, "frozenset": frozenset}


def run(job: int, result: int, begun: int, walls: Callable[[], None]) -> NoReturn:
    """Run the call in `job`, write the outcome to `result`, and end the process.

    Args:
        job: File descriptor from which the call is read.
        result: File descriptor to which the outcome is written.
        begun: A pipe. `BEGUN_WELL` is written to this pipe immediately before the program starts.
            If the restrictions cannot be applied, the reason is written instead, and the program is
            not run.
        walls: A function that applies the restrictions.
    """
    try:
        try:
            call = marshal.loads(_all_of(job))
            walls()
            _place(result, begun)
            os.write(BEGUN, BEGUN_WELL)
        except (OSError, ValueError) as problem:
            with contextlib.suppress(OSError):
                os.write(begun, str(problem).encode()[:200])
            os._exit(1)
        os.close(BEGUN)
        os.write(RESULT, performed(call))
    finally:
        os._exit(0)


def _place(result: int, begun: int) -> None:
    """Move descriptors to their fixed numbers, and close all others.

    The first three are reopened. The flags of an open file are shared by all processes that
    inherited it, so a program could use those of the worker to pass a message to the next program.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, BEGUN + 1) for fd in (nowhere, result, begun)]
    for place, fd in enumerate((high[0], high[0], *high)):
        os.dup2(fd, place)
    os.closerange(BEGUN + 1, _MOST_DESCRIPTORS)


def _all_of(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def performed(call: tuple[str, ...]) -> bytes:
    """Run a call in this process, and return its outcome as encoded by `values`."""
    random.seed(0)  # imported here, because a fork seeds it from the system
    try:
        return values.dump(_returned(*call))
    except values.NoLiteral as problem:
        return values.dump_error(f"{problem}; return a number, a text or a list of them")
    except MemoryError:
        return b'{"error": "memory"}'
    except BaseException as problem:  # noqa: BLE001 - the boundary: a program raises what it likes
        return values.dump_error(_error_text(problem))


def clean() -> None:
    """Reset the state that children inherit: the environment, and the modules of this package."""
    os.environ.clear()
    os.environ.update({"HOME": "/", "LANG": "C.UTF-8", "TZ": "UTC"})
    for name in [name for name in sys.modules if name.partition(".")[0] == "aflowgym"]:
        del sys.modules[name]


def _returned(program: str, function: str, arguments: str, keywords: str, setup: str) -> Any:
    args, kwargs = _literal(arguments), _literal(keywords)
    module = types.ModuleType(MODULE)
    sys.modules[MODULE] = module
    for source, file in ((setup, SETUP), (program, FILE)):
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
    if function not in module.__dict__:
        raise NameError(f"the program defines no function {function!r}")
    return module.__dict__[function](*args, **kwargs)


def _literal(text: str) -> Any:
    """Return the value of an argument from the task, in which `inf` and `set()` may occur."""
    try:
        return ast.literal_eval(text)
    except ValueError:
        return eval(text, {"__builtins__": {}, "float": float, **_NAMES})


def _error_text(problem: BaseException) -> str:
    """Return the exception with its message and the last line of the program in the traceback."""
    line, frame = None, problem.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == FILE:
            line = frame.tb_lineno
        frame = frame.tb_next
    if isinstance(problem, SyntaxError) and problem.filename == FILE:
        line, message = problem.lineno, problem.msg
    else:
        message = str(problem)
    text = type(problem).__name__ + (f": {message}" if message else "")
    return text[:_LONGEST_ERROR] + (f" (line {line})" if line else "")
