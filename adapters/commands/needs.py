"""What each trainer needs of a model and its chat template, as something that can be tried.

A preflight asks it before training does. It stands here because a preflight knows no trainer.
"""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.chat import check_template
from adapters.reference.decoder import check_model
from adapters.training.preflight.chat_format import Needs
from toolgym.env import ToolEnv


def needs_of(trainer: str) -> Needs:
    """The needs of a trainer: `needs(model, tokenizer, env)` raises where they are not met.

    Both want a tool turn to be a clean difference of two renderings; the reference trainer keeps a
    cache over all turns, and tries the model as well.
    """
    return _of_the_reference if trainer == "reference" else check_template


def _of_the_reference(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, env: ToolEnv[Any]
) -> None:
    check_model(model)
    check_template(model, tokenizer, env)
