"""A model's last layer, from hidden states to the vocabulary, at the places where it is needed.

Half of a transcript is prompt and results of tools, which nobody learns. Logits over the vocabulary
are the largest thing that an update keeps in memory, and with a small model the dearest to compute;
a model of `transformers` computes them at all places or at the last ones. So the layer's input is
cut down by a hook, while the model is called as any causal language model is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel


@contextmanager
def sees_only(model: PreTrainedModel, places: Tensor) -> Iterator[None]:
    """Let the output layer see these places only, (1, places, hidden); if it can be found.

    Args:
        places: [B, L] bool.
    """
    head: Any = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if head is None:
        yield
        return

    def pick(module: Any, hidden: tuple[Any, ...]) -> tuple[Any, ...]:
        return (hidden[0][places][None], *hidden[1:])

    handle = head.register_forward_pre_hook(pick)
    try:
        yield
    finally:
        handle.remove()
