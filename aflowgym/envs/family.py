"""The family of workflow tasks, for commands that process recorded episodes and logs.

The family checks recorded episodes a second time (`aflowgym.envs.recheck`), counts workflows, and
reads the training logs of other trainers. Properties of tasks are defined in
`aflowgym.tasks.loading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aflowgym.tasks.loading import WorkflowTaskFacts

if TYPE_CHECKING:
    from toolgym.statistics import Rollout, Statistics


class WorkflowTaskFamily(WorkflowTaskFacts):
    """The family of tasks that are solved by workflows."""

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """Check the submitted solution of a recorded transcript by independent rules."""
        from aflowgym.envs.recheck import recheck

        return recheck(env, task, turns)

    def statistics(
        self,
        rollouts: Iterable[Rollout],
        top: int = 10,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> Statistics:
        """Return tables about the workflows in rollouts. See `aflowgym.statistics`."""
        from aflowgym.operators import OPERATORS
        from aflowgym.statistics import workflow_statistics

        operators = OPERATORS.of((env_kwargs or {}).get("operators"))
        return workflow_statistics(rollouts, top, operators=operators)

    def read_log(self, lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the workflows in a training log or in JSON lines.

        See `aflowgym.statistics.logs`.
        """
        from aflowgym.statistics import read_log

        return read_log(lines)
