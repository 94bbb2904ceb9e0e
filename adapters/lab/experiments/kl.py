"""The divergence from the warm-up: is it an anchor, and does it matter where it is charged?

Document 000 has no such penalty and recommends one; document 002 wants it in the loss and not in
the reward. What is done stands in `kl_runs`.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.kl_figures import figures
from adapters.lab.experiments.kl_runs import BETAS, RATES, cells, run
from adapters.lab.prediction import (
    Prediction,
    exact,
    first_number,
    mean_above,
    mean_unchanged,
)

_LOW, _HIGH = (f"lr{rate:g}" for rate in RATES)
_BETA, _MUCH = (f"b{beta:g}" for beta in BETAS)
PREDICTIONS: Final[tuple[Prediction, ...]] = (
    mean_above(
        "anchor_holds",
        "A penalty of 0.04 in the loss keeps a model nearer to its start, by 0.1 nats per token.",
        f"none-{_HIGH}",
        "drift",
        than=f"k3-{_BETA}-{_HIGH}",
        by=0.1,
    ),
    mean_above(
        "anchor_keeps_format",
        "At the high rate more is valid at the end with a penalty of 0.04, by 10 points.",
        f"k3-{_BETA}-{_HIGH}",
        "valid_end",
        than=f"none-{_HIGH}",
        by=0.1,
        unit="share",
    ),
    mean_above(
        "much_stagnates",
        "A penalty of 1 stops learning: the end is 10 points of accuracy below no penalty.",
        f"none-{_LOW}",
        "accuracy_end",
        than=f"k3-{_MUCH}-{_LOW}",
        by=0.1,
        unit="share",
    ),
    mean_above(
        "little_is_hacked",
        "Where a verifier can be fooled, a model that nothing anchors learns to: 5 points more is"
        " wrong and called right than at a penalty of 1.",
        "hack-b0",
        "fooled",
        than=f"hack-{_MUCH}",
        by=0.05,
        unit="share",
    ),
    mean_above(
        "reward_distorts",
        "In the reward a penalty of 0.04 learns less than in the loss, by 5 points of accuracy.",
        f"k3-{_BETA}-{_LOW}",
        "accuracy_end",
        than=f"reward-{_BETA}-{_LOW}",
        by=0.05,
        unit="share",
    ),
    mean_above(
        "reward_distorts_high",
        "The same at the high rate.",
        f"k3-{_BETA}-{_HIGH}",
        "accuracy_end",
        than=f"reward-{_BETA}-{_HIGH}",
        by=0.05,
        unit="share",
    ),
    exact(
        "reward_makes_signal",
        "In the reward, a group that all earned the same teaches divergence at full size: an"
        " advantage of 1 from differences of a hundredth.",
        lambda cells: first_number(cells, "table", "in_reward_group_normalized"),
        at_least=1.0,
    ),
    exact(
        "loss_makes_none",
        "In the loss, such a group has no advantage.",
        lambda cells: first_number(cells, "table", "in_loss"),
        within=1e-9,
    ),
    mean_unchanged(
        "plain_k1_no_anchor",
        "k1 differentiated as it is written is no anchor: the drift is that without penalty.",
        f"plain-k1-{_BETA}-{_LOW}",
        "drift",
        than=f"none-{_LOW}",
        within=0.1,
    ),
    mean_unchanged(
        "plain_k3_as_good",
        "k3 as it is usually written holds as well as the unbiased one, within 0.1 nats.",
        f"plain-k3-{_BETA}-{_LOW}",
        "drift",
        than=f"k3-{_BETA}-{_LOW}",
        within=0.1,
    ),
    mean_above(
        "structure_moves_less",
        "Signs of the language drift less than the choice of operators, by 0.1 nats per token.",
        f"none-{_LOW}",
        lambda record: _gap(record["drift_free"], record["drift_structure"]),
        by=0.1,
    ),
)


def _gap(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


EXPERIMENT: Final = Experiment(
    name="kl",
    document="002",
    title="The divergence from the warm-up, and where it is charged",
    claim=(
        "Without a penalty the policy drifts away from its warm-up; 0.01 to 0.05 anchors it. Too"
        " little and the reward is hacked, too much and learning stagnates. In the reward it"
        " distorts the advantages; in the loss it does not."
    ),
    setting=(
        "The workflow micro-model, paid the score of the episode, 60 updates of 32 rollouts (K=8)"
        f" on the tasks of one kind, at rates of {RATES[0]:g} and {RATES[1]:g}. Drift is in nats"
        " per token of the model's own rollouts at the end. Exact: the estimate's expected gradient"
        " is that of the divergence; plain: it is differentiated as it is written."
    ),
    prevention=(
        "A penalty of 0.01 in the loss by default, by an estimate whose expected gradient is"
        " exact; guards act on a divergence that stays high, and on one that leaps."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 32},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.4,
)
