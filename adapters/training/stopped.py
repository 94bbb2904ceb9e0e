"""The end of a run that its guards would not let go on.

It is neither a fault of the machine nor a setting that cannot be: training has taken the model
somewhere it does not come back from. The text says what was seen and what to change; the run's last
healthy checkpoint is where it can be begun again, with those changes.
"""

from __future__ import annotations


class TrainingStopped(Exception):
    """Guards ended the run.

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
