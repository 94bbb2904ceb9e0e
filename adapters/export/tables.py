"""The content of an exported data set: columns, rows, and excluded tasks.

Arrow stores dicts as structs with the keys of all rows and fills missing keys with nulls. A call
`{"sql": ...}` would be loaded as `{"sql": ..., "table_name": null}`, and a model trained on it
would learn to send the nulls. Therefore all structs of a column have the same keys in every row.
Objects whose keys vary have the kind `json`, which Arrow stores as text.

The `Json` type of `datasets` preserves keys and strings but not all numbers: 0.3 becomes
0.30000000000000004, and integers above 64 bits cannot be loaded. Therefore arguments, schemas and
parts of the reward are JSON strings inside these objects, and other numbers are rounded to
`DECIMALS` decimal places.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Row = dict[str, Any]
Kind = str | list[Any] | dict[str, Any]
"""Type of a column.

It is `string`, `int64`, `float64`, `bool` or `json`, `[kind]` for a list, or a dict for a struct.
"""
DECIMALS: Final = 9
MESSAGE: Final[Kind] = {"role": "string", "content": "string"}


@dataclass(frozen=True)
class Column:
    """A column of a table. `meaning` is the description for the card, without a final period."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class LeftOut:
    """A task or an episode that is not exported, with the code and text of the reason."""

    split: str
    task_id: str
    code: str
    reason: str


@dataclass(frozen=True)
class Export:
    """A data set to write.

    Attributes:
        title: Heading of the card.
        about: A paragraph that describes a row.
        columns: Columns of every split.
        splits: Rows of each split, by name. Each iterable of rows is consumed once.
        facts: Facts for the card, by name, such as the origin and the settings.
        left_out: Excluded tasks and episodes. The list is filled while the rows are consumed.
        notes: Paragraphs for the card on the use of the rows.
    """

    title: str
    about: str
    columns: Sequence[Column]
    splits: Mapping[str, Iterable[Row]]
    facts: Mapping[str, str]
    left_out: list[LeftOut] = field(default_factory=list)
    notes: Sequence[str] = ()


def json_text(value: Any) -> str:
    """Return an object as JSON on one line, with its keys in their original order."""
    return json.dumps(value, ensure_ascii=False, default=str)


def rounded(number: float | None) -> float | None:
    """Round a number to `DECIMALS`. None, nan and infinity become None.

    >>> rounded(1 / 3), rounded(float("nan"))
    (0.333333333, None)
    """
    if number is None or not math.isfinite(number):
        return None
    return round(float(number), DECIMALS)
