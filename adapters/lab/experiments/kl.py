"""The divergence from the warm-up: is it an anchor, and does it matter where it is charged?

Document 000 has no such penalty and recommends one; document 002 wants it in the loss and not in
the reward. Trainings charge the divergence from their start in several ways, or not:

| form       | the divergence is                                                              |
| ---------- | ------------------------------------------------------------------------------ |
| `none`     | not charged                                                                    |
| `reward`   | taken off the rewards, before advantages are made of them                      |
| `k1`, `k2`, `k3` | in the loss, by an estimate whose expected gradient is exact (unbiased)  |
| `plain-k1`, `plain-k3` | in the loss, the estimate differentiated as it is written          |

With `hack-` before it, the verifier pays 1 or 0 and has errors that a model can learn to live on:
some workflows are always called right on some tasks.

A second part is arithmetic: what a group of equal rewards teaches once divergence is taken off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from adapters.lab.cell_figures import lines, points
from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.micro import world
from adapters.lab.micro.loop import MicroConfig, Trainer, mean, start_of
from adapters.lab.micro.measure import NoisyVerifier, accuracy, drift, examined
from adapters.lab.micro.tokens import CODE
from adapters.lab.prediction import (
    Cells,
    Prediction,
    exact,
    first_number,
    mean_above,
    mean_unchanged,
)
from adapters.reference.losses import penalized_rewards
from adapters.training.algorithms.advantages import advantages

RATES: Final = (1e-4, 3e-3)
"""One at which trainings without a penalty learn, and one that drifts."""
BETAS: Final = (0.04, 1.0)
"""What document 000 recommends, and one that is too much."""
MORE_BETAS: Final = (0.01, 0.04, 0.2, 1.0)
FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "reward": {"loss_changes": {"kl_in_reward": True}},
    "k1": {"loss_changes": {"kl": "k1"}},
    "k2": {"loss_changes": {"kl": "k2"}},
    "k3": {"loss_changes": {"kl": "k3"}},
    "plain-k1": {"plain_kl": "k1"},
    "plain-k3": {"plain_kl": "k3"},
}
_NEEDED: Final = {
    *((form, BETAS[0], rate) for form in ("reward", "k3") for rate in RATES),
    *((form, BETAS[0], RATES[0]) for form in ("plain-k1", "plain-k3")),
    ("k3", BETAS[1], RATES[0]),
}
"""By form, price and rate: what the claims are about."""
HACKABLE: Final = 0.2
"""Share of wrong workflows on a task that are always called right there."""
EVERY: Final = 5
"""Steps between two looks at the drift."""
EXAMINED: Final = 8
LAST: Final = 10
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


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A table, or a training with its drift."""
    if config["what"] == "table":
        return _table()
    settings, play = MicroConfig.of(config), world.play
    paid = NoisyVerifier(HACKABLE, 0.0, seed, fixed=True) if config.get("hackable") else play
    trainer = Trainer(settings, start_of(settings, seed), seed, play=paid)
    start, history = start_of(settings, seed), []
    first, row = examined(trainer, seed, play=play), []
    for number in range(settings.updates):
        history.append(trainer.step())
        if (number + 1) % EVERY == 0:
            row.append(drift(trainer.model, start, examined(trainer, seed, EXAMINED))["drift"])
    last = examined(trainer, seed, play=play)
    return {
        **drift(trainer.model, start, last),
        "accuracy_first": accuracy(first),
        "accuracy_end": accuracy(last),
        "gained": accuracy(last) - accuracy(first),
        "fooled": accuracy(examined(trainer, seed)) - accuracy(last) if paid is not play else None,
        "valid_end": sum(each.valid for each in last.endings) / len(last.endings),
        "prose_end": mean(history, "prose", LAST),
        "score_end": mean(history, "score", LAST),
        "updated": mean(history, "updated"),
        "drifts": row,
    }


