"""`FaultLimit`: the stop of a run whose environment keeps failing.

A rollout that a fault of the machine left unscored is left out of training, so one bad moment costs
one rollout. But a run whose database has vanished would go on for hours and learn nothing. (Where
it is the model that cannot go on, guards end the run with `TrainingStopped`, below.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from toolgym.errors import EnvironmentFault, ToolgymError

WINDOW: Final = 20
SHORTEST: Final = 5


class FaultLimit:
    """Ends a run with `EnvironmentFault` when too many rollouts are lost.

    The faults of the last 20 steps are held against what 20 such steps bring in all, so that one
    bad step at the start stops nothing, while a total failure stops the run at its fifth step. A
    run of fewer steps is its own window, of five steps at least.

    Args:
        steps: Of the whole run.
        limit: The share of rollouts that may be lost.

    >>> limit = FaultLimit(steps=100)
    >>> for step in range(1, 5):
    ...     limit.note(step, rollouts=8, faults=8, latest="the disk is full")
    >>> limit.note(5, rollouts=8, faults=8, latest="the disk is full")
    Traceback (most recent call last):
    toolgym.errors.EnvironmentFault: training stopped at step 5: the environment failed in 40 of ...
    """

    def __init__(self, steps: int, limit: float = 0.2) -> None:
        self._window = min(WINDOW, max(steps, SHORTEST))
        self._limit = limit
        self._steps: deque[tuple[int, int]] = deque(maxlen=WINDOW)

    def note(self, step: int, rollouts: int, faults: int, latest: str) -> None:
        """Count a step's rollouts and faults, and stop if there are too many.

        Raises:
            EnvironmentFault: The share of faults is above the limit.
        """
        self._steps.append((rollouts, faults))
        played = sum(counts[0] for counts in self._steps)
        lost = sum(counts[1] for counts in self._steps)
        if lost > self._limit * played * max(1.0, self._window / len(self._steps)):
            raise EnvironmentFault(
                f"training stopped at step {step}: the environment failed in {lost} of the last"
                f" {played} rollouts, and {self._limit:.0%} of what {self._window} steps bring may"
                f" be lost. The latest fault: {latest}",
                "Repair that, then start again from the last checkpoint.",
            )

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"steps": [list(step) for step in self._steps]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore such a state."""
        self._steps = deque(((int(r), int(f)) for r, f in state["steps"]), maxlen=WINDOW)


# The end of a run that its guards would not let go on.
#
# It is neither a fault of the machine nor a setting that cannot be: training has taken the model
# somewhere it does not come back from. The text says what was seen and what to change; the run's
# last healthy checkpoint is where it can be begun again, with those changes.


class TrainingStopped(ToolgymError):
    """The end of a run by its guards.

    Args:
        step: The optimizer step whose update was not made.
        diagnosis: What was seen and what to change, over several lines.
    """

    def __init__(self, step: int, diagnosis: str) -> None:
        super().__init__(step, diagnosis)
        self.step = step
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        return self.diagnosis
