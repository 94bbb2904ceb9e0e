"""The tiny model: a Qwen3 transformer of about half a million parameters, built from scratch.

The model has the architecture of published models, so training, saving, loading and serving work in
the same way. Reinforcement learning takes minutes on two CPU cores. `AutoModelForCausalLM` and
`AutoTokenizer` load the model's checkpoint folders by path.

A model needs at least two layers to copy a value from an observation into the answer. A third layer
improves results only slightly and costs more time.

The random initialization has two additions:

- ` lamp` in a question and `lamp` inside the quotes of a query are two different tokens, whose
  embeddings start with similar values.
- Attention heads can start by copying the tokens that they attend to (`copying`). Without this
  initialization, with some seeds a short supervised training run does not teach the model to copy
  rare words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase, Qwen3Config, Qwen3ForCausalLM

POSITIONS: Final = 2048  # maximum tokens of a transcript
# A space in the vocabulary of byte-level BPE.
_BLANK: Final = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"


@dataclass(frozen=True)
class TinySize:
    """The shape of the model. The settings of `toolgym train` are tuned for the default shape."""

    hidden: int = 128
    layers: int = 2
    heads: int = 4
    feed_forward: int = 384


def build_model(
    tokenizer: PreTrainedTokenizerBase,
    seed: int = 0,
    size: TinySize | None = None,
    copying: float = 0.0,
) -> Qwen3ForCausalLM:
    """Build a model with random weights for a tokenizer.

    Args:
        tokenizer: The tokenizer, with its end-of-turn and padding tokens.
        seed: Seed of the weights; PyTorch's global random state does not change.
        size: The shape; None means the default of about 550,000 parameters.
        copying: Initial strength with which each head copies the tokens that it attends to; 0 keeps
            the random initialization.

    Returns:
        The model in float32 on the CPU.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(_config(tokenizer, size or TinySize()))
        _tie_spaced_embeddings(model, tokenizer)
        _let_heads_copy(model, copying)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def _config(tokenizer: PreTrainedTokenizerBase, size: TinySize) -> Qwen3Config:
    return Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        head_dim=size.hidden // size.heads,
        intermediate_size=size.feed_forward,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        initializer_range=0.05,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )


@torch.no_grad()
def _tie_spaced_embeddings(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase) -> None:
    """Initialize the embedding of each ` word` as that of `word` plus a shared vector."""
    vocabulary = tokenizer.get_vocab()
    embedding: Tensor = model.model.embed_tokens.weight
    blank = torch.randn(embedding.shape[1]) * model.config.initializer_range
    for word, token in sorted(vocabulary.items()):
        plain = vocabulary.get(word.removeprefix(_BLANK))
        if word.startswith(_BLANK) and plain is not None:
            embedding[token] = embedding[plain] + blank


@torch.no_grad()
def _let_heads_copy(model: Qwen3ForCausalLM, strength: float) -> None:
    """Add the transpose of the value projection to each output projection.

    A head then returns the embeddings that it attends to, up to the rank of the head. Since input
    and output embeddings are tied, the word that the head attends to becomes more likely. Trained
    models have such heads; this initialization follows Trockman and Kolter 2023, arXiv:2305.09828.
    """
    for layer in model.model.layers:
        attention: Any = layer.self_attn
        attention.o_proj.weight.add_(attention.v_proj.weight.T, alpha=strength)
