"""Tables to export: what may stand in a row so that it comes back as it was written.

Arrow stores dicts as structs with the keys of all rows, and fills what a row lacks with nulls: a
call `{"sql": ...}` comes back as `{"sql": ..., "table_name": null}`, and a model that is trained on
it sends the nulls. So a struct here has the same keys in every row; what varies is of kind `json`,
which Arrow holds as text.

The `Json` type of `datasets` brings back keys and text as they were, but not every number: it
parses by a quick way (0.3 becomes 0.30000000000000004), writes ten digits, and stops at integers
above 64 bits. So objects with numbers of their own (arguments, schemas, parts of a reward) are text
inside JSON, and numbers beside them are rounded to `DECIMALS`, which survives.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datasets import Features

Row = dict[str, Any]
Kind = str | list[Any] | dict[str, Any]
"""`string`, `int64`, `float64`, `bool` or `json`; a list with the kind of its elements; or a dict
of kinds by key, for a struct."""
DECIMALS: Final = 9


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        meaning: One sentence for the card, without the full stop.
    """

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class LeftOut:
    """Something that became no row: a refused task, or an episode that is not fit.

    Attributes:
        task_id: Of the task; a reason may be given for one task several times.
        code: Stable reason, as of a refusal.
    """

    split: str
    task_id: str
    code: str
    reason: str


@dataclass(frozen=True)
class Export:
    """What is to be written.

    Attributes:
        title: The heading of the card.
        about: A paragraph on what a row is.
        columns: Of every split.
        splits: By name, its rows; each is gone through once.
        facts: What the card tells of where it comes from, by name.
        left_out: Filled while the rows are gone through.
        notes: Paragraphs on how it is used.
    """

    title: str
    about: str
    columns: Sequence[Column]
    splits: Mapping[str, Iterable[Row]]
    facts: Mapping[str, str]
    left_out: list[LeftOut] = field(default_factory=list)
    notes: Sequence[str] = ()


MESSAGE: Final[Kind] = {"role": "string", "content": "string"}


def json_text(value: Any) -> str:
    """An object as JSON on one line, in its own order."""
    return json.dumps(value, ensure_ascii=False, default=str)


def rounded(number: float | None) -> float | None:
    """A number as it survives; None for none and for what is not finite."""
    if number is None or not math.isfinite(number):
        return None
    return round(float(number), DECIMALS)


def encodable(value: Any) -> Any:
    """The same value with half characters, which UTF-8 cannot hold, as their escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", errors="backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {key: encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(item) for item in value]
    return value


def kind_text(kind: Kind) -> str:
    """A kind as a person reads it.

    >>> kind_text([{"role": "string"}]), kind_text(["json"])
    ('list of {role: string}', 'list of objects')
    """
    if isinstance(kind, list):
        inner = "objects" if kind == ["json"] else kind_text(kind[0])
        return f"list of {inner}"
    if isinstance(kind, dict):
        return f"{{{', '.join(f'{key}: {kind_text(each)}' for key, each in kind.items())}}}"
    return "object" if kind == "json" else kind


def yaml_features(columns: Sequence[Column]) -> list[str]:
    """The types of the columns as lines of the card's header, in the words of `datasets`.

    >>> yaml_features([Column("prompt", [MESSAGE], "?")])[:4]
    ['- name: prompt', '  list:', '  - name: role', '    dtype: string']
    """
    return [line for each in columns for line in _yaml_entry(each.name, each.kind)]


def _yaml_entry(name: str, kind: Kind) -> Iterator[str]:
    yield f"- name: {name}"
    if isinstance(kind, str):
        yield f"  dtype: {kind}"
        return
    inner = kind[0] if isinstance(kind, list) else kind
    word = "list" if isinstance(kind, list) else "struct"
    if isinstance(inner, str):
        yield f"  {word}: {inner}"
        return
    yield f"  {word}:"
    for key, each in inner.items():
        yield from (f"  {line}" for line in _yaml_entry(key, each))


def arrow_features(columns: Sequence[Column]) -> Features:
    """The types of the columns for `datasets`."""
    from datasets import Features

    return Features({each.name: _feature(each.kind) for each in columns})


def _feature(kind: Kind) -> Any:
    from datasets import Json, List, Value

    if isinstance(kind, list):
        return List(_feature(kind[0]))
    if isinstance(kind, dict):
        return {key: _feature(each) for key, each in kind.items()}
    return Json() if kind == "json" else Value(kind)


def stored(value: Any, kind: Kind) -> Any:
    """A value as Arrow holds it: what is of kind `json` as text, written here to the last digit."""
    if value is None:
        return None
    if isinstance(kind, list):
        return [stored(item, kind[0]) for item in value]
    if isinstance(kind, dict):
        return {key: stored(value[key], each) for key, each in kind.items()}
    return json_text(value) if kind == "json" else value
