"""The tools of different rollouts run at the same time, though TRL asks for them one by one.

TRL goes through the rollouts of a batch and runs the calls of each before it looks at the next, so
a tool that takes a second takes as many as there are rollouts. Here the first call that TRL asks
for sends off every rollout that has said something new (`workers`), and all later ones find their
results there. A rollout plays its own message in order, as it would alone, and no two rollouts
share anything, so the results do not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from adapters.training.workers import Workers
from adapters.trl.factory import RolloutEnvironment

Message = dict[str, Any]


class Crew:
    """The rollouts of one tool loop.

    Args:
        environments: One per rollout.
        completions: The messages of each so far, by reference: TRL extends these lists.
        workers: Play several rollouts at once.
    """

    def __init__(
        self,
        environments: Sequence[RolloutEnvironment],
        completions: Sequence[list[Message]],
        workers: Workers,
    ) -> None:
        self._environments, self._completions = environments, completions
        self._workers = workers
        self._played: list[Message | None] = [None] * len(environments)
        self._results: list[Iterator[str]] = [iter(())] * len(environments)

    def tools(self) -> list[RolloutTools]:
        """What stands where TRL looks for the tools of each rollout."""
        return [RolloutTools(self, rollout) for rollout in range(len(self._environments))]

    def next_result(self, rollout: int) -> str:
        """What the next call in a rollout's latest message returned."""
        if self._completions[rollout][-1] is not self._played[rollout]:
            self._play()
        return next(self._results[rollout], "")

    def _play(self) -> None:
        """Play every message that has calls and was not played yet."""
        latest = [messages[-1] for messages in self._completions]
        waiting = [i for i, message in enumerate(latest) if self._waits(i, message)]
        said = [(self._environments[i], latest[i]) for i in waiting]
        for i, results in zip(waiting, self._workers.each(_say, said), strict=True):
            self._played[i], self._results[i] = latest[i], iter(results)

    def _waits(self, rollout: int, message: Message) -> bool:
        return bool(message.get("tool_calls")) and message is not self._played[rollout]


def _say(said: tuple[RolloutEnvironment, Message]) -> list[str]:
    environment, message = said
    return environment._say(getattr(message, "action", message))


class RolloutTools(dict[str, Callable[..., str]]):
    """The tools of one rollout, to TRL: every name is one, and a message is played as a whole."""

    def __init__(self, crew: Crew, rollout: int) -> None:
        super().__init__()
        self._crew, self._rollout = crew, rollout

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Callable[..., str]:
        result = self._crew.next_result(self._rollout)
        return lambda **arguments: result
