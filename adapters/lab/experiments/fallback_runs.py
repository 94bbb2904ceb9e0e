"""What `fallback` does: trainings that begin with much prose, and single updates.

In a training, text that is no workflow earns what a default workflow would have, or 0. A single
update is made on a batch of valid workflows that are paid as in the claim's example; the
probabilities of prose and of known workflows before and after it are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from adapters.lab.experiment import Config, Scale
from adapters.lab.micro import world
from adapters.lab.micro.batch import Batch
from adapters.lab.micro.loop import MicroConfig, Trainer, mean, train
from adapters.lab.micro.model import MicroModel, Sampled, prompts_of, read
from adapters.lab.micro.probability import known_workflows, prose_probability
from adapters.lab.micro.start import started
from toolgym.errors import EnvironmentFault

PROSE: Final = 0.4
"""Share of prose of the start in trainings: 42.8 % of the outputs of the claim's run."""
PAID: Final[Mapping[str, tuple[float, ...]]] = {
    "step4": (1.0, 1.0, 1.0, 0.2, 0.2, 0.2),
    "low": (0.2,) * 6,
}
"""Rewards of three groups of two: the example of the claim, and a batch of 0.2 alone."""
ESTIMATORS: Final[Mapping[str, str]] = {
    "std": "group_normalized",
    "none": "group_centered",
    "loo": "leave_one_out",
    "scaled": "batch_scaled",
    "batch": "batch_normalized",
}
RATES: Final = (1e-3, 1e-2)
"""Of the one update: a usual one, and the one at which trainings of `group-size` collapse."""
DEFAULTS: Final = {"custom": "Custom", "typical": "Custom -> Programmer -> Review ? Revise : done"}
"""What text that is no workflow is paid as: the original's own, and what its models wrote most."""


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A training, or one update."""
    settings = MicroConfig.of(config)
    if config["what"] == "update":
        return _one_update(settings, PAID[config["paid"]], seed)
    history, _ = train(settings, seed)
    prose = [step["prose"] for step in history]
    return {
        "prose_first": prose[0],
        "prose_end": mean(history, "prose", 10),
        "prose_grew": mean(history, "prose", 10) - prose[0],
        "valid_end": mean(history, "valid", 10),
        "score_end": mean(history, "score", 10),
        "became_prose": mean(history, "prose", 10) > 0.8,
        "skipped": 1 - mean(history, "updated"),
        "prose": prose,
        "valid": [step["valid"] for step in history],
    }


def _one_update(config: MicroConfig, paid: tuple[float, ...], seed: int) -> dict[str, Any]:
    """Update once on a batch of valid workflows that are paid so."""
    model = started(seed, config.start_prose, config.start_steps)
    trainer = Trainer(config, model, seed)
    batch = _valid_batch(trainer, paid)
    lead = trainer.advantages(batch)
    before, bad = _probabilities(model), lead < 0
    texts_before = _of_texts(model, batch.sampled)
    if bool(lead.any()):
        trainer.update(batch.sampled, lead)
    after, moved = _probabilities(model), _of_texts(model, batch.sampled) - texts_before
    return {
        "prose_before": before[0],
        "prose_after": after[0],
        "prose_change": after[0] - before[0],
        "known_before": before[1],
        "known_after": after[1],
        "known_change": after[1] - before[1],
        "known_collapsed": after[1] < 0.2,
        "pushed_down": int(bad.sum()),
        "log_change_of_pushed_down": float(moved[bad].mean()) if bool(bad.any()) else None,
        "learnt": bool(lead.any()),
    }


def _valid_batch(trainer: Trainer, paid: tuple[float, ...]) -> Batch:
    """Valid workflows that the model itself writes, two for each of three tasks, paid as told.

    Raises:
        EnvironmentFault: The model hardly writes any.
    """
    wanted = len(paid) // trainer.config.group_size
    rows: list[int] = []
    batch = trainer.rollouts([i for i in range(wanted) for _ in range(16)])
    for task in range(wanted):
        found = [i for i, t in enumerate(batch.tasks) if t == task and batch.endings[i].valid]
        rows += found[: trainer.config.group_size]
    if len(rows) < len(paid):
        raise EnvironmentFault("the start writes too few valid workflows for a batch of them.")
    return Batch(
        Sampled(*(table[rows] for table in batch.sampled)),
        [batch.texts[row] for row in rows],
        [batch.tasks[row] for row in rows],
        [batch.endings[row] for row in rows],
        list(paid),
        trainer.config.group_size,
    )


@torch.no_grad()
def _probabilities(model: MicroModel) -> tuple[float, float]:
    """Of prose, and of any known workflow: means over all tasks, exact."""
    prompts = prompts_of(list(range(world.TASKS)))
    return float(prose_probability(model, prompts).mean()), float(
        known_workflows(model, prompts).mean()
    )


@torch.no_grad()
def _of_texts(model: MicroModel, sampled: Sampled) -> Tensor:
    """Log-probability of each text, in nats: [N]."""
    found = read(model, sampled).logprobs
    return torch.where(sampled.mask, found, 0.0).sum(dim=1)


def cells(scale: Scale) -> dict[str, Config]:
    """What the claims need at every scale; at `full` all estimators, with and without skipping."""
    everything = scale == "full"
    base = {"what": "training", "rewards": "levels", "start_prose": PROSE, "learning_rate": 1e-3}
    found: dict[str, Config] = {}
    for name in ESTIMATORS if everything else ("std",):
        for paid, workflow in (("zero", None), *DEFAULTS.items()):
            own = {**base, "estimator": ESTIMATORS[name], "fallback": workflow}
            found[f"{paid}-{name}"] = own
            if everything or paid == "typical":
                found[f"{paid}-{name}-skip"] = {**own, "skip_fallback": True}
    update = {"what": "update", "group_size": 2, "prompts": 3}
    # A first step of Adam has one size: with one live group, all that centre by group are the same.
    for name in ESTIMATORS if everything else ("std", "batch"):
        estimator = ESTIMATORS[name]
        for rate in RATES:
            own = {**update, "estimator": estimator, "learning_rate": rate, "paid": "step4"}
            found[f"step4-{name}-both-lr{rate:g}"] = own
            found[f"step4-{name}-positive-lr{rate:g}"] = {**own, "negatives": False}
        if everything or name == "std":
            found[f"low-{name}-both-lr{RATES[1]:g}"] = {**own, "paid": "low"}
    return found
