"""Dynamic sampling of a step's groups, around TRL's own making of a generation batch.

    play -> keep the live groups -> play as many more as are missing -> ... -> concatenate

Which groups are kept, how many more are drawn, and when it ends is decided by
`adapters.training.algorithms.dynamic_sampling`; here its decisions meet TRL's batches. Places that
no live group was found for hold dead groups whose tokens are masked. Each process fills its own
places and all of them draw equally often, since TRL gathers inside every draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from adapters.training.algorithms.dynamic_sampling import Tally, TaskStream, fill
from adapters.training.algorithms.rollout_metrics import Figures
from toolgym.errors import ConfigurationError

# Rows of TRL's generation batches: taken out, put together again, masked.
#
# A batch is a dict of tensors with one row per rollout, padded to the longest of that batch:
# prompts on the left, completions and whatever belongs to their tokens on the right. Rows of
# several batches are padded to their common width. A row is masked by its `tool_mask`, which takes
# its tokens out of the loss and leaves attention alone.

Batch = dict[str, Any]

_TOKEN = "token"  # padded with the pad token
_LEFT: Final[dict[str, Any]] = {"prompt_ids": _TOKEN, "prompt_mask": 0}
_RIGHT: Final[dict[str, Any]] = {
    "completion_ids": _TOKEN,
    "completion_mask": 0,
    "tool_mask": 1,
    "old_per_token_logps": 0.0,
    "ref_per_token_logps": 0.0,
    "sampling_per_token_logps": 0.0,
    "importance_sampling_ratio": 1.0,  # TRL's VESPO takes the logarithm of padding too
}
_PER_ROW: Final = ("advantages",)
_PER_BATCH: Final = ("num_items_in_batch",)


def with_tool_mask(batch: Batch) -> Batch:
    """The batch with a `tool_mask`, all ones where it had none."""
    if "tool_mask" in batch:
        return batch
    return {**batch, "tool_mask": torch.ones_like(batch["completion_mask"])}


def check_text_only(batch: Batch) -> None:
    """Check that every entry of a batch can be split by rows.

    Raises:
        ConfigurationError: It holds images, or something that a newer TRL has added.
    """
    strange = sorted(set(batch) - {*_LEFT, *_RIGHT, *_PER_ROW, *_PER_BATCH})
    if strange:
        raise ConfigurationError(
            f"dynamic sampling cannot take {', '.join(strange)} of a batch apart: set"
            " dynamic_sampling=False."
        )


def take_rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """Some rows of a batch, in the order they are named in."""
    index = torch.tensor(list(rows), dtype=torch.long, device=batch["completion_ids"].device)
    return {k: value if k in _PER_BATCH else value[index] for k, value in batch.items()}


def mask_rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """The batch with these rows taken out of the loss."""
    tool_mask = batch["tool_mask"].clone()
    tool_mask[list(rows)] = 0
    return {**batch, "tool_mask": tool_mask}


def concatenate(parts: Sequence[Batch], pad_token: int) -> Batch:
    """The concatenation of several batches, padded to the widest of them.

    Args:
        parts: With the same keys; `num_items_in_batch` is that of the first.
        pad_token: The padding of sequences of tokens.
    """
    if len(parts) == 1:
        return parts[0]
    whole: Batch = {}
    for key, first in parts[0].items():
        if key in _PER_BATCH:
            whole[key] = first
            continue
        width = max(part[key].shape[-1] for part in parts) if first.dim() > 1 else 0
        filler = (_LEFT | _RIGHT).get(key)
        filler = pad_token if filler == _TOKEN else filler
        whole[key] = torch.cat([_pad(part[key], width, key, filler) for part in parts])
    return whole


def _pad(tensor: Tensor, width: int, key: str, filler: Any) -> Tensor:
    """A tensor (B, T) widened to (B, width); one of another shape as it is."""
    missing = width - tensor.shape[-1] if tensor.dim() > 1 else 0
    if not missing:
        return tensor
    sides = (missing, 0) if key in _LEFT else (0, missing)
    return functional.pad(tensor, sides, value=filler)


def learnt_rows(batch: Batch) -> Tensor:
    """The rows with a token that the loss is taken over: (B,) of bool."""
    mask: Tensor = batch["completion_mask"] * batch["tool_mask"]
    return mask.any(dim=1)


def loss_tokens(batch: Batch) -> Tensor:
    """The number of tokens of a batch that the loss is taken over: a scalar."""
    mask: Tensor = batch["completion_mask"]
    return (mask * batch["tool_mask"] if "tool_mask" in batch else mask).sum()


Rows = list[dict[str, Any]]
"""Rows of the data set, each once for every member of its group."""


@dataclass(frozen=True)
class PlayedBatch:
    """The rollouts of one call of TRL's generation, with their outcomes and rewards.

    Attributes:
        batch: Of this process, as TRL makes it.
        figures: Of all processes, in their order.
        rewards: Of all processes; nan where unscored.
        first: The first row of this process among those of all.
    """

    batch: Batch
    figures: list[Figures]
    rewards: list[float]
    first: int

    @property
    def size(self) -> int:
        """The number of rollouts of this process."""
        return len(self.batch["completion_ids"])

    @property
    def own_figures(self) -> list[Figures]:
        """The figures of this process' rollouts."""
        return self.figures[self.first : self.first + self.size]

    @property
    def own_rewards(self) -> list[float]:
        """The rewards of this process' rollouts."""
        return self.rewards[self.first : self.first + self.size]

    def left_out(self, *, unfinished: bool) -> list[int]:
        """The rows of this process that are left out of the loss.

        Args:
            unfinished: Those that ran out of tokens or turns are among them, not only those that a
                fault left unscored.
        """
        rows = enumerate(zip(self.own_figures, self.own_rewards, strict=True))
        return [
            row
            for row, (figure, reward) in rows
            if not (figure.scored and math.isfinite(reward)) or (unfinished and figure.unfinished)
        ]


