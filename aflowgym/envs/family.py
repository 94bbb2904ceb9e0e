"""The facts of played workflow tasks, for the commands that look at what was recorded.

A recorded episode is judged a second time (`aflowgym.envs.recheck`), and the workflows of many are
counted. What can be told of the tasks themselves is in `aflowgym.tasks.loading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aflowgym.tasks.loading import WorkflowTaskFacts

if TYPE_CHECKING:
    from toolgym.statistics import Rollout, Statistics


class WorkflowTaskFamily(WorkflowTaskFacts):
    """Problems for workflows, and what is recorded of playing them."""

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """The submitted solution, read from the transcript and compared in another way."""
        from aflowgym.envs.recheck import recheck

        return recheck(env, task, turns)

    def statistics(self, rollouts: Iterable[Rollout], top: int = 10) -> Statistics:
        """The workflows of rollouts, counted; see `aflowgym.statistics`."""
        from aflowgym.statistics import workflow_statistics

        return workflow_statistics(rollouts, top)

    def read_log(self, lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
        """The workflows in a training log, or in lines of JSON; see `aflowgym.statistics.logs`."""
        from aflowgym.statistics import read_log

        return read_log(lines)
