"""Models and tokenizers: loading, context length, stop tokens."""

from __future__ import annotations

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
        dtype: The weights' type; `auto` keeps that of the file.
        device: Where to put the model; None: on the GPU if there is one, else on the CPU.

    Raises:
        Exception: Whatever the readers of damaged or missing files raise.
    """
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    target: Any = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return model.to(target), tokenizer


def context_length(model: PreTrainedModel) -> int:
    """Tokens that the model has positions for, and reads all in one way.

    Models with `longrope` (Phi-3, Phi-4-mini) change all frequencies where a text outgrows their
    original length; the keys of a cache are then those of another model.
    """
    config = model.config.get_text_config()
    longest = int(getattr(config, "max_position_embeddings", None) or 2**31)
    rope = getattr(config, "rope_parameters", None) or {}
    for part in (rope, *rope.values()):  # of the whole model, or by kind of layer
        if isinstance(part, dict) and part.get("rope_type") == "longrope":
            longest = min(longest, int(part.get("original_max_position_embeddings") or longest))
    return longest


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The tokens that end a turn: the tokenizer's and those of the generation config."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    ids = declared if isinstance(declared, list) else [declared]
    return frozenset(int(i) for i in [*ids, tokenizer.eos_token_id] if i is not None)
