"""A model's last layer, from hidden states to the vocabulary, at the places where it is needed.

Half of a transcript is prompt and results of tools, which nobody learns. Logits over the vocabulary
are the largest thing that an update keeps in memory, and with a small model the dearest to compute;
a model of `transformers` computes them at all places or at the last ones. So the layer's input is
cut down by a hook, while the model is called as any causal language model is.

Where even these logits are many, `in_pieces` never has all of them: the model's body computes
hidden states, and its head is applied to some places after others, and again in the backward pass.
What a model does to its logits after that layer (a scale, a cap) belongs to the head, so the head
is the model's own `forward`, with hidden states in place of its body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

LOGITS_AT_ONCE: Final = 2**24
"""Logits that are in memory together, with what is computed of them: 64 MiB in float32, each."""

OfLogits = Callable[[Tensor, Tensor], tuple[Tensor, ...]]
"""From logits [P, V] and target tokens [P] to numbers, [P] each, or [1] for a sum over places."""


@contextmanager
def sees_only(model: PreTrainedModel, places: Tensor) -> Iterator[None]:
    """Let the output layer see these places only, (1, places, hidden); if it can be found.

    Args:
        places: [B, L] bool.
    """
    head: Any = model.get_output_embeddings()
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


def in_pieces(
    model: PreTrainedModel,
    places: Tensor,
    targets: Tensor,
    compute: OfLogits,
    at_once: int = LOGITS_AT_ONCE,
    **inputs: Any,
) -> tuple[Tensor, ...]:
    """Numbers that are computed of the logits at some places, without all logits in memory.

    Args:
        places: [B, L] bool.
        targets: [P], one for each place, for `compute`.
        compute: Is called with neighbouring places.
        at_once: Logits that are in memory together; fewer places are computed in one piece.
        inputs: For the model: `input_ids` [B, L], and what else it takes.

    Returns:
        What `compute` returns, for all pieces one after another.
    """
    vocabulary = model.config.get_text_config().vocab_size
    rows = max(1, at_once // vocabulary)
    body = _body(model) if len(targets) > rows else None
    if body is None:
        return _together(model, places, targets, compute, rows, **inputs)
    output = body(**inputs, use_cache=False)
    hidden = output[0][places]

    def of_piece(states: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
        with _standing_in(body, type(output)(last_hidden_state=states[None])):
            logits = model(input_ids=tokens[None], use_cache=False).logits[0]
        return compute(logits, tokens)

    return _over_pieces(of_piece, hidden, targets, rows)


def _together(
    model: PreTrainedModel,
    places: Tensor,
    targets: Tensor,
    compute: OfLogits,
    rows: int,
    **inputs: Any,
) -> tuple[Tensor, ...]:
    """The same with the logits of all places in memory."""
    with sees_only(model, places):
        logits = model(**inputs, use_cache=False).logits
    picked = logits[0] if logits.shape[:2] != places.shape else logits[places]
    return _over_pieces(compute, picked, targets, rows)


def _over_pieces(
    compute: OfLogits, values: Tensor, targets: Tensor, rows: int
) -> tuple[Tensor, ...]:
    """Compute some rows after others; if they are several, again in the backward pass."""
    if len(values) <= rows:
        return compute(values, targets)
    pieces = zip(torch.split(values, rows), torch.split(targets, rows), strict=True)
    results = [
        checkpoint(compute, *piece, use_reentrant=False, preserve_rng_state=False)
        for piece in pieces
    ]
    return tuple(torch.cat(each) for each in zip(*results, strict=True))


@contextmanager
def _standing_in(body: Any, output: Any) -> Iterator[None]:
    """Let a model's body return an output without computing."""

    def instead(*_: Any, **__: Any) -> Any:
        if output is None:
            raise _Called
        return output

    body.forward = instead
    try:
        yield
    finally:
        del body.forward


class _Called(Exception):
    """A model has called its body."""


def _body(model: PreTrainedModel) -> Any:
    """The part of a model that makes hidden states of tokens, if its `forward` calls one."""
    asked: Any = model
    for body in (asked.base_model, asked.get_decoder()):
        if body is not None and body is not model:
            with _standing_in(body, None), suppress(_Called):
                model(input_ids=torch.zeros(1, 1, dtype=torch.long, device=model.device))
                continue
            return body
    return None
