"""A decoder for models that do not work with a `SlotCache`, such as those with recurrent layers.

Each sequence has a cache of the model's own type and is processed separately, so a step takes one
forward pass per sequence.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from toolgym.generation.decoder import Decoder


class _OwnCaches:
    """The model's own cache for each slot, with the number of tokens and the logits after the last
    token.
    """

    def __init__(self, slots: int) -> None:
        self.slots: list[Any] = [None] * slots

    def arrange(self, sources: Sequence[int], columns: int) -> None:
        """Move or copy the cache of slot `sources[i]` to slot i, for all i."""
        moved = set[int]()
        for slot, source in enumerate([self.slots[source] for source in sources]):
            self.slots[slot] = copy.deepcopy(source) if id(source) in moved else source
            moved.add(id(source))

    def tensors(self) -> Iterator[Tensor]:
        """Return an empty iterator, since no tensor is arranged in slots and columns."""
        return iter(())


class OwnCacheDecoder(Decoder):
    """A decoder that calls the model as `transformers.generate` does, one sequence at a time."""

    keeps_prefixes = False

    def __init__(self, model: PreTrainedModel, slots: int) -> None:
        self.model = model
        self.cache: Any = _OwnCaches(slots)

    def feed(self, first: int, texts: Sequence[Sequence[int]], starts: Sequence[int]) -> Tensor:
        """Append tokens as `Decoder.feed` does, and return the logits after the last token of each
        row."""
        pairs = enumerate(zip(texts, starts, strict=True), first)
        return torch.stack([self._read(slot, text, start) for slot, (text, start) in pairs])

    def logits(
        self, first: int, tokens: Tensor, columns: Tensor, positions: Tensor, width: int
    ) -> Tensor:
        """Run one forward pass per row, as `Decoder.logits` does."""
        return self.feed(first, tokens.tolist(), columns[:, 0].tolist())

    def _read(self, slot: int, text: Sequence[int], start: int) -> Tensor:
        cache, length, logits = self.cache.slots[slot] if start else (None, 0, torch.empty(0))
        new = list(text[length - start :])  # tokens that are not in the cache yet
        if new:
            device, end = self.model.device, length + len(new)
            out = self.model(
                input_ids=torch.tensor([new], device=device),
                attention_mask=torch.ones(1, end, dtype=torch.long, device=device),
                position_ids=torch.arange(length, end, device=device)[None],
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            logits = out.logits[0, -1]
            self.cache.slots[slot] = out.past_key_values, end, logits
        return logits
