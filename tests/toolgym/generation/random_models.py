"""Causal language models of random weights, and what a plain forward pass says of a generation."""

from typing import Any

import torch
import transformers

from toolgym.generation import Generation

SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "Qwen3": {"head_dim": 16},
    "Qwen2": {},
    "Llama": {},
    "Mistral": {"sliding_window": 8},
    "Gemma3Text": {"head_dim": 8, "sliding_window": 8},
    "Gemma2": {"head_dim": 8, "sliding_window": 8, "attn_implementation": "eager"},
    "GptOss": {
        "head_dim": 8,
        "sliding_window": 8,
        "num_local_experts": 4,
        "attn_implementation": "eager",
    },
    "Phi3": {},
    "OPT": {"ffn_dim": 64, "word_embed_proj_dim": 32, "init_std": 0.3},
    "Cohere": {},
}


def random_model(family: str = "Llama", **options: Any) -> Any:
    """A model of a family, in evaluation mode."""
    shape = {**SHAPE, **FAMILIES.get(family, {}), **options}
    attention = shape.pop("attn_implementation", "sdpa")
    config = getattr(transformers, f"{family}Config")(**shape)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    return model.train(False)


def plain_log_probs(model: Any, made: Generation, temperature: float = 1.0) -> list[float]:
    """The log-probabilities of the sampled tokens by one forward pass; 0.0 for the others."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([made.prompt + made.tokens])).logits[0].float()
    table = (logits / temperature).log_softmax(1)
    start = len(made.prompt) - 1
    return [
        float(table[start + place, token]) if bit else 0.0
        for place, (token, bit) in enumerate(zip(made.tokens, made.mask, strict=True))
    ]
