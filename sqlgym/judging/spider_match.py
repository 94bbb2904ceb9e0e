"""Reproduce the verdicts of Spider's official test-suite evaluator on two results.

These verdicts make scores comparable with leaderboards. The evaluator is more lenient than the
default comparison and has these rules:

* Spaces inside `> =`, `< =` and `! =` are removed from both queries.
* Unless `keep_distinct` is set, every DISTINCT is removed from both queries, even inside
  aggregates, and everything after the first semicolon is dropped.
* `YEAR(CURDATE())` becomes 2020.
* Two empty results are equal. Otherwise, both results must have the same number of rows and
  columns.
* The order of rows matters if and only if the text of the gold query contains `order by`.
* The columns can be in any order, if the order is the same for all rows. Repeated rows must occur
  the same number of times in both results.
* Values are equal if they are equal in Python, without tolerance: 1 equals 1.0 and true, but no
  string equals a number.
* Before columns are permuted, rows are compared as multisets whose values are sorted as strings. As
  a result, a correct row can be rejected if it contains integers and decimals that sort
  differently, such as (1, '1.5').

By these rules, `SELECT DISTINCT` is equivalent to `SELECT`, swapped columns are accepted, and any
empty result is correct if the gold result is empty. `sqlgym.compare` with `match="sound"`
distinguishes all of these cases. The rules are those of `test-suite-sql-eval` (Zhong, Yu and Klein
2020, arXiv:2010.02840).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import TokenType

from sqlgym.database.parsing import tokens_of
from sqlgym.judging.results import Verdict

Row = Sequence[Any]
LOOKED_AT = 2_000_000
"""Maximum number of cells that are compared in the search for an order of columns, in addition to
those of one direct attempt.
"""
_OPERATOR = re.compile(r"([<>!]) =")
_THIS_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)


def prepare(sql: str, keep_distinct: bool) -> str:
    """Return a query in the form in which the evaluator runs it.

    >>> prepare("SELECT DISTINCT a FROM t WHERE count(DISTINCT b) > = 2; SELECT 1", False)
    'SELECT  a FROM t WHERE count( b) >= 2'
    """
    sql = _OPERATOR.sub(r"\1=", sql)
    if not keep_distinct:
        sql = _without_distinct(sql)
    return _THIS_YEAR.sub("2020", sql)


def is_ordered(gold_sql: str) -> bool:
    """Return whether the order of rows matters to the evaluator."""
    return "order by" in gold_sql.lower()


def compare(gold_rows: Sequence[Row], rows: Sequence[Row], ordered: bool) -> Verdict:
    """Return whether the evaluator considers two results equal.

    >>> compare([("Joe", 1)], [(1.0, "Joe")], ordered=False)
    Verdict(equal=True, reason='')
    """
    if len(gold_rows) != len(rows):
        return Verdict(False, "row count")
    if not gold_rows:
        return Verdict(True)
    if len(gold_rows[0]) != len(rows[0]):
        return Verdict(False, "column count")
    gold_bags, bags = [_bag(row) for row in gold_rows], [_bag(row) for row in rows]
    if gold_bags != bags if ordered else set(gold_bags) != set(bags):
        return Verdict(False, "rows differ")
    if _Orders(gold_rows, rows, ordered).one_fits():
        return Verdict(True)
    return Verdict(False, "no order of the columns fits")


def _without_distinct(sql: str) -> str:
    pieces, position = list[str](), 0
    for token in tokens_of(sql):
        if token.token_type is TokenType.DISTINCT:
            pieces.append(sql[position : token.start])
            position = token.end + 1
        elif token.token_type is TokenType.SEMICOLON:
            return "".join([*pieces, sql[position : token.start]])
    return "".join([*pieces, sql[position:]])


def _bag(row: Row) -> tuple[Any, ...]:
    return tuple(sorted(row, key=lambda value: f"{value}{type(value)}"))


class _Orders:
    """Searches for an order of columns that makes the rows equal, column by column.

    The search skips a column that does not contain the same values equally often. It drops a
    partial order whose columns do not contain the same rows. It tries only one of several identical
    columns. These rules make nearly every search short. In general, however, the problem is as hard
    as graph isomorphism, so the search ends after `LOOKED_AT` cells with the verdict that no order
    fits.
    """

    def __init__(self, gold: Sequence[Row], rows: Sequence[Row], ordered: bool) -> None:
        self._ordered = ordered
        self._gold = list(zip(*gold, strict=True))
        self._columns = list(zip(*rows, strict=True))
        kinds: dict[tuple[Any, ...], int] = {}
        self._kinds = [kinds.setdefault(column, len(kinds)) for column in self._columns]
        holders: dict[frozenset[Any], list[int]] = defaultdict(list)
        for place, column in enumerate(self._columns):
            holders[_held(column)].append(place)
        self._fitting = [holders.get(_held(column), []) for column in self._gold]
        self._cells_left = LOOKED_AT + 2 * len(gold) * len(self._gold)

    def one_fits(self) -> bool:
        """Return whether the search finds a column order for which the results are equal."""
        start = [0] * len(self._gold[0])
        levels = [(start, start, self._choices(0, frozenset()), frozenset[int]())]
        while levels:
            before, rows, choices, taken = levels[-1]
            column = next(choices, None)
            self._cells_left -= len(rows)
            if column is None or self._cells_left < 0:
                levels.pop()
                continue
            place = len(levels) - 1
            numbers = _Numbers()
            gold_rows = numbers.of(before, self._gold[place])
            own_rows = numbers.of(rows, self._columns[column])
            same = gold_rows == own_rows
            if not self._ordered:
                same = sorted(gold_rows) == sorted(own_rows)
            if same and len(levels) == len(self._gold):
                return True
            if same:
                chosen = taken | {column}
                further = self._choices(place + 1, chosen)
                levels.append((gold_rows, own_rows, further, chosen))
        return False

    def _choices(self, place: int, taken: frozenset[int]) -> Iterator[int]:
        seen: set[int] = set()
        for column in self._fitting[place]:
            if column not in taken and self._kinds[column] not in seen:
                seen.add(self._kinds[column])
                yield column


class _Numbers(dict[tuple[int, Any], int]):
    """Assigns a number to each prefix of a row, based on the number of the shorter prefix and the
    next value.
    """

    def of(self, before: Sequence[int], values: Sequence[Any]) -> list[int]:
        return [self.setdefault(pair, len(self)) for pair in zip(before, values, strict=True)]


def _held(column: Sequence[Any]) -> frozenset[Any]:
    """Return the values of a column with their counts."""
    return frozenset(Counter(column).items())