class StepSource(NamedTuple):
    """The functions and sizes by which a step's groups are played.

    Attributes:
        rows_of: Turns tasks, by their positions in the data set, into rows.
        exchange: Gathers this process' tally with those of all others.
        group_size: The rollouts of a group.
        pad_token: For `concatenate`.
    """

    draw: Callable[[Rows], PlayedBatch]
    rows_of: Callable[[Sequence[int]], Rows]
    exchange: Callable[[Tally], Sequence[Sequence[int]]]
    group_size: int
    pad_token: int


@dataclass
class StepBatch:
    """The training batch of a step, and all that was played for it.

    Attributes:
        batch: Of this process.
        rewards: One per row; nan where unscored, and where a dead group stands in for a live one.
        draws: All batches that were played for it.
        sampling: The metrics of dynamic sampling; empty without it.
    """

    batch: Batch
    rewards: list[float]
    draws: list[PlayedBatch]
    sampling: dict[str, float] = field(default_factory=dict)


def single_batch(source: StepSource, inputs: Rows) -> StepBatch:
    """The batch of a step without dynamic sampling, which is played once."""
    draw = source.draw(inputs)
    return StepBatch(with_tool_mask(draw.batch), draw.own_rewards, [draw])


def fill_step(source: StepSource, inputs: Rows, max_draws: float, refills: TaskStream) -> StepBatch:
    """The batch of a step of live groups only, as far as they are found.

    Args:
        source: The functions to play groups with.
        inputs: The rows that TRL has drawn for this process.
        max_draws: Most groups that it draws, as a multiple of those it learns from.
        refills: The tasks of further groups.
    """
    size, draws = source.group_size, list[PlayedBatch]()

    def draw(count: int) -> list[_Group]:
        played = source.draw(source.rows_of(refills.take(count)) if draws else inputs)
        check_text_only(played.batch)
        draws.append(played)
        return [_Group(played, first, size) for first in range(0, played.size, size)]

    filled = fill(len(inputs) // size, max_draws, draw, _Group.outcomes, source.exchange)
    live = [group.taken() for group in filled.live]
    live += [_mask_group(group.taken()) for group in filled.dead]
    batch = concatenate([group.batch for group in live], source.pad_token)
    rewards = [reward for group in live for reward in group.rewards]
    return StepBatch(batch, rewards, draws, filled.metrics)


class _Group(NamedTuple):
    """A group as rows of a played batch, from `first` on."""

    draw: PlayedBatch
    first: int
    size: int

    def outcomes(self) -> list[Any]:
        """The outcomes of its members; None for all where the whole group is left out of the loss.

        Such a group, of rollouts that ran out of tokens at different places, would take a place
        from one with a gradient.
        """
        rows = slice(self.first, self.first + self.size)
        teaches = bool(learnt_rows(with_tool_mask(self.draw.batch))[rows].any())
        figures = self.draw.own_figures[rows]
        return [each.outcome if teaches and each.scored else None for each in figures]

    def taken(self) -> StepBatch:
        """Its rows as a batch."""
        rows = range(self.first, self.first + self.size)
        batch = take_rows(with_tool_mask(self.draw.batch), rows)
        return StepBatch(batch, [self.draw.own_rewards[row] for row in rows], [])


def _mask_group(group: StepBatch) -> StepBatch:
    """A dead group as a stand-in: out of the loss, and out of the statistics of advantages."""
    rows = range(len(group.rewards))
    return StepBatch(mask_rows(group.batch, rows), [float("nan")] * len(rows), [])
