"""Log-probabilities of the tokens in the loss, and the division of sequences into forward passes.

Supervised training and reinforcement learning both call the model through this module. The
sequences of a pass are padded on the right; causal attention ignores this padding without a mask.
The LM head is applied only at positions that predict a token in the loss, since about half of a
transcript consists of the prompt and tool results. The LM head is applied in chunks. If there are
several chunks, their logits are recomputed in the backward pass, so the logits of all chunks are
never in memory at the same time.

On CUDA, the width and the number of rows of a pass are rounded up to a small set of sizes. cuDNN
attention is disabled, because it takes tens of milliseconds to build a plan for every new shape. No
function of this module synchronizes with the device.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from adapters.training.models.common_prefix import (
    LEAST,
    Cluster,
    cache_of,
    can_share,
    clusters,
    continuing,
)
from adapters.training.models.tokenized_examples import Example
from toolgym.generation.models import common_length

LOGITS_AT_ONCE: Final = {"cpu": 2**24, "cuda": 2**26}
"""Maximum number of logits in memory, by device type.

In float32 they take 64 MiB on CPUs and 256 MiB on CUDA.
"""
_PASS_COST: Final = {"cpu": 128, "cuda": 2048}
"""Fixed cost of a pass, as the number of tokens that take the same time.

The cost for CPUs was measured with the tiny model. The cost for CUDA corresponds to about 15 ms of
kernel launches.
"""

OfLogits = Callable[[Tensor, Tensor], tuple[Tensor, ...]]
"""Function of logits [P, V] and target tokens [P] that returns tensors [P]."""


def passes(texts: Sequence[Example], tokens: int, model: PreTrainedModel) -> list[list[int]]:
    """Divide sequences into forward passes so that the total time is minimal.

    Args:
        texts: Texts. Sequences without a token in the loss are excluded.
        tokens: Maximum number of tokens of a pass, including padding. A single sequence can exceed
            this limit.
        model: The model that processes the sequences. The cost of a pass depends on the device of
            the model, and some models process a common prefix only once.

    Returns:
        The indices of the sequences in each pass.
    """
    learned = [index for index, text in enumerate(texts) if True in text.learn[1:]]
    if not can_share(model):
        device, lengths = model.device.type, [len(texts[index].ids) for index in learned]
        if device == "cuda":
            lengths = [_rounded_up(length) for length in lengths]
        batches = like_lengths(lengths, tokens, _PASS_COST.get(device, _PASS_COST["cpu"]))
        return [[learned[i] for i in batch] for batch in batches]
    before: tuple[int, ...] = ()
    result, size = [list[int]()], 0
    for index in sorted(learned, key=lambda index: texts[index].ids):
        ids = texts[index].ids
        own = len(ids) - (shared if (shared := common_length(before, ids)) >= LEAST else 0)
        if result[-1] and size + own > tokens:
            result.append([])
            size, own = 0, len(ids)
        result[-1].append(index)
        size, before = size + own, ids
    return [indices for indices in result if indices]


def like_lengths(lengths: Sequence[int], tokens: int | None, cost: int) -> list[list[int]]:
    """Divide rows into padded batches of similar length so that the total time is minimal.

    Args:
        lengths: Number of tokens of each row, for at least one row.
        tokens: Maximum number of tokens of a batch, including padding; None means no limit. A
            single row can exceed this limit.
        cost: Fixed cost of a batch, in tokens.

    Returns:
        The indices of the rows in each batch, the shortest rows first.

    >>> like_lengths([50, 180, 52, 175], None, 128)
    [[0, 2], [3, 1]]
    >>> like_lengths([160, 180, 175], None, 128)
    [[0, 2, 1]]
    >>> like_lengths([160, 180, 175], 360, 128)
    [[0], [2, 1]]
    """
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    # best[n]: lowest cost of the n shortest rows, and the start of their last batch
    best = [(0, 0)]
    for end in range(1, len(order) + 1):
        width = lengths[order[end - 1]]
        first = 0 if tokens is None else min(end - 1, max(0, end - tokens // width))
        best.append(min((best[i][0] + (end - i) * width + cost, i) for i in range(first, end)))
    cuts = [len(order)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    return [order[start:end] for end, start in itertools.pairwise(cuts)][::-1]


def token_log_probs(
    model: PreTrainedModel,
    texts: Sequence[Example],
    *,
    temperature: float = 1.0,
    entropy: bool = False,
) -> tuple[Tensor, Tensor]:
    """Compute, in one forward pass, the log-probabilities of all tokens in the loss.

    Args:
        model: A causal language model.
        texts: Token ids and loss mask of each sequence. The first value of each loss mask is
            ignored.
        temperature: Divisor of the logits.
        entropy: Whether to compute gradients of the entropies.

    Returns:
        Log-probabilities [M] and entropies [M] of the tokens in the loss, in nats, ordered by
        sequence and position. Both are float32, or float64 for a model in float64.
    """

    def compute(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        scaled = logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature
        log_softmax = torch.log_softmax(scaled, dim=1)
        with torch.set_grad_enabled(entropy and torch.is_grad_enabled()):
            entropies = -(log_softmax.exp() * log_softmax).sum(dim=1)
        return log_softmax.gather(1, targets[:, None]).squeeze(1), entropies

    log_probs, entropies = at_learned_tokens(model, texts, compute)
    return log_probs, entropies


def at_learned_tokens(
    model: PreTrainedModel, texts: Sequence[Example], compute: OfLogits
) -> tuple[Tensor, ...]:
    """Apply a function to the logits that predict the tokens in the loss.

    Args:
        compute: Function that is called with chunks of at most `LOGITS_AT_ONCE` logits. If there
            are several chunks, the function is called again in the backward pass.

    Returns:
        The results of `compute`, concatenated in the order of sequences and positions.
    """
    device = model.device
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
    pairs = (pair for text in texts for pair in zip(text.ids[1:], text.learn[1:], strict=True))
    targets = moved(
        torch.tensor([t for t, is_learned in pairs if is_learned], dtype=torch.long), device
    )
    body = model.get_decoder()
    hidden, output_type = _hidden_states(model, body, texts)

    def head(states: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
        # The head of a model may scale or softcap its logits. So the model's own `forward` applies
        # it, with a body that returns the given hidden states.
        given = output_type(last_hidden_state=states[None])
        with patch.object(body, "forward", lambda *_, **__: given):
            logits = model(input_ids=tokens[None], use_cache=False).logits[0]
        return compute(logits, tokens)

    max_logits = LOGITS_AT_ONCE.get(device.type, LOGITS_AT_ONCE["cpu"])
    rows = max(1, max_logits // model.config.get_text_config().vocab_size)
    if len(targets) <= rows:
        return head(hidden, targets)
    chunks = [
        checkpoint(head, *chunk, use_reentrant=False, preserve_rng_state=False)
        for chunk in zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True)
    ]
    return tuple(torch.cat(results) for results in zip(*chunks, strict=True))


def _hidden_states(
    model: PreTrainedModel, body: Any, texts: Sequence[Example]
) -> tuple[Tensor, Any]:
    """Return the hidden states [M, H] at learned tokens, and the type of the body's output."""
    device, hidden, output = model.device, dict[int, Tensor](), None
    shares = can_share(model)
    for cluster in clusters(texts) if shares else [Cluster([*range(len(texts))], 0)]:
        cache = cache_of(body, texts[cluster.indices[0]].ids[: cluster.common], device)
        lengths = [len(texts[index].ids) - cluster.common for index in cluster.indices]
        batches = like_lengths(lengths, None, _PASS_COST["cpu"]) if shares else [cluster.indices]
        for batch in batches:
            rows = [cluster.indices[i] for i in batch]
            chosen = [texts[index] for index in rows]
            ids, positions = _padded(chosen, cluster.common, device)
            output = body(input_ids=ids, **continuing(cache, len(rows)))
            states = output[0].flatten(0, 1).index_select(0, positions)
            counts = [sum(text.learn[1:]) for text in chosen]
            hidden |= dict(zip(rows, torch.split(states, counts), strict=True))
    return torch.cat([hidden[index] for index in range(len(texts))]), type(output)


def _padded(texts: Sequence[Example], start: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return padded token ids [B, L] from `start` on, and flat positions of predictions.

    The positions are those that predict learned tokens.
    """
    rows, width = len(texts), max(len(text.ids) for text in texts) - start
    if device.type == "cuda":
        rows, width = _rounded_up(rows), _rounded_up(width)
    ids = [[*text.ids[start:], *[0] * (start + width - len(text.ids))] for text in texts]
    ids += [[0] * width] * (rows - len(texts))
    positions = [
        row * width + position - start
        for row, text in enumerate(texts)
        for position, is_learned in enumerate(text.learn[1:])
        if is_learned
    ]
    flat = torch.tensor(positions, dtype=torch.long)
    return moved(torch.tensor(ids), device), moved(flat, device)


def _rounded_up(size: int) -> int:
    """Round up to a number with at most four significant bits, by at most 12.5 %.

    >>> [_rounded_up(size) for size in (7, 16, 17, 570, 600)]
    [7, 16, 18, 576, 640]
    """
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to a device asynchronously."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
