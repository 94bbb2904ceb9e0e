"""A model's weights in a file, read one tensor after another into the memory that is there.

Loading a checkpoint as a model of its own takes the memory of a second model for as long as it is
copied. A safetensors file says where each tensor lies, so one is read, copied and forgotten. The
names are those of `state_dict`; a folder whose files have others (`transformers` renames some
architectures' weights when it writes them) is loaded in the plain way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

_ONE, _INDEX = "model.safetensors", "model.safetensors.index.json"


class TensorFile(Mapping[str, Tensor]):
    """The tensors of a safetensors file by name, each read when it is asked for.

    Args:
        file: It has to stay until the last tensor has been read.
    """

    def __init__(self, file: Path) -> None:
        # Not mapped into memory: what has been read would stay there as long as the file is open.
        opened: Any = safe_open  # it has no types
        self._file: Any = opened(file, framework="pt", backend="pread")
        self._names: frozenset[str] = frozenset(self._file.keys())

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        tensor: Tensor = self._file.get_tensor(name)
        return tensor

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, without reading it."""
        return tuple(self._file.get_slice(name).get_shape())

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def write_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Write tensors by name; those that share memory are written as often as they are named."""
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, file)


@torch.no_grad()
def read_weights(model: PreTrainedModel, folder: Path) -> None:
    """Put the weights of a model folder into a model of the same kind.

    Raises:
        RuntimeError: They are those of another model.
        OSError: There are none.
    """
    own, stored = model.state_dict(), _stored(folder)
    names = _names_of_each(own, stored)
    if names is None:
        saved = type(model).from_pretrained(str(folder), dtype=model.dtype)
        model.load_state_dict(saved.state_dict())
        return
    for name in names:
        own[name].copy_(stored[name][name])


def _names_of_each(own: Mapping[str, Tensor], stored: Mapping[str, TensorFile]) -> list[str] | None:
    """A stored name for each tensor of a model; None where names or shapes are not the model's."""
    by_place: dict[int, str] = {}
    for name, tensor in own.items():
        if name in stored and stored[name].shape(name) == tuple(tensor.shape):
            by_place.setdefault(tensor.data_ptr(), name)
    has_all = {tensor.data_ptr() for tensor in own.values()} == by_place.keys()
    return list(by_place.values()) if has_all and stored.keys() <= own.keys() else None


def _stored(folder: Path) -> dict[str, TensorFile]:
    """The file of each tensor of a model folder, by name."""
    if (folder / _INDEX).is_file():
        placed: dict[str, str] = json.loads((folder / _INDEX).read_text())["weight_map"]
        files = {name: TensorFile(folder / name) for name in set(placed.values())}
        return {name: files[file] for name, file in placed.items()}
    if not (folder / _ONE).is_file():
        return {}
    file = TensorFile(folder / _ONE)
    return dict.fromkeys(file, file)
