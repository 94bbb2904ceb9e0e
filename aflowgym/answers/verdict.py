"""The verdict of a verifier: right, wrong, or that it cannot tell, with the reason.

Only `correct` decides. `progress` measures how near a wrong answer is (the fraction of the tests
that pass, the F1 of the words) and is never read as correctness. An answer that cannot be read is
wrong; a *gold* that cannot be read makes the verdict unscored (`correct` is None), since the agent
is not at fault. The reason is for reports: it may reveal the gold, so no observation shows it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """The judgement of one answer.

    Attributes:
        correct: Fully right; None where the gold itself cannot be read.
        progress: In [0, 1]; 1.0 exactly if correct.
        reason: Why not, as the end of a sentence; empty if correct.
    """

    correct: bool | None
    progress: float = 0.0
    reason: str = ""


RIGHT = Verdict(True, 1.0)


def wrong(reason: str, progress: float = 0.0) -> Verdict:
    """A wrong answer; its progress stays below that of a right one."""
    return Verdict(False, min(progress, 0.999), reason)
