"""Raw metrics of an update, measured while it can still be left out, and TRL's names for them.

What TRL logs comes too late and too clean for a guard: it is written after the optimizer has moved,
a loss that is nan is shown as an average of earlier ones, and a micro-batch without a token counts
as entropy 0. Here each micro-batch is taken down as it passes, with nan as nan, metrics per token
are weighed by tokens, and the gradient is measured when it is complete and before it is clipped,
which would spread one nan over all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import torch
from torch import nn

from adapters.training.algorithms.rollout_metrics import Figures
from adapters.trl.dynamic_sampling import PlayedBatch
from adapters.trl.environment import RolloutEnvironment
from adapters.trl.sharding import Gather, gathered_gradient, is_sharded
from adapters.trl.tool_loop import RolloutEnd
from toolgym.rollout import EpisodeRecord
from toolgym.runs.metrics import METRICS, recorded

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
    """Metrics of the micro-batches of one optimizer step, all processes together."""

    def __init__(self) -> None:
        self._losses: list[float] = []
        self._tokens: list[float] = []
        self._shown: dict[str, list[float]] = {}
        self._gradient: dict[str, float] = {}

    def note_micro_batch(
        self, loss: float, tokens: float, logged: Mapping[str, Sequence[float]]
    ) -> None:
        """Record a micro-batch whose gradient was just added.

        Args:
            loss: Its part of the step's loss.
            tokens: The number that the loss was taken over.
            logged: TRL's own lists of metrics, whose last entries are this micro-batch's.
        """
        self._losses.append(loss)
        self._tokens.append(tokens)
        for theirs, ours in _PER_TOKEN.items():
            if logged.get(theirs):
                self._shown.setdefault(ours, []).append(logged[theirs][-1])

    def note_gradient(
        self, parameters: Iterable[nn.Parameter], gather: Gather, scale: float = 1.0
    ) -> None:
        """Measure the whole gradient, before anything clips it.

        Args:
            parameters: Those that are trained.
            gather: Of the accelerator; called where parameters are sharded.
            scale: The factor on the loss, as fp16 has one.
        """
        trained = list(parameters)
        if is_sharded(trained):
            norm, broken, lost = gathered_gradient(trained, gather)
        else:
            norm, broken = gradient_norm(trained)
            lost = count_nonfinite(trained)
        self._gradient = {
            "grad_norm": norm / scale,
            "nonfinite_gradients": float(broken),
            "nonfinite_weights": float(lost),
        }

    def metrics(self) -> dict[str, float]:
        """The metrics of the step so far, by the names of `toolgym.runs.metrics`."""
        metrics = {"loss": sum(self._losses)}
        if any(self._tokens):
            metrics |= {name: self._token_mean(values) for name, values in self._shown.items()}
        return {**metrics, "learnt_tokens": math.fsum(self._tokens), **self._gradient}

    def _token_mean(self, values: Sequence[float]) -> float:
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
    """The number of parameters that have a nan or an infinity in them."""
    flags = [parameter.detach().isfinite().all() for parameter in parameters]
    return int((~torch.stack([flag.to(flags[0].device) for flag in flags])).sum()) if flags else 0


# The names of a step's metrics in TRL's log, and here.
#
# The metrics of a step's rollouts come from `adapters.training.algorithms.rollout_metrics`, as for
# every trainer. TRL counts groups with equal
# rewards only, and under one of its settings counts them wrongly, so its own numbers of rewards are
# passed over; those of the update keep their values and get our names. Numbers of a step that was
# filled up with further draws are over all that was drawn.

PREFIX: Final = "toolgym/"
_FROM_TRL: Final = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "entropy": "entropy",
    "kl": "kl",
    "policy_loss": "policy_loss",
    "clip_ratio/low_mean": "clip_low",
    "clip_ratio/high_mean": "clip_high",
    "cispo_clip_ratio": "clip_high",
    "completions/mean_length": "completion_length",
    "completions/clipped_ratio": "clipped",
}


def figures_of(environment: RolloutEnvironment, stopped_early: bool, end: RolloutEnd) -> Figures:
    """The metrics of one rollout, once its reward was asked for.

    Args:
        environment: The rollout's.
        stopped_early: The model stopped before the episode was over.
        end: How it ended.
    """
    played = environment._played()
    return Figures.of(
        EpisodeRecord.of(played.episode, environment._env_id) if played is not None else None,
        written=end.tokens,
        stopped_early=stopped_early,
        clipped=end.clipped,
        unfinished=end.unfinished,
    )


def step_metrics(logs: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that TRL logged for one optimizer step, by our names.

    What is missing or has nothing to be a share of is left out; what broke stays as it is.
    """
    named = {ours: logs[theirs] for theirs, ours in _FROM_TRL.items() if theirs in logs}
    named |= {key.removeprefix(PREFIX): logs[key] for key in logs if key.startswith(PREFIX)}
    return recorded(named)


# Metrics of the rollouts since the last step, reported once, over one or more generation batches.
#
# With more steps of accumulation than a generation batch has micro-batches, a step learns from
# several batches, and with fewer, several steps learn from one. The guards judge a step by all that
# was played for it, and by nothing that an earlier step was judged by.


class PendingMetrics:
    """Metrics of played batches that no optimizer step has reported yet.

    Args:
        metrics_of: The metrics of some played batches, all groups alike.
    """

    def __init__(self, metrics_of: Callable[[Sequence[PlayedBatch]], dict[str, float]]) -> None:
        self._metrics_of = metrics_of
        self._draws: list[PlayedBatch] = []
        self._sums: dict[str, float] = {}

    def add(self, draws: Sequence[PlayedBatch], sums: Mapping[str, float]) -> None:
        """Add a generation batch.

        Args:
            draws: All batches played for it; only figures and rewards are kept.
            sums: Other numbers of it, which add up over batches.
        """
        self._draws += [replace(draw, batch={}) for draw in draws]
        for name, number in sums.items():
            self._sums[name] = self._sums.get(name, 0.0) + number

    def pop(self) -> dict[str, float]:
        """The metrics since the last call, which are then cleared; empty where there are none."""
        metrics = {**self._metrics_of(self._draws), **self._sums} if self._draws else {}
        self._draws, self._sums = [], {}
        return metrics


def means(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each number over the steps that have it.

    A share of nothing (nan) is passed over; where nan is a breakdown, the mean is nan too.
    """
    keys = dict.fromkeys(key for step in steps for key in step)
    values = {key: [step[key] for step in steps if key in step] for key in keys}
    counted = {
        key: column if METRICS[key].breaks else [each for each in column if math.isfinite(each)]
        for key, column in values.items()
    }
    return {key: sum(column) / len(column) for key, column in counted.items() if column}
