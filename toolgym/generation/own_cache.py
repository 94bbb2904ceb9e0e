"""A decoder for models that a `SlotCache` does not fit, such as those with recurrent layers.

Each sequence has a cache of the model's own kind and is read by itself, so a step of many sequences
takes as many forward passes.
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
    """For each slot: the model's cache, the tokens in it, and the logits after the last of them."""

    def __init__(self, slots: int) -> None:
        self.slots: list[Any] = [None] * slots

    def arrange(self, sources: Sequence[int], columns: int) -> None:
        """Let slot i have what slot `sources[i]` had."""
        taken = set[int]()
        for slot, source in enumerate([self.slots[source] for source in sources]):
            self.slots[slot] = copy.deepcopy(source) if id(source) in taken else source
            taken.add(id(source))

    def tensors(self) -> Iterator[Tensor]:
        """None that are laid out in slots and columns."""
        return iter(())


class OwnCacheDecoder(Decoder):
    """A decoder that calls the model as `transformers.generate` does, one sequence at a time."""

    keeps_prefixes = False

    def __init__(self, model: PreTrainedModel, slots: int) -> None:
        self.model = model
        self.cache: Any = _OwnCaches(slots)

    def feed(self, first: int, texts: Sequence[Sequence[int]], starts: Sequence[int]) -> Tensor:
        """As `Decoder.feed`; all logits are those after the last token of their row."""
        pairs = enumerate(zip(texts, starts, strict=True), first)
        return torch.stack([self._read(slot, text, start) for slot, (text, start) in pairs])

    def logits(
        self, first: int, tokens: Tensor, columns: Tensor, positions: Tensor, width: int
    ) -> Tensor:
        """As `Decoder.logits`."""
        return self.feed(first, tokens.tolist(), columns[:, 0].tolist())

    def _read(self, slot: int, text: Sequence[int], start: int) -> Tensor:
        cache, length, logits = self.cache.slots[slot] if start else (None, 0, torch.empty(0))
        new = list(text[length - start :])  # what is not in the cache yet
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
