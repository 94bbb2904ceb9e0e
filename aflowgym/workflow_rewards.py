"""One more demand on the weights: a workflow that runs must be worth more than one that does not.

    partial * progress(ran, wrong) - cost(calls of a whole budget)
        > partial * progress(parsed) - cost(one failed call)

The left side is the worst that one valid workflow can come to which leaves a wrong solution: it
spends every call that it may make. The right side is the best that an invalid one can come to. In
the system that this language is from, a text that did not parse was worth as much as a wrong
workflow, so a model learnt to write nonsense. All other demands are those of
`toolgym.rewards.RewardConfig`.
"""

from __future__ import annotations

from aflowgym import costs
from toolgym.errors import ConfigurationError
from toolgym.rewards import Ledger, RewardConfig


def check_weights(config: RewardConfig, calls: int) -> None:
    """Refuse weights under which nonsense is worth as much as a wrong workflow.

    Args:
        config: The weights.
        calls: Most calls of the model that one workflow can make.

    Raises:
        ConfigurationError: The demand above does not hold.
    """
    valid = costs.episode_score(config, calls, costs.RAN, correct=False)
    invalid = invalid_score(config)
    if valid <= invalid:
        raise ConfigurationError(
            f"rewards are refused: a valid wrong workflow of {calls} calls scores"
            f" {_told(config, costs.RAN, valid)}, and an invalid one"
            f" {_told(config, costs.PARSED, invalid)}; {valid:.4f} > {invalid:.4f} must hold:"
            " raise partial or failed_call, or lower step or cost_cap."
        )


def invalid_score(config: RewardConfig) -> float:
    """The score of the episode that submits one workflow whose types do not fit, and answers."""
    ledger = Ledger(config, answered=True)
    ledger.charge("step")
    ledger.charge("failed_call")
    ledger.reach(costs.PARSED)
    return ledger.score()


def _told(config: RewardConfig, reached: float, score: float) -> str:
    """A score as it is made up: progress, less cost."""
    ledger = Ledger(config)
    ledger.reach(reached)
    earned = config.partial * ledger.progress
    return f"{earned:.4f} - {earned - score:.4f} = {score:.4f}"
