"""One executor, two faces: waiting, and not waiting.

The executor is written once, with `async`. Under the waiting face nothing in it ever suspends, so
the coroutine runs to its end in one go, without an event loop; under the other face branches run at
the same time. Steps, draws and traces are the same, since nothing depends on the order of branches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from aflowgym.answers.code import Outcome
from aflowgym.execution.protocols import Backend, Completion, Job, Request, Sandbox
from toolgym.errors import ConfigurationError

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]


class Face(Protocol):
    """How the executor reaches backend and sandbox, and runs pieces of work together."""

    async def generate(self, request: Request) -> Completion:
        """One completion."""
        ...

    async def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes of a job."""
        ...

    async def together(self, work: Sequence[Work[T]]) -> list[T]:
        """The results of pieces of work that do not touch each other, in order."""
        ...


class Waiting:
    """One thing after the other; no event loop."""

    def __init__(self, backend: Backend, sandbox: Sandbox | None) -> None:
        self.backend, self.sandbox = backend, sandbox

    async def generate(self, request: Request) -> Completion:
        """One completion."""
        return self.backend.generate(request)

    async def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes of a job."""
        return needed(self.sandbox).run(job)

    async def together(self, work: Sequence[Work[T]]) -> list[T]:
        """The results, one after the other."""
        return [await piece() for piece in work]


class Concurrent:
    """Branches and votes at the same time, on the running event loop."""

    def __init__(self, backend: Backend, sandbox: Sandbox | None) -> None:
        self.backend, self.sandbox = backend, sandbox

    async def generate(self, request: Request) -> Completion:
        """One completion."""
        return await self.backend.agenerate(request)

    async def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes of a job."""
        return await needed(self.sandbox).arun(job)

    async def together(self, work: Sequence[Work[T]]) -> list[T]:
        """The results; if one piece fails, the others are cancelled before its error goes on."""
        tasks = [asyncio.ensure_future(piece()) for piece in work]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await _ended(tasks)


async def _ended(tasks: Sequence[Awaitable[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def needed(sandbox: Sandbox | None) -> Sandbox:
    """The sandbox.

    Raises:
        ConfigurationError: There is none.
    """
    if sandbox is None:
        raise ConfigurationError(
            "programs have to run, and there is no sandbox: pass one as sandbox=, take a backend"
            " that brings one (the simulated one does), or use no operator that runs programs."
        )
    return sandbox


def finished(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine under the waiting face, which never suspends.

    Raises:
        RuntimeError: It did suspend.
    """
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a backend waited inside its waiting face.")
