"""Reads the weights of a model folder into a model that is there."""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedModel


def read_weights(model: PreTrainedModel, folder: Path) -> None:
    """Put the weights of a model folder into a model of the same kind.

    Raises:
        RuntimeError: They are those of another model.
        OSError: There are none.
    """
    saved = type(model).from_pretrained(str(folder), dtype=model.dtype)
    model.load_state_dict(saved.state_dict())
