"""What `length` does: trainings that divide the sum over tokens in three ways, in three worlds.

| world    | what is paid                                                                      |
| -------- | --------------------------------------------------------------------------------- |
| `qa`     | the score of the episode, on tasks for which the longest workflow shown is best   |
| `longer` | the length itself, of whatever can be run                                         |
| `chance` | nothing but luck: a length that changes here is a bias of the normalisation       |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from adapters.lab.experiment import Config, Scale
from adapters.lab.micro.batch import Batch
from adapters.lab.micro.exams import PLAYS
from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, examined
from adapters.lab.micro.model import prompts_of
from adapters.lab.micro.probability import text_probabilities
from adapters.lab.micro.tokens import ITEMS, KINDS, LONGEST, WORKFLOWS, tokens_of

RATE: Final = 1e-4
STEP: Final = 0.05
"""Length of a matched step."""
LONG: Final = max(WORKFLOWS, key=lambda text: len(tokens_of(text)))
QA: Final = tuple(range((len(KINDS) - 1) * ITEMS, len(KINDS) * ITEMS))
WORLDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "qa": {"play": "real", "tasks": list(QA)},
    "longer": {"play": "longer", "tasks": list(QA)},
    "chance": {"play": "chance", "tasks": list(QA)},
}
NORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "sample": {"aggregation": "sample"},
    "token": {"aggregation": "token"},
    "constant": {"aggregation": "constant", "constant_length": LONGEST},
}


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train, and follow the length of what is written."""
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed, play=PLAYS[config["play"]])
    first, before = examined(trainer, seed), _long(trainer)
    history = [trainer.step() for _ in range(settings.updates)]
    last = examined(trainer, seed)
    return {
        "length_first": _length(first),
        "length_end": _length(last),
        "length_grew": _length(last) - _length(first),
        "score_end": _score(last),
        "accuracy_end": accuracy(last),
        "valid_end": sum(each.valid for each in last.endings) / len(last.endings),
        "long_first": before,
        "long_end": _long(trainer),
        "grad_norm_first": history[0].get("grad_norm"),
        "lengths": [step["length"] for step in history],
    }


def _length(batch: Batch) -> float:
    """Tokens of a completion."""
    return float(batch.sampled.mask.sum()) / len(batch.texts)


def _score(batch: Batch) -> float:
    return sum(ending.score for ending in batch.endings) / len(batch.endings)


@torch.no_grad()
def _long(trainer: Trainer) -> float:
    """How likely the longest known workflow is: exact, mean over the tasks."""
    prompts = prompts_of(list(trainer.config.tasks))
    return float(text_probabilities(trainer.model, prompts, [LONG]).mean())


def cells(scale: Scale) -> dict[str, Config]:
    """Every world and normalisation; at `full` also unscaled advantages and steps of one length."""
    kinds: dict[str, Mapping[str, Any]] = {"": {"learning_rate": RATE}}
    if scale == "full":
        kinds["-centred"] = {"learning_rate": RATE, "estimator": "group_centered"}
        kinds["-matched"] = {"learning_rate": STEP, "optimizer": "matched"}
    return {
        f"{world}-{norm}{kind}": {**WORLDS[world], **more, "loss_changes": dict(NORMS[norm])}
        for world in WORLDS
        for norm in NORMS
        for kind, more in kinds.items()
    }
