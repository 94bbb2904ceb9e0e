"""The family of workflow tasks, for the commands on recorded episodes and logs.

It judges a recorded episode a second time (`aflowgym.envs.recheck`), counts the workflows of many,
and reads the logs of other trainers. The facts of tasks are in `aflowgym.tasks.loading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aflowgym.tasks.loading import WorkflowTaskFacts

if TYPE_CHECKING:
    from toolgym.statistics import Rollout, Statistics


class WorkflowTaskFamily(WorkflowTaskFacts):
    """Problems that workflows solve."""

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """The submitted solution, read from the transcript and compared in another way."""
        from aflowgym.envs.recheck import recheck

        return recheck(env, task, turns)

    def statistics(
        self,
        rollouts: Iterable[Rollout],
        top: int = 10,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> Statistics:
        """The workflows of rollouts, counted; see `aflowgym.statistics`."""
        from aflowgym.operators import OPERATORS
        from aflowgym.statistics import workflow_statistics

        operators = OPERATORS.of((env_kwargs or {}).get("operators"))
        return workflow_statistics(rollouts, top, operators=operators)

    def read_log(self, lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
        """The workflows in a training log, or in lines of JSON; see `aflowgym.statistics.logs`."""
        from aflowgym.statistics import read_log

        return read_log(lines)
