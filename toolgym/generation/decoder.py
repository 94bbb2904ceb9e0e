"""A causal language model with a KV cache that has one slot for each sequence.

The code is independent of the model architecture. It calls `model(input_ids, attention_mask,
position_ids, past_key_values)` with a full mask of shape (rows, 1, queries, columns). The keys and
values of a token at position p are stored in column p of its slot. Sequences of different lengths
therefore need no padding, and each step updates the cache in place. A query attends to the columns
up to its own position. Later columns contain values from earlier passes, which are overwritten
before they are read.

`check_model` compares the cached computation with plain forward passes. It rejects models with
recurrent layers or with a custom attention mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from toolgym.errors import ConfigurationError
from toolgym.generation.precision import in_float32

_GROWTH: Final = 64  # the number of columns is a multiple of this


@dataclass
class _Window:
    """The slots and columns of the next forward pass, shared by all layers.

    Attributes:
        slots: Number of slots of the cache.
        min_columns: Minimum number of allocated columns.
        first: The first slot of the pass.
        rows: The slot of each row, (rows, 1).
        columns: The column of each new token, (rows, tokens).
        width: Number of columns that the model reads.
    """

    slots: int
    min_columns: int
    first: int
    rows: Tensor
    columns: Tensor
    width: int


class _SlotLayer(CacheLayerMixin):
    """Keys and values of one layer, each of shape (slots, heads, columns, head size)."""

    is_sliding = False
    keys: Tensor
    values: Tensor

    def __init__(self, window: _Window) -> None:
        super().__init__()
        self._window = window

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Set shape and dtype. The columns are allocated later, by `update`."""
        self.keys, self.values = (
            new.new_zeros(self._window.slots, new.shape[1], 0, new.shape[3])
            for new in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write keys and values of shape (rows, heads, tokens, size), and return all columns of the
        rows.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        window = self._window
        if self.keys.shape[2] <= window.width:
            self.keys, self.values = self._widened(self.keys), self._widened(self.values)
        self.keys[window.rows, :, window.columns] = key_states.transpose(1, 2)
        self.values[window.rows, :, window.columns] = value_states.transpose(1, 2)
        read = slice(window.first, window.first + len(key_states))
        return self.keys[read, :, : window.width], self.values[read, :, : window.width]

    def get_seq_length(self) -> int:
        """Return the number of columns that precede the new tokens in the longest row."""
        return self._window.width - self._window.columns.shape[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the width and the offset of the mask."""
        return self._window.width, 0

    def get_max_length(self) -> int:
        """Return -1, which means no limit."""
        return -1

    def _widened(self, cached: Tensor) -> Tensor:
        """Return a copy with more columns. At least one column is never read; it is reserved for
        the padding tokens of a pass.
        """
        columns = max(self._window.width + 1, cached.shape[2] * 5 // 4, self._window.min_columns)
        columns = -(-columns // _GROWTH) * _GROWTH
        # Zeros, since sums include masked columns, and nan times 0 is nan.
        wider = cached.new_zeros(*cached.shape[:2], columns, cached.shape[3])
        wider[:, :, : cached.shape[2]] = cached
        return wider


class SlotCache(Cache):
    """The KV cache of a batch of sequences, for `model(past_key_values=...)`.

    Args:
        slots: Maximum number of sequences.
        columns: Initial number of tokens per slot; more are allocated as needed.
        device: The device of the model.
    """

    def __init__(self, slots: int, columns: int, device: torch.device) -> None:
        none = torch.zeros(0, 0, dtype=torch.long, device=device)
        window = _Window(slots, columns, 0, none, none, 0)
        # The layers refer to the window, not to `self`, because a cycle would delay freeing the
        # memory.
        self.window = window
        super().__init__(layer_class_to_replicate=lambda: _SlotLayer(window))

    def arrange(self, sources: Sequence[int], columns: int) -> None:
        """Copy the first columns of slot `sources[i]` to slot i, for all i."""
        moved = [slot for slot, source in enumerate(sources) if slot != source]
        if not moved:
            return
        device = self.window.columns.device
        to = torch.tensor(moved, device=device)
        chosen = torch.tensor([sources[slot] for slot in moved], device=device)
        for cached in self.tensors():
            cached[to, :, :columns] = cached[chosen, :, :columns]

    def tensors(self) -> Iterator[Tensor]:
        """Return the keys and values of every layer."""
        for layer in self.layers:
            if isinstance(layer, _SlotLayer):
                yield from (layer.keys, layer.values)


class Decoder:
    """A causal language model that uses a `SlotCache` as its KV cache.

    Args:
        model: A causal language model, in evaluation mode.
        slots: Maximum number of sequences.
        columns: Initial number of tokens per slot.
    """

    keeps_prefixes: bool = True
    """Whether a copy of the first columns of a slot is a valid cache of its first tokens."""

    def __init__(self, model: PreTrainedModel, slots: int, columns: int = 0) -> None:
        self.cache = SlotCache(slots, columns, model.device)
        self.model = model
        config = model.config.get_text_config()
        self._has_additive_mask = model.config._attn_implementation != "sdpa"
        self._window: int | None = getattr(config, "sliding_window", None)
        self._kinds = sorted(set(getattr(config, "layer_types", None) or ()))
        # CUDA kernels copy masks with unaligned rows.
        self._multiple = 64 if model.device.type == "cuda" else 1

    def feed(self, first: int, texts: Sequence[Sequence[int]], starts: Sequence[int]) -> Tensor:
        """Append tokens to the slots, starting at slot `first`, in one forward pass.

        Args:
            texts: The new tokens for each slot, at least one per slot.
            starts: The number of tokens already in each slot.

        Returns:
            Logits after the last column of the pass, (rows, vocabulary). Only the logits of rows
            with the maximum number of new tokens are valid.
        """
        device = self.model.device
        length = max(map(len, texts))
        ends = [start + len(ids) for start, ids in zip(starts, texts, strict=True)]
        width = -(-max(ends) // self._multiple) * self._multiple
        padded = [list(ids) + [ids[-1]] * (length - len(ids)) for ids in texts]
        columns = torch.tensor(starts, device=device)[:, None] + torch.arange(length, device=device)
        # Padding goes to the column after the longest row, with the position of the last token.
        return self.logits(
            first,
            torch.tensor(padded, device=device),
            columns.clamp(max=max(ends)),
            columns.clamp(max=torch.tensor(ends, device=device)[:, None] - 1),
            width,
        )

    def logits(
        self, first: int, tokens: Tensor, columns: Tensor, positions: Tensor, width: int
    ) -> Tensor:
        """Run one forward pass over the slots, starting at slot `first`, without synchronizing with
        the device.

        Args:
            tokens: New tokens of each row, (rows, tokens).
            columns: Columns of the tokens in the cache, (rows, tokens).
            positions: Position ids of the tokens, (rows, tokens).
            width: Number of columns that the model reads.

        Returns:
            Logits after the last token, (rows, vocabulary).
        """
        window = self.cache.window
        window.first, window.columns, window.width = first, columns, width
        window.rows = torch.arange(first, first + len(tokens), device=tokens.device)[:, None]
        logits: Tensor = self.model(
            input_ids=tokens,
            attention_mask=self._mask(columns, width),
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits[:, -1]

    def _mask(self, columns: Tensor, width: int) -> Tensor | dict[str, Tensor]:
        """Return the attention mask of shape (rows, 1, queries, width), or a dict by layer type if
        needed.
        """
        queries = columns[:, None, :, None]
        keys = torch.arange(width, device=columns.device)
        visible = keys <= queries
        if self._window is None:
            return self._mask_for_model(visible)
        near = self._mask_for_model(visible & (keys > queries - self._window))
        if not self._kinds:
            return near
        return {
            kind: near if kind == "sliding_attention" else self._mask_for_model(visible)
            for kind in self._kinds
        }

    def _mask_for_model(self, visible: Tensor) -> Tensor:
        """Return the mask in the form that the model's attention requires, boolean or additive."""
        if not self._has_additive_mask:
            return visible
        dtype = self.model.dtype
        hidden = torch.full_like(visible, torch.finfo(dtype).min, dtype=dtype)
        return hidden.masked_fill(visible, 0.0)


# rounding causes 1e-5; positions off by one, the smallest error, cause 2e-2
_TOLERANCE: Final = 1e-2
_KINDS: Final = {"full_attention", "sliding_attention"}


def check_model(model: PreTrainedModel) -> None:
    """Check that the model's logits are the same with a `SlotCache` as without a cache.

    Raises:
        ConfigurationError: The logits differ, or a forward pass with the cache fails.
    """
    if not isinstance(model, PreTrainedModel):
        raise ConfigurationError(
            f"generation needs a transformers model, got a {type(model).__name__}: for a LoRA model"
            " use merge_and_unload(); to train an adapter, pass a LoraConfig as `lora`."
        )
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or []
    unknown = sorted(set(kinds) - _KINDS)
    if unknown:
        raise _refusal(model, f"it has layers of type {', '.join(unknown)}")
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
        raise _refusal(model, f"its logits differ by {error:.2g} of their standard deviation")


@torch.inference_mode()
def _cached_error(model: PreTrainedModel) -> float:
    """Return the maximum difference from plain forward passes, in standard deviations of the
    logits.
    """
    vocabulary = model.config.get_text_config().vocab_size
    generator = torch.Generator().manual_seed(0)
    one, two, three = (
        torch.randint(vocabulary, (n,), generator=generator).tolist() for n in (23, 31, 17)
    )
    decoder = Decoder(model, 3)
    decoder.feed(0, [one[:9], two[:14], three[:3]], (0, 0, 0))  # prompts
    decoder.cache.arrange((1, 0, 2), 14)
    decoder.feed(0, [[two[14]], [one[9]]], (14, 9))  # a sampled token
    decoder.feed(0, [two[15:22], one[10:15], three[3:16]], (15, 10, 3))  # results of tools
    cached = decoder.feed(0, [[two[22]], [one[15]], [three[16]]], (22, 15, 16))
    plain = [
        model(input_ids=torch.tensor([text], device=model.device)).logits[0, -1]
        for text in (two[:23], one[:16], three[:17])
    ]
    uncached = torch.stack(plain)
    return float(((cached - uncached).abs().max() / uncached.std()).float())


def _refusal(model: PreTrainedModel, problem: str) -> ConfigurationError:
    return ConfigurationError(
        f"{type(model).__name__} does not compute the same with the KV cache of toolgym as without"
        f" ({problem}). Load it with attn_implementation='sdpa' or 'eager'; if that does not help,"
        " its layers have other states than keys and values: to train it, use --trainer trl."
    )
