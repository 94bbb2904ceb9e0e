"""The supervised warm-up: a plain loop that teaches a model to talk as the demonstrations do.

Cross-entropy on what the assistant wrote, nothing else. Padding is on the right, where causal
attention never looks at it, so no mask is needed and attention takes its fast way.

Batches are drawn from all examples and not from those of like length: length tells in which habit
an episode was played (a guess is short), so such batches would pull the habits to and fro, and
leave the model with the share of whichever came last. But what one batch drew goes through the
model in passes of like length, whose gradients add up to that of the batch; and its last layer,
from hidden states to the vocabulary, sees no more than the places before a learnt token. That is
the same update for little more than half the work.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from adapters.training.models.output_layer import sees_only
from adapters.training.models.tokenized_examples import Example

# Muon: momentum whose matrices are made orthogonal before they move the weights.
#
# The gradient of a weight matrix is dominated by a few directions, those of what is common in the
# data; what is rare lies in the others, and Adam, which scales each number for itself, reaches it
# late. Muon gives all directions of an update the same length, by five steps of a Newton-Schulz
# iteration instead of a singular value decomposition. Embeddings, norms and biases are no maps
# between directions, and stay with AdamW.
#
# It is computed in the precision of the gradient, so that it is the same on machines with and
# without half precision; PyTorch has an own `Muon` from 2.9 on, which computes in bfloat16.
#
# Jordan et al. 2024, https://kellerjordan.github.io/posts/muon, where the coefficients are from.


_COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
_ITERATIONS: Final = 5
_TINY: Final = 1e-7


class Muon:
    """Moves matrices by their gradients.

    Args:
        matrices: Parameters of two dimensions.
        momentum: Share of the earlier gradients that stays from step to step.
    """

    def __init__(self, matrices: Iterable[Tensor], momentum: float = 0.95) -> None:
        self._matrices = list(matrices)
        self._momentum = momentum
        self._moved = [torch.zeros_like(matrix) for matrix in self._matrices]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move each matrix that has a gradient.

        Args:
            rate: Length of every direction of the update; more, by the root of their ratio, where a
                matrix has more rows than columns.
        """
        for matrix, moved in zip(self._matrices, self._moved, strict=True):
            if matrix.grad is None:
                continue
            moved.mul_(self._momentum).add_(matrix.grad)
            ahead = matrix.grad + self._momentum * moved
            rows, columns = matrix.shape
            matrix.add_(orthogonal(ahead), alpha=-rate * max(1.0, rows / columns) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """A matrix with the singular vectors of the given one and singular values near 1 (.7 to 1.2).

    Args:
        matrix: [rows, columns] float. Directions of less than a thousandth of its norm may get
            less.
    """
    a, b, c = _COEFFICIENTS
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    iterate: Tensor = wide / (wide.norm() + _TINY)
    for _ in range(_ITERATIONS):
        gram = iterate @ iterate.T
        iterate = a * iterate + (b * gram + c * gram @ gram) @ iterate
    return iterate.T if wide is not matrix else iterate


def matrices_of(model: nn.Module) -> list[Tensor]:
    """The weight matrices of a model's linear layers that share nothing with an embedding."""
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    linear = (m.weight for m in model.modules() if isinstance(m, nn.Linear))
    return [w for w in linear if id(w) not in embedded and w.requires_grad]


OnStep = Callable[[dict[str, float]], None]
_RECENT = 20  # steps whose mean loss may end it
_PASS = 128  # tokens that a pass of its own costs as much time as, measured on the tiny model


@dataclass(frozen=True)
class WarmupSettings:
    """The settings of the warm-up: its length and its learning rates.

    Attributes:
        steps: Optimizer steps; the examples are gone through as often as that takes.
        batch: Examples per step.
        learning_rate: After `ramp` steps; it then falls linearly to a tenth.
        ramp: Steps of linear rise.
        seed: Of the order of batches.
        matrix_rate: Of the weight matrices, which Muon moves then; it rises and falls like the
            other, which is that of all else. None: AdamW moves everything.
        stop_loss: It ends early once the mean loss of twenty steps is below this; None: it does
            not.
    """

    steps: int
    batch: int = 16
    learning_rate: float = 8e-3
    ramp: int = 20
    seed: int = 0
    matrix_rate: float | None = None
    stop_loss: float | None = None


def warm_up(
    model: PreTrainedModel,
    examples: Sequence[Example],
    settings: WarmupSettings,
    on_step: OnStep | None = None,
) -> None:
    """Train the model in place.

    Args:
        examples: What it is to imitate; at least one.
        on_step: Called after each step with `step` (from 1), `loss` (nats per learnt token, of this
            batch), `learning_rate` and `grad_norm`.
    """
    matrices = [] if settings.matrix_rate is None else matrices_of(model)
    apart = {id(matrix) for matrix in matrices}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in apart]
    adam = torch.optim.AdamW(rest, settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.0)
    muon = Muon(matrices)
    batches = _batches(examples, settings)
    recent = deque[float](maxlen=_RECENT)
    model.train()
    for step in range(1, settings.steps + 1):
        height = _height(step, settings)
        rate = settings.learning_rate * height
        for group in adam.param_groups:
            group["lr"] = rate
        model.zero_grad()
        loss = accumulate(model, next(batches))
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        muon.step((settings.matrix_rate or 0.0) * height)
        if on_step is not None:
            metrics = {"step": step, "loss": loss, "learning_rate": rate}
            on_step({**metrics, "grad_norm": float(norm)})
        recent.append(loss)
        is_full = len(recent) == recent.maxlen
        if settings.stop_loss is not None and is_full and fmean(recent) < settings.stop_loss:
            break
    model.train(False)


