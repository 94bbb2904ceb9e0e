"""Rows of data sets that are read one by one, when they are used.

* `JsonLines`: a file with one JSON object per line. Finding the lines of a one-gigabyte file takes
  about a second.
* `rows_of`: a `datasets.Dataset`, a `DatasetDict`, a list of dicts, or a stream (an
  `IterableDataset` or a generator), of which the first `STREAMED` rows are read.
* `from_hub`: the data set of `hf:NAME`. Only this function imports `datasets`.
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
"""Maximum number of rows that are read from a stream, which has no length."""
_CHUNK = 1 << 24


def parse_json(content: bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: The text cannot be parsed. The message is a predicate, such as "is not UTF-8".
    """
    try:
        return json.loads(content)
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: byte {error.start}"
    except json.JSONDecodeError as error:
        reason = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except RecursionError:
        reason = "is nested too deeply"
    except ValueError:
        reason = "has a number that is too long"
    raise ValueError(reason)


class JsonLines(Sequence[Any]):
    """The values in a file with one JSON value per line. Blank lines at the end are ignored.

    Indexing raises a `ValueError` with the reason if the line cannot be parsed.

    Raises:
        ConfigurationError: The file cannot be read, or is empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._ends = _line_ends(path)
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
        if not len(self._ends):
            raise ConfigurationError(f"{path} is empty; it must have one JSON object per line.")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: Any) -> Any:
        place = range(len(self))[index]
        start = int(self._ends[place - 1]) if place else 0
        with self.path.open("rb") as file:
            file.seek(start)
            return parse_json(file.read(int(self._ends[place]) - start))


def _line_ends(path: Path) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the offset of the end of each line."""
    found, size, end = (
        [np.empty(0, np.int64)],
        0,
        0,
    )  # `end` is the offset after the last visible character
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.append(np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + size + 1)
            if visible := chunk.rstrip():
                end = size + len(visible)
            size += len(chunk)
    ends = np.concatenate([*found, [size]])
    return ends[: np.searchsorted(ends, end) + 1] if end else ends[:0]


def rows_of(dataset: Any, split: str) -> Sequence[Any]:
    """Return the rows of a data set in memory or of a stream.

    Args:
        dataset: An object of `datasets`, a sequence of dicts, or an iterable of dicts.
        split: The split to select if `dataset` is a mapping from splits to rows.

    Raises:
        ConfigurationError: The data set lacks the split, has no rows, or has an unsupported type.
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
            f"a {type(dataset).__name__} is not a data set: pass a name, a path, a TaskSet, a"
            " datasets.Dataset, or a list of dicts with db_id, question and query."
        )
    if not len(dataset):
        raise ConfigurationError("the data set has no rows.")
    rows: Sequence[Any] = dataset
    return rows


def from_hub(name: str, split: str) -> Any:
    """Load a data set with `datasets`, from a folder that `datasets` saved or from the Hugging Face
    Hub.

    Raises:
        ConfigurationError: `datasets` is not installed, or cannot load the data set.
    """
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as problem:
        raise ConfigurationError(
            f"hf:{name} needs the package datasets ({problem}): pip install 'toolgym[train]'."
        ) from problem
    folder = Path(name).expanduser()
    try:
        if any((folder / file).is_file() for file in ("dataset_dict.json", "dataset_info.json")):
            return datasets.load_from_disk(str(folder))
        return datasets.load_dataset(str(folder) if folder.is_dir() else name, split=split)
    except (OSError, ValueError) as problem:  # `datasets` raises subclasses of these
        lines = str(problem).strip().splitlines() or [type(problem).__name__]
        raise ConfigurationError(f"hf:{name} cannot be loaded: {lines[0]}") from problem
