"""What the model's own numbers say before training: how unsure it is, and what an update costs.

Entropy is taken where it matters, at the tokens that the model wrote, in their context. The time of
an update is that of one forward and one backward pass over transcripts of the sample; the
optimizer's own work, and a reference model, come on top.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from adapters.training.examples import Example

_LOOKED_AT = 64  # transcripts; with them the mean entropy is known to a few per cent
AT_ONCE = 8  # transcripts in a pass of the update
_IGNORED = -100


def entropy_of(model: PreTrainedModel, examples: Sequence[Example], temperature: float) -> float:
    """Mean entropy at the learnt tokens, in nats; nan where there is none.

    Args:
        model: A causal language model.
        examples: What it wrote in their context; at most 64 of them are looked at, evenly chosen.
        temperature: Of the distribution that tokens were drawn from.
    """
    step = max(1, math.ceil(len(examples) / _LOOKED_AT))
    total, count = 0.0, 0
    was_training = model.training
    model.train(False)
    with torch.inference_mode():
        for example in examples[::step]:
            written = torch.tensor(example.learn[1:], device=model.device)
            ids = torch.tensor([example.ids], device=model.device)
            logits = model(input_ids=ids, use_cache=False).logits[0, :-1][written]
            log_probs = torch.log_softmax(logits.float() / temperature, dim=1)
            total -= float((log_probs.exp() * log_probs.clamp(min=-1e30)).sum())
            count += int(written.sum())
    model.train(was_training)
    return total / count if count else math.nan


def update_seconds(model: PreTrainedModel, examples: Sequence[Example], rollouts: int) -> float:
    """Seconds of the forward and backward passes over as many rollouts as a step has.

    Weights, and the random state of PyTorch, stay as they are; gradients are None afterwards.

    Args:
        model: To be trained.
        examples: Transcripts of typical length.
        rollouts: Of a step.

    Returns:
        nan where the passes do not fit into memory, or there is no transcript.
    """
    step = max(1, len(examples) // AT_ONCE)
    batch = examples[::step][:AT_ONCE]
    if not batch:
        return math.nan
    ids, labels = (tensor.to(model.device) for tensor in _padded(batch))
    was_training = model.training
    model.train()
    try:
        with torch.random.fork_rng():
            seconds = min(_passed(model, ids, labels) for _ in range(2))  # the first one warms up
    except torch.OutOfMemoryError:
        seconds = math.nan
    finally:
        model.zero_grad(set_to_none=True)
        model.train(was_training)
        if ids.is_cuda:
            torch.cuda.empty_cache()  # it belongs to the training
    return seconds * rollouts / len(batch)


def _passed(model: PreTrainedModel, ids: Tensor, labels: Tensor) -> float:
    _wait(ids.device)
    began = time.monotonic()
    logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
    loss = functional.cross_entropy(
        logits.flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=_IGNORED
    )
    loss.backward()  # type: ignore[no-untyped-call]
    _wait(ids.device)
    return time.monotonic() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _padded(batch: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """Token ids and labels, both (B, L), padded on the right, where nothing looks at it."""
    rows = [torch.tensor(example.ids) for example in batch]
    learnt = [torch.tensor(example.learn) for example in batch]
    labels = [torch.where(yes, ids, _IGNORED) for ids, yes in zip(rows, learnt, strict=True)]
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(rows, batch_first=True), pad(labels, batch_first=True, padding_value=_IGNORED)
