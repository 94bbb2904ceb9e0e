"""The supervised warm-up: a plain loop that teaches a model to talk as the demonstrations do.

Cross-entropy on what the assistant wrote, nothing else. Padding is on the right, where causal
attention never looks at it, so no mask is needed and attention takes its fast way.

Batches are drawn from all examples and not from those of like length, though that would save
padding: length tells in which habit an episode was played (a guess is short), so such batches
would pull the habits to and fro, and leave the model with the share of whichever came last.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from adapters.training.examples import Example

OnStep = Callable[[dict[str, float]], None]
_IGNORED = -100


@dataclass(frozen=True)
class WarmupSettings:
    """How long and how fast.

    Attributes:
        steps: Optimizer steps; the examples are gone through as often as that takes.
        batch: Examples per step.
        learning_rate: After `ramp` steps; it then falls linearly to a tenth.
        ramp: Steps of linear rise.
        seed: Of the order of batches.
    """

    steps: int
    batch: int = 16
    learning_rate: float = 8e-3
    ramp: int = 20
    seed: int = 0


def warm_up(
    model: PreTrainedModel,
    examples: Sequence[Example],
    settings: WarmupSettings,
    on_step: OnStep | None = None,
) -> None:
    """Train the model in place.

    Args:
        model: A causal language model.
        examples: What it is to imitate; at least one.
        settings: How.
        on_step: Called after each step with `step` (from 1), `loss` (nats per learnt token, of this
            batch), `learning_rate` and `grad_norm`.
    """
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
    )
    batches = _batches(examples, settings)
    model.train()
    for step in range(1, settings.steps + 1):
        rate = _rate(step, settings)
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, labels = (tensor.to(model.device) for tensor in next(batches))
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
        loss = functional.cross_entropy(
            logits.flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=_IGNORED
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if on_step is not None:
            told = {"step": step, "loss": loss.item(), "learning_rate": rate}
            on_step({**told, "grad_norm": float(norm)})
    model.train(False)


def _rate(step: int, settings: WarmupSettings) -> float:
    """Linear rise, then a linear fall to a tenth."""
    rise = min(1.0, step / max(settings.ramp, 1))
    fall = 1.0 - 0.9 * (step - 1) / max(settings.steps - 1, 1)
    return settings.learning_rate * min(rise, fall)


def _batches(
    examples: Sequence[Example], settings: WarmupSettings
) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches of (ids, labels), both (B, L); each round holds every example once."""
    draw = random.Random(f"toolgym-warmup-{settings.seed}")
    while True:
        order = list(range(len(examples)))
        draw.shuffle(order)
        for start in range(0, len(order), settings.batch):
            yield _padded([examples[i] for i in order[start : start + settings.batch]])


def _padded(batch: Sequence[Example]) -> tuple[Tensor, Tensor]:
    width = max(len(example.ids) for example in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    labels = torch.full((len(batch), width), _IGNORED, dtype=torch.long)
    for row, example in enumerate(batch):
        length = len(example.ids)
        ids[row, :length] = torch.tensor(example.ids)
        learnt = [t if yes else _IGNORED for t, yes in zip(example.ids, example.learn, strict=True)]
        labels[row, :length] = torch.tensor(learnt)
    return ids, labels
