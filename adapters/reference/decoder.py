"""The batched decoder: a causal language model over a KV cache with one slot per rollout.

Nothing here knows an architecture. The one call is `model(input_ids, attention_mask, position_ids,
past_key_values)`, as any causal language model of `transformers` takes it, with a mask that is
written out in full (rows, 1, queries, columns). Rows of different length stand side by side because
every row has its own positions; what fills up a short row writes behind the row's end, where the
next token overwrites it.

Whether a model keeps to this contract is not looked up but measured: `check_model` runs a ragged
batch over two turns, slots swapped in between, and compares with plain forward passes. A model with
recurrent layers or with a mask of its own fails there, before a training begins. It is compared in
float32, whatever the model computes in: the rounding of half precision is larger than what a wrong
position changes, and turns the choice of experts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from adapters.reference.shared_decoding import Beginning, Rows, can_share, rows_alike, sharing
from toolgym.errors import ConfigurationError
from toolgym.generation.precision import in_float32

# A KV cache of slots: every rollout has its own, and a token's column is its position.
#
# `transformers` keeps one rectangle for a whole batch: a short prompt is padded on the left, a row
# that waits drags holes along, and each step copies everything to make it one column wider. Here
# the keys and values of a rollout's token number p stand in column p of its slot, so nothing is
# padded, nothing has holes, and a step writes in place. What a query may look at follows from
# positions alone: the columns up to its own. What lies beyond is left over from earlier and is
# overwritten before any query reads it.
#
# The slots that take part in a forward pass are neighbours, so that the model is handed a view of
# them and no copy. `move` and `swap` bring them together.
#
#     keys, values   (slots, heads, columns, size of a head), one pair for each layer

_GROWTH = 64  # columns are added by at least so many


@dataclass
class _Window:
    """The slots and columns of the next forward pass; shared by all layers.

    Attributes:
        first: The first slot of the pass.
        rows: The slots of the pass, (rows, 1).
        columns: The column of each new token, (rows, tokens).
        width: The number of columns that the model reads.
    """

    slots: int
    first: int
    rows: Tensor
    columns: Tensor
    width: int


class _SlotLayer(CacheLayerMixin):
    """The keys and values of one layer."""

    is_sliding = False
    keys: Tensor
    values: Tensor

    def __init__(self, window: _Window) -> None:
        super().__init__()
        self._window = window

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing yet; `update` makes room."""
        self.keys = self._zeros(key_states, 0)
        self.values = self._zeros(value_states, 0)
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

    def _zeros(self, like: Tensor, columns: int) -> Tensor:
        # Zeros, since what is masked still takes part in a sum, and nan times 0 is nan.
        return like.new_zeros(self._window.slots, like.shape[1], columns, like.shape[3])

    def _widened(self, old: Tensor) -> Tensor:
        columns = max(self._window.width, old.shape[2] + old.shape[2] // 4)
        wider = self._zeros(old, -(-columns // _GROWTH) * _GROWTH)
        wider[:, :, : old.shape[2]] = old[: self._window.slots]
        return wider


class SlotCache(Cache):
    """The KV cache of a batch of rollouts, for `model(past_key_values=...)`.

    Args:
        slots: Rollouts at most.
        device: Where the model computes.
    """

    def __init__(self, slots: int, device: torch.device) -> None:
        nothing = torch.zeros(0, 1, dtype=torch.long, device=device)
        # Not by way of `self`: a cycle would keep all keys and values alive through the update,
        # until Python happens to look for cycles.
        window = self._window = _Window(slots, 0, nothing, nothing, 0)
        super().__init__(layer_class_to_replicate=lambda: _SlotLayer(window))

    def point(self, first: int, columns: Tensor, width: int) -> None:
        """Set the slots and columns of the next forward pass.

        Args:
            first: Slot of the batch's first row; the others follow.
            columns: Column of every new token, (rows, tokens).
            width: Columns that the model is shown.
        """
        last = first + columns.shape[0]
        self._window.rows = torch.arange(first, last, device=columns.device)[:, None]
        self._window.first, self._window.columns, self._window.width = first, columns, width

    @torch.inference_mode()
    def move(self, sources: Sequence[int], columns: int) -> None:
        """Copy the first columns of slot `sources[i]` into slot i."""
        if list(sources) == list(range(len(sources))):
            return
        for cached in self._tensors():
            chosen = torch.tensor(sources, device=cached.device)
            cached[: len(sources), :, :columns] = cached[chosen, :, :columns]

    @torch.inference_mode()
    def keep(self, slots: Sequence[int], columns: int) -> None:
        """Keep the first columns of some slots, which become the first ones, in this order.

        The memory of the others is given up when there are many, or where more columns are needed.
        """
        self.move(slots, columns)
        self._window.slots = max(len(slots), 1)
        for layer in self._layers():
            if 2 * self._window.slots <= layer.keys.shape[0]:
                layer.keys = layer.keys[: self._window.slots].clone()
                layer.values = layer.values[: self._window.slots].clone()

    @torch.inference_mode()
    def swap(self, one: int, other: int, columns: int) -> None:
        """Swap the first columns of two slots."""
        for cached in self._tensors():
            aside = cached[one, :, :columns].clone()
            cached[one, :, :columns] = cached[other, :, :columns]
            cached[other, :, :columns] = aside

    def _layers(self) -> list[_SlotLayer]:
        return [layer for layer in self.layers if isinstance(layer, _SlotLayer)]

    def _tensors(self) -> Iterator[Tensor]:
        """Keys and values of every layer."""
        for layer in self._layers():
            yield layer.keys
            yield layer.values


_TOLERANCE = 1e-2  # rounding makes 1e-5 of it; positions off by one, the least mistake, 2e-2
_KINDS = {"full_attention", "sliding_attention"}


class Decoder:
    """A model that reads new tokens of the slots of a `SlotCache`.

    Args:
        model: A causal language model, in evaluation mode.
        slots: Rollouts at most.
    """

    def __init__(self, model: PreTrainedModel, slots: int) -> None:
        self.cache = SlotCache(slots, model.device)
        self._model = model
        self._has_additive_mask = model.config._attn_implementation != "sdpa"
        config = model.config.get_text_config()
        self._window: int | None = getattr(config, "sliding_window", None)
        self._kinds = sorted(set(getattr(config, "layer_types", None) or ()))
        self._can_share = can_share(model)

    @torch.inference_mode()
    def feed(
        self,
        first: int,
        tokens: Sequence[Sequence[int]],
        starts: Sequence[int],
        beginnings: Sequence[Beginning] | None = None,
    ) -> Tensor:
        """Append tokens to the slots from `first` on, in one forward pass.

        Args:
            tokens: The new tokens of each slot; at least one each.
            starts: The number of tokens each slot holds already.
            beginnings: What each slot has in common with others; None: nothing that is known.

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
        alike: list[Rows] = []
        if beginnings is not None and length == 1 and self._can_share:
            alike = rows_alike(beginnings, starts, self._model.dtype)
        with sharing(self._model, alike):
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
        """The attention mask, (rows, 1, queries, width); by kind of layer where kinds differ."""
        own = columns[:, None, :, None]
        every = torch.arange(width, device=columns.device)
        visible = every <= own
        if self._window is None:
            return self._mask_for_model(visible)
        near = self._mask_for_model(visible & (every > own - self._window))
        if not self._kinds:
            return near
        return {
            k: near if k == "sliding_attention" else self._mask_for_model(visible)
            for k in self._kinds
        }

    def _mask_for_model(self, visible: Tensor) -> Tensor:
        """The mask in the form of this model's attention: boolean, or additive."""
        if not self._has_additive_mask:
            return visible
        dtype = self._model.dtype
        hidden = torch.full_like(visible, torch.finfo(dtype).min, dtype=dtype)
        return hidden.masked_fill(visible, 0.0)


def check_model(model: PreTrainedModel) -> None:
    """Check that a model computes the same logits with a `SlotCache` as without a cache.

    Raises:
        ConfigurationError: It does not, or cannot be called so.
    """
    if not isinstance(model, PreTrainedModel):
        raise ConfigurationError(
            f"the reference trainer takes a transformers model, and this is a"
            f" {type(model).__name__}: take a LoRA model's merge_and_unload(), and hand over a"
            " LoraConfig as `adapter`."
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
            with in_float32(model):
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
    vocab_size = model.config.get_text_config().vocab_size
    generator = torch.Generator().manual_seed(0)
    texts = [torch.randint(vocab_size, (n,), generator=generator).tolist() for n in (23, 31, 17)]
    decoder = Decoder(model, len(texts))
    for parts in ((0, (9, 14, 3)), (1, (22, 15, 16))):  # a prompt, then the result of a tool
        turn, ends = parts
        begins = (0, 0, 0) if turn == 0 else (15, 10, 3)
        decoder.feed(0, [t[b:e] for t, b, e in zip(texts, begins, ends, strict=True)], begins)
        if turn == 0:
            decoder.cache.swap(0, 1, 14)
            texts[0], texts[1] = texts[1], texts[0]
            decoder.feed(0, [[texts[0][14]], [texts[1][9]]], [14, 9])
    cached_lengths = [22, 15, 16]
    cached = decoder.feed(
        0, [[t[n]] for t, n in zip(texts, cached_lengths, strict=True)], cached_lengths
    )
    plain = [
        model(input_ids=torch.tensor([t[: n + 1]], device=model.device)).logits[0, -1]
        for t, n in zip(texts, cached_lengths, strict=True)
    ]
    uncached = torch.stack(plain)
    return float(((cached - uncached).abs().max() / uncached.std()).float())


def _refusal(model: PreTrainedModel, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{type(model).__name__} does not compute with the reference trainer's cache what it"
        f" computes without ({what}). Load it with attn_implementation='sdpa' or 'eager'; if that"
        " does not help, its layers keep another memory than keys and values: use --trainer trl."
    )
