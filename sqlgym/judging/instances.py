"""Instances of a database: its rows changed at random, so that other queries give other results.

An instance takes some rows of each table, parents first, and changes them where a wrong query may
go unnoticed: boundary values of what the golds compare with (equal, one below, one above), near
misses of texts, copies of rows with one value changed, ties and new extremes, shuffled columns,
NULL where there is some, rows that many others refer to and rows that none does. The rules of the
data (`sqlgym.judging.source_rows`) hold throughout. A seed determines all choices.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain, count
from typing import Any, Final

from sqlgym.judging.gold_values import ColumnPair, GoldValues
from sqlgym.judging.source_rows import Reference, Row, Source, SourceColumn, SourceTable, day_of

ROWS: Final = 300
"""Rows of one table of an instance."""
_KEPT: Final = 160
"""Rows of the database that an instance begins with, by table."""
_MOST_COPIES: Final = 120
_LARGEST: Final = 2**62
"""Numbers that are made stay below it, so that SQLite can hold them."""
_PLANTED: Final = 160
"""Values of golds that are planted into one table."""


@dataclass(frozen=True)
class _Style:
    """How often each kind of change is made in one instance, mostly as shares of rows."""

    kept: float
    copies: float
    planted: float
    nulls: float
    ties: float
    shuffled: float
    skew: float
    lonely: float
    renamed: bool

    @classmethod
    def draw(cls, draw: random.Random) -> _Style:
        """A style; each of its parts is often none."""
        return cls(
            kept=draw.choice((1.0, 1.0, 0.9, 0.7, 0.4, 0.15)),
            copies=draw.choice((0.0, 0.3, 0.7, 1.5)),
            planted=draw.choice((0.0, 0.5, 1.0, 1.0)),
            nulls=draw.choice((0.0, 0.05, 0.2)),
            ties=draw.choice((0.0, 0.0, 0.1, 0.4)),
            shuffled=draw.choice((0.0, 0.0, 0.3, 0.8)),
            skew=draw.choice((0.0, 0.2, 0.6)),
            lonely=draw.choice((0.0, 0.1, 0.3)),
            renamed=draw.choice((False, True)),
        )


def instance_rows(
    source: Source,
    planted: GoldValues,
    seed: str,
    rows: int = ROWS,
) -> dict[str, list[Row]]:
    """Make the rows of an instance, by table.

    Args:
        planted: The values and columns that golds compare.
        seed: Determines what is changed.
        rows: The maximum number of rows of one table.
    """
    draw = random.Random(f"toolgym-instance-{seed}")
    return _Candidate(source, planted, draw, rows).build()


class _Candidate:
    """One instance while it is made."""

    def __init__(
        self,
        source: Source,
        planted: GoldValues,
        draw: random.Random,
        most: int,
    ) -> None:
        self._pairs = sorted(planted.pairs)
        self._source, self._draw, self._most = source, draw, most
        self._style = _Style.draw(draw)
        self._planted: dict[tuple[str, str], list[Any]] = defaultdict(list)
        self._counts = sorted(
            {
                int(each.value)
                for each in planted.values
                if not each.table and isinstance(each.value, int | float) and 0 <= each.value < 60
            }
        )
        for each in planted.values:
            self._planted[each.table.lower(), each.column.lower()].append(each.value)
        self._made: dict[str, list[list[Any]]] = {}
        self._parent_keys: dict[Reference, list[tuple[Any, ...]]] = {}
        self._fresh: dict[tuple[str, int], _Fresh] = {}

    def build(self) -> dict[str, list[Row]]:
        """Change every table, and then what the changes left without a parent."""
        for table in self._source.tables:
            self._made[table.name] = self._table(table)
        self._parent_keys.clear()
        for table in self._source.tables:
            self._mend(table)
        return {name: [tuple(row) for row in rows] for name, rows in self._made.items()}

    def _table(self, table: SourceTable) -> list[list[Any]]:
        style, draw = self._style, self._draw
        for place, column in enumerate(table.columns):
            if column.is_fresh:
                self._fresh[table.name, place] = _Fresh(column, draw)
        rows = self._kept(table)
        for reference in table.references:
            self._refer(table, reference, rows)
        if table.rows and not rows:
            rows.append(list(draw.choice(table.rows)))
            for reference in table.references:
                self._point(table, reference, rows[0])
        if rows:
            copies = min(_MOST_COPIES, round(style.copies * max(len(rows), 12)))
            rows += [self._copy(table, rows) for _ in range(copies)]
            rows += self._near_misses(table, rows)
        for place, column in enumerate(table.columns):
            if not column.is_fresh and not any(place in r.columns for r in table.references):
                self._spread(table, column, place, rows)
        if style.renamed:
            self._rename(table, rows)
        self._regroup(table, rows)
        for pair in self._pairs:
            if pair.table == table.name.lower():
                self._level(table, pair, rows)
        return rows[: self._most]

    def _kept(self, table: SourceTable) -> list[list[Any]]:
        """Some rows of the database, those with a value that a gold names among them."""
        draw = self._draw
        share = self._style.kept if len(table.rows) > 3 else 1.0
        wanted = min(math.ceil(share * len(table.rows)), _KEPT, self._most)
        chosen = set(draw.sample(range(len(table.rows)), wanted))
        if len(table.rows) > _KEPT:
            named = [at for at, row in enumerate(table.rows) if self._is_named(table, row)]
            chosen |= set(draw.sample(named, min(len(named), _KEPT // 2)))
        return [list(table.rows[at]) for at in sorted(chosen)]

    def _is_named(self, table: SourceTable, row: Row) -> bool:
        for place, column in enumerate(table.columns):
            if row[place] in self._named(table, column):
                return True
        return False

    def _named(self, table: SourceTable, column: SourceColumn) -> list[Any]:
        return self._planted.get((table.name.lower(), column.name.lower()), [])

    # Rows that are added ----------------------------------------------------------------------

    def _copy(self, table: SourceTable, rows: list[list[Any]]) -> list[Any]:
        """A row like another one, with another key and one or two other values."""
        draw = self._draw
        row = list(draw.choice(rows))
        self._rekey(table, row)
        free = self._free(table)
        for place in draw.sample(free, min(len(free), draw.choice((0, 1, 1, 2)))):
            row[place] = self._other(table, table.columns[place], row[place])
        for reference in table.references:
            if draw.random() < 0.3:
                self._point(table, reference, row)
        return row

    def _rekey(self, table: SourceTable, row: list[Any]) -> None:
        for place, column in enumerate(table.columns):
            if column.is_fresh and not any(place in r.columns for r in table.references):
                row[place] = self._fresh[table.name, place].next(row[place])
        for key in table.keys:
            if any(table.columns[place].is_fresh for place in key):
                continue
            references = [r for r in table.references if set(r.columns) & set(key)]
            free = [place for place in key if not any(place in r.columns for r in references)]
            if free and (not references or self._draw.random() < 0.5):
                place = self._draw.choice(free)
                row[place] = self._other(table, table.columns[place], row[place])
            elif references:
                self._point(table, self._draw.choice(references), row)

    def _near_misses(self, table: SourceTable, rows: list[list[Any]]) -> list[list[Any]]:
        """Copies of rows whose one value is what a gold compares with, or nearly."""
        draw, found = self._draw, list[list[Any]]()
        bound = {place for reference in table.references for place in reference.columns}
        for place, column in enumerate(table.columns):
            for value in dict.fromkeys(self._named(table, column)):
                if draw.random() > self._style.planted or place in bound:
                    continue
                near = _near(column, value)
                equal = [row for row in rows if row[place] == value] or rows
                for new in draw.sample(near, min(len(near), 4)):
                    row = list(draw.choice(equal))
                    self._rekey(table, row)
                    row[place] = new
                    found.append(row)
        draw.shuffle(found)
        return found[:_PLANTED]

    def _free(self, table: SourceTable) -> list[int]:
        """The columns that are no key and refer to nothing; names count as free."""
        bound = {place for key in table.keys for place in key}
        bound |= {place for reference in table.references for place in reference.columns}
        return [place for place in range(len(table.columns)) if place not in bound]

    # Values that are changed ------------------------------------------------------------------

    def _rename(self, table: SourceTable, rows: list[list[Any]]) -> None:
        """Shuffle the names of rows whose key is a number, so that keys belong to other names."""
        if not any(table.columns[key[0]].kind == "integer" for key in table.keys[:1]):
            return
        bound = {place for reference in table.references for place in reference.columns}
        names = [
            place
            for place, column in enumerate(table.columns)
            if column.is_fresh and column.kind == "text" and place not in bound
        ]
        values = [[row[place] for place in names] for row in rows]
        self._draw.shuffle(values)
        for row, named in zip(rows, values, strict=True):
            for place, value in zip(names, named, strict=True):
                row[place] = value

    def _spread(
        self, table: SourceTable, column: SourceColumn, place: int, rows: list[list[Any]]
    ) -> None:
        """Shuffle a column, make its values tie, and empty some of its cells."""
        draw, style = self._draw, self._style
        if len(rows) < 2:
            return
        if draw.random() < style.shuffled:
            values = [row[place] for row in rows]
            draw.shuffle(values)
            for row, value in zip(rows, values, strict=True):
                row[place] = value
        # Another value comes to be the most frequent one, or none does.
        values = [row[place] for row in rows]
        if draw.random() < 0.3:
            named = [
                near for each in self._named(table, column) for near in _near(column, each)[:1]
            ]
            values = [draw.choice([*named, draw.choice(values)])]
        for row in rows:
            chance = draw.random()
            if column.has_nulls and chance < style.nulls:
                row[place] = None
            elif chance > 1 - style.ties:
                row[place] = draw.choice(values)
        numbers = [row[place] for row in rows if type(row[place]) in (int, float)]
        if numbers and column.kind in ("integer", "real") and draw.random() < 0.8:
            step = draw.choice((1, 2, 10))
            new = max(numbers) + step if draw.random() < 0.6 else min(numbers) - step
            if (new >= 0 or column.has_signs) and abs(new) < _LARGEST:
                draw.choice(rows)[place] = new

    def _other(self, table: SourceTable, column: SourceColumn, value: Any) -> Any:
        """Another value of the same kind."""
        draw = self._draw
        if column.has_nulls and draw.random() < 0.1:
            return None
        named = self._named(table, column)
        chance = draw.random()
        if named and chance < 0.5:
            near = _near(column, draw.choice(named))
            if near:
                return draw.choice(near)
        if column.is_fresh or (chance > 0.85 and value is not None):
            near = _near(column, value)
            return draw.choice(near) if near else value
        return draw.choice(column.values) if column.values else value

    def _level(self, table: SourceTable, pair: ColumnPair, rows: list[list[Any]]) -> None:
        """Bring a column to what its row, or the row's parent, has in the other, or beside it."""
        place = table.place(pair.column)
        bound = {at for key in table.keys for at in key}
        bound |= {at for reference in table.references for at in reference.columns}
        if place is None or place in bound or self._draw.random() < 0.3:
            return
        column, found = table.columns[place], self._beside(table, pair)
        for row in rows:
            if self._draw.random() < 0.2:
                near = _near(column, found(row))
                if near:
                    row[place] = near[0] if self._draw.random() < 0.6 else self._draw.choice(near)

    def _beside(self, table: SourceTable, pair: ColumnPair) -> Callable[[list[Any]], Any]:
        """The value of the other column that belongs to a row; None where none does."""
        if pair.other_table == table.name.lower():
            own = table.place(pair.other_column)
            return lambda row: None if own is None else row[own]
        for reference in table.references:
            target = self._source.table(reference.to_table)
            made = self._made.get(reference.to_table)
            at = target.place(pair.other_column) if target is not None else None
            if (
                made is not None
                and at is not None
                and reference.to_table.lower() == (pair.other_table)
            ):
                values = {tuple(row[p] for p in reference.to_columns): row[at] for row in made}
                return lambda row: values.get(tuple(row[p] for p in reference.columns))
        return lambda row: None

    # References -------------------------------------------------------------------------------

    def _parents(self, reference: Reference) -> list[tuple[Any, ...]]:
        known_keys = self._parent_keys.get(reference)
        if known_keys is not None:
            return known_keys
        target = self._made.get(reference.to_table)
        if target is None:  # a circle, or the table itself: mended when all are there
            known = self._source.table(reference.to_table)
            target = [list(row) for row in known.rows] if known is not None else []
        keys = [tuple(row[place] for place in reference.to_columns) for row in target]
        self._parent_keys[reference] = [key for key in keys if None not in key]
        return self._parent_keys[reference]

    def _refer(self, table: SourceTable, reference: Reference, rows: list[list[Any]]) -> None:
        """Let rows refer to parents that are there."""
        parents = self._parents(reference)
        known = set(parents)
        left = []
        for row in rows:
            own = tuple(row[place] for place in reference.columns)
            if own in known or None in own:
                left.append(row)
            elif parents and self._draw.random() < 0.5:
                _set(row, reference, self._draw.choice(parents))
                left.append(row)
        rows[:] = left

    def _point(self, table: SourceTable, reference: Reference, row: list[Any]) -> None:
        parents = self._parents(reference)
        if parents:
            _set(row, reference, self._draw.choice(parents))

    def _regroup(self, table: SourceTable, rows: list[list[Any]]) -> None:
        """Give some parents many rows, some none, some as many as a gold counts."""
        draw, style = self._draw, self._style
        for reference in table.references:
            if any(table.columns[place].is_fresh for place in reference.columns):
                continue
            parents = self._parents(reference)
            if len(parents) < 2 or not rows:
                continue
            few = draw.sample(parents, max(1, len(parents) // 5))
            lonely = set(draw.sample(parents, round(style.lonely * len(parents))))
            others = [parent for parent in parents if parent not in lonely] or parents
            can_be_null = all(table.columns[place].has_nulls for place in reference.columns)
            for row in rows:
                own = tuple(row[place] for place in reference.columns)
                if draw.random() < style.skew * 0.4:
                    _set(row, reference, draw.choice(few))
                elif own in lonely:
                    _set(row, reference, draw.choice(others))
                elif can_be_null and draw.random() < style.nulls:
                    _set(row, reference, (None,) * len(reference.columns))
            self._count(table, reference, rows, parents)

    def _count(
        self,
        table: SourceTable,
        reference: Reference,
        rows: list[list[Any]],
        parents: list[tuple[Any, ...]],
    ) -> None:
        """Bring parents to as many rows as golds compare counts with, or one more or less."""
        draw = self._draw
        for size in self._counts if draw.random() < 0.6 else ():
            parent = draw.choice(parents)
            wanted = max(0, size + draw.choice((-1, 0, 0, 1)))
            own = [row for row in rows if tuple(row[p] for p in reference.columns) == parent]
            for row in own[wanted:]:
                _set(row, reference, draw.choice(parents))
            for _ in range(min(wanted - len(own), 30)):
                row = self._copy(table, own or rows)
                _set(row, reference, parent)
                rows.append(row)

    def _mend(self, table: SourceTable) -> None:
        """Drop or bend what refers to a row that is not there."""
        rows = self._made[table.name]
        for reference in table.references:
            parents = self._parents(reference)
            known = set(parents)
            can_be_null = all(table.columns[place].has_nulls for place in reference.columns)
            for row in rows:
                own = tuple(row[place] for place in reference.columns)
                if own in known or None in own:
                    continue
                if can_be_null:
                    _set(row, reference, (None,) * len(own))
                elif parents:
                    _set(row, reference, self._draw.choice(parents))


class _Fresh:
    """Values for a column of which no two rows may have one."""

    def __init__(self, column: SourceColumn, draw: random.Random) -> None:
        self._column, self._draw = column, draw
        self._taken = set(column.values)
        numbers = [v for v in column.values if isinstance(v, int) and v < _LARGEST - ROWS]
        self._next = max(numbers, default=0)

    def next(self, like: Any) -> Any:
        """One that no row has yet, as similar as can be."""
        if isinstance(like, str):
            for text in chain(_near(self._column, like), _further(like)):
                if text not in self._taken:
                    self._taken.add(text)
                    return text
        if isinstance(like, int | float):
            self._next += 1
            return type(like)(self._next)
        return like


def _further(text: str) -> Iterator[str]:
    """Endless texts like one: later days, greater numbers, or the text with a number."""
    day = day_of(text)
    for number in count(2):
        later = None if day is None else _shifted(day, number)
        if later is not None:
            yield f"{later.isoformat()}{text[10:]}"
        elif text.isdecimal() and len(text) < 16:
            yield str(int(text) + number).zfill(len(text))
        else:
            yield f"{text} {number}"


def _set(row: list[Any], reference: Reference, values: Sequence[Any]) -> None:
    for place, value in zip(reference.columns, values, strict=True):
        row[place] = value


def _near(column: SourceColumn, value: Any) -> list[Any]:
    """A value and those beside it, of a column's kind; none where there are none."""
    if column.kind == "truth":
        return [0, 1]
    if column.kind == "day":
        return _near_days(column, value)
    if type(value) in (int, float) and column.kind in ("integer", "real"):
        step = 1 if column.kind == "integer" else 0.5
        base = int(value) if column.kind == "integer" else float(value)
        near = [base, base - step, base + step]
        near = [number for number in near if abs(number) < _LARGEST]
        return [number for number in near if column.has_signs or number >= 0]
    if column.kind == "text" and isinstance(value, str | int | float):
        return _near_texts(column, str(value).strip("%"))
    return []


def _near_texts(column: SourceColumn, text: str) -> list[Any]:
    if text.isdecimal() and len(text) < 16:  # digits stay digits, as many
        near = [str(int(text) + step).zfill(len(text)) for step in (0, 1, -1)]
        return [each for each in near if not each.startswith("-")]
    if not text:
        return []
    head = [value for value in column.values if isinstance(value, str) and text in value][:2]
    others = [text[:-1].rstrip(), f"{text}s", f"New {text}"]
    return [*dict.fromkeys([text, *head, *(each for each in others if each)])]


def _near_days(column: SourceColumn, value: Any) -> list[Any]:
    """Days beside a day, a year or a month that a text or number begins with."""
    samples = [each for each in column.values if isinstance(each, str)]
    if not samples:
        return []
    pattern, text = samples[len(samples) // 2], str(value).strip("%")
    day, tail = day_of(text), pattern[10:]
    if day is None and len(text) >= 4 and text[:4].isdecimal():
        parts = [*text.split("-"), "01", "01"]
        month = parts[1] if parts[1].isdecimal() else "01"
        day = day_of(f"{text[:4]}-{month.zfill(2)}-01")
    if day is None and text.isdecimal() and 1 <= int(text) <= 12:
        day = day_of(f"{pattern[:4]}-{text.zfill(2)}-15")
    if day is None:
        return []
    steps = (0, -1, 1, 31, -31, 365, -366)
    near = [_shifted(day, step) for step in steps]
    return [f"{each.isoformat()}{tail}" for each in near if each is not None]


def _shifted(day: date, days: int) -> date | None:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None
