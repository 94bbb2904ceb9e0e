"""Rows of data sets that are not one JSON list, read one by one when they are used.

* `JsonLines`: a file with one JSON object a line. Its lines are counted at once (a second for a
  gigabyte) and read one by one.
* `rows_of`: a `datasets.Dataset`, a `DatasetDict`, a list of dicts, or a stream (`IterableDataset`,
  a generator), of which the first rows are read and kept.
* `from_hub`: what `hf:NAME` names.

`datasets` is looked for only by `from_hub`; an object of it is known by what it can do.
"""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolgym.errors import ConfigurationError

STREAMED = 10_000
"""Rows of a stream that are read; it has no length, and a seed needs one to choose a task."""
_CHUNK = 1 << 24


class Unreadable(str):
    """The reason why an entry cannot be read, in its place, as the end of a sentence."""

    __slots__ = ()


class JsonLines(Sequence[Any]):
    """The entries of a file, one JSON value a line; a broken line is an `Unreadable`.

    Raises:
        ConfigurationError: It cannot be read, or it is empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._ends = _line_ends(path)
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
        if not len(self._ends):
            raise ConfigurationError(f"{path} is empty; it must hold one JSON object a line.")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        start = int(self._ends[place - 1]) if place else 0
        with self.path.open("rb") as file:
            file.seek(start)
            line = file.read(int(self._ends[place]) - start)
        try:
            return json.loads(line)
        except UnicodeDecodeError:
            return Unreadable("it is not UTF-8")
        except json.JSONDecodeError as error:
            return Unreadable(f"it is not JSON: {error.msg} at column {error.colno}")
        except ValueError:
            return Unreadable("a number in it is too long")
        except RecursionError:
            return Unreadable("it is nested too deeply")


def _line_ends(path: Path) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The offset behind each line; blank lines at the end of the file are none."""
    chunks, size, last = [], 0, b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            chunks.append(np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + size + 1)
            size, last = size + len(chunk), chunk[-1:]
        if last not in (b"", b"\n"):
            chunks.append(np.array([size]))
        ends = np.concatenate([np.empty(0, np.int64), *chunks])
        while len(ends):
            start = int(ends[-2]) if len(ends) > 1 else 0
            file.seek(start)
            if file.read(int(ends[-1]) - start).strip():
                break
            ends = ends[:-1]
    return ends


def rows_of(dataset: Any, split: str) -> Sequence[Any]:
    """The rows of a data set that is in memory or a stream.

    Args:
        dataset: A `datasets` object, a sequence of dicts, or an iterable of them.

    Raises:
        ConfigurationError: It has no such split, no rows, or is none of these.
    """
    if isinstance(dataset, Mapping):
        if split not in dataset:
            splits = ", ".join(map(repr, dataset))
            raise ConfigurationError(f"the data set has no split {split!r}: it has {splits}.")
        dataset = dataset[split]
    if isinstance(dataset, Iterable) and not hasattr(dataset, "__len__"):
        dataset = list(itertools.islice(dataset, STREAMED))
    if isinstance(dataset, str | bytes) or not hasattr(dataset, "__getitem__"):
        raise ConfigurationError(
            f"a {type(dataset).__name__} is no data set: give a name, a path, a TaskSet, a"
            " datasets.Dataset, or a list of dicts with db_id, question and query."
        )
    if not len(dataset):
        raise ConfigurationError("the data set has no rows.")
    rows: Sequence[Any] = dataset
    return rows


def from_hub(name: str, split: str) -> Any:
    """The data set that `datasets` has under a name: a folder saved by it, or one of the hub.

    Raises:
        ConfigurationError: It is not installed, or cannot load it.
    """
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as problem:
        raise ConfigurationError(
            f"hf:{name} needs the package datasets ({problem}): pip install 'toolgym[train]'."
        ) from problem
    folder = Path(name).expanduser()
    saved = [folder / file for file in ("dataset_dict.json", "dataset_info.json")]
    try:
        if any(file.is_file() for file in saved):
            return datasets.load_from_disk(str(folder))
        return datasets.load_dataset(str(folder) if folder.is_dir() else name, split=split)
    except (OSError, ValueError) as problem:  # those of `datasets` are kinds of these
        lines = str(problem).strip().splitlines() or [type(problem).__name__]
        raise ConfigurationError(f"hf:{name} cannot be loaded: {lines[0]}") from problem
