"""Exact probabilities under the micro-model, where others would sample: of prose, of workflows.

A completion is prose when it begins with the one word that only prose begins with, so its
probability is that of one token. That of a set of texts is the sum of each text's.
"""

from __future__ import annotations

import torch
from torch import Tensor

from adapters.lab.micro.model import PROMPT, MicroModel
from adapters.lab.micro.tokens import NUMBERS, PAD, PROSE, WORKFLOWS, tokens_of


def prose_probability(model: MicroModel, prompts: Tensor) -> Tensor:
    """How likely a completion begins as prose: prompts [N, PROMPT] to [N]."""
    logits, _ = model(prompts)
    probability: Tensor = logits[:, -1].softmax(dim=-1)[:, NUMBERS[PROSE]]
    return probability


def known_workflows(model: MicroModel, prompts: Tensor) -> Tensor:
    """How likely a completion is one of the workflows that were shown: [N, PROMPT] to [N].

    All of them are valid for some kind of task, and all but those with tests for each.
    """
    return text_probabilities(model, prompts, list(WORKFLOWS)).sum(dim=1)


def text_probabilities(model: MicroModel, prompts: Tensor, texts: list[str]) -> Tensor:
    """How likely each completion is: [N, PROMPT] to [N, texts]."""
    rows = [tokens_of(text) for text in texts]
    longest = max(map(len, rows))
    tokens = torch.tensor([row + [NUMBERS[PAD]] * (longest - len(row)) for row in rows])
    whole = torch.cat(
        [
            prompts.repeat_interleave(len(texts), dim=0),
            tokens.repeat(len(prompts), 1),
        ],
        dim=1,
    )
    table = model(whole[:, :-1])[0][:, PROMPT - 1 :].log_softmax(dim=-1)
    found = table.gather(2, whole[:, PROMPT:, None])[:, :, 0]
    counted = whole[:, PROMPT:] != NUMBERS[PAD]
    return torch.where(counted, found, 0.0).sum(dim=1).exp().reshape(len(prompts), len(texts))
