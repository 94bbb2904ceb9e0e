"""Supervised training on demonstrations: cross-entropy on the assistant's tokens.

Batches are drawn from all examples, not from examples of similar length. Length correlates with the
demonstrated behavior (a guess is short), so batches of similar length would alternate between
behaviors. Within a batch, each forward pass processes examples of similar length, and the gradients
of the passes are summed (see `adapters.training.models.token_log_probs`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from adapters.training.models.master_weights import MasterAdamW
from adapters.training.models.token_log_probs import at_learned_tokens, passes
from adapters.training.models.tokenized_examples import Example
from adapters.training.models.weights import set_checkpointing
from toolgym.generation.models import common_length


@dataclass(frozen=True)
class SftSettings:
    """Settings of supervised training.

    Attributes:
        steps: Number of optimizer steps. Examples are repeated as often as needed.
        batch: Examples per step.
        learning_rate: Peak learning rate. The learning rates of Muon and AdamW rise linearly over
            `ramp` steps and then fall linearly to a tenth at the last step.
        ramp: Number of warm-up steps.
        seed: Seed of the order of examples.
        matrix_rate: Peak learning rate of Muon for weight matrices. AdamW updates the other
            weights. With None, AdamW updates all weights.
        tokens_per_pass: Maximum number of tokens of one forward and backward pass, including
            padding. A single example can exceed this limit.
        gradient_checkpointing: Whether activations are recomputed in the backward pass instead of
            stored.
        alike: Number of consecutive examples whose prompts share a prefix, such as examples about
            one database. On a CPU, the common prefix is computed only once. The number is reduced
            if there are not enough examples.
    """

    steps: int
    batch: int = 16
    learning_rate: float = 8e-3
    ramp: int = 20
    seed: int = 0
    matrix_rate: float | None = None
    tokens_per_pass: int = 8192
    gradient_checkpointing: bool = False
    alike: int = 1


def train_supervised(
    model: PreTrainedModel,
    examples: Sequence[Example],
    settings: SftSettings,
    on_step: Callable[[dict[str, float]], None] = lambda metrics: None,
) -> None:
    """Train a model in place on tokenized examples.

    Args:
        model: The model, which is in evaluation mode afterwards.
        examples: Training examples, at least one.
        settings: Settings of the training.
        on_step: Function that is called after each step with `step` (from 1), `loss` (mean
            nats per token), `learning_rate` and `grad_norm`.
    """
    muon = Muon([] if settings.matrix_rate is None else matrices_of(model))
    by_muon = {id(matrix) for matrix in muon.matrices}
    others = (p for p in model.parameters() if id(p) not in by_muon and p.requires_grad)
    adam = MasterAdamW(others, betas=(0.9, 0.98))
    batches = _batches(examples, settings)
    model.train()
    if settings.gradient_checkpointing:
        set_checkpointing(model, True)
    try:
        for step in range(1, settings.steps + 1):
            rise = min(1.0, step / max(settings.ramp, 1))
            scale = min(rise, 1.0 - 0.9 * (step - 1) / max(settings.steps - 1, 1))
            rate = settings.learning_rate * scale
            model.zero_grad()
            total = accumulate(model, next(batches), settings.tokens_per_pass)
            if muon.matrices:
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            else:
                norm, _ = adam.norm()
            loss, grad_norm = float(total), float(norm)
            adam.step(rate, torch.zeros_like(norm) if muon.matrices else norm, 1.0)
            muon.step((settings.matrix_rate or 0.0) * scale)
            on_step({"step": step, "loss": loss, "learning_rate": rate, "grad_norm": grad_norm})
    finally:
        adam.close()
        model.zero_grad()
        if settings.gradient_checkpointing:
            set_checkpointing(model, False)
        model.train(False)


def accumulate(
    model: PreTrainedModel, batch: Sequence[Example], tokens_per_pass: int = 8192
) -> Tensor:
    """Add the gradient of the mean loss of a batch to the parameters' gradients.

    Args:
        model: The model.
        batch: At least one example with a token in the loss.
        tokens_per_pass: See `SftSettings`.

    Returns:
        The mean loss per token, in nats, on the model's device.
    """
    learned = sum(sum(example.learn[1:]) for example in batch)
    total = torch.zeros((), device=model.device)
    for indices in passes(batch, tokens_per_pass, model):
        (losses,) = at_learned_tokens(model, [batch[i] for i in indices], _cross_entropies)
        loss = losses.sum() / learned
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    return total


def _cross_entropies(logits: Tensor, targets: Tensor) -> tuple[Tensor]:
    return (functional.cross_entropy(logits.float(), targets, reduction="none"),)


def _batches(examples: Sequence[Example], settings: SftSettings) -> Iterator[list[Example]]:
    """Yield batches indefinitely. Each epoch contains every example once."""
    draw = random.Random(f"toolgym-warmup-{settings.seed}")
    clusters = _alike(examples) if settings.alike > 1 else [list(range(len(examples)))]
    while True:
        runs: list[list[int]] = []
        for cluster in clusters:
            draw.shuffle(cluster)
            starts = range(0, len(cluster), settings.alike)
            runs += [cluster[start : start + settings.alike] for start in starts]
        if settings.alike > 1:
            draw.shuffle(runs)
        order = [index for run in runs for index in run]
        for start in range(0, len(order), settings.batch):
            yield [examples[index] for index in order[start : start + settings.batch]]


def _alike(examples: Sequence[Example]) -> list[list[int]]:
    """Return the examples' indices in clusters whose members share more than half of the prompt."""
    clusters: list[list[int]] = []
    for index in sorted(range(len(examples)), key=lambda index: examples[index].ids):
        if clusters:
            pair = examples[clusters[-1][0]], examples[index]
            longer = max(example.learn.index(True) for example in pair)
            if common_length(pair[0].ids, pair[1].ids) > longer // 2:
                clusters[-1].append(index)
                continue
        clusters.append([index])
    return clusters


