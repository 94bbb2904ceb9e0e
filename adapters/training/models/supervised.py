"""The supervised warm-up: a plain loop that teaches a model to talk as the demonstrations do.

Cross-entropy on what the assistant wrote, nothing else. The examples of a batch follow each other
in one row, with what they have in common at their beginning, the tools mostly, read once
(`shared_prefix`). A small model, which gains little by it and whose runs come out as they did to
the last digit, reads them side by side instead: padding is on the right, where causal attention
never looks at it.

Batches are drawn from all examples and not from those of like length: length tells in which habit
an episode was played (a guess is short), so such batches would pull the habits to and fro, and
leave the model with the share of whichever came last. But what one batch drew is padded in passes
of like length, whose gradients add up to that of the batch; and the last layer, from hidden states
to the vocabulary, sees no more than the places before a learnt token. That is the same update for
little more than half the work.

What a pass keeps in memory is bounded by `tokens_per_pass`, and by the number of logits that are
there together.
"""

from __future__ import annotations

import itertools
import logging
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from adapters.training.models.output_layer import in_pieces
from adapters.training.models.shared_prefix import (
    LEAST,
    Packing,
    alike,
    divided,
    paths,
    reading,
    sharing_problem,
)
from adapters.training.models.tokenized_examples import Example
from adapters.training.models.weight_updates import WeightUpdates

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
        self.matrices = list(matrices)
        self._momentum = momentum
        self._moved = [torch.zeros_like(matrix) for matrix in self.matrices]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move each matrix that has a gradient.

        Args:
            rate: Length of every direction of the update; more, by the root of their ratio, where a
                matrix has more rows than columns.
        """
        for matrix, moved in zip(self.matrices, self._moved, strict=True):
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
IsEnough = Callable[[int], bool]
"""Called after each step with its number; training ends where it says so."""
_RECENT = 20  # steps whose mean loss may end it
_PASS = 128  # tokens that a pass of its own costs as much time as, measured on the tiny model
_SMALL = 10**7  # parameters below which examples are padded
_ROW = 8192  # tokens of a row of examples
_LOGITS_OF_A_ROW = 2**27  # 512 MiB in float32

_logger = logging.getLogger(__name__)


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
        tokens_per_pass: Tokens in one forward and backward pass, padding included; an example that
            alone has more makes a pass of its own. None: as is fastest.
        gradient_checkpointing: Compute activations twice instead of keeping them.
        alike: Examples of a batch that begin alike, as prompts about one database do, where there
            are so many; what they have in common is read once.
    """

    steps: int
    batch: int = 16
    learning_rate: float = 8e-3
    ramp: int = 20
    seed: int = 0
    matrix_rate: float | None = None
    stop_loss: float | None = None
    tokens_per_pass: int | None = None
    gradient_checkpointing: bool = False
    alike: int = 1


def warm_up(
    model: PreTrainedModel,
    examples: Sequence[Example],
    settings: WarmupSettings,
    on_step: OnStep | None = None,
    is_enough: IsEnough | None = None,
) -> None:
    """Train the model in place.

    Args:
        examples: What it is to imitate; at least one.
        on_step: Called after each step with `step` (from 1), `loss` (nats per learnt token, of this
            batch), `learning_rate` and `grad_norm`.
        is_enough: Asked after that; it may look at the model, which then goes on training.
    """
    matrices = [] if settings.matrix_rate is None else matrices_of(model)
    apart = {id(matrix) for matrix in matrices}
    rest = [p for p in model.parameters() if id(p) not in apart and p.requires_grad]
    adam = WeightUpdates(rest, (0.9, 0.98))
    muon = Muon(matrices)
    batches = _batches(examples, settings)
    packs = _can_pack(model)
    recent = deque[float](maxlen=_RECENT)
    with _training_mode(model, settings.gradient_checkpointing), closing(adam):
        for step in range(1, settings.steps + 1):
            scale = _lr_scale(step, settings)
            rate = settings.learning_rate * scale
            model.zero_grad()
            loss = accumulate(model, next(batches), settings.tokens_per_pass, packs)
            norm = _update(model, adam, rate, muon, (settings.matrix_rate or 0.0) * scale)
            if on_step is not None:
                metrics = {"step": step, "loss": loss, "learning_rate": rate}
                on_step({**metrics, "grad_norm": float(norm)})
            recent.append(loss)
            is_full = len(recent) == recent.maxlen
            if settings.stop_loss is not None and is_full and fmean(recent) < settings.stop_loss:
                break
            if is_enough is not None and is_enough(step):
                break


