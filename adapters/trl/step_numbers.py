"""The raw numbers of an update, as they are while it can still be left out.

What TRL logs comes too late and too clean for a guard: it is written after the optimizer has moved,
a loss that is nan is shown as an average of earlier ones, and a micro-batch without a token counts
as entropy 0. Here each micro-batch is taken down as it passes, with nan as nan, numbers of tokens
are weighed by tokens, and the gradient is measured when it is complete and before it is clipped,
which would spread one nan over all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import torch
from torch import nn

_PER_TOKEN: Final = {
    "entropy": "entropy",
    "kl": "kl",
    "clip_ratio/low_mean": "clip_low",
    "clip_ratio/high_mean": "clip_high",
    "cispo_clip_ratio": "clip_high",
}
MEASURED: Final = frozenset(_PER_TOKEN.values())
"""Numbers that are taken from here even where a step has none."""


class StepNumbers:
    """The micro-batches of one optimizer step, all processes together."""

    def __init__(self) -> None:
        self._losses: list[float] = []
        self._tokens: list[float] = []
        self._shown: dict[str, list[float]] = {}
        self._gradient: dict[str, float] = {}

    def note_micro_batch(
        self, loss: float, tokens: float, logged: Mapping[str, Sequence[float]]
    ) -> None:
        """Take down a micro-batch whose gradient was just added.

        Args:
            loss: Its part of the step's loss.
            tokens: That the loss was taken over.
            logged: TRL's own lists of metrics, whose last entries are this micro-batch's.
        """
        self._losses.append(loss)
        self._tokens.append(tokens)
        for theirs, ours in _PER_TOKEN.items():
            if logged.get(theirs):
                self._shown.setdefault(ours, []).append(logged[theirs][-1])

    def note_gradient(self, parameters: Iterable[nn.Parameter], scale: float = 1.0) -> None:
        """Measure the whole gradient, before anything clips it.

        Args:
            parameters: Those that are trained.
            scale: What the loss was multiplied by, as fp16 does.
        """
        trained = list(parameters)
        norm, broken = gradient_norm(trained)
        self._gradient = {"grad_norm": norm / scale, "nonfinite_gradients": float(broken)}
        self._gradient["nonfinite_weights"] = float(count_nonfinite(trained))

    def told(self) -> dict[str, float]:
        """The numbers of the step so far, by the names of `metric_names`."""
        told = {"loss": sum(self._losses)}
        if any(self._tokens):
            told |= {name: self._weighed(values) for name, values in self._shown.items()}
        return {**told, "learnt_tokens": math.fsum(self._tokens), **self._gradient}

    def _weighed(self, values: Sequence[float]) -> float:
        """The mean over tokens; micro-batches without any do not count."""
        pairs = [(v, n) for v, n in zip(values, self._tokens, strict=True) if n]
        if len(pairs) == 1:
            return pairs[0][0]
        return sum(v * n for v, n in pairs) / sum(n for _, n in pairs) if pairs else math.nan


def gradient_norm(parameters: Iterable[nn.Parameter]) -> tuple[float, int]:
    """The norm of the whole gradient, and how many parameters' gradients are not finite."""
    gradients = [p.grad.detach() for p in parameters if p.grad is not None]
    if not gradients:
        return 0.0, 0
    device = gradients[0].device  # a model may be spread over several
    norms = torch.stack(
        [torch.linalg.vector_norm(gradient.float()).to(device) for gradient in gradients]
    )
    return torch.linalg.vector_norm(norms).item(), int((~norms.isfinite()).sum())


def count_nonfinite(parameters: Iterable[nn.Parameter]) -> int:
    """How many parameters have a nan or an infinity in them."""
    flags = [parameter.detach().isfinite().all() for parameter in parameters]
    return int((~torch.stack([flag.to(flags[0].device) for flag in flags])).sum()) if flags else 0