# A few directions dominate the gradient of a weight matrix: those of patterns that are common in
# the data. Adam scales each element separately and learns rare directions late. Muon gives all
# directions of an update the same length, by five steps of a Newton-Schulz iteration. AdamW trains
# embeddings, norms and biases, which are not linear maps. PyTorch's own `Muon` (2.9 and later)
# computes in bfloat16; this implementation computes in the precision of the gradient.

_COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
_ITERATIONS: Final = 5
_MOMENTUM: Final = 0.95  # decay rate of the momentum buffer


class Muon:
    """The Muon optimizer for weight matrices.

    Args:
        matrices: Parameters with two dimensions.
    """

    def __init__(self, matrices: Iterable[Tensor]) -> None:
        self.matrices = list(matrices)
        self._buffers = [torch.zeros_like(matrix) for matrix in self.matrices]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update each matrix that has a gradient.

        Args:
            rate: Learning rate, which is the size of the update in every direction. For a matrix
                with more rows than columns, the rate is multiplied by the square root of rows /
                columns.
        """
        for matrix, buffer in zip(self.matrices, self._buffers, strict=True):
            if matrix.grad is None:
                continue
            buffer.mul_(_MOMENTUM).add_(matrix.grad)
            nesterov = matrix.grad + _MOMENTUM * buffer
            rows, columns = matrix.shape
            matrix.add_(orthogonal(nesterov), alpha=-rate * max(1.0, rows / columns) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """Replace the singular values of a matrix by values near 1 (0.7 to 1.2).

    Args:
        matrix: [rows, columns] float. Singular values below a thousandth of the norm of the matrix
            can become smaller than 0.7.
    """
    a, b, c = _COEFFICIENTS
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    iterate: Tensor = wide / (wide.norm() + 1e-7)
    for _ in range(_ITERATIONS):
        gram = iterate @ iterate.T
        iterate = a * iterate + (b * gram + c * gram @ gram) @ iterate
    return iterate.T if wide is not matrix else iterate


def matrices_of(model: nn.Module) -> list[Tensor]:
    """Return the weight matrices of a model's linear layers that are not tied to an embedding."""
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    linear = (m.weight for m in model.modules() if isinstance(m, nn.Linear))
    return [w for w in linear if id(w) not in embedded and w.requires_grad]