def _update(
    model: PreTrainedModel, adam: WeightUpdates, rate: float, muon: Muon, matrix_rate: float
) -> Tensor:
    """Move all weights by a gradient of norm 1 at most, and return the norm that it had."""
    if not muon.matrices:
        norm = adam.norm()[0]
        adam.step(rate, norm, 1.0)
        return norm
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    adam.step(rate, torch.zeros_like(norm), 1.0)  # it has been shortened, together with the rest
    muon.step(matrix_rate)
    return norm


@contextmanager
def _training_mode(model: PreTrainedModel, has_checkpointing: bool) -> Iterator[None]:
    """A context in which dropout, where there is any, is on; afterwards it is off."""
    model.train()
    if has_checkpointing:
        # transformers 5.23 gave both another name, and warns of the old ones.
        enable = getattr(model, "activation_checkpointing_enable", None)
        (enable or model.gradient_checkpointing_enable)()
    try:
        yield
    finally:
        model.zero_grad()  # or whoever trains it next would begin with them
        if has_checkpointing:
            disable = getattr(model, "activation_checkpointing_disable", None)
            (disable or model.gradient_checkpointing_disable)()
        model.train(False)


def _lr_scale(step: int, settings: WarmupSettings) -> float:
    """The rates as a share of their highest: linear rise, then a linear fall to a tenth."""
    rise = min(1.0, step / max(settings.ramp, 1))
    fall = 1.0 - 0.9 * (step - 1) / max(settings.steps - 1, 1)
    return min(rise, fall)


def _can_pack(model: PreTrainedModel) -> bool:
    """Whether the model is large enough for examples in one row, and computes the same so."""
    if sum(parameter.numel() for parameter in model.parameters()) < _SMALL:
        return False
    problem = sharing_problem(model)
    if problem:
        name = type(model).__name__
        _logger.warning("%s cannot read examples in one row (%s): they are padded.", name, problem)
    return not problem


def accumulate(
    model: PreTrainedModel,
    batch: Sequence[Example],
    tokens_per_pass: int | None = None,
    packs: bool = False,
) -> float:
    """Add the gradient of a batch's mean loss to what the parameters hold.

    Args:
        batch: At least one example, with a learnt token beyond the first among all of them.
        tokens_per_pass: See `WarmupSettings`.
        packs: Put the examples into one row, rather than side by side with padding.

    Returns:
        The loss: nats per learnt token.
    """
    learnt = sum(sum(example.learn[1:]) for example in batch)
    total = 0.0
    parts = _packed(batch, model, tokens_per_pass) if packs else _padded(batch, tokens_per_pass)
    for part in parts:
        predicts, targets = part.predicts.to(model.device), part.targets.to(model.device)
        inputs: dict[str, Any] = {"input_ids": part.ids.to(model.device)}
        if part.packing is not None:
            inputs["position_ids"] = part.packing.positions.to(model.device)
        with reading(model, part.packing):
            (losses,) = in_pieces(model, predicts, targets, _summed_loss, **inputs)
            loss = losses.sum() / learnt
            loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    return total


class _Pass(NamedTuple):
    """What goes through the model at once.

    Attributes:
        ids: [B, L] int.
        predicts: [B, L] bool, where a learnt token comes next.
        targets: [P] int, these tokens.
        packing: Of the examples, where they share one row.
    """

    ids: Tensor
    predicts: Tensor
    targets: Tensor
    packing: Packing | None = None


