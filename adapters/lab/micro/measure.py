"""Measures of a micro-model: accuracy, entropy, drift, and other judges of its episodes.

The rollouts of a training are no fair measure of it: dynamic sampling chooses among them, and a
step has few. So a model is examined beside its training, with draws of its own, which leave those
of the training as they are.

Some probabilities are exact, where others would sample. A completion is prose when it begins with
the one word that only prose begins with, so its probability is that of one token; that of a set of
texts is the sum of each text's.

A `world.Play` goes from a text, a task and its luck to an ending. Those in `PLAYS` judge the real
episodes otherwise: a harder verdict asks for a workflow that is right whatever the luck, an easier
one for a workflow that can be right; others pay for length, or by chance, or with errors.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from adapters.lab.micro import world
from adapters.lab.micro.loop import Batch, Trainer
from adapters.lab.micro.model import PROMPT, MicroModel, read
from adapters.lab.micro.tokens import (
    END,
    LONGEST,
    NUMBERS,
    OPERATORS,
    PAD,
    PROSE,
    SIGNS,
    WORKFLOWS,
    tokens_of,
)
from adapters.lab.micro.world import LUCK, Ending, Play

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
    """The divergence of a model from another, in nats per token of its own rollouts.

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


def prose_probability(model: MicroModel, prompts: Tensor) -> Tensor:
    """The probability that a completion begins as prose: prompts [N, PROMPT] to [N]."""
    logits, _ = model(prompts)
    probability: Tensor = logits[:, -1].softmax(dim=-1)[:, NUMBERS[PROSE]]
    return probability


def known_workflows(model: MicroModel, prompts: Tensor) -> Tensor:
    """The probability of the workflows that were shown: [N, PROMPT] to [N].

    All of them are valid for some kind of task, and all but those with tests for each.
    """
    return text_probabilities(model, prompts, list(WORKFLOWS)).sum(dim=1)


def text_probabilities(model: MicroModel, prompts: Tensor, texts: list[str]) -> Tensor:
    """The probability of each completion: [N, PROMPT] to [N, texts]."""
    rows = [tokens_of(text) for text in texts]
    longest = max(map(len, rows))
    tokens = torch.tensor([row + [NUMBERS[PAD]] * (longest - len(row)) for row in rows])
    whole = torch.cat(
        [
            prompts.repeat_interleave(len(texts), dim=0),
            tokens.repeat(len(prompts), 1),
        ],
        dim=1,
    )
    table = model(whole[:, :-1])[0][:, PROMPT - 1 :].log_softmax(dim=-1)
    found = table.gather(2, whole[:, PROMPT:, None])[:, :, 0]
    counted = whole[:, PROMPT:] != NUMBERS[PAD]
    return torch.where(counted, found, 0.0).sum(dim=1).exp().reshape(len(prompts), len(texts))


_RUN: Final = 0.5
"""Progress where nothing is right. One number, so that wrong endings are alike, as they are to a
verifier that only says right or wrong."""


def always(text: str, task: int, luck: int) -> Ending:
    """Right if the episode is right with every luck; paid 1 or 0."""
    return _verdict(all(world.play(text, task, each).correct for each in range(LUCK)))


def ever(text: str, task: int, luck: int) -> Ending:
    """Right if the episode is right with any luck; paid 1 or 0."""
    return _verdict(any(world.play(text, task, each).correct for each in range(LUCK)))


def once(text: str, task: int, luck: int) -> Ending:
    """Right if the episode is; paid 1 or 0."""
    return _verdict(world.play(text, task, luck).correct)


def longer(text: str, task: int, luck: int) -> Ending:
    """A workflow that can be run is paid by its words, the longest that there can be 1."""
    found = world.play(text, task, luck)
    paid = (len(text.split()) + 1) / LONGEST if found.valid else 0.0
    return found._replace(score=paid)


def chance(text: str, task: int, luck: int) -> Ending:
    """Paid 1 or 0 by luck alone: whatever changes in training is a bias of the update."""
    return world.play(text, task, luck)._replace(score=float(luck < LUCK // 2))


PLAYS: Final[Mapping[str, Play]] = {
    "real": world.play,
    "always": always,
    "ever": ever,
    "once": once,
    "longer": longer,
    "chance": chance,
}
"""By name, as configs have them."""


class NoisyVerifier:
    """The verdict of `once`, wrong now and then; what it said is remembered for an audit.

    Args:
        positives: Chance that a wrong episode is called right.
        negatives: Chance that a right one is called wrong.
        seed: Of the errors.
        fixed: One workflow on one task is always judged alike, so that errors can be learnt. Else
            each rollout has its own chance.

    Attributes:
        said: By rollout: text, task, luck, and the verdict.
    """

    def __init__(self, positives: float, negatives: float, seed: int, *, fixed: bool) -> None:
        self._rates = {False: positives, True: negatives}
        self._name, self._fixed = f"toolgym-lab-verifier-{seed}", fixed
        self._draw = random.Random(self._name)
        self.said: list[tuple[str, int, int, bool]] = []

    def __call__(self, text: str, task: int, luck: int) -> Ending:
        """The verdict on a rollout."""
        right = world.play(text, task, luck).correct
        draw = random.Random(f"{self._name}-{task}-{text}") if self._fixed else self._draw
        verdict = right != (draw.random() < self._rates[right])
        self.said.append((text, task, luck, verdict))
        return _verdict(verdict)


def _verdict(right: bool) -> Ending:
    return Ending(float(right), right, 1.0 if right else _RUN)
