"""The verdict of Spider's official test-suite evaluator on two results.

For numbers that are compared with a leaderboard, and with its leniency: it is not the default here.
What that evaluator does, in our own words:

* blanks inside `> =`, `< =` and `! =` are taken out of both queries;
* unless `keep_distinct`, every DISTINCT is taken out of both, those inside aggregates too, and
  whatever follows the first semicolon is dropped;
* `YEAR(CURDATE())` becomes 2020;
* two empty results are equal, and otherwise both need as many rows and columns;
* the order of rows counts if and only if the gold's text has `order by` anywhere in it;
* the columns may come in any order, one order for all rows; rows count as often as they occur;
* values are equal as Python's are, without tolerance: 1 is 1.0 and true, but no text is a number;
* before columns are permuted, every row is compared as a bag, its values sorted by how they print.
  So a row may be rejected whose integers and decimals sort differently, such as (1, '1.5').

So `SELECT DISTINCT` and `SELECT` are the same to it, as are columns changed over, and anything
empty is right wherever the gold is empty. `sqlgym.judging.compare` with `match="sound"` is not so.
Source: the rules of `test-suite-sql-eval`, Zhong, Yu and Klein 2020, arXiv:2010.02840.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import TokenType
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

from sqlgym.results import Verdict

Row = Sequence[Any]
_OPERATOR = re.compile(r"([<>!]) =")
_THIS_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)


def prepared(sql: str, keep_distinct: bool) -> str:
    """A query as the evaluator runs it.

    >>> prepared("SELECT DISTINCT a FROM t WHERE count(DISTINCT b) > = 2; SELECT 1", False)
    'SELECT  a FROM t WHERE count( b) >= 2'
    """
    sql = _OPERATOR.sub(r"\1=", sql)
    if not keep_distinct:
        sql = _without_distinct(sql)
    return _THIS_YEAR.sub("2020", sql)


def is_ordered(gold_sql: str) -> bool:
    """Whether the order of rows counts for the evaluator."""
    return "order by" in gold_sql.lower()


def compare(gold_rows: Sequence[Row], rows: Sequence[Row], ordered: bool) -> Verdict:
    """Whether the evaluator takes two results for the same.

    Args:
        gold_rows: What the gold query gave, prepared.
        rows: What the other query gave, prepared.
        ordered: See `is_ordered`.

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
    gold, other = [tuple(row) for row in gold_rows], [tuple(row) for row in rows]
    if any(_is_same(gold, other, columns, ordered) for columns in _column_orders(gold, other)):
        return Verdict(True)
    return Verdict(False, "no order of the columns fits")


def _without_distinct(sql: str) -> str:
    try:
        tokens = SQLite().tokenize(sql)
    except SqlglotError:
        return sql
    kept, position = "", 0
    for token in tokens:
        if token.token_type is TokenType.DISTINCT:
            kept += sql[position : token.start]
            position = token.end + 1
        elif token.token_type is TokenType.SEMICOLON:
            return kept + sql[position : token.start]
    return kept + sql[position:]


def _bag(row: Row) -> tuple[Any, ...]:
    return tuple(sorted(row, key=lambda value: f"{value}{type(value)}"))


def _column_orders(gold: Sequence[Row], rows: Sequence[Row]) -> Iterator[tuple[int, ...]]:
    """The orders of columns that bring equal values under equal values, read column by column.

    A column that does not even hold the same values as often can be left out: no order with it
    there would fit. Prefixes that do not fit are not continued, so wide results take no long time.
    """
    wanted = [Counter(column) for column in zip(*gold, strict=True)]
    found = [Counter(column) for column in zip(*rows, strict=True)]
    fitting = [[j for j, held in enumerate(found) if held == want] for want in wanted]

    def going_on(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(chosen) > 1 and not _is_same([r[: len(chosen)] for r in gold], rows, chosen, False):
            return
        if len(chosen) == len(fitting):
            yield chosen
            return
        seen: set[tuple[Any, ...]] = set()
        for column in fitting[len(chosen)]:
            values = tuple(row[column] for row in rows)
            if column not in chosen and values not in seen:  # of twins, one is tried
                seen.add(values)
                yield from going_on((*chosen, column))

    return going_on(())


def _is_same(
    gold: Sequence[Row], rows: Sequence[Row], columns: tuple[int, ...], ordered: bool
) -> bool:
    permuted = [tuple(row[column] for column in columns) for row in rows]
    if ordered:
        return list(gold) == permuted
    return Counter(gold) == Counter(permuted)
