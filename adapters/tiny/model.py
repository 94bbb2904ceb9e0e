"""The tiny model: a Qwen3 transformer of about half a million parameters, from scratch.

It has the architecture of a real model, so whatever trains, saves, loads or serves that one does
the same with this, and it is small enough that reinforcement learning with it takes minutes on two
CPU cores. A checkpoint folder is complete: `AutoModelForCausalLM` and `AutoTokenizer` load it by
path.

The sizes were found by trial: two layers are the fewest that learn to copy a value from an
observation into the answer; a third costs time and gains little. So were two liberties taken with
the random weights. ` lamp` in a question and `lamp` inside the quotes of a query are two tokens,
and they start out alike, or each word would have to be learnt twice. And heads may begin by writing
back what they read (`copying`), or the copying of rare words is what a short warm-up has not got
round to when it ends, with one seed or another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase, Qwen3Config, Qwen3ForCausalLM

POSITIONS: Final = 2048  # tokens of the longest transcript
_BLANK: Final = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"  # how byte-level BPE writes a blank


@dataclass(frozen=True)
class TinySize:
    """The shape of the model; the defaults are the ones that the main job is tuned for."""

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
    """A model with random weights for this tokenizer.

    Args:
        tokenizer: Gives the vocabulary and the tokens that end a turn and that pad.
        seed: Of the weights; PyTorch's global random state is left as it was.
        size: Its shape; None means the default of about 550,000 parameters.
        copying: How strongly each head writes back what it reads, to begin with; 0 is at random.

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
    """Start each word after a blank as the same word without it, plus what all of those share."""
    vocabulary = tokenizer.get_vocab()
    embedding: Tensor = model.model.embed_tokens.weight
    blank = torch.randn(embedding.shape[1]) * model.config.initializer_range
    for word, token in sorted(vocabulary.items()):
        plain = vocabulary.get(word.removeprefix(_BLANK))
        if word.startswith(_BLANK) and plain is not None:
            embedding[token] = embedding[plain] + blank


@torch.no_grad()
def _let_heads_copy(model: Qwen3ForCausalLM, strength: float) -> None:
    """Add to each output projection the transpose of the values' projection.

    What a head attends to then comes out of it as it went in, as far as the head's width allows,
    and since the vocabulary is read by the embedding's own weights, that makes the same word
    likelier. Trained models are found to have such heads; a start that imitates them is that of
    Trockman and Kolter 2023, arXiv:2305.09828.
    """
    for layer in model.model.layers:
        attention: Any = layer.self_attn
        attention.o_proj.weight.add_(attention.v_proj.weight.T, alpha=strength)
