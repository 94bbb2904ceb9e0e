"""Attention of a decoding step over rows that begin alike: what they have in common is read once.

Each rollout has its own slot of the KV cache, and the keys of a group's prompt are the same in all
of its slots. A decoding step asks one query of each row, so it does little but read keys and
values, and most of those are of prompts. Here the queries of all rows that begin alike are asked of
the beginning of one of them together, each row is asked for the rest by itself, and the two results
are joined by the sums of their exponentials, as flash attention joins blocks (Dao et al. 2022,
arXiv:2205.14135; for shared prefixes Juravsky et al. 2024, arXiv:2402.05099).

It is for CPUs, where memory is slow and a call of a kernel is cheap, and for attention that is
nothing but a softmax over all columns up to the own one. PyTorch's kernel there gives the sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_utils import AttentionInterface

from adapters.training.models.shared_prefix import LEAST, attending

_NAME: Final = "toolgym_shared_decoding"
_SMALL: Final = 10**7  # parameters; a smaller model has no time to lose at its attention
_kernel: Final[Any] = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


class Beginning(NamedTuple):
    """What a row has in common with others.

    Attributes:
        number: The same in all rows that begin alike.
        length: How many tokens that is.
    """

    number: int
    length: int


ALONE: Final = Beginning(0, 0)
"""Nothing in common with anybody."""


@dataclass(frozen=True)
class Rows:
    """The rows of a pass that begin alike, or one that begins as no other.

    Attributes:
        places: Of the rows in the pass.
        common: Tokens that they have in common; 0 for a single row.
        width: Columns that the longest of them looks at.
        mask: (rows, 1, 1, columns behind the common ones), to be added; None where all of them look
            at the same columns.
    """

    places: Tensor
    common: int
    width: int
    mask: Tensor | None

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """Attention of these rows.

        Args:
            query: (rows, heads of keys, queries of a head, size).
            key: (all rows of the pass, heads of keys, columns, size); `value` too.
        """
        rows, heads, queries, size = query.shape
        first = slice(int(self.places[0]), int(self.places[0]) + 1)
        if not self.common:
            own, _ = _attention(
                query, key[first, :, : self.width], value[first, :, : self.width], None, scale
            )
            return own
        rest = slice(self.common, self.width)
        own, own_sums = _attention(
            query,
            key[self.places, :, rest],
            value[self.places, :, rest],
            None if self.mask is None else self.mask.expand(rows, heads, queries, -1),
            scale,
        )
        together = query.transpose(0, 1).reshape(1, heads, rows * queries, size)
        common, sums = _attention(
            together, key[first, :, : self.common], value[first, :, : self.common], None, scale
        )
        common = common.view(heads, rows, queries, size).transpose(0, 1)
        sums = sums.view(heads, rows, queries).transpose(0, 1)
        share = torch.sigmoid(sums - own_sums)[..., None]
        wide = torch.promote_types(query.dtype, torch.float32)
        return torch.lerp(own.to(wide), common.to(wide), share.to(wide)).to(query.dtype)


def _attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None
) -> tuple[Tensor, Tensor]:
    """Attention, and the logarithm of the sum of its exponentials, (rows, heads, queries)."""
    result, sums = _kernel(query, key, value, 0.0, False, attn_mask=mask, scale=scale)
    return result, sums


def can_share(model: PreTrainedModel) -> bool:
    """Whether a model is large enough for it, and its attention of the kind."""
    config: Any = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return (
        _kernel is not None
        and model.device.type == "cpu"
        and config._attn_implementation == "sdpa"
        and getattr(config, "sliding_window", None) is None
        and kinds == {"full_attention"}
        and sum(parameter.numel() for parameter in model.parameters()) >= _SMALL
    )


def rows_alike(
    beginnings: Sequence[Beginning], columns: Sequence[int], dtype: torch.dtype
) -> list[Rows]:
    """The rows of a pass by their beginnings; empty where too few have anything in common.

    Args:
        beginnings: Of each row.
        columns: The column of the new token of each.
        dtype: Of the mask.
    """
    clusters: dict[tuple[int, int], list[int]] = {}
    for place, beginning in enumerate(beginnings):
        is_long = beginning.length >= LEAST
        clusters.setdefault((beginning.number, -1 if is_long else place), []).append(place)
    if 2 * len(clusters) > len(beginnings):
        return []
    return [
        _rows(places, beginnings[places[0]].length, [columns[place] for place in places], dtype)
        for places in clusters.values()
    ]


def _rows(places: list[int], common: int, columns: list[int], dtype: torch.dtype) -> Rows:
    width = max(columns) + 1
    if len(places) == 1:
        return Rows(torch.tensor(places), 0, width, None)
    mask = None
    if min(columns) + 1 < width:
        hidden = torch.arange(common, width) > torch.tensor(columns)[:, None]
        mask = torch.zeros(hidden.shape, dtype=dtype).masked_fill(hidden, -torch.inf)
        mask = mask[:, None, None]
    return Rows(torch.tensor(places), common, width, mask)


_in_use: dict[int, Sequence[Rows]] = {}  # by the identity of a model's config


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """What `transformers` calls for attention while rows are attended to by their beginnings."""
    rows, heads, _, size = query.shape
    grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], size)
    result = torch.empty_like(grouped)
    for alike in _in_use[id(module.config)]:
        result[alike.places] = alike.attend(grouped[alike.places], key, value, scaling)
    return result.reshape(rows, 1, heads, size), None


AttentionInterface.register(_NAME, _attend)


@contextmanager
def sharing(model: PreTrainedModel, alike: Sequence[Rows]) -> Iterator[None]:
    """A context in which a pass of one token a row attends by the rows' beginnings.

    Args:
        alike: All rows of the pass; empty: the model's own attention.
    """
    if not alike:
        yield
        return
    with attending(model.config.get_text_config(), _NAME, _in_use, alike):
        yield