def _packed(
    batch: Sequence[Example], model: PreTrainedModel, tokens: int | None = None
) -> Iterator[_Pass]:
    """Rows of examples; each goes as far as the token before its last learnt one."""
    places = [[p for p, is_learnt in enumerate(e.learn[1:]) if is_learnt] for e in batch]
    chosen = [number for number, places_of_one in enumerate(places) if places_of_one]
    batch, places = [batch[number] for number in chosen], [places[number] for number in chosen]
    texts = [example.ids[: own[-1] + 1] for example, own in zip(batch, places, strict=True)]
    found = paths(texts, [own[0] for own in places], LEAST)
    most = max(1, _LOGITS_OF_A_ROW // model.config.get_text_config().vocab_size)
    for row in divided(found, [len(own) for own in places], tokens or _ROW, most):
        packing = Packing(texts, found, row)
        predicts = torch.zeros(packing.ids.shape, dtype=torch.bool)
        targets = [batch[number].ids[place + 1] for number in row for place in places[number]]
        for number, shift in zip(row, packing.shifts, strict=True):
            predicts[0, torch.tensor(places[number]) + shift] = True
        yield _Pass(packing.ids, predicts, torch.tensor(targets), packing)


def _padded(batch: Sequence[Example], tokens: int | None = None) -> Iterator[_Pass]:
    for part in passes([len(example.ids) for example in batch], tokens):
        ids, predicts = _pad([batch[place] for place in part])
        yield _Pass(ids, predicts, ids.roll(-1, dims=1)[predicts])


def _summed_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor]:
    return (functional.cross_entropy(logits.float(), targets, reduction="sum")[None],)


def passes(lengths: Sequence[int], most: int | None = None) -> list[list[int]]:
    """Divide the examples of a batch into passes of like length, so that all take the least time.

    Args:
        lengths: Tokens of each; at least one.
        most: Tokens of a pass, padding included, unless it is that of one example; None: any.

    Returns:
        The places of each pass, the shortest examples first.

    >>> passes([50, 180, 52, 175])
    [[0, 2], [3, 1]]
    >>> passes([160, 180, 175])
    [[0, 2, 1]]
    >>> passes([160, 180, 175], 360)
    [[0], [2, 1]]
    """
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    # best[n]: what the n shortest cost, and where their last pass begins.
    best = [(0, 0)]
    for end in range(1, len(order) + 1):
        width = lengths[order[end - 1]]
        first = 0 if most is None else min(end - 1, max(0, end - most // width))
        best.append(min((best[i][0] + (end - i) * width + _PASS, i) for i in range(first, end)))
    cuts = [len(order)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    return [order[start:end] for end, start in itertools.pairwise(cuts)][::-1]


def _batches(examples: Sequence[Example], settings: WarmupSettings) -> Iterator[list[Example]]:
    """Endless batches; each round holds every example once."""
    draw = random.Random(f"toolgym-warmup-{settings.seed}")
    clusters = [list(range(len(examples)))]
    if settings.alike > 1:
        prompts = [example.learn.index(True) for example in examples]
        clusters = alike([example.ids for example in examples], prompts)
    while True:
        order: list[int] = []
        for piece in _pieces(clusters, settings.alike, draw):
            order += piece
        for start in range(0, len(order), settings.batch):
            yield [examples[i] for i in order[start : start + settings.batch]]


def _pieces(
    clusters: Sequence[Sequence[int]], size: int, draw: random.Random
) -> list[Sequence[int]]:
    """All clusters, each shuffled and cut into pieces of a size, in a random order."""
    pieces: list[Sequence[int]] = []
    for cluster in clusters:
        order = list(cluster)
        draw.shuffle(order)
        pieces += [order[start : start + size] for start in range(0, len(order), size)]
    if size > 1:
        draw.shuffle(pieces)
    return pieces


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