def _table() -> dict[str, float]:
    """What a group of four equal rewards teaches whose rollouts have moved by little."""
    rewards, groups = torch.zeros(4), torch.zeros(4, dtype=torch.long)
    moved = torch.tensor([[0.0, 0.1], [0.0, 0.2], [0.0, 0.3], [0.0, 0.4]])
    mask, none = torch.ones(4, 2, dtype=torch.bool), torch.zeros(4, 2)
    charged = penalized_rewards(rewards, moved, none, mask, beta=BETAS[0], limit=10.0)
    found = {
        "spread": float(charged.max() - charged.min()),
        "in_loss": _largest("group_normalized", rewards, groups),
    }
    for name in ("group_normalized", "group_centered"):
        found[f"in_reward_{name}"] = _largest(name, charged, groups)
    return found


def _largest(estimator: str, rewards: torch.Tensor, groups: torch.Tensor) -> float:
    return float(advantages(estimator, rewards, groups).abs().max())


def cells(scale: Scale) -> dict[str, Config]:
    """The cells that the claims need; at `full` all forms at all prices and rates."""
    configs: dict[str, Config] = {"table": {"what": "table"}}
    for rate in RATES:
        base = {"what": "training", "tasks": list(CODE), "learning_rate": rate}
        configs[f"none-lr{rate:g}"] = base
        for form, own in FORMS.items():
            for beta in MORE_BETAS:
                if scale == "full" or (form, beta, rate) in _NEEDED:
                    changes = {**own.get("loss_changes", {}), "beta": beta}
                    cell = {**base, **own, "loss_changes": changes}
                    configs[f"{form}-b{beta:g}-lr{rate:g}"] = cell
    for beta in (0.0, *BETAS):
        own = {"loss_changes": {"beta": beta}, "hackable": True}
        base = {"what": "training", "tasks": list(CODE), "learning_rate": RATES[0]}
        configs[f"hack-b{beta:g}"] = {**base, **own}
    return configs


_LABELS: Final = {
    "reward": "in the reward",
    "k1": "k1, exact",
    "k2": "k2",
    "k3": "k3, exact",
    "plain-k1": "k1, plain",
    "plain-k3": "k3, plain",
}


def figures(cells: Cells) -> list[Figure]:
    """All of them."""
    drawn = [_while_training(cells, rate) for rate in RATES]
    drawn += [_ends(cells, rate, beta) for rate in RATES for beta in BETAS]
    return [*drawn, _tokens(cells), _hacked(cells)]


def _places(cells: Cells, rate: float, beta: float) -> dict[str, str]:
    names = {"none": f"none-lr{rate:g}"}
    names |= {_LABELS[form]: f"{form}-b{beta:g}-lr{rate:g}" for form in FORMS}
    return {label: cell for label, cell in names.items() if cells.get(cell)}


def _while_training(cells: Cells, rate: float) -> Figure:
    return lines(
        f"kl_drift_lr{rate:g}",
        f"Drift from the warm-up while training, rate {rate:g}",
        f"Nats per token, a penalty of {BETAS[0]:g}, mean over seeds.",
        cells,
        {text: cell for text, cell in _places(cells, rate, BETAS[0]).items() if text != "k2"},
        "drifts",
        unit="number",
        first=float(EVERY),
        every=float(EVERY),
    )


def _ends(cells: Cells, rate: float, beta: float) -> Figure:
    return points(
        f"kl_end_lr{rate:g}_b{beta:g}",
        f"At the end: a penalty of {beta:g}, rate {rate:g}",
        "Shares of other rollouts of the same tasks.",
        cells,
        _places(cells, rate, beta),
        {"right": "accuracy_end", "valid": "valid_end"},
    )


def _tokens(cells: Cells) -> Figure:
    return points(
        "kl_tokens",
        "Drift of signs and of operators",
        f"Nats per token at the end, rate {RATES[0]:g}, a penalty of {BETAS[0]:g}.",
        cells,
        _places(cells, RATES[0], BETAS[0]),
        {"signs of the language": "drift_structure", "operators": "drift_free"},
        unit="number",
    )


def _hacked(cells: Cells) -> Figure:
    return points(
        "kl_hacked",
        "A verifier that can be fooled, by the price of divergence",
        "At the end: what is right, and how much more the verifier calls right.",
        cells,
        {f"{beta:g}": f"hack-b{beta:g}" for beta in (0.0, *BETAS)},
        {"right": "accuracy_end", "wrong and called right": "fooled"},
    )


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
