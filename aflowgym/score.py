"""The score of a run of a workflow: operator calls as cost, and its result as progress.

The environments and `aflowgym.worth` both use these functions. The reward law is `toolgym.rewards`:
each call of a model costs as much as a step of the agent, in addition to the step of the tool call.
Tokens are reported and can be limited, and have no price, because their number depends on the
wording.

| progress | what was reached                                     |
| -------- | ---------------------------------------------------- |
| 0.0      | nothing that can be read as a workflow               |
| 0.1      | a workflow that parses, with types that do not fit   |
| 0.3      | a workflow that ran and left no solution             |
| 0.5      | a workflow that left a solution, failed later or not |
| to 0.9   | the same, plus 0.4 of what the verifier's progress is |
| 1.0      | a right solution                                     |
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
    """Charge the calls of models that one run made, in addition to the step of the tool call."""
    for _ in range(calls):
        ledger.charge("step")


def progress(verdict: Verdict | None, *, parsed: bool = True, checked: bool = True) -> float:
    """The progress of a submitted workflow, in [0, 1].

    Args:
        verdict: The judgement of the solution it left; None if it left none.
        parsed: It could be read as a workflow.
        checked: Its types fit, so that it was run.
    """
    if verdict is None:
        return CHECKED if checked and parsed else PARSED * parsed
    return 1.0 if verdict.correct else RAN + NEARNESS * verdict.progress


def episode_score(config: RewardConfig, calls: int, reached: float, correct: bool) -> float:
    """The score of the episode that submits one workflow, once, and answers.

    A run that left no solution answers nothing, wrongly. `reached` is its `progress`.
    """
    ledger = Ledger(config, correct=correct, answered=True)
    ledger.charge("step")
    charge_calls(ledger, calls)
    ledger.reach(reached)
    return ledger.score()


# One more demand on the weights: a workflow that runs must be worth more than one that does not.
#
#     partial * progress(ran, wrong) - cost(calls of a whole budget)
#         > partial * progress(parsed) - cost(one failed call)
#
# The left side is the worst that one valid workflow can come to which leaves a wrong solution: it
# spends every call that it may make. The right side is the best that an invalid one can come to. In
# the system that this language is from, a text that did not parse was worth as much as a wrong
# workflow, so a model learned to write nonsense. All other demands are those of
# `toolgym.rewards.RewardConfig`.


def check_weights(config: RewardConfig, calls: int) -> None:
    """Refuse weights under which nonsense is worth as much as a wrong workflow.

    Raises:
        ConfigurationError: The demand above does not hold.
    """
    valid = episode_score(config, calls, RAN, correct=False)
    invalid = invalid_score(config)
    if valid <= invalid:
        raise ConfigurationError(
            f"rewards are refused: a valid wrong workflow of {calls} calls scores"
            f" {_sum_text(config, RAN, valid)}, and an invalid one"
            f" {_sum_text(config, PARSED, invalid)}; {valid:.4f} > {invalid:.4f} must hold:"
            " raise partial or failed_call, or lower step or cost_cap."
        )


def invalid_score(config: RewardConfig) -> float:
    """The score of the episode that submits one workflow whose types do not fit, and answers."""
    ledger = Ledger(config, answered=True)
    ledger.charge("step")
    ledger.charge("failed_call")
    ledger.reach(PARSED)
    return ledger.score()


def _sum_text(config: RewardConfig, reached: float, score: float) -> str:
    """A score as it is made up: progress, less cost."""
    ledger = Ledger(config)
    ledger.reach(reached)
    earned = config.partial * ledger.progress
    return f"{earned:.4f} - {earned - score:.4f} = {score:.4f}"
