"""When the environment keeps failing, the run stops and says why.

A rollout that a fault of the machine left unscored is left out of training, so one bad moment costs
one rollout. But a run whose database has vanished would go on for hours and learn nothing.
`FaultStop` looks at the last 20 steps and raises the fault that TRL could not be shown from inside
a tool.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from adapters.trl.factory import RolloutEnvironment
from toolgym.errors import EnvironmentFault

WINDOW = 20
SHORTEST = 5


class FaultStop(TrainerCallback):
    """Ends a run with `EnvironmentFault` when too many rollouts are lost.

    The faults of the last 20 steps are held against what 20 such steps bring in all, so that one
    bad step at the start stops nothing, while a total failure stops the run at its fifth step. A
    run of fewer steps is its own window, of five steps at least.

    Args:
        environment: What `environment_factory` returned.
        limit: The share of rollouts that may be lost.

    >>> trainer = GRPOTrainer(..., environment_factory=environment,
    ...                       callbacks=[FaultStop(environment)])  # doctest: +SKIP
    """

    def __init__(self, environment: type[RolloutEnvironment], limit: float = 0.2) -> None:
        self._tally = environment._tally
        self._limit = limit
        self._seen = (self._tally.rollouts, self._tally.faults)
        self._steps: deque[tuple[int, int]] = deque(maxlen=WINDOW)

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Count the step's rollouts and faults, and stop if there are too many.

        Raises:
            EnvironmentFault: The share of faults is above the limit.
        """
        rollouts, faults = self._tally.rollouts, self._tally.faults
        self._steps.append((rollouts - self._seen[0], faults - self._seen[1]))
        self._seen = (rollouts, faults)
        played = sum(step[0] for step in self._steps)
        lost = sum(step[1] for step in self._steps)
        window = min(WINDOW, max(state.max_steps, SHORTEST))
        if lost > self._limit * played * max(1.0, window / len(self._steps)):
            raise EnvironmentFault(
                f"training stopped at step {state.global_step}: the environment failed in {lost} of"
                f" the last {played} rollouts, and {self._limit:.0%} of what {window} steps bring"
                f" may be lost. The latest fault: {self._tally.latest}",
                "Repair that, then start again from the last checkpoint.",
            )
