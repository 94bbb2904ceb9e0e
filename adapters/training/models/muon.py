"""Muon: momentum whose matrices are made orthogonal before they move the weights.

The gradient of a weight matrix is dominated by a few directions, those of what is common in the
data; what is rare lies in the others, and Adam, which scales each number for itself, reaches it
late. Muon gives all directions of an update the same length, by five steps of a Newton-Schulz
iteration instead of a singular value decomposition. Embeddings, norms and biases are no maps
between directions, and stay with AdamW.

It is computed in the precision of the gradient, so that it is the same on machines with and without
half precision; PyTorch has an own `Muon` from 2.9 on, which computes in bfloat16.

Jordan et al. 2024, https://kellerjordan.github.io/posts/muon, where the coefficients are from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import torch
from torch import Tensor, nn

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
    found: Tensor = wide / (wide.norm() + _TINY)
    for _ in range(_ITERATIONS):
        gram = found @ found.T
        found = a * found + (b * gram + c * gram @ gram) @ found
    return found.T if wide is not matrix else found


def matrices_of(model: nn.Module) -> list[Tensor]:
    """The weight matrices of a model's linear layers that share nothing with an embedding."""
    embedded = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    linear = (m.weight for m in model.modules() if isinstance(m, nn.Linear))
    return [w for w in linear if id(w) not in embedded and w.requires_grad]
