"""The facts of played workflow tasks, for the commands that look at what was recorded.

A recorded episode is judged a second time (`aflowgym.envs.recheck`), the workflows of many are
counted, and a single one is drawn. What can be told of the tasks themselves is in
`aflowgym.tasks.loading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aflowgym.tasks.loading import WorkflowTaskFacts
from toolgym.family import WithTools

if TYPE_CHECKING:
    from toolgym.statistics import Rollout, Statistics


class WorkflowTaskFamily(WorkflowTaskFacts):
    """Problems for workflows, and what is recorded of playing them."""

    def recheck(self, env: WithTools, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """The submitted solution, read from the transcript and compared in another way."""
        from aflowgym.envs.recheck import recheck

        return recheck(env, task, turns)

    def statistics(
        self,
        rollouts: Iterable[Rollout],
        top: int = 10,
        *,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> Statistics:
        """The workflows of some rollouts, counted; see `aflowgym.statistics.tables`."""
        from aflowgym.statistics.tables import workflow_statistics

        return workflow_statistics(rollouts, top, env_kwargs=env_kwargs)

    def picture(self, call: Mapping[str, Any]) -> str:
        """The workflow that was submitted, drawn; none of a text that is no workflow."""
        from aflowgym.statistics.workflow_svg import workflow_picture
        from aflowgym.statistics.workflows import RUN_WORKFLOW

        arguments = call.get("arguments")
        text = arguments.get("dsl") if isinstance(arguments, Mapping) else None
        if call.get("name") != RUN_WORKFLOW or not isinstance(text, str):
            return ""
        return workflow_picture(text)
