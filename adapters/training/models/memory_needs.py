"""Estimates the memory of a training from the shape of its model and its settings.

An update needs memory for gradient, activations and logits; rollouts need it for keys and values.
Both need the weights, those of the KL reference included, and the moments. Activations are counted
for a decoder with gated layers (Llama, Qwen, Gemma) in `transformers` without an attention mask;
other models need about as much. PyTorch and its allocator take another 0.5 GB on a CPU, and 1.1 GB
on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from adapters.training.models.token_log_probs import LOGITS_AT_ONCE

_FLOAT: Final = 4  # bytes
_LOGITS_HELD: Final = 5  # float32 tensors of the size of a chunk of logits, in the backward pass
_SAMPLING: Final = 24  # bytes per logit of a decoding step: probabilities and their sums


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder.

    Attributes:
        layers: Number of layers.
        hidden: Hidden size.
        feed_forward: Intermediate size of the feed-forward layers.
        vocabulary: Vocabulary size.
        heads: Number of query heads.
        key_heads: Number of key and value heads.
        head_size: Dimension of a head.
        is_tied: Whether input and output embeddings are tied.
        parameters: Parameters of the whole model; 0: computed from the other sizes.
    """

    layers: int
    hidden: int
    feed_forward: int
    vocabulary: int
    heads: int
    key_heads: int
    head_size: int
    is_tied: bool = True
    parameters: int = 0

    @property
    def weights(self) -> int:
        """Number of parameters."""
        if self.parameters:
            return self.parameters
        per_layer = sum(rows * columns for rows, columns in self.matrices) + 2 * self.hidden
        ends = self.vocabulary * self.hidden * (1 if self.is_tied else 2)
        return ends + self.layers * per_layer + self.hidden

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Shapes (rows, columns) of the linear layers of a decoder layer."""
        queries, keys = self.heads * self.head_size, self.key_heads * self.head_size
        attention = [(queries, self.hidden), (keys, self.hidden), (keys, self.hidden)]
        return [*attention, (self.hidden, queries), *[(self.feed_forward, self.hidden)] * 3]

    def adapter(self, rank: int) -> int:
        """Number of parameters of an adapter of this rank in all linear layers."""
        return self.layers * sum(rank * (rows + columns) for rows, columns in self.matrices)


def shape_of(config: Any, parameters: int = 0) -> Shape | None:
    """The shape of a model from its config; None if the config names its sizes differently."""
    text = config.get_text_config()
    try:
        heads = int(text.num_attention_heads)
        return Shape(
            layers=int(text.num_hidden_layers),
            hidden=int(text.hidden_size),
            feed_forward=int(text.intermediate_size),
            vocabulary=int(text.vocab_size),
            heads=heads,
            key_heads=int(getattr(text, "num_key_value_heads", None) or heads),
            head_size=int(getattr(text, "head_dim", None) or text.hidden_size // heads),
            is_tied=bool(getattr(text, "tie_word_embeddings", False)),
            parameters=parameters,
        )
    except (AttributeError, TypeError, ValueError):
        return None


@dataclass(frozen=True)
class Load:
    """The settings that memory depends on.

    Attributes:
        dtype: Data type of the computation.
        adapter_rank: Rank of an adapter in all layers; 0: all weights are trained.
        has_reference: Whether the loss has a KL penalty.
        tokens_per_pass: Tokens of a forward and backward pass.
        has_checkpointing: Whether gradient checkpointing is on.
        at_once: Rollouts in the KV cache at the same time.
        rollout_tokens: Tokens of a rollout, its prompt included.
        device: Type of the device, `cpu` or `cuda`.
    """

    dtype: str = "bfloat16"
    adapter_rank: int = 0
    has_reference: bool = True
    tokens_per_pass: int = 8192
    has_checkpointing: bool = False
    at_once: int = 64
    rollout_tokens: int = 3072
    device: str = "cuda"


@dataclass(frozen=True)
class Needs:
    """Bytes by purpose.

    Attributes:
        weights: Weights of the model, its float32 master copy, an adapter and the KL reference.
        moments: Moments of AdamW.
        gradient: Gradient of the trained weights.
        activations: Activations of a pass.
        logits: Logits of a pass.
        cache: Memory of rollouts: keys and values, the logits of a decoding step and, with an
            adapter, a copy of the weights that it is merged into.
    """

    weights: float
    moments: float
    gradient: float
    activations: float
    logits: float
    cache: float

    @property
    def certain(self) -> float:
        """Bytes that do not depend on the lengths of rollouts."""
        return self.weights + self.moments + self.gradient

    @property
    def total(self) -> float:
        """Peak bytes, in updates or in rollouts."""
        update = self.certain + self.activations + self.logits
        return max(update, self.weights + self.moments + self.cache)

    def sentence(self) -> str:
        """The estimate in words."""
        names = ("weights", "moments", "gradient", "activations", "logits")
        parts = ", ".join(f"{name} {_gigabytes(getattr(self, name))}" for name in names)
        return (
            f"The training needs about {_gigabytes(self.total)} GB of memory (an update:"
            f" {parts}; rollouts: {_gigabytes(self.cache)})."
        )


def needs_of(shape: Shape, load: Load) -> Needs:
    """Estimate the memory of training a model of this shape with these settings."""
    item = 2 if load.dtype == "bfloat16" else _FLOAT
    model_bytes = float(item * shape.weights)
    cache = float(load.at_once * bytes_of_rollout(shape, load.rollout_tokens, item))
    if load.adapter_rank:  # in float32, in a model that is frozen
        trained = shape.adapter(load.adapter_rank)
        weights = model_bytes + _FLOAT * trained
        adapted = shape.layers * sum(rows * columns for rows, columns in shape.matrices)
        cache += item * adapted if load.at_once else 0
        largest = 0
    else:
        trained = shape.weights
        masters = _FLOAT * trained if item < _FLOAT else 0
        weights = model_bytes + masters + (model_bytes if load.has_reference else 0)
        largest = shape.vocabulary * shape.hidden
    logits = min(LOGITS_AT_ONCE[load.device], load.tokens_per_pass * shape.vocabulary)
    return Needs(
        weights=weights,
        moments=2 * _FLOAT * trained,
        # The largest parameter has its gradient in `dtype` twice while it is added to the sum.
        gradient=_FLOAT * trained + 2 * item * largest,
        activations=_activations(shape, load, item),
        logits=_LOGITS_HELD * _FLOAT * logits,
        cache=cache,
    )


def _activations(shape: Shape, load: Load, item: int) -> float:
    """Bytes of the activations of a pass; tests compare with Llama and Qwen 3."""
    queries, keys = shape.heads * shape.head_size, shape.key_heads * shape.head_size
    per_layer = (
        (8 + 4 * item) * shape.hidden
        + 4 * item * shape.feed_forward
        + (3 * item + 4) * queries
        + (3 * item + 4) * keys
    )
    if load.adapter_rank:  # LoRA layers keep their inputs in float32
        per_layer += _FLOAT * sum(columns for _, columns in shape.matrices)
    kept = item * shape.hidden if load.has_checkpointing else per_layer
    return float(load.tokens_per_pass * (shape.layers * kept + per_layer))


def bytes_of_update(config: Any, parameters: int, load: Load) -> int:
    """The bytes of an update without the weights; 0 if the config has other names for its sizes.

    Args:
        parameters: Of the whole model.
    """
    shape = shape_of(config, parameters)
    if shape is None:
        return 0
    needs = needs_of(shape, load)
    return int(needs.moments + needs.gradient + needs.activations + needs.logits)


def bytes_of_rollout(shape: Shape, tokens: int, item: int) -> int:
    """Bytes of the keys and values of one rollout, and of its logits in a decoding step.

    Args:
        tokens: Tokens of prompt and completion.
        item: Bytes per element.
    """
    keys = 2 * shape.layers * shape.key_heads * shape.head_size * item
    return tokens * keys + _SAMPLING * shape.vocabulary


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.2g}" if size < 1e10 else f"{size / 1e9:.0f}"
