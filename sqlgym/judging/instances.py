"""Instances of a database: its rows with random changes that expose wrong queries.

An instance contains some rows of each table, with changes that cause wrong queries to return
incorrect results. Added values include the boundaries of comparisons in the gold queries (equal,
one less, one more) and strings that nearly match. Some rows are copied with one changed value. Ties
and new extreme values are added, columns are shuffled, and NULL is added to columns that contain
NULL. Some parents get many child rows, and others get none. All instances satisfy the rules that
the data follow (`sqlgym.judging.source_rows`). All choices are derived from a seed.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import chain, count
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, parse
from sqlgym.judging.source_rows import Reference, Row, Source, SourceColumn, SourceTable, day_of

ROWS: Final = 300
"""Maximum number of rows of one table of an instance."""
_KEPT: Final = 160
"""Maximum number of rows that an instance takes from a table of the database."""
_MOST_COPIES: Final = 120
_PLANTED: Final = 160
"""Maximum number of rows that are added to a table for values in gold queries."""
_LARGEST: Final = 2**62
"""Largest generated number, which SQLite can store."""
_COMPARED: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_CONDITIONS: Final = (*_COMPARED, exp.Like, exp.Between, exp.In, exp.Is, exp.Glob)


@dataclass
class GoldValues:
    """The values with which gold queries compare columns.

    Attributes:
        values: Values by lower-case column name.
        pairs: Lower-case names of two columns that are compared with each other.
    """

    values: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    pairs: set[tuple[str, str]] = field(default_factory=set)


def gold_values(golds: Iterable[str]) -> GoldValues:
    """Extract the values with which gold queries compare columns, skipping unparsable queries."""
    found = GoldValues()
    for sql in golds:
        try:
            careful(lambda sql=sql: _extract(parse(sql), found))  # type: ignore[misc]
        except SqlglotError:
            continue
    return found


def _extract(tree: exp.Expr, found: GoldValues) -> None:
    for condition in tree.find_all(*_CONDITIONS):
        nodes = list(condition.walk(prune=lambda node: isinstance(node, exp.Query)))
        columns = [node.name.lower() for node in nodes if isinstance(node, exp.Column)]
        values = [_value(node) for node in nodes if isinstance(node, exp.Literal)]
        for name in columns:
            known = found.values[name]
            known += [value for value in values if value not in (None, "", *known)]
        sides = condition.this, condition.args.get("expression")
        if all(isinstance(side, exp.Column) for side in sides):
            found.pairs |= {(columns[0], columns[1]), (columns[1], columns[0])}


def _value(literal: exp.Literal) -> int | float | str | None:
    if literal.is_string:
        return literal.name
    try:
        number = int(literal.name) if literal.name.isdecimal() else float(literal.name)
    except ValueError:
        return None
    if abs(number) >= _LARGEST:
        return None
    return -number if isinstance(literal.parent, exp.Neg) else number


def instance_rows(
    source: Source, planted: GoldValues, seed: str, most: int = ROWS
) -> dict[str, list[Row]]:
    """Create the rows of an instance, by table.

    Args:
        planted: The values with which gold queries compare columns.
        seed: Determines all choices.
        most: The maximum number of rows in one table.
    """
    maker = _Maker(source, planted, random.Random(f"toolgym-instance-{seed}"), most)
    for table in source.tables:
        maker.made[table.name] = maker.make(table)
    return {name: [tuple(row) for row in rows] for name, rows in maker.made.items()}


class _Maker:
    """Makes the rows of one instance. Each kind of change is randomly frequent, rare or absent."""

    def __init__(self, source: Source, planted: GoldValues, draw: random.Random, most: int) -> None:
        self._source, self._planted, self._draw, self._most = source, planted, draw, most
        self.made: dict[str, list[list[Any]]] = {}
        self._kept = draw.choice((1.0, 1.0, 0.9, 0.7, 0.4, 0.15))
        self._copies = draw.choice((0.0, 0.3, 0.7, 1.5))
        self._planting = draw.choice((0.0, 0.5, 1.0, 1.0))
        self._nulls = draw.choice((0.0, 0.05, 0.2))
        self._ties = draw.choice((0.0, 0.0, 0.1, 0.4))
        self._shuffled = draw.choice((0.0, 0.0, 0.3, 0.8))
        self._skew = draw.choice((0.0, 0.2, 0.6))
        self._lonely = draw.choice((0.0, 0.1, 0.3))

    def make(self, table: SourceTable) -> list[list[Any]]:
        """Create the rows of a table whose parent tables are complete."""
        draw = self._draw
        self._fresh = {
            place: _unused(column)
            for place, column in enumerate(table.columns)
            if column.is_fresh and not any(place in r.columns for r in table.references)
        }
        bound = {place for reference in table.references for place in reference.columns}
        free = [place for place in range(len(table.columns)) if place not in bound]
        rows = self._start(table)
        for reference in table.references:
            self._adopt(table, reference, rows)
        if not rows:
            return rows
        copies = min(_MOST_COPIES, round(self._copies * max(len(rows), 12)))
        rows += [self._copy(table, draw.choice(rows)) for _ in range(copies)]
        rows += self._near_misses(table, rows, free)
        for place in free:
            if not table.columns[place].is_fresh:
                self._spread(table.columns[place], place, rows)
        for reference in table.references:
            self._regroup(table, reference, rows)
        keys = {place for key in table.keys for place in key}
        for pair in sorted(self._planted.pairs):
            self._level(table, pair, [place for place in free if place not in keys], rows)
        del rows[self._most :]
        for place in self._fresh:
            values = {row[place]: row for row in reversed(rows)}
            rows = [row for row in rows if row[place] is None or values[row[place]] is row]
        for reference in table.references:
            if reference.to_table == table.name:
                self._adopt(table, reference, rows, self._keys(reference, rows))
        return rows

    def _start(self, table: SourceTable) -> list[list[Any]]:
        """Choose rows of the database, including some with values that gold queries compare columns
        with.
        """
        share = self._kept if len(table.rows) > 3 else 1.0
        wanted = min(math.ceil(share * len(table.rows)), _KEPT, self._most)
        chosen = set(self._draw.sample(range(len(table.rows)), wanted))
        if len(table.rows) > _KEPT:
            named = [
                at
                for at, row in enumerate(table.rows)
                if any(v in self._named(c) for v, c in zip(row, table.columns, strict=True))
            ]
            chosen |= set(self._draw.sample(named, min(len(named), _KEPT // 2)))
        return [list(table.rows[at]) for at in sorted(chosen)]

    def _named(self, column: SourceColumn) -> list[Any]:
        """Return the values that gold queries compare a column with."""
        return self._planted.values.get(column.name.lower(), [])

    def _copy(self, table: SourceTable, like: Sequence[Any]) -> list[Any]:
        """Copy a row with a different key and up to two other changed values."""
        row = self._rekeyed(table, like)
        bound = {place for key in table.keys for place in key}
        bound |= {place for reference in table.references for place in reference.columns}
        free = [place for place in range(len(table.columns)) if place not in bound]
        for place in self._draw.sample(free, min(len(free), self._draw.choice((0, 1, 1, 2)))):
            row[place] = self._other(table.columns[place], row[place])
        for reference in table.references:
            if self._draw.random() < 0.3:
                self._point(reference, row)
        return row

    def _rekeyed(self, table: SourceTable, like: Sequence[Any]) -> list[Any]:
        row, draw = list(like), self._draw
        for place, unused in self._fresh.items():
            row[place] = unused(row[place])
        for key in table.keys:
            if any(table.columns[place].is_fresh for place in key):
                continue
            references = [r for r in table.references if set(r.columns) & set(key)]
            own = [place for place in key if not any(place in r.columns for r in references)]
            if own and (not references or draw.random() < 0.5):
                place = draw.choice(own)
                row[place] = self._other(table.columns[place], row[place])
            elif references:
                self._point(draw.choice(references), row)
        return row

    def _near_misses(
        self, table: SourceTable, rows: list[list[Any]], free: Sequence[int]
    ) -> list[list[Any]]:
        """Copy rows, replacing one value with a value from a gold query or a neighbor of that
        value.
        """
        draw, found = self._draw, list[list[Any]]()
        numbers = [p for p in free if table.columns[p].kind in ("integer", "real")]
        for place in free:
            for value in self._named(table.columns[place]):
                near = _near(table.columns[place], value)
                equal = [row for row in rows if row[place] == value] or rows
                if near and draw.random() <= self._planting:
                    for new in draw.sample(near, min(len(near), 4)):
                        found.append(self._rekeyed(table, draw.choice(equal)))
                        if numbers and draw.random() < 0.2:  # a query for an extreme returns it
                            at = draw.choice(numbers)
                            values = table.columns[at].values
                            extreme = draw.choice((values[-1] + 1, values[0] - 1))
                            if _is_possible(table.columns[at], extreme):
                                found[-1][at] = extreme
                        found[-1][place] = new
        draw.shuffle(found)
        return found[:_PLANTED]

    def _spread(self, column: SourceColumn, place: int, rows: list[list[Any]]) -> None:
        """Shuffle a column, add ties, set some of its cells to NULL, and add an extreme."""
        draw = self._draw
        values = [row[place] for row in rows]
        if draw.random() < self._shuffled:
            draw.shuffle(values)
            for row, value in zip(rows, values, strict=True):
                row[place] = value
        if draw.random() < 0.3:  # make one value the most frequent one
            named = [near for each in self._named(column) for near in _near(column, each)[:1]]
            values = [draw.choice([*named, draw.choice(values)])]
        for row in rows:
            chance = draw.random()
            if column.has_nulls and chance < self._nulls:
                row[place] = None
            elif chance > 1 - self._ties:
                row[place] = draw.choice(values)
        numbers = [row[place] for row in rows if type(row[place]) in (int, float)]
        if numbers and column.kind in ("integer", "real") and draw.random() < 0.8:
            step = draw.choice((1, 2, 10))
            new = max(numbers) + step if draw.random() < 0.6 else min(numbers) - step
            if _is_possible(column, new):
                draw.choice(rows)[place] = new

    def _other(self, column: SourceColumn, value: Any) -> Any:
        """Draw a random value for a column, usually a different one."""
        draw, named = self._draw, self._named(column)
        if column.has_nulls and draw.random() < 0.1:
            return None
        chance = draw.random()
        near = _near(column, draw.choice(named)) if named and chance < 0.5 else []
        if not near and (column.is_fresh or chance > 0.85):
            near = _near(column, value) or [value]
        return draw.choice(near or column.values or [value])

    def _level(
        self, table: SourceTable, pair: tuple[str, str], free: Sequence[int], rows: list[list[Any]]
    ) -> None:
        """Bring a column close to another column of the same row, or of the parent row."""
        place, own = table.place(pair[0]), table.place(pair[1])
        if place is None or place not in free or self._draw.random() < 0.3:
            return
        column, others = table.columns[place], list[dict[Any, Any]]()
        for reference in table.references:
            target = self._source.table(reference.to_table)
            at = target.place(pair[1]) if target is not None else None
            parents = self.made.get(reference.to_table, [])
            if at is not None:
                keys = self._keys(reference, parents)
                others.append(dict(zip(keys, (row[at] for row in parents), strict=True)))
        for row in rows:
            if self._draw.random() < 0.2:
                value = row[own] if own is not None and own != place else None
                for reference, known in zip(table.references, others, strict=False):
                    value = known.get(_get(row, reference.columns), value)
                near = _near(column, value)
                if near:
                    row[place] = near[0] if self._draw.random() < 0.6 else self._draw.choice(near)

    # References

    def _keys(self, reference: Reference, rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
        return [_get(row, reference.to_columns) for row in rows]

    def _parents(self, reference: Reference) -> list[tuple[Any, ...]]:
        """Return the keys of the parents, or those of the database if the parents are not
        complete.
        """
        rows: Iterable[Sequence[Any]] | None = self.made.get(reference.to_table)
        if rows is None:
            table = self._source.table(reference.to_table)
            rows = table.rows if table is not None else ()
        return [key for key in self._keys(reference, rows) if None not in key]

    def _point(self, reference: Reference, row: list[Any]) -> None:
        if parents := self._parents(reference):
            _set(row, reference.columns, self._draw.choice(parents))

    def _adopt(
        self,
        table: SourceTable,
        reference: Reference,
        rows: list[list[Any]],
        parents: Sequence[tuple[Any, ...]] | None = None,
    ) -> None:
        """Make rows whose parent is missing refer to another parent or to none, and drop some of
        them.
        """
        parents = self._parents(reference) if parents is None else parents
        known, left = set(parents), []
        is_nullable = all(table.columns[place].has_nulls for place in reference.columns)
        for row in rows:
            own = _get(row, reference.columns)
            if own in known or None in own:
                left.append(row)
            elif parents and self._draw.random() < 0.5:
                _set(row, reference.columns, self._draw.choice(parents))
                left.append(row)
            elif is_nullable:
                _set(row, reference.columns, (None,) * len(own))
                left.append(row)
        rows[:] = left

    def _regroup(self, table: SourceTable, reference: Reference, rows: list[list[Any]]) -> None:
        """Give many rows to some parents, and none to others."""
        draw, columns, parents = self._draw, reference.columns, self._parents(reference)
        if any(table.columns[place].is_fresh for place in columns) or len(parents) < 2 or not rows:
            return
        few = draw.sample(parents, max(1, len(parents) // 5))
        lonely = set(draw.sample(parents, round(self._lonely * len(parents))))
        others = [parent for parent in parents if parent not in lonely] or parents
        is_nullable = all(table.columns[place].has_nulls for place in columns)
        for row in rows:
            if draw.random() < self._skew * 0.4:
                _set(row, columns, draw.choice(few))
            elif _get(row, columns) in lonely:
                _set(row, columns, draw.choice(others))
            elif is_nullable and draw.random() < self._nulls:
                _set(row, columns, (None,) * len(columns))


def _get(row: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    return tuple(row[place] for place in places)


def _set(row: list[Any], places: Sequence[int], values: Sequence[Any]) -> None:
    for place, value in zip(places, values, strict=True):
        row[place] = value


def _unused(column: SourceColumn) -> Any:
    """Return a function that finds an unused value similar to a given one."""
    taken = set(column.values)
    numbers = [v for v in column.values if isinstance(v, int) and v < _LARGEST - ROWS]
    following = count(max(numbers, default=0) + 1)

    def unused(like: Any) -> Any:
        if isinstance(like, str):
            new = next(
                text for text in chain(_near(column, like), _further(like)) if text not in taken
            )
            taken.add(new)
            return new
        return type(like)(next(following)) if isinstance(like, int | float) else like

    return unused


def _further(text: str) -> Iterator[str]:
    """Yield an endless sequence of variants of a value: greater numbers, or the text with a
    number.
    """
    for number in count(2):
        is_number = text.isdecimal() and len(text) < 16
        yield str(int(text) + number).zfill(len(text)) if is_number else f"{text} {number}"


def _is_possible(column: SourceColumn, number: float) -> bool:
    """Return whether a number is within bounds, and not the only negative one of its column."""
    numbers = [value for value in column.values[:1] if not isinstance(value, str)]
    return abs(number) < _LARGEST and (number >= 0 or any(value < 0 for value in numbers))


def _near(column: SourceColumn, value: Any) -> list[Any]:
    """Return a value and its neighbors, converted to the type of a column.

    The list may be empty.
    """
    if column.kind == "truth":
        return [0, 1]
    if column.kind in ("integer", "real") and type(value) in (int, float):
        step = 1 if column.kind == "integer" else 0.5
        base = int(value) if column.kind == "integer" else float(value)
        return [n for n in (base, base - step, base + step) if _is_possible(column, n)]
    if column.kind not in ("day", "text") or not isinstance(value, str | int | float):
        return []
    text = str(value).strip("%")
    if column.kind == "day":
        pattern = column.values[len(column.values) // 2]
        day = day_of(f"{text}-01-01"[: max(10, len(text))])  # also a year, or a year and a month
        if day is None and text.isdecimal() and len(text) < 3:
            day = day_of(f"{pattern[:4]}-{text.zfill(2)}-15")
        days = [_shifted(day, step) for step in (0, -1, 1, 31, -31, 365, -366)] if day else []
        return [f"{each.isoformat()}{pattern[10:]}" for each in days if each is not None]
    if text.isdecimal() and len(text) < 16:  # keep the number of digits
        near = [str(int(text) + step).zfill(len(text)) for step in (0, 1, -1)]
        return [each for each in near if not each.startswith("-")]
    longer = [each for each in column.values if isinstance(each, str) and text in each][:2]
    others = [text, *longer, text[:-1].rstrip(), f"{text}s", f"New {text}"]
    return [each for each in dict.fromkeys(others) if each] if text else []


def _shifted(day: date, days: int) -> date | None:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None
