"""The score of a workflow run, computed from its model calls (cost) and its result (progress).

The environments and `aflowgym.worth` both use the functions of this module. The rewards follow
`toolgym.rewards`. Each model call costs as much as a step of the agent, in addition to the step of
the tool call. Tokens are reported and can be limited. The number of tokens does not reduce the
score, because it depends on the wording.

| progress | result                                               |
| -------- | ---------------------------------------------------- |
| 0.0      | no output that can be parsed as a workflow           |
| 0.1      | a workflow that can be parsed but has a type error   |
| 0.3      | a workflow that ran without producing a solution     |
| 0.5      | a workflow with a solution, even if it failed later  |
| to 0.9   | the same, plus 0.4 times the verifier's progress     |
| 1.0      | a correct solution                                   |
"""

from __future__ import annotations

from typing import Final

from aflowgym.answers.answer import Verdict
from toolgym.errors import ConfigurationError
from toolgym.rewards import Ledger, RewardConfig

PARSED: Final = 0.1
CHECKED: Final = 0.3
RAN: Final = 0.5
NEARNESS: Final = 0.4


def charge_calls(ledger: Ledger, calls: int) -> None:
    """Charge the model calls of one run, in addition to the step of the tool call."""
    for _ in range(calls):
        ledger.charge("step")


def progress(verdict: Verdict | None, *, parsed: bool = True, checked: bool = True) -> float:
    """Return the progress of a workflow, from 0 to 1.

    Args:
        verdict: The verdict on the workflow's solution; None if there is no solution.
        parsed: Whether the text could be parsed as a workflow.
        checked: Whether the workflow has no type errors, so that it was run.
    """
    if verdict is None:
        return CHECKED if checked and parsed else PARSED * parsed
    return 1.0 if verdict.correct else RAN + NEARNESS * verdict.progress


def episode_score(config: RewardConfig, calls: int, reached: float, correct: bool) -> float:
    """Return the score of an episode in which one workflow is run once and then submitted.

    A run without a solution counts as a wrong answer. `reached` is its `progress`.
    """
    ledger = Ledger(config, correct=correct, answered=True)
    ledger.charge("step")
    charge_calls(ledger, calls)
    ledger.reach(reached)
    return ledger.score()


# The weights have one more constraint: a workflow that runs must score higher than one that does
# not.
#
#     partial * progress(ran, wrong) - cost(calls of a whole budget)
#         > partial * progress(parsed) - cost(one failed call)
#
# The left side is the lowest score of a valid workflow with a wrong solution, which uses every call
# of its budget. The right side is the highest score of an invalid workflow. If both were equal, a
# model could learn to write invalid workflows. All other constraints are those of
# `toolgym.rewards.RewardConfig`.


def check_weights(config: RewardConfig, calls: int) -> None:
    """Check that an invalid workflow scores lower than a valid one with a wrong solution.

    Raises:
        ConfigurationError: If an invalid workflow would score at least as high.
    """
    valid = episode_score(config, calls, RAN, correct=False)
    invalid = invalid_score(config)
    if valid <= invalid:
        raise ConfigurationError(
            f"invalid rewards: a valid workflow of {calls} calls with a wrong solution scores"
            f" {_sum_text(config, RAN, valid)}, but an invalid workflow scores"
            f" {_sum_text(config, PARSED, invalid)}, which must be less. Raise partial or"
            " failed_call, or lower step or cost_cap."
        )


def invalid_score(config: RewardConfig) -> float:
    """Return the score of an episode with a single workflow that has a type error."""
    ledger = Ledger(config, answered=True)
    ledger.charge("step")
    ledger.charge("failed_call")
    ledger.reach(PARSED)
    return ledger.score()


def _sum_text(config: RewardConfig, reached: float, score: float) -> str:
    """Return a score as text: progress minus cost."""
    ledger = Ledger(config)
    ledger.reach(reached)
    earned = config.partial * ledger.progress
    return f"{earned:.4f} - {earned - score:.4f} = {score:.4f}"
