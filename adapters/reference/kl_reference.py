"""The reference of the KL penalty: the model as it is when training begins, as a second model.

An adapter needs no second model: without it the model is its own reference
(`adapters.training.models.low_rank`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from transformers import PreTrainedModel


class Reference(Protocol):
    """The policy that a KL penalty holds the model to."""

    def active(self) -> AbstractContextManager[PreTrainedModel]:
        """A context with a model that computes what the reference does; no gradient is held."""
        ...


class CopiedReference:
    """A second model in memory.

    Args:
        model: As it is now.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._copy = copy.deepcopy(model)
        self._copy.requires_grad_(False).train(False)

    @contextmanager
    def active(self) -> Iterator[PreTrainedModel]:
        """The copy."""
        yield self._copy
