"""Reads the weights of a model folder into an existing model."""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedModel


def read_weights(model: PreTrainedModel, folder: Path) -> None:
    """Put the weights of a model folder into a model of the same kind.

    Raises:
        RuntimeError: They belong to another model.
        OSError: The folder has none.
    """
    saved = type(model).from_pretrained(str(folder), dtype=model.dtype)
    model.load_state_dict(saved.state_dict())
