"""What `kl` does: trainings with the divergence from the start charged in several ways, or not.

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

from adapters.lab.experiment import Config, Scale
from adapters.lab.micro import world
from adapters.lab.micro.exams import NoisyVerifier
from adapters.lab.micro.loop import MicroConfig, Trainer, mean, start_of
from adapters.lab.micro.measure import accuracy, drift, examined
from adapters.lab.micro.tokens import CODE
from adapters.reference.divergence import penalized_rewards
from adapters.training.advantages import advantages

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
    """What the claims need at every scale; at `full` all forms at all prices and rates."""
    found: dict[str, Config] = {"table": {"what": "table"}}
    for rate in RATES:
        base = {"what": "training", "tasks": list(CODE), "learning_rate": rate}
        found[f"none-lr{rate:g}"] = base
        for form, own in FORMS.items():
            for beta in MORE_BETAS:
                if scale == "full" or (form, beta, rate) in _NEEDED:
                    changes = {**own.get("loss_changes", {}), "beta": beta}
                    cell = {**base, **own, "loss_changes": changes}
                    found[f"{form}-b{beta:g}-lr{rate:g}"] = cell
    for beta in (0.0, *BETAS):
        own = {"loss_changes": {"beta": beta}, "hackable": True}
        base = {"what": "training", "tasks": list(CODE), "learning_rate": RATES[0]}
        found[f"hack-b{beta:g}"] = {**base, **own}
    return found
