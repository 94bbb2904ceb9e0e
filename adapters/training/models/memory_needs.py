"""What a training needs in memory, by arithmetic: from a model's shape and the chosen settings.

Two moments compete: an update holds gradient, activations and logits; rollouts hold keys and
values. Weights, those of the KL penalty's reference included, and moments are there in both. The
counts of activations are those of a decoder with gated layers (Llama, Qwen, Gemma), as
`transformers` computes it without an attention mask; others need about as much. What PyTorch itself
and its allocator take comes on top: half a gigabyte on a CPU, a tenth and a gigabyte on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from adapters.training.models.output_layer import LOGITS_AT_ONCE
from adapters.training.models.weight_updates import PIECE

_FLOAT: Final = 4
_AT_THE_LOGITS: Final = 5  # float32 tensors as large as a piece of logits, in the backward pass
_TO_SAMPLE: Final = 24  # bytes for each logit of a decoding step: probabilities and their sums
_MOMENTS: Final = 2 * _FLOAT  # bytes for each weight that is trained


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder.

    Attributes:
        parameters: Of the whole model; 0: by the other sizes.
        heads: Of queries.
        key_heads: Of keys and of values.
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
        """All parameters."""
        if self.parameters:
            return self.parameters
        per_layer = sum(rows * columns for rows, columns in self.matrices) + 2 * self.hidden
        ends = self.vocabulary * self.hidden * (1 if self.is_tied else 2)
        return ends + self.layers * per_layer + self.hidden

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """The linear maps of a layer."""
        queries, keys = self.heads * self.head_size, self.key_heads * self.head_size
        attention = [(queries, self.hidden), (keys, self.hidden), (keys, self.hidden)]
        gated = [(self.feed_forward, self.hidden)] * 3
        return [*attention, (self.hidden, queries), *gated]

    def adapter(self, rank: int) -> int:
        """The parameters of an adapter in all linear maps of the layers."""
        return self.layers * sum(rank * (rows + columns) for rows, columns in self.matrices)


SHAPES: Final = {
    "135M": Shape(30, 576, 1536, 49152, 9, 3, 64),  # SmolLM2-135M
    "0.6B": Shape(28, 1024, 3072, 151936, 16, 8, 128),  # Qwen3, here and below
    "1.7B": Shape(28, 2048, 6144, 151936, 16, 8, 128),
    "4B": Shape(36, 2560, 9728, 151936, 32, 8, 128),
    "8B": Shape(36, 4096, 12288, 151936, 32, 8, 128, is_tied=False),
}
"""Shapes of well-known models, by the sizes that they are known by."""


def shape_of(config: Any, parameters: int = 0) -> Shape | None:
    """The shape of a model by its config; None where the config names its sizes in another way."""
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
        dtype: What the model computes in.
        adapter_rank: Of an adapter in all layers; 0: all weights are trained.
        has_reference: Whether there is a KL penalty.
        tokens_per_pass: Tokens of a forward and backward pass.
        has_checkpointing: Whether activations are computed twice.
        at_once: Rollouts that are played together.
        rollout_tokens: Tokens of one, its prompt included.
    """

    dtype: str = "bfloat16"
    adapter_rank: int = 0
    has_reference: bool = True
    tokens_per_pass: int = 8192
    has_checkpointing: bool = False
    at_once: int = 64
    rollout_tokens: int = 3072


@dataclass(frozen=True)
class Needs:
    """Bytes, by what they are for; see `Needs.total` for what of it is there together."""

    weights: float
    moments: float
    gradient: float
    activations: float
    logits: float
    cache: float

    @property
    def per_update(self) -> float:
        """While a gradient is computed."""
        return self.weights + self.moments + self.gradient + self.activations + self.logits

    @property
    def certain(self) -> float:
        """What does not depend on the lengths of rollouts."""
        return self.weights + self.moments + self.gradient

    @property
    def total(self) -> float:
        """At the worst moment."""
        return max(self.per_update, self.weights + self.moments + self.cache)

    def sentence(self) -> str:
        """What is needed, and for what."""
        parts = {
            "weights": self.weights,
            "moments": self.moments,
            "gradient": self.gradient,
            "activations": self.activations,
            "logits": self.logits,
        }
        of = ", ".join(f"{name} {_gigabytes(size)}" for name, size in parts.items())
        return (
            f"By arithmetic the training needs {_gigabytes(self.total)} GB of memory (an update:"
            f" {of}; rollouts: keys and values {_gigabytes(self.cache)})."
        )


def needs_of(shape: Shape, load: Load) -> Needs:
    """What a training of such a model needs with such settings."""
    item = 2 if load.dtype == "bfloat16" else _FLOAT
    own = item * float(shape.weights)
    if load.adapter_rank:  # in float32, beside a model that stays as it is
        trained = shape.adapter(load.adapter_rank)
        weights = own + _FLOAT * trained
    else:
        trained = shape.weights
        weights = _FLOAT * float(trained) + (own if load.has_reference else 0.0)
    embedding = 0 if load.adapter_rank else item * shape.vocabulary * shape.hidden
    return Needs(
        weights=weights,
        moments=_MOMENTS * trained + 6 * _FLOAT * PIECE,
        gradient=_FLOAT * trained + 2 * embedding,
        activations=_activations(shape, load, item),
        logits=_AT_THE_LOGITS
        * _FLOAT
        * min(LOGITS_AT_ONCE, load.tokens_per_pass * shape.vocabulary),
        cache=_cache(shape, load, item),
    )


def _activations(shape: Shape, load: Load, item: int) -> float:
    """Of the passes of an update; measured on Llama and Qwen 3 (see the tests)."""
    queries, keys = shape.heads * shape.head_size, shape.key_heads * shape.head_size
    of_layer = (
        (8 + 4 * item) * shape.hidden
        + 4 * item * shape.feed_forward
        + (3 * item + 4) * queries
        + (3 * item + 4) * keys
    )
    if load.adapter_rank:  # every map has its input in float32 for the adapter
        inputs = sum(columns for _, columns in shape.matrices)
        of_layer += _FLOAT * inputs
    kept = shape.layers * item * shape.hidden if load.has_checkpointing else shape.layers * of_layer
    return float(load.tokens_per_pass * (kept + of_layer))


def _cache(shape: Shape, load: Load, item: int) -> float:
    """Keys and values of the rollouts that are played together, and the logits of one step."""
    return float(load.at_once * bytes_of_rollout(shape, load.rollout_tokens, item))


def bytes_of_rollout(shape: Shape, tokens: int, item: int) -> int:
    """Keys and values of one rollout, and its logits of one step.

    Args:
        tokens: Of its prompt and completion.
        item: Bytes of a number.
    """
    keys = 2 * shape.layers * shape.key_heads * shape.head_size * item
    return tokens * keys + _TO_SAMPLE * shape.vocabulary


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.2g}" if size < 1e10 else f"{size / 1e9:.0f}"
