"""Prefix grouping: on CPUs, a common prefix of several texts is read once.

The rollouts of a group share their prompt, and prompts of one environment share its tools. The
model reads such a prefix once, and all texts continue from its KV cache; gradients flow back
through the cache and add up (Liu et al. 2025, arXiv:2506.05433).

Texts are divided into clusters with a common prefix, so that the most tokens are saved.
"""

from __future__ import annotations

import copy
import itertools
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
"""Minimum tokens of a common prefix that is read in a pass of its own."""
_SMALL: Final = 10**7  # parameters of a model below which little is gained
_TOLERANCE: Final = 1e-2  # in standard deviations of the logits; rounding causes 1e-5

_logger = logging.getLogger(__name__)


class Cluster(NamedTuple):
    """Texts that are read together.

    Attributes:
        indices: Indices of the texts, the shortest text first.
        common: Length of their common prefix, which is read once; 0: none.
    """

    indices: list[int]
    common: int


def clusters(texts: Sequence[Example], least: int | None = None) -> list[Cluster]:
    """Divide texts into clusters with a common prefix, so that the most tokens are saved.

    Args:
        texts: Texts with a learned token. A prefix ends before the token that predicts the first
            learned one.
        least: Minimum tokens of a common prefix; None: `LEAST`.

    Returns:
        The clusters of several texts, and one without a common prefix for all other texts, if any.
    """
    least = LEAST if least is None else least
    heads = [text.ids[: text.learn.index(True, 1) - 1] for text in texts]
    order = sorted(range(len(texts)), key=lambda index: heads[index])
    # saved[n]: tokens that the first n texts save, and the start of their last cluster.
    saved = [(0, 0)]
    shared = [0, *(common_length(heads[a], heads[b]) for a, b in itertools.pairwise(order))]
    for end in range(1, len(order) + 1):
        best, common = (saved[end - 1][0], end - 1), shared[end - 1]
        for start in range(end - 2, -1, -1):
            if common < least:
                break
            best = max(best, (saved[start][0] + (end - 1 - start) * common, start))
            common = min(common, shared[start])
        saved.append(best)
    found, alone, end = list[Cluster](), list[int](), len(order)
    while end:
        start = saved[end][1]
        indices = sorted(order[start:end], key=lambda index: len(texts[index].ids))
        if len(indices) > 1:
            found.append(Cluster(indices, min(shared[start + 1 : end])))
        else:
            alone += indices
        end = start
    return [*found[::-1], *([Cluster(sorted(alone), 0)] if alone else [])]


def cache_of(body: Any, tokens: Sequence[int], device: torch.device) -> Any:
    """The KV cache of some tokens, with one row; None if there are no tokens."""
    if not tokens:
        return None
    return body(input_ids=torch.tensor([tokens], device=device), use_cache=True).past_key_values


def continuing(cache: Any, rows: int) -> dict[str, Any]:
    """Keyword arguments to continue several rows from a copy of the cache of `cache_of`."""
    if cache is None:
        return {"use_cache": False}
    repeated = copy.copy(cache)
    repeated.layers = [copy.copy(layer) for layer in cache.layers]
    repeated.batch_repeat_interleave(rows)
    return {"past_key_values": repeated, "use_cache": True}


_shares: WeakKeyDictionary[PreTrainedModel, bool] = WeakKeyDictionary()


def can_share(model: PreTrainedModel) -> bool:
    """Whether common prefixes are read once: on a CPU, if a large model gives equal logits."""
    if model.device.type != "cpu":
        return False
    if any(getattr(module, "gradient_checkpointing", False) for module in model.modules()):
        return False  # which excludes a cache
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
    """The reason why logits differ if a model continues a cache; empty if they do not differ."""
    was_training = model.training
    model.train(False)
    vocabulary = model.config.get_text_config().vocab_size
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary, (3, 21), generator=draw).to(model.device)
    ids[:, :13] = ids[0, :13]
    try:
        with in_float32(model):
            expected = model(input_ids=ids, use_cache=False).logits[:, 13:]
            cache = cache_of(model, ids[0, :13].tolist(), model.device)
            logits = model(input_ids=ids[:, 13:], **continuing(cache, 3)).logits
    except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as problem:
        return f"{type(problem).__name__}: {problem}"
    finally:
        model.train(was_training)
    error = float((logits - expected).abs().max() / expected.std())
    if error <= _TOLERANCE:
        return ""
    return f"its logits differ by {error:.2g} of their standard deviation"
