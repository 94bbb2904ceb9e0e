"""A KV cache of seats: every rollout keeps its own, and a token's column is its position.

`transformers` keeps one rectangle for a whole batch: a short prompt is padded on the left, a row
that waits drags holes along, and each step copies everything to make it one column wider. Here the
keys and values of a rollout's token number p stand in column p of its seat, so nothing is padded,
nothing has holes, and a step writes in place. What a query may look at follows from positions
alone: the columns up to its own. What lies beyond is left over from earlier and is overwritten
before anybody looks.

The seats that take part in a forward pass are neighbours, so that the model is handed a view of
them and no copy. `move` and `swap` bring them together.

    keys, values   (seats, heads, columns, size of a head), one pair for each layer
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

_GROWTH = 64  # columns are added by at least so many


@dataclass
class _Window:
    """Where the next forward pass reads and writes; shared by all layers.

    Attributes:
        seats: How many seats there are.
        first: The first seat that takes part.
        rows: The seats that take part, (rows, 1).
        columns: Where each new token goes, (rows, tokens).
        width: Columns that are handed to the model.
    """

    seats: int
    first: int
    rows: Tensor
    columns: Tensor
    width: int


class _SeatLayer(CacheLayerMixin):
    """Keys and values of one layer."""

    is_sliding = False
    keys: Tensor
    values: Tensor

    def __init__(self, window: _Window) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._window = window

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing yet; `update` makes room."""
        self.keys = self._room(key_states, 0)
        self.values = self._room(value_states, 0)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the new tokens, (rows, heads, tokens, size), and show all columns of their rows."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        window = self._window
        if self.keys.shape[2] < window.width:
            self.keys = self._widened(self.keys)
            self.values = self._widened(self.values)
        self.keys[window.rows, :, window.columns] = key_states.transpose(1, 2)
        self.values[window.rows, :, window.columns] = value_states.transpose(1, 2)
        rows = slice(window.first, window.first + key_states.shape[0])
        return self.keys[rows, :, : window.width], self.values[rows, :, : window.width]

    def get_seq_length(self) -> int:
        """Columns before the new tokens; rows differ, so this is the widest."""
        return self._window.width - self._window.columns.shape[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Width and offset of the mask."""
        return self._window.width, 0

    def get_max_length(self) -> int:
        """No limit."""
        return -1

    def _room(self, like: Tensor, columns: int) -> Tensor:
        # Zeros, since what is masked still takes part in a sum, and nan times 0 is nan.
        return like.new_zeros(self._window.seats, like.shape[1], columns, like.shape[3])

    def _widened(self, old: Tensor) -> Tensor:
        columns = max(self._window.width, old.shape[2] + old.shape[2] // 4)
        wider = self._room(old, -(-columns // _GROWTH) * _GROWTH)
        wider[:, :, : old.shape[2]] = old
        return wider


class SeatCache(Cache):
    """The cache of a batch of rollouts, for `model(past_key_values=...)`.

    Args:
        seats: Rollouts at most.
        device: Where the model computes.
    """

    def __init__(self, seats: int, device: torch.device) -> None:
        nothing = torch.zeros(0, 1, dtype=torch.long, device=device)
        # Not by way of `self`: a cycle would keep all keys and values alive through the update,
        # until Python happens to look for cycles.
        window = self._window = _Window(seats, 0, nothing, nothing, 0)
        super().__init__(layer_class_to_replicate=lambda: _SeatLayer(window))  # type: ignore[arg-type]

    def point(self, first: int, columns: Tensor, width: int) -> None:
        """Say where the next forward pass reads and writes.

        Args:
            first: Seat of the batch's first row; the others follow.
            columns: Column of every new token, (rows, tokens).
            width: Columns that the model is shown.
        """
        last = first + columns.shape[0]
        self._window.rows = torch.arange(first, last, device=columns.device)[:, None]
        self._window.first, self._window.columns, self._window.width = first, columns, width

    @torch.inference_mode()
    def move(self, sources: Sequence[int], columns: int) -> None:
        """Fill seat i with what is in seat `sources[i]`, its first columns only."""
        if list(sources) == list(range(len(sources))):
            return
        for kept in self._tensors():
            chosen = torch.tensor(sources, device=kept.device)
            kept[: len(sources), :, :columns] = kept[chosen, :, :columns]

    @torch.inference_mode()
    def swap(self, one: int, other: int, columns: int) -> None:
        """Let two seats change places, their first columns only."""
        for kept in self._tensors():
            aside = kept[one, :, :columns].clone()
            kept[one, :, :columns] = kept[other, :, :columns]
            kept[other, :, :columns] = aside

    def _tensors(self) -> Iterator[Tensor]:
        """Keys and values of every layer."""
        for layer in self.layers:
            if isinstance(layer, _SeatLayer):
                yield layer.keys
                yield layer.values
