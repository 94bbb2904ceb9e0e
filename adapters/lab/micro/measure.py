"""What a micro-model can do and how far it has moved, measured on rollouts that teach nothing.

The rollouts of a training are no fair measure of it: dynamic sampling chooses among them, and a
step has few. So a model is examined beside its training, with draws of its own, which leave those
of the training as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from adapters.lab.micro import world
from adapters.lab.micro.batch import Batch
from adapters.lab.micro.loop import Trainer
from adapters.lab.micro.model import MicroModel, read
from adapters.lab.micro.tokens import END, NUMBERS, OPERATORS, SIGNS

EACH: Final = 16
"""Rollouts of a task in an examination."""
_OTHER_DRAWS: Final = 500_000
KINDS_OF_TOKENS: Final = {"structure": (*SIGNS, END), "free": OPERATORS}
"""The signs of the language, which have to stand where they stand, and the choice of operators."""


def examined(
    trainer: Trainer, seed: int, each: int = EACH, play: world.Play | None = None
) -> Batch:
    """Rollouts of the trainer's model on all of its tasks.

    Args:
        trainer: Nothing changes in it.
        seed: Of the draws.
        each: Rollouts of a task.
        play: Who judges; None: whoever judges the training.
    """
    config = replace(trainer.config, group_size=each, loss_changes={}, loss="dapo")
    examiner = Trainer(config, trainer.model, _OTHER_DRAWS + seed, play=play or trainer.play)
    return examiner.rollouts(range(len(config.tasks)))


def accuracy(batch: Batch) -> float:
    """The share of rollouts that are right."""
    return sum(ending.correct for ending in batch.endings) / len(batch.endings)


@torch.no_grad()
def entropy(model: MicroModel, batch: Batch) -> float:
    """Mean entropy of the tokens' distributions, in nats."""
    found = read(model, batch.sampled).entropy
    return float(found[batch.sampled.mask].mean())


@torch.no_grad()
def drift(model: MicroModel, reference: MicroModel, batch: Batch) -> dict[str, float | None]:
    """How far a model is from another, in nats per token of its own rollouts.

    Returns:
        `drift` over all tokens, and by `KINDS_OF_TOKENS`; None where there is no such token.
    """
    sampled = batch.sampled
    gaps = read(model, sampled).logprobs - read(reference, sampled).logprobs
    found: dict[str, float | None] = {"drift": float(gaps[sampled.mask].mean())}
    for name, words in KINDS_OF_TOKENS.items():
        rows = sampled.mask & _among(sampled.tokens, words)
        found[f"drift_{name}"] = float(gaps[rows].mean()) if bool(rows.any()) else None
    return found


def _among(tokens: Tensor, words: tuple[str, ...]) -> Tensor:
    return torch.isin(tokens, torch.tensor([NUMBERS[word] for word in words]))
