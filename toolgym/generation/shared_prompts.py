"""Attention for decoding on a CPU in which the prompt shared by several rows is read only once.

A decoding step spends most of its time reading keys and values, and most of these belong to the
common prompt of a group of rollouts. The queries of all rows of a group attend to the prompt
together, and then each row attends to its own columns. The two results are combined by their
log-sum-exps (Juravsky et al. 2024, arXiv:2402.05099), which PyTorch's kernel for CPUs returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_utils import AttentionInterface

_NAME: Final = "toolgym_shared_prompts"
_LEAST: Final = 128  # minimum number of tokens of a shared prompt
_SMALL: Final = 10**7  # minimum number of parameters; below, attention takes too little time
_kernel: Final[Any] = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


class _Group(NamedTuple):
    """Rows with the same prompt, or all rows whose prompt is not shared."""

    rows: Tensor
    common: int  # columns that are the same in all rows
    width: int
    mask: Tensor  # additive, (rows, 1, 1, width - common)


_groups: list[_Group] = []  # groups of the current step


def can_share(model: PreTrainedModel) -> bool:
    """Return whether a model is on a CPU, uses full attention (sdpa), and has at least ten million
    weights.
    """
    config: Any = model.config.get_text_config()
    return (
        _kernel is not None
        and model.device.type == "cpu"
        and model.config._attn_implementation == "sdpa"
        and getattr(config, "sliding_window", None) is None
        and {*(getattr(config, "layer_types", None) or ())} <= {"full_attention"}
        and sum(parameter.numel() for parameter in model.parameters()) >= _SMALL
    )


@contextmanager
def sharing(
    model: PreTrainedModel, prompts: Sequence[tuple[int, ...]], columns: Sequence[int]
) -> Iterator[None]:
    """Context manager in which a decoding step of the given rows reads each prompt only once.

    Args:
        prompts: The prompt of each row.
        columns: The column of each row's new token.
    """
    found: dict[tuple[int, ...], list[int]] = {}
    for row, prompt in enumerate(prompts):
        found.setdefault(prompt, []).append(row)
    groups = {p: rows for p, rows in found.items() if len(rows) > 1 and len(p) >= _LEAST}
    alone = [row for prompt, rows in found.items() if prompt not in groups for row in rows]
    if len(prompts) < 2 * (len(groups) + len(alone)):  # too few rows share a prompt
        yield
        return
    own = model.config._attn_implementation
    _groups[:] = [_group(rows, len(p) - 1, columns, model.dtype) for p, rows in groups.items()]
    _groups.extend([_group(alone, 0, columns, model.dtype)] if alone else [])
    model.config._attn_implementation = _NAME
    try:
        yield
    finally:
        model.config._attn_implementation = own


def _group(rows: list[int], common: int, columns: Sequence[int], dtype: torch.dtype) -> _Group:
    own = torch.tensor([columns[row] for row in rows])
    width = int(own.max()) + 1
    hidden = (torch.arange(common, width) > own[:, None])[:, None, None]
    mask = torch.zeros(hidden.shape, dtype=dtype).masked_fill(hidden, -torch.inf)
    return _Group(torch.tensor(rows), common, width, mask)


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Compute the attention for `transformers`.

    The shape of the queries is (rows, heads, 1, size). The keys and values contain all columns.
    """
    count, heads, _, size = query.shape
    kv_heads = key.shape[1]
    queries = query.view(count, kv_heads, -1, size)  # grouped by the heads that share keys
    result = torch.empty_like(queries)
    for rows, common, width, mask in _groups:
        q = queries[rows]
        k, v = key[rows, :, common:width], value[rows, :, common:width]
        mask = mask.expand(-1, kv_heads, q.shape[2], -1)
        output, log_sums = _kernel(q, k, v, 0.0, False, attn_mask=mask, scale=scaling)
        if common:
            q = q.transpose(0, 1).reshape(1, kv_heads, -1, size)
            first = int(rows[0])
            k, v = key[first : first + 1, :, :common], value[first : first + 1, :, :common]
            shared, shared_sums = _kernel(q, k, v, 0.0, False, scale=scaling)
            shared = shared.view(kv_heads, len(rows), -1, size).transpose(0, 1)
            shared_sums = shared_sums.view(kv_heads, len(rows), -1).transpose(0, 1)
            share = torch.sigmoid(shared_sums - log_sums)[..., None].to(output.dtype)
            output = output.lerp(shared, share)
        result[rows] = output
    return result.view(count, 1, heads, size), None


AttentionInterface.register(_NAME, _attend)
