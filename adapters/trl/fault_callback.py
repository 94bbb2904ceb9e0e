"""`FaultStop`: the fault limit of `adapters.training`, as a callback of TRL's trainers.

A fault in a tool cannot be raised through TRL, which would make it a message to the model. So it is
counted where it happens (`environment.FaultTally`), and checked against the limit after each step.
"""

from __future__ import annotations

from typing import Any, Final

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from adapters.training.guards.fault_limit import FaultLimit
from adapters.trl.environment import RolloutEnvironment
from adapters.trl.snapshots import load_state, save_state

_STATE: Final = "toolgym-faults"


class FaultStop(TrainerCallback):
    """A callback that ends a run with `EnvironmentFault` when too many rollouts are lost.

    The share is that of `FaultLimit`.

    Args:
        environment: The class that `environment_factory` returned.
        limit: The share of rollouts that may be lost.

    >>> trainer = GRPOTrainer(..., environment_factory=environment,
    ...                       callbacks=[FaultStop(environment)])  # doctest: +SKIP
    """

    def __init__(self, environment: type[RolloutEnvironment], limit: float = 0.2) -> None:
        self._tally, self._share = environment._tally, limit
        self._seen = (self._tally.rollouts, self._tally.faults)
        self._limit: FaultLimit | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore the counts of a checkpoint, if there are any."""
        self._limit = FaultLimit(state.max_steps, self._share)
        counts = load_state(state, _STATE)
        if counts is not None:
            self._limit.load_state_dict(counts)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the step's rollouts and faults, and stop if there are too many.

        Raises:
            EnvironmentFault: The share of faults is above the limit.
        """
        rollouts, faults = self._tally.rollouts, self._tally.faults
        played, lost = rollouts - self._seen[0], faults - self._seen[1]
        self._seen = (rollouts, faults)
        if self._limit is None:
            return
        self._limit.note(state.global_step, played, lost, self._tally.latest)
        save_state(state, _STATE, self._limit.state_dict())
