"""Supervised training on demonstrations: cross-entropy on what the assistant wrote.

Batches are drawn from all examples, not from those of like length. Length reveals the habit with
which an episode was played (a guess is short), so batches of like length would pull the model back
and forth between habits. The examples of one batch are then read in passes of like length, whose
gradients add up to that of the batch (`adapters.training.models.token_log_probs`).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from adapters.training.models.master_weights import MasterAdamW
from adapters.training.models.token_log_probs import at_learned_tokens, passes
from adapters.training.models.tokenized_examples import Example

OnStep = Callable[[dict[str, float]], None]
IsEnough = Callable[[int], bool]
"""Called after each step with its number; training ends when it returns True."""
_RECENT: Final = 20  # steps whose mean loss is compared with `stop_loss`
_TOKENS_PER_PASS: Final = 8192


@dataclass(frozen=True)
class WarmupSettings:
    """Settings of supervised training.

    Attributes:
        steps: Optimizer steps; they go through the examples as often as needed.
        batch: Examples per step.
        learning_rate: Reached after `ramp` steps; it then falls linearly to a tenth.
        ramp: Steps of linear rise.
        seed: Of the order of batches.
        matrix_rate: Learning rate of Muon for weight matrices, with the same rise and fall; AdamW
            updates the rest. None: AdamW updates all weights.
        stop_loss: Training ends when the mean loss of twenty steps is below this; None: never.
        tokens_per_pass: Most tokens of one forward and backward pass, padding included, unless a
            single example has more; None: 8,192.
        gradient_checkpointing: Compute activations twice instead of keeping them.
        alike: Examples of a batch that begin alike, such as those about one database, where there
            are that many; on a CPU their common beginning is read once.
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
        examples: At least one.
        on_step: Called after each step with `step` (from 1), `loss` (nats per learned token of the
            batch), `learning_rate` and `grad_norm`.
        is_enough: Called after that; it may use the model, which then goes on training.
    """
    muon = Muon([] if settings.matrix_rate is None else matrices_of(model))
    apart = {id(matrix) for matrix in muon.matrices}
    rest = (p for p in model.parameters() if id(p) not in apart and p.requires_grad)
    adam = MasterAdamW(rest, betas=(0.9, 0.98))
    batches = _batches(examples, settings)
    recent = deque[float](maxlen=_RECENT)
    with _training_mode(model, settings.gradient_checkpointing), closing(adam):
        for step in range(1, settings.steps + 1):
            scale = _lr_scale(step, settings)
            rate = settings.learning_rate * scale
            model.zero_grad()
            total = accumulate(model, next(batches), settings.tokens_per_pass)
            if muon.matrices:
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                loss, length = float(total), float(norm)
                adam.step(rate, torch.zeros_like(norm), 1.0)  # all gradients are clipped already
                muon.step((settings.matrix_rate or 0.0) * scale)
            else:
                norm, _ = adam.norm()
                loss, length = float(total), float(norm)
                adam.step(rate, norm, 1.0)
            if on_step is not None:
                metrics = {"step": step, "loss": loss, "learning_rate": rate}
                on_step({**metrics, "grad_norm": length})
            recent.append(loss)
            is_full = len(recent) == recent.maxlen
            if settings.stop_loss is not None and is_full and fmean(recent) < settings.stop_loss:
                break
            if is_enough is not None and is_enough(step):
                break


def accumulate(
    model: PreTrainedModel, batch: Sequence[Example], tokens_per_pass: int | None = None
) -> Tensor:
    """Add the gradient of the mean loss of a batch to the parameters' gradients.

    Args:
        batch: At least one example with a learned token.
        tokens_per_pass: See `WarmupSettings`.

    Returns:
        The loss in nats per learned token, on the model's device.
    """
    learned = sum(sum(example.learn[1:]) for example in batch)
    total = torch.zeros((), device=model.device)
    for part in passes(batch, tokens_per_pass or _TOKENS_PER_PASS, model):
        (losses,) = at_learned_tokens(model, [batch[place] for place in part], _cross_entropies)
        loss = losses.sum() / learned
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    return total


def _cross_entropies(logits: Tensor, targets: Tensor) -> tuple[Tensor]:
    return (functional.cross_entropy(logits.float(), targets, reduction="none"),)


@contextmanager
def _training_mode(model: PreTrainedModel, has_checkpointing: bool) -> Iterator[None]:
    """A context in which dropout, where there is any, is on; afterwards it is off."""
    model.train()
    if has_checkpointing:
        # transformers 5.23 renamed both, and warns of the old names.
        enable = getattr(model, "activation_checkpointing_enable", None)
        (enable or model.gradient_checkpointing_enable)()
    try:
        yield
    finally:
        model.zero_grad()
        if has_checkpointing:
            disable = getattr(model, "activation_checkpointing_disable", None)
            (disable or model.gradient_checkpointing_disable)()
        model.train(False)


def _lr_scale(step: int, settings: WarmupSettings) -> float:
    """The learning rates as a share of their peaks: linear rise, then a linear fall to a tenth."""
    rise = min(1.0, step / max(settings.ramp, 1))
    fall = 1.0 - 0.9 * (step - 1) / max(settings.steps - 1, 1)
    return min(rise, fall)


def _batches(examples: Sequence[Example], settings: WarmupSettings) -> Iterator[list[Example]]:
    """Endless batches; each round holds every example once."""
    draw = random.Random(f"toolgym-warmup-{settings.seed}")
    clusters = _alike(examples) if settings.alike > 1 else [list(range(len(examples)))]
    while True:
        pieces: list[list[int]] = []
        for cluster in clusters:
            order = list(cluster)
            draw.shuffle(order)
            starts = range(0, len(order), settings.alike)
            pieces += [order[start : start + settings.alike] for start in starts]
        if settings.alike > 1:
            draw.shuffle(pieces)
        order = [place for piece in pieces for place in piece]
        for start in range(0, len(order), settings.batch):
            yield [examples[place] for place in order[start : start + settings.batch]]


def _alike(examples: Sequence[Example]) -> list[list[int]]:
    """The places of the examples, in clusters that share more than half of their prompts."""
    prompts = [example.learn.index(True) for example in examples]
    clusters: list[list[int]] = []
    for place in sorted(range(len(examples)), key=lambda place: examples[place].ids):
        first = clusters[-1][0] if clusters else place
        half = max(prompts[first], prompts[place]) // 2 + 1
        if clusters and examples[first].ids[:half] == examples[place].ids[:half]:
            clusters[-1].append(place)
        else:
            clusters.append([place])
    return clusters


# Muon: momentum whose matrices are orthogonalized before they update the weights (Jordan et al.
# 2024, https://kellerjordan.github.io/posts/muon).
#
# A few directions, those of what is common in the data, dominate the gradient of a weight matrix.
# Adam, which scales each number for itself, reaches the rare ones late. Muon gives all directions
# of an update the same length, by five steps of a Newton-Schulz iteration. Embeddings, norms and
# biases are no maps between directions, and stay with AdamW. PyTorch's own `Muon` (2.9 and later)
# computes in bfloat16; this one computes in the precision of the gradient on every machine.

_COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
_ITERATIONS: Final = 5


class Muon:
    """Muon on weight matrices.

    Args:
        matrices: Parameters of two dimensions.
        momentum: Decay rate of the sum of gradients.
    """

    def __init__(self, matrices: Iterable[Tensor], momentum: float = 0.95) -> None:
        self.matrices = list(matrices)
        self._momentum = momentum
        self._sums = [torch.zeros_like(matrix) for matrix in self.matrices]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update each matrix that has a gradient.

        Args:
            rate: Length of every direction of the update; where a matrix has more rows than
                columns it is multiplied by the root of their ratio.
        """
        for matrix, moving in zip(self.matrices, self._sums, strict=True):
            if matrix.grad is None:
                continue
            moving.mul_(self._momentum).add_(matrix.grad)
            ahead = matrix.grad + self._momentum * moving
            rows, columns = matrix.shape
            matrix.add_(orthogonal(ahead), alpha=-rate * max(1.0, rows / columns) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """A matrix with the given singular vectors and singular values near 1 (0.7 to 1.2).

    Args:
        matrix: [rows, columns] float. Directions of less than a thousandth of its norm may get
            less.
    """
    a, b, c = _COEFFICIENTS
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    iterate: Tensor = wide / (wide.norm() + 1e-7)
    for _ in range(_ITERATIONS):
        gram = iterate @ iterate.T
        iterate = a * iterate + (b * gram + c * gram @ gram) @ iterate
    return iterate.T if wide is not matrix else iterate


def matrices_of(model: nn.Module) -> list[Tensor]:
    """The weight matrices of a model's linear layers that share nothing with an embedding."""
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    linear = (m.weight for m in model.modules() if isinstance(m, nn.Linear))
    return [w for w in linear if id(w) not in embedded and w.requires_grad]
