"""Estimates of the memory that the generation engine leaves free for updates.

The estimates apply to a decoder with gated layers (Llama, Qwen, Gemma), whose feed-forward layers
are three to four times as wide as the model. Other models need about the same amount of memory.
`toolgym preflight` measures the memory of an actual update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from adapters.training.models.token_log_probs import LOGITS_AT_ONCE

_FLOAT: Final = 4  # bytes
_KEPT: Final = 28  # elements that a layer keeps for the backward pass, per unit of its width
_KEPT_BY_ADAPTER: Final = 9  # additional float32 elements, the inputs of LoRA layers
_ADAPTER: Final = 20  # parameters of an adapter of rank 1 in a layer, per unit of its width
_LOGITS_HELD: Final = 5  # float32 tensors of the size of a chunk of logits, in the backward pass


@dataclass(frozen=True)
class Load:
    """The settings that determine how much memory an update needs.

    Attributes:
        dtype: Data type of the computation.
        adapter_rank: Rank of an adapter in all layers; 0 means that all weights are trained.
        tokens_per_pass: Number of tokens of a forward and backward pass.
        has_checkpointing: Whether gradient checkpointing is on.
    """

    dtype: str
    adapter_rank: int
    tokens_per_pass: int
    has_checkpointing: bool


def bytes_of_update(config: Any, parameters: int, load: Load) -> int:
    """Return the bytes that an update needs in addition to the weights.

    The estimate covers gradients and optimizer state in float32, activations and logits. The result
    is 0 if the sizes of the model cannot be read from its config.

    Args:
        config: Config of the model.
        parameters: Number of parameters of the model.
        load: Settings of the update.
    """
    text = config.get_text_config()
    try:
        layers, width, vocabulary = text.num_hidden_layers, text.hidden_size, text.vocab_size
    except AttributeError:
        return 0
    item = 2 if load.dtype == "bfloat16" else _FLOAT
    trained, per_layer = parameters, _KEPT * width * item
    if load.adapter_rank:
        trained = _ADAPTER * width * layers * load.adapter_rank
        per_layer += _KEPT_BY_ADAPTER * width * _FLOAT
    kept = width * item if load.has_checkpointing else per_layer
    logits = min(LOGITS_AT_ONCE["cuda"], load.tokens_per_pass * vocabulary)
    activations = load.tokens_per_pass * (layers * kept + per_layer)
    return int(3 * _FLOAT * trained + activations + _LOGITS_HELD * _FLOAT * logits)