def _height(step: int, settings: WarmupSettings) -> float:
    """The rates as a share of their highest: linear rise, then a linear fall to a tenth."""
    rise = min(1.0, step / max(settings.ramp, 1))
    fall = 1.0 - 0.9 * (step - 1) / max(settings.steps - 1, 1)
    return min(rise, fall)


def accumulate(model: PreTrainedModel, batch: Sequence[Example]) -> float:
    """Add the gradient of a batch's mean loss to what the parameters hold.

    Args:
        batch: At least one example, with a learnt token beyond the first among all of them.

    Returns:
        The loss: nats per learnt token.
    """
    learnt = sum(sum(example.learn[1:]) for example in batch)
    total = 0.0
    for part in passes([len(example.ids) for example in batch]):
        ids, predicts = _pad([batch[place] for place in part])
        ids, predicts = ids.to(model.device), predicts.to(model.device)
        with sees_only(model, predicts):
            logits = model(input_ids=ids, use_cache=False).logits
        picked = logits[0] if logits.shape[:2] != ids.shape else logits[predicts]
        targets = ids.roll(-1, dims=1)[predicts]
        loss = functional.cross_entropy(picked.float(), targets, reduction="sum") / learnt
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    return total


def passes(lengths: Sequence[int]) -> list[list[int]]:
    """Divide the examples of a batch into passes of like length, so that all take the least time.

    Args:
        lengths: Tokens of each; at least one.

    Returns:
        The places of each pass, the shortest examples first.

    >>> passes([50, 180, 52, 175])
    [[0, 2], [3, 1]]
    >>> passes([160, 180, 175])
    [[0, 2, 1]]
    """
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    # best[n]: what the n shortest cost, and where their last pass begins.
    best = [(0, 0)]
    for end in range(1, len(order) + 1):
        width = lengths[order[end - 1]]
        best.append(min((best[i][0] + (end - i) * width + _PASS, i) for i in range(end)))
    cuts = [len(order)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    return [order[start:end] for end, start in itertools.pairwise(cuts)][::-1]


def _batches(examples: Sequence[Example], settings: WarmupSettings) -> Iterator[list[Example]]:
    """Endless batches; each round holds every example once."""
    draw = random.Random(f"toolgym-warmup-{settings.seed}")
    while True:
        order = list(range(len(examples)))
        draw.shuffle(order)
        for start in range(0, len(order), settings.batch):
            yield [examples[i] for i in order[start : start + settings.batch]]


def _pad(batch: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """Token ids, and where a learnt token comes next; both (B, L), padded on the right."""
    width = max(len(example.ids) for example in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    predicts = torch.zeros(len(batch), width, dtype=torch.bool)
    for row, example in enumerate(batch):
        length = len(example.ids)
        ids[row, :length] = torch.tensor(example.ids)
        predicts[row, : length - 1] = torch.tensor(example.learn[1:])
    return ids, predicts
