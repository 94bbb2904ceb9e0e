"""The fallback sandbox: `pydantic-monty`, a Python interpreter without system access.

This sandbox works on kernels without Landlock. The interpreter supports only a subset of Python: it
has no generators, no inheritance and few modules, and sets have a different iteration order. The
sandbox accepts returned values, `timeout`, `memory`, and errors that were certainly caused by the
program, such as a `ValueError` or a division by zero. Errors that may be due to an unsupported
feature (an import, a syntax error, a missing name, attribute or argument) raise `EnvironmentFault`,
and the episode is unscored. As a result, no solution is counted as wrong because of a limitation of
the interpreter. However, a program can prevent its own episode from being scored, so use this
sandbox only for evaluation and not for training.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import threading
from collections.abc import Sequence
from typing import Any, Final

from aflowgym.answers.code import Outcome
from aflowgym.answers.literals import parse_program, read_literal
from aflowgym.operators.context import Job
from aflowgym.sandbox import values
from aflowgym.sandbox.base import MB, Level, Limits, SandboxBase, SandboxRefused, printable
from toolgym.errors import EnvironmentFault
from toolgym.forks import leave_to_parent

_LIBRARY: Final = "pydantic_monty"
#: Exceptions that the interpreter may raise because it lacks a feature.
_LACKING: Final = (ImportError, NotImplementedError, AttributeError, TypeError, RuntimeError)
_WALLS: Final = ("pydantic-monty: an interpreter of a SUBSET of Python without access to the host",)
_GAPS: Final = (
    "programs that use missing features cannot run, and their episodes stay unscored",
    "sets have another order than in Python",
)
_ATTEMPTS: Final = {
    "reading a file": "open('/etc/hostname').read()",
    "writing a file": "open('outside', 'w').write('x')",
    "reading the environment": "import os\nos.environ['PATH']",
    "connecting": "import socket\nsocket.socket()",
    "starting a program": "import subprocess\nsubprocess.run(['true'])",
    "calling the system": "import ctypes\nctypes.CDLL(None)",
}


class SubsetSandbox(SandboxBase):
    """A sandbox that runs programs in an interpreter for a subset of Python.

    Args:
        workers: Maximum number of parallel jobs.
        limits: Limits of each call. Only `cpu_seconds` and `memory_mb` apply.

    Raises:
        SandboxRefused: If the library is not installed, or the self-test fails.
        EnvironmentFault: If the library is broken.
    """

    def __init__(self, workers: int = 2, limits: Limits | None = None) -> None:
        if importlib.util.find_spec(_LIBRARY) is None:
            raise SandboxRefused(
                "the subset interpreter is not installed. Run: pip install 'toolgym[sandbox]'."
            )
        self._monty: Any = importlib.import_module(_LIBRARY)
        self._pool: Any = None
        super().__init__(workers, limits)
        self.level = Level("subset", _WALLS, self._prove(), _GAPS)

    def renew(self) -> None:
        """Initialize the sandbox without processes of the library."""
        leave_to_parent(self._pool)
        self._pool = None
        self._start_lock = threading.Lock()

    def run(self, job: Job) -> Sequence[Outcome]:
        """Return one outcome for each call of a job, in order.

        Raises:
            EnvironmentFault: If the interpreter failed, or may lack a feature that the program
                uses.
        """
        return [self._call(job, *call) for call in job.calls]

    def _call(self, job: Job, arguments: str, keywords: str) -> Outcome:
        function, program = job.function, job.program
        if not function.isidentifier():
            return Outcome(error=f"NameError: {function!r} is no name of a function")
        inputs = {"arguments_": read_literal(arguments), "keywords_": read_literal(keywords)}
        try:
            with self._session() as session:
                for source in filter(None, (job.setup, program)):
                    session.feed_run(source, print_callback=_silent)
                value = session.feed_run(
                    f"{function}(*arguments_, **keywords_)", inputs=inputs, print_callback=_silent
                )
        except (self._monty.MontyRuntimeError, self._monty.MontySyntaxError) as problem:
            return _outcome(problem.exception(), program)
        except self._monty.MontyError as problem:
            if getattr(problem, "timed_out", False):
                return Outcome(error="timeout")
            raise EnvironmentFault(f"The subset interpreter failed: {problem}.") from problem
        return _outcome_of_value(value)

    def _session(self) -> Any:
        """Return a new session, in which no code has run."""
        with self._start_lock:
            if self._pool is None:
                # The second limit ends a process that does not observe the first.
                seconds = self.limits.cpu_seconds + 2.0
                pool = self._monty.Monty(max_processes=self.workers, request_timeout=seconds)
                pool.__enter__()
                self._pool = pool
        return self._pool.checkout(
            limits={
                "max_feed_duration_secs": float(self.limits.cpu_seconds),
                "max_memory": self.limits.memory_mb * MB,
            },
            os_policy={"sleep": "zero", "random_start": {"seed": 0}},
        )

    def _prove(self) -> tuple[str, ...]:
        """Try to escape, as the self-test of the walled sandbox does."""
        for meaning, program in _ATTEMPTS.items():
            try:
                with self._session() as session:
                    session.feed_run(program, print_callback=_silent)
            except self._monty.MontyRuntimeError:
                continue
            raise SandboxRefused(f"the subset interpreter does not refuse {meaning}.")
        return tuple(_ATTEMPTS)

    def close(self) -> None:
        """Close the interpreter."""
        super().close()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.__exit__(None, None, None)


def _silent(*_: object) -> None:
    """Discard the output of a program."""


def _outcome_of_value(value: Any) -> Outcome:
    try:
        text, error = values.outcome(values.dump(value))
    except values.NoLiteral as problem:
        return Outcome(error=str(problem))
    except (ValueError, TypeError) as problem:
        return Outcome(error=f"no_literal: {problem}")
    return Outcome(text, error)


def _outcome(raised: BaseException, program: str) -> Outcome:
    """Return the program's error as an outcome, if the program certainly caused it."""
    if isinstance(raised, TimeoutError):
        return Outcome(error="timeout")
    if isinstance(raised, MemoryError):
        return Outcome(error="memory")
    message = printable(f"{type(raised).__name__}: {raised}")
    if isinstance(raised, RecursionError) or not _may_lack(raised, program):
        return Outcome(error=message)
    raise EnvironmentFault(
        f"The subset interpreter could not run a program: {message}",
        "It may lack a feature that the program uses. On Linux with Landlock, all of Python runs.",
    )


def _may_lack(raised: BaseException, program: str) -> bool:
    if isinstance(raised, SyntaxError):
        try:
            parse_program(program)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return False
        return True
    if isinstance(raised, NameError):
        return any(f"'{name}'" in str(raised) for name in dir(builtins))
    return isinstance(raised, _LACKING)
