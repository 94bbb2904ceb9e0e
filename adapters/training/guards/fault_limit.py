"""`FaultLimit`: ends a run whose environment keeps failing. `TrainingStopped`: a stop by guards.

A rollout that a fault left unscored is left out of training, so a single fault costs one rollout.
Without a limit, a run whose database has vanished would go on for hours and learn nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolgym.errors import EnvironmentFault, ToolgymError

WINDOW: Final = 20
SHORTEST: Final = 5


class FaultLimit:
    """Ends a run with `EnvironmentFault` when too many rollouts fail.

    The faults of the last 20 steps are compared with the number of rollouts in 20 such steps, also
    when fewer steps were made. So one bad step at the start does not stop a run, and a total
    failure stops it at the fifth step. For a run of fewer steps, the number is that of its steps,
    but at least five.

    Args:
        steps: Steps of the whole run.
        limit: Maximum share of rollouts with a fault.

    >>> limit = FaultLimit(steps=100)
    >>> for step in range(1, 5):
    ...     limit.note(step, rollouts=8, faults=["the disk is full"] * 8)
    >>> limit.note(5, rollouts=8, faults=["the disk is full"] * 8)
    Traceback (most recent call last):
    toolgym.errors.EnvironmentFault: training stopped at step 5: the environment failed in 40 of ...
    """

    def __init__(self, steps: int, limit: float = 0.2) -> None:
        self._window = min(WINDOW, max(steps, SHORTEST))
        self._limit, self._latest = limit, ""
        self._steps: deque[tuple[int, int]] = deque(maxlen=WINDOW)

    def note(self, step: int, rollouts: int, faults: Sequence[str]) -> None:
        """Count a step's rollouts and faults, and stop if there are too many.

        Args:
            step: The optimizer step.
            rollouts: Number of rollouts.
            faults: Messages of the faults, each of another rollout.

        Raises:
            EnvironmentFault: The share of faults is above the limit.
        """
        self._steps.append((rollouts, len(faults)))
        self._latest = faults[-1] if faults else self._latest
        played = sum(counts[0] for counts in self._steps)
        failed = sum(counts[1] for counts in self._steps)
        if failed > self._limit * played * max(1.0, self._window / len(self._steps)):
            raise EnvironmentFault(
                f"training stopped at step {step}: the environment failed in {failed} of the last"
                f" {played} rollouts; the limit is {self._limit:.0%} of the rollouts of"
                f" {self._window} steps. The latest fault: {self._latest}",
                "Repair that, then start again from the last checkpoint.",
            )

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"steps": [list(step) for step in self._steps]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self._steps = deque(((int(r), int(f)) for r, f in state["steps"]), maxlen=WINDOW)


class TrainingStopped(ToolgymError):
    """Raised when the guards end a run, because further updates would not repair the model.

    To continue, start from the last healthy checkpoint with the changes that the message advises.

    Args:
        step: The optimizer step whose update was skipped.
        diagnosis: The findings and the advice, over several lines.
    """

    def __init__(self, step: int, diagnosis: str) -> None:
        super().__init__(step, diagnosis)
        self.step = step
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        return self.diagnosis
