"""Reads a beginning that several texts have in common once, on CPUs.

The rollouts of a group share their prompt, and prompts of one environment share its tools. The
model reads such a beginning once, and its keys and values serve as the cache from which all these
texts go on; gradients flow back through it and add up. That is prefix grouping (Liu et al. 2025,
arXiv:2506.05433) by the means that every model has for generation.

Each text belongs to one cluster at most. The clusters are those that save the most tokens.
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
from toolgym.generation.precision import in_float32

LEAST: Final = 128
"""Tokens that a common beginning must have, so that reading it apart is worth a pass."""
_SMALL: Final = 10**7  # parameters of a model that gains little
_TOLERANCE: Final = 1e-2  # of the logits' standard deviation; rounding makes 1e-5 of it

_logger = logging.getLogger(__name__)


class Cluster(NamedTuple):
    """Texts that are read together.

    Attributes:
        places: Of the texts, the shortest first.
        common: The number of tokens with which all begin, and that are read once.
    """

    places: list[int]
    common: int


def clusters(texts: Sequence[Example], least: int | None = None) -> list[Cluster]:
    """Divide texts into clusters with a common beginning, so that the most tokens are saved.

    Args:
        texts: Each has a learned token, and what predicts the first one is not shared.
        least: Tokens of a common beginning; None: `LEAST`.

    Returns:
        The clusters of several texts, and one without a common beginning for all others, if any.
    """
    least = LEAST if least is None else least
    heads = [text.ids[: text.learn.index(True, 1) - 1] for text in texts]
    order = sorted(range(len(texts)), key=lambda place: heads[place])
    # saved[n]: tokens that the first n texts save, and where their last cluster begins.
    saved = [(0, 0)]
    shared = [0, *(_common(heads[a], heads[b]) for a, b in itertools.pairwise(order))]
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
        places = sorted(order[start:end], key=lambda place: len(texts[place].ids))
        if len(places) > 1:
            found.append(Cluster(places, min(shared[start + 1 : end])))
        else:
            alone += places
        end = start
    return [*found[::-1], *([Cluster(sorted(alone), 0)] if alone else [])]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of tokens with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def cache_of(body: Any, tokens: Sequence[int], device: torch.device) -> Any:
    """Keys and values of some tokens, in one row; None where there are no tokens."""
    if not tokens:
        return None
    return body(input_ids=torch.tensor([tokens], device=device), use_cache=True).past_key_values


def continuing(cache: Any, rows: int) -> dict[str, Any]:
    """Arguments with which a model goes on from `cache_of` in several rows; it stays as it is."""
    if cache is None:
        return {"use_cache": False}
    repeated = copy.copy(cache)
    repeated.layers = [copy.copy(layer) for layer in cache.layers]
    repeated.batch_repeat_interleave(rows)
    return {"past_key_values": repeated, "use_cache": True}


_shares: WeakKeyDictionary[PreTrainedModel, bool] = WeakKeyDictionary()


def can_share(model: PreTrainedModel) -> bool:
    """Whether a model reads common beginnings once: a large one on a CPU that computes the same."""
    if model.device.type != "cpu":
        return False
    if any(getattr(module, "gradient_checkpointing", False) for module in model.modules()):
        return False  # it excludes a cache
    if model not in _shares:
        is_large = sum(parameter.numel() for parameter in model.parameters()) >= _SMALL
        problem = sharing_problem(model) if is_large else ""
        if problem:
            name = type(model).__name__
            _logger.warning("%s cannot read a common prefix once: %s.", name, problem)
        _shares[model] = is_large and not problem
    return _shares[model]


@torch.inference_mode()
def sharing_problem(model: PreTrainedModel) -> str:
    """Why a model's logits differ where it continues a cache; empty where they do not."""
    was_training = model.training
    model.train(False)
    vocabulary = model.config.get_text_config().vocab_size
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary, (3, 21), generator=draw).to(model.device)
    ids[:, :13] = ids[0, :13]
    try:
        with in_float32(model):
            wanted = model(input_ids=ids, use_cache=False).logits[:, 13:]
            cache = cache_of(model, ids[0, :13].tolist(), model.device)
            found = model(input_ids=ids[:, 13:], **continuing(cache, 3)).logits
    except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as problem:
        return f"{type(problem).__name__}: {problem}"
    finally:
        model.train(was_training)
    error = float((found - wanted).abs().max() / wanted.std())
    return "" if error <= _TOLERANCE else f"its logits differ by {error:.2g} of their deviation"
