"""The limit on environment failures in a run, and the exception with which guards stop a run.

Rollouts that are unscored because of a fault are excluded from training, so a single fault costs
only one rollout. Without a limit, a run whose database is missing would continue for hours without
learning anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolgym.errors import EnvironmentFault, ToolgymError

WINDOW: Final = 20
SHORTEST: Final = 5


class FaultLimit:
    """A limit on the share of failed rollouts; exceeding it ends the run with `EnvironmentFault`.

    The number of faults in the last 20 steps is divided by the number of rollouts in 20 steps, even
    if fewer steps have been made. Therefore a single bad step at the start does not stop a run,
    whereas a run in which every rollout fails stops at the fifth step. For a run of fewer than 20
    steps, the window is the number of its steps, but at least five.

    Args:
        steps: Number of optimizer steps of the entire run.
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
        """Count the rollouts and faults of a step.

        Args:
            step: The optimizer step.
            rollouts: Number of rollouts.
            faults: Messages of the faults, one for each failed rollout.

        Raises:
            EnvironmentFault: If the share of faults is above the limit.
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
                "Fix the cause, then resume from the last checkpoint.",
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"steps": [list(step) for step in self._steps]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self._steps = deque(((int(r), int(f)) for r, f in state["steps"]), maxlen=WINDOW)


class TrainingStopped(ToolgymError):
    """Exception that ends a run when the guards decide to stop it.

    To continue, make the changes that the message suggests and start from the last healthy
    checkpoint.

    Args:
        step: The optimizer step whose update was skipped.
        diagnosis: Findings and advice, on several lines.
    """

    def __init__(self, step: int, diagnosis: str) -> None:
        super().__init__(step, diagnosis)
        self.step = step
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        return self.diagnosis
