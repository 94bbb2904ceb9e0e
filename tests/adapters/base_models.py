"""Base models of the smallest size: a tokenizer that was never in a chat, and random weights."""

import json
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from toolgym import registration
from toolgym.messages import system_prompt, tools_in_words

END: Final = "<|endoftext|>"
CHATML: Final = ("<|im_start|>", "<|im_end|>")
SMALL_SHAPE: Final[dict[str, Any]] = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "max_position_embeddings": 1024,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}


def random_model(
    family: str = "Llama",
    dtype: torch.dtype = torch.float64,
    attention: str | None = None,
    **options: Any,
) -> Any:
    """A model of `SMALL_SHAPE` with random weights, the same ones each time.

    Args:
        family: As the names of transformers' classes begin.
        dtype: Of its weights.
        attention: How it computes attention; else as the family does by itself.
        options: Of its configuration, in place of those of the shape.
    """
    config = getattr(transformers, f"{family}Config")(**{**SMALL_SHAPE, **options})
    torch.manual_seed(0)
    chosen = {"attn_implementation": attention} if attention else {}
    auto: Any = transformers.AutoModelForCausalLM
    return auto.from_config(config, dtype=dtype, **chosen).train(False)


def base_tokenizer(
    *texts: str,
    control: tuple[str, ...] = (END,),
    eos: str | None = END,
    bos: str | None = None,
    begins: bool = False,
) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer without a chat template.

    Args:
        texts: Those that it shall need few tokens for.
        control: Its special tokens.
        eos: The one that ends a text.
        bos: The one that begins a text.
        begins: It puts `bos` before every text by itself.
    """
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    learn = trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    inner.train_from_iterator([*texts, "read the note and answer"] * 5, learn)
    inner.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in control])
    if bos is not None and begins:
        first = [(bos, inner.token_to_id(bos))]
        inner.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=first
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=eos, bos_token=bos, pad_token=eos, padding_side="left"
    )


def base_model(tokenizer: Any) -> Qwen3ForCausalLM:
    """A Qwen 3 transformer of two layers with random weights."""
    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            max_position_embeddings=4096,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def save_base_model(folder: Path, env_id: str, **env_kwargs: Any) -> Path:
    """A folder with such a model, whose tokenizer has read what an environment tells of itself."""
    env = registration.make(env_id, **env_kwargs)
    env.reset(seed=0)
    schemas = [json.dumps(schema) for schema in env.tool_schemas()]
    texts = (system_prompt(env), env.user_prompt(), tools_in_words(env.tools), *schemas)
    tokenizer = base_tokenizer(*texts)
    base_model(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
