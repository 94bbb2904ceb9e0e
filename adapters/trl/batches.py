"""Rows of TRL's generation batches: taken out, put together again, masked.

A batch is a dict of tensors with one row per rollout, padded to the longest of that batch: prompts
on the left, completions and whatever belongs to their tokens on the right. Rows of several batches
are padded to their common width. A row is masked by its `tool_mask`, which takes its tokens out of
the loss and leaves attention alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

from toolgym.errors import ConfigurationError

Batch = dict[str, Any]

_TOKEN = "token"  # what pads a sequence of tokens
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
    """Make sure that nothing in it is of a kind that cannot be taken apart by rows.

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


def joined(parts: Sequence[Batch], pad_token: int) -> Batch:
    """Several batches as one, padded to the widest of them.

    Args:
        parts: With the same keys; `num_items_in_batch` is that of the first.
        pad_token: What fills up sequences of tokens.
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
        whole[key] = torch.cat([_padded(part[key], width, key, filler) for part in parts])
    return whole


def _padded(tensor: Tensor, width: int, key: str, filler: Any) -> Tensor:
    """A tensor (B, T) widened to (B, width); one of another shape as it is."""
    missing = width - tensor.shape[-1] if tensor.dim() > 1 else 0
    if not missing:
        return tensor
    sides = (missing, 0) if key in _LEFT else (0, missing)
    return functional.pad(tensor, sides, value=filler)


def learnt_rows(batch: Batch) -> Tensor:
    """Which rows have a token that the loss is taken over: (B,) of bool."""
    mask: Tensor = batch["completion_mask"] * batch["tool_mask"]
    return mask.any(dim=1)


def loss_tokens(batch: Batch) -> Tensor:
    """How many tokens of a batch the loss is taken over: a scalar."""
    mask: Tensor = batch["completion_mask"]
    return (mask * batch["tool_mask"] if "tool_mask" in batch else mask).sum()
