"""The model as a rollout uses it: tokens of some seats in, the distribution after each out.

Nothing here knows an architecture. The one call is `model(input_ids, attention_mask, position_ids,
past_key_values)`, as any causal language model of `transformers` takes it, with a mask that is
written out in full (rows, 1, queries, columns). Rows of different length stand side by side because
every row has its own positions; what fills up a short row writes behind the row's end, where the
next token overwrites it.

Whether a model keeps to this contract is not looked up but measured: `check_model` runs a ragged
batch over two turns, seats swapped in between, and compares with plain forward passes. A model with
recurrent layers or with a mask of its own fails there, before a training begins. It is compared in
float32, whatever the model computes in: the rounding of half precision is larger than what a wrong
position changes, and turns the choice of experts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from toolgym.errors import ConfigurationError

# A KV cache of seats: every rollout keeps its own, and a token's column is its position.
#
# `transformers` keeps one rectangle for a whole batch: a short prompt is padded on the left, a row
# that waits drags holes along, and each step copies everything to make it one column wider. Here
# the keys and values of a rollout's token number p stand in column p of its seat, so nothing is
# padded, nothing has holes, and a step writes in place. What a query may look at follows from
# positions alone: the columns up to its own. What lies beyond is left over from earlier and is
# overwritten before anybody looks.
#
# The seats that take part in a forward pass are neighbours, so that the model is handed a view of
# them and no copy. `move` and `swap` bring them together.
#
#     keys, values   (seats, heads, columns, size of a head), one pair for each layer

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


_TOLERANCE = 1e-2  # rounding makes 1e-5 of it; positions off by one, the least mistake, 2e-2
_HALF = (torch.float16, torch.bfloat16)
_KINDS = {"full_attention", "sliding_attention"}


class Decoder:
    """Feeds seats of a `SeatCache` to a model.

    Args:
        model: A causal language model, in evaluation mode.
        seats: Rollouts at most.
    """

    def __init__(self, model: PreTrainedModel, seats: int) -> None:
        self.cache = SeatCache(seats, model.device)
        self._model = model
        self._has_additive_mask = model.config._attn_implementation != "sdpa"
        config = model.config.get_text_config()
        self._window: int | None = getattr(config, "sliding_window", None)
        self._kinds = sorted(set(getattr(config, "layer_types", None) or ()))

    @torch.inference_mode()
    def feed(self, first: int, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> Tensor:
        """Append tokens to the seats from `first` on.

        Args:
            tokens: New ones of each seat; at least one each.
            starts: How many each seat holds already.

        Returns:
            Logits after the last column of the batch, (rows, vocabulary): those of a row are its
            own only if no row is longer.
        """
        device = self._model.device
        length = max(map(len, tokens))
        padded = [list(ids) + [ids[-1]] * (length - len(ids)) for ids in tokens]
        columns = torch.tensor(starts, device=device)[:, None] + torch.arange(length, device=device)
        ends = [start + len(ids) for start, ids in zip(starts, tokens, strict=True)]
        width = max(starts) + length
        self.cache.point(first, columns, width)
        # A filler's position must be one that the model has; its column need not.
        positions = columns.clamp(max=torch.tensor(ends, device=device)[:, None] - 1)
        logits: Tensor = self._model(
            input_ids=torch.tensor(padded, device=device),
            attention_mask=self._mask(columns, width),
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits[:, -1]

    def _mask(self, columns: Tensor, width: int) -> Tensor | dict[str, Tensor]:
        """Which columns each query may look at, (rows, 1, queries, width); by kind of layer."""
        own = columns[:, None, :, None]
        every = torch.arange(width, device=columns.device)
        seen = every <= own
        if self._window is None:
            return self._written(seen)
        near = self._written(seen & (every > own - self._window))
        if not self._kinds:
            return near
        return {k: near if k == "sliding_attention" else self._written(seen) for k in self._kinds}

    def _written(self, seen: Tensor) -> Tensor:
        """A mask as this model's attention reads it: true or false, or something to add."""
        if not self._has_additive_mask:
            return seen
        dtype = self._model.dtype
        hidden = torch.full_like(seen, torch.finfo(dtype).min, dtype=dtype)
        return hidden.masked_fill(seen, 0.0)


def check_model(model: PreTrainedModel) -> None:
    """Make sure that this model computes with a cache of seats what it computes without.

    Raises:
        ConfigurationError: It does not, or cannot be called so.
    """
    if not isinstance(model, PreTrainedModel):
        raise ConfigurationError(
            f"the reference trainer trains all weights of a transformers model, and this is a"
            f" {type(model).__name__}: take a LoRA model's merge_and_unload(), or --trainer trl."
        )
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or []
    unknown = sorted(set(kinds) - _KINDS)
    if unknown:
        raise _refusal(model, f"it has layers of the kind {', '.join(unknown)}")
    was_training = model.training
    model.train(False)
    try:
        error = _cached_error(model)
        if math.isfinite(error):
            with _in_float32(model):
                error = _cached_error(model)
    except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as problem:
        raise _refusal(model, f"{type(problem).__name__}: {problem}") from problem
    finally:
        model.train(was_training)
    if not error <= _TOLERANCE:
        raise _refusal(model, f"its logits differ by {error:.2g} of their spread")


@torch.inference_mode()
def _cached_error(model: PreTrainedModel) -> float:
    """The largest difference to plain forward passes, in standard deviations of the logits."""
    words = model.config.get_text_config().vocab_size
    draw = torch.Generator().manual_seed(0)
    texts = [torch.randint(words, (n,), generator=draw).tolist() for n in (23, 31, 17)]
    decoder = Decoder(model, len(texts))
    for parts in ((0, (9, 14, 3)), (1, (22, 15, 16))):  # a prompt, then the result of a tool
        turn, ends = parts
        begins = (0, 0, 0) if turn == 0 else (15, 10, 3)
        decoder.feed(0, [t[b:e] for t, b, e in zip(texts, begins, ends, strict=True)], begins)
        if turn == 0:
            decoder.cache.swap(0, 1, 14)
            texts[0], texts[1] = texts[1], texts[0]
            decoder.feed(0, [[texts[0][14]], [texts[1][9]]], [14, 9])
    held = [22, 15, 16]
    cached = decoder.feed(0, [[t[n]] for t, n in zip(texts, held, strict=True)], held)
    plain = [
        model(input_ids=torch.tensor([t[: n + 1]], device=model.device)).logits[0, -1]
        for t, n in zip(texts, held, strict=True)
    ]
    fresh = torch.stack(plain)
    return float(((cached - fresh).abs().max() / fresh.std()).float())


@contextmanager
def _in_float32(model: PreTrainedModel) -> Iterator[None]:
    """With weights in float32; afterwards the model has its own again, the same tensors."""
    coarse = [t for t in (*model.parameters(), *model.buffers()) if t.dtype in _HALF]
    kept = [tensor.data for tensor in coarse]
    try:
        for tensor in coarse:
            tensor.data = tensor.data.float()
        yield
    finally:
        for tensor, own in zip(coarse, kept, strict=True):
            tensor.data = own


def _refusal(model: PreTrainedModel, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{type(model).__name__} does not compute with the reference trainer's cache what it"
        f" computes without ({what}). Load it with attn_implementation='sdpa' or 'eager'; if that"
        " does not help, its layers keep another memory than keys and values: use --trainer trl."
    )
