"""Helpers for models and tokens: loading, context length, stop tokens, common prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)


def load(
    source: str | Path, dtype: torch.dtype | str = "auto", device: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal language model and its tokenizer.

    Args:
        source: A folder, or a name on the Hugging Face hub.
        dtype: Data type of the weights; `auto` means the data type stored in the file.
        device: Device of the model. None means the GPU if there is one, or else the CPU.

    Raises:
        Exception: A file is missing or damaged. The exception type depends on the library that
            reads the file.
    """
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    target: Any = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return model.to(target), tokenizer


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two token sequences.

    >>> common_length([1, 2, 3], [1, 2, 4, 5])
    2
    """
    pairs = enumerate(zip(one, other, strict=False))
    return next((length for length, (a, b) in pairs if a != b), min(len(one), len(other)))


def context_length(model: PreTrainedModel) -> int:
    """Return the maximum number of tokens for which the model's position encoding stays the same.

    Models with `longrope` (Phi-3, Phi-4-mini) change all frequencies when a sequence exceeds their
    original context length, and cached keys then become invalid.
    """
    config = model.config.get_text_config()
    longest = int(getattr(config, "max_position_embeddings", None) or 2**31)
    rope = getattr(config, "rope_parameters", None) or {}
    for each in (rope, *rope.values()):  # parameters of the model, or by type of layer
        if isinstance(each, dict) and each.get("rope_type") == "longrope":
            longest = min(longest, int(each.get("original_max_position_embeddings") or longest))
    return longest


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the tokens that end a turn, from the tokenizer and the generation config."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    ids = declared if isinstance(declared, list) else [declared]
    return frozenset(int(i) for i in [*ids, tokenizer.eos_token_id] if i is not None)
