"""Prefix grouping: on CPUs, the common prefix of several sequences is computed only once.

The rollouts of a group share their prompt, and the prompts of an environment share the descriptions
of its tools. The model processes such a prefix once, and all sequences continue from the KV cache
of the prefix. Gradients flow back through the cache and are summed (Liu et al. 2025,
arXiv:2506.05433).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import torch
from transformers import PreTrainedModel

from adapters.training.models.tokenized_examples import Example
from toolgym.generation.models import common_length
from toolgym.generation.precision import in_float32

LEAST: Final = 128
"""Minimum number of tokens of a common prefix that is processed in a separate pass."""
_SMALL: Final = 10**7  # parameters below which a model gains little
_TOLERANCE: Final = 1e-2  # in standard deviations of the logits; rounding causes 1e-5

_logger = logging.getLogger(__name__)


class Cluster(NamedTuple):
    """Sequences that are processed together: their indices and the length of their prefix."""

    indices: list[int]
    common: int


def clusters(texts: Sequence[Example]) -> list[Cluster]:
    """Divide sequences into clusters of lexicographic neighbors that share a prefix.

    A sequence joins the previous cluster unless this would reduce the number of tokens that the
    cluster saves.

    Args:
        texts: Token sequences, each with at least one token in the loss. A prefix ends before the
            token that predicts the first token in the loss.

    Returns:
        The clusters, each with its shortest sequence first. The last cluster can contain sequences
        without a common prefix.
    """
    heads = [text.ids[: text.learn.index(True, 1) - 1] for text in texts]
    found: list[Cluster] = []
    for index in sorted(range(len(texts)), key=lambda index: heads[index]):
        indices, common = found[-1] if found else ([], 0)
        shared = common_length(heads[indices[-1]], heads[index]) if indices else 0
        shared = min(shared, common) if len(indices) > 1 else shared
        if shared >= LEAST and len(indices) * shared >= (len(indices) - 1) * common:
            found[-1] = Cluster([*indices, index], shared)
        else:
            found.append(Cluster([index], 0))
    alone = [index for indices, common in found for index in indices if not common]
    pairs = [pair for pair in found if pair.common] + [Cluster(alone, 0)] * bool(alone)
    return [
        Cluster(sorted(indices, key=lambda index: len(texts[index].ids)), common)
        for indices, common in pairs
    ]


def cache_of(body: Any, tokens: Sequence[int], device: torch.device) -> Any:
    """Return a KV cache with one row for the given tokens, or None if there are no tokens."""
    if not tokens:
        return None
    return body(input_ids=torch.tensor([tokens], device=device), use_cache=True).past_key_values


def continuing(cache: Any, rows: int) -> dict[str, Any]:
    """Return the model's keyword arguments for continuing rows from a copy of a KV cache."""
    if cache is None:
        return {"use_cache": False}
    repeated = copy.copy(cache)
    repeated.layers = [copy.copy(layer) for layer in cache.layers]
    repeated.batch_repeat_interleave(rows)
    return {"past_key_values": repeated, "use_cache": True}


_shares: WeakKeyDictionary[PreTrainedModel, bool] = WeakKeyDictionary()


def can_share(model: PreTrainedModel) -> bool:
    """Return whether common prefixes are computed only once for a model.

    The result is True if the model is large, runs on a CPU, and computes the same logits when a
    prefix is shared.
    """
    if model.device.type != "cpu":
        return False
    if any(getattr(module, "gradient_checkpointing", False) for module in model.modules()):
        return False  # checkpointing excludes a cache
    if model not in _shares:
        is_large = sum(parameter.numel() for parameter in model.parameters()) >= _SMALL
        problem = sharing_problem(model) if is_large else ""
        if problem:
            name = type(model).__name__
            _logger.warning("%s cannot read a common prefix once: %s.", name, problem)
        _shares[model] = is_large and not problem
    return _shares[model]


@torch.no_grad()
def sharing_problem(model: PreTrainedModel) -> str:
    """Return why a model's logits change if it continues from a KV cache, or "" if they do not."""
    was_training = model.training
    model.train(False)
    ids = torch.arange(63).view(3, 21) % model.config.get_text_config().vocab_size
    ids[:, :13] = ids[0, :13]
    try:
        with in_float32(model):
            expected = model(input_ids=ids, use_cache=False).logits[:, 13:]
            cache = cache_of(model, ids[0, :13].tolist(), model.device)
            logits = model(input_ids=ids[:, 13:], **continuing(cache, 3)).logits
        error = float((logits - expected).abs().max() / expected.std())
    except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as problem:
        return f"{type(problem).__name__}: {problem}"
    finally:
        model.train(was_training)
    return "" if error <= _TOLERANCE else f"its logits differ by {error:.2g} standard deviations"
