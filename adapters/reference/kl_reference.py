"""The reference of the KL penalty: the model as it is when training begins, and where it waits.

It is needed for one pass over a batch, before there is a gradient. So beside the model it need not
be in memory: its weights lie in a file, take the model's place for that pass, and are forgotten.
That takes no more memory than the gradient does afterwards. An adapter needs nothing at all:
without it the model is its own reference (`adapters.training.models.low_rank`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from transformers import PreTrainedModel

from adapters.training.models.stored_weights import TensorFile, write_tensors


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


class StoredReference:
    """Weights in a file, which take the place of the model's own while they are needed.

    Args:
        model: As it is now, and afterwards as the policy.
        file: Is written, if `writes`; it has to stay.
        writes: Whether this process does it; the file is there for the others when they need it.
    """

    def __init__(self, model: PreTrainedModel, file: Path, writes: bool = True) -> None:
        self._model, self._file = model, file
        if writes:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_tensors(dict(model.named_parameters()), file)

    @contextmanager
    def active(self) -> Iterator[PreTrainedModel]:
        """The model with the weights of the file; its own come back after it."""
        parameters = dict(self._model.named_parameters())
        own = {name: parameter.data for name, parameter in parameters.items()}
        stored = TensorFile(self._file)
        try:
            for name, parameter in parameters.items():
                parameter.data = stored[name].to(parameter.device)
            yield self._model
        finally:
            for name, parameter in parameters.items():
                parameter.data = own[name]
