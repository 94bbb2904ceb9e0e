"""Detect ties: queries that do not determine which rows they return, or in which order.

`ORDER BY age LIMIT 1` returns one of the youngest people, and SQLite chooses which one. A task with
such a gold query is rejected (`tied_limit`), because another answer can be equally correct.

To determine whether a LIMIT cuts through a tie, SQLite executes the query up to its LIMIT twice.
All output columns are appended to the ORDER BY, ascending the first time and descending the second
time. If the LIMIT cuts through tied rows that differ, the first execution keeps the smallest of
these rows and the second keeps the greatest, so the results differ. Otherwise, both executions
return the same rows. For the first n rows, this test is exact, whatever the collation and the type
of the key. An OFFSET is treated as a second cut. Only the affected tokens of the SQL are edited.
Each subquery is tested separately. If a subquery refers to the outer query and therefore cannot be
executed alone, the gold query is rejected.

Without a LIMIT, the same two executions determine which rows of an ordered result can be
interchanged. A run of tied rows ends at each position up to which both executions returned the same
set of rows.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sqlglot import Token, TokenType

from sqlgym.database.database import Database, QueryResult
from sqlgym.database.parsing import tokens_of
from sqlgym.judging.results import compare, rounded_row
from toolgym.errors import ToolError

Rows = Sequence[tuple[Any, ...]]
_LIMIT = re.compile(r"(-?\d+)(?:(OFFSET|,)(-?\d+))?;?")
_UNKNOWN = "whether its LIMIT cuts through a tie is unknown"


@dataclass(frozen=True)
class _Select:
    """A query or subquery by its positions in the text, and its LIMIT as text without spaces."""

    start: int
    end: int
    limit: int | None
    limit_text: str
    is_ordered: bool
    is_asked_only_for_existence: bool

    @property
    def body_end(self) -> int:
        """The position where the query's ORDER BY can be extended."""
        return self.end if self.limit is None else self.limit


def tied_limit(database: Database, sql: str, result: QueryResult) -> str | None:
    """Return why the LIMIT of a query does not determine which rows are returned, or None."""
    if "limit" not in sql.lower():
        return None
    selects = _selects(sql)
    for select in selects:
        if select.limit is None or select.is_asked_only_for_existence:
            continue
        top = select is selects[-1]
        cuts = _cuts(select.limit_text, len(result.rows) if top else None)
        if cuts is None:
            return f"{_UNKNOWN}: it is not a constant."
        try:
            if any(_is_tied(database, sql, select, cut, top) for cut in cuts):
                return "its LIMIT cuts through tied rows, so several results are correct."
        except ToolError as error:
            return f"{_UNKNOWN}: {error.message}"
    return None


def free_runs(database: Database, sql: str, result: QueryResult) -> tuple[int, ...]:
    """Return the lengths of the runs of rows that can be interchanged, for an ordered query.

    Args:
        sql: The query. If the query has a LIMIT, it must not cut through a tie.

    Returns:
        Lengths that sum to the number of rows. A row with a fixed position is a run of length 1.
    """
    if len(result.rows) < 2:
        return (1,) * len(result.rows)
    select = _selects(sql)[-1]
    tail = sql[select.body_end : select.end].rstrip().rstrip(";")
    try:
        up, down = (
            database.query(_prolong(sql, select, len(result.columns), way) + tail).rows
            for way in ("ASC", "DESC")
        )
    except ToolError:  # it has already used nearly all of its budget
        return (1,) * len(result.rows)
    sizes = _runs(up, down)
    return sizes if sum(sizes) == len(result.rows) else (1,) * len(result.rows)


def up_to_tie(database: Database, sql: str) -> tuple[Rows, tuple[int, ...]] | None:
    """Return the rows of a query with a LIMIT, and all rows that are tied with the last row.

    Returns:
        The rows, and the lengths of the runs of tied rows. The result is None if the query fails,
        or does not end in an ORDER BY and a LIMIT without OFFSET.
    """
    select = _selects(sql)[-1]
    match = _LIMIT.fullmatch(select.limit_text)
    if not select.is_ordered or match is None or match[2] or int(match[1]) < 1:
        return None
    whole = sql[: select.body_end]
    try:
        result = database.query(whole)
    except ToolError:
        return None
    runs = free_runs(database, whole, result)
    ends = list(accumulate(runs))
    last = bisect_left(ends, int(match[1]))
    end = ends[last] if last < len(ends) else len(result.rows)
    return None if result.truncated else (result.rows[:end], runs[: last + 1])


def _runs(up: Sequence[Sequence[Any]], down: Sequence[Sequence[Any]]) -> tuple[int, ...]:
    """Split two orders of the same rows wherever both have returned the same rows so far."""
    sizes = [0]
    balance: Counter[Any] = Counter()
    for one, other in zip(up, down, strict=False):
        sizes[-1] += 1
        for row, step in ((one, 1), (other, -1)):
            key = rounded_row(row)
            balance[key] += step
            if not balance[key]:
                del balance[key]
        if not balance:
            sizes.append(0)
    return tuple(size for size in sizes if size)


def _is_tied(database: Database, sql: str, select: _Select, cut: int, top: bool) -> bool:
    """Return whether the first `cut` rows of a query depend on the order of tied rows."""
    opening, closing = ("", "") if top else (f"{_with_clause(sql)}SELECT * FROM (", ")")
    whole = sql[select.start : select.end].rstrip().rstrip(";")
    width = len(database.query(f"{opening}{whole}\n{closing}").columns)
    up, down = (
        database.query(f"{opening}{_prolong(sql, select, width, way)} LIMIT {cut}{closing}")
        for way in ("ASC", "DESC")
    )
    if not up.rows and not down.rows:
        return False
    return up.truncated or not compare(up.rows, down.rows, ordered=False).equal


def _prolong(sql: str, select: _Select, width: int, way: str) -> str:
    """Return the query up to its LIMIT, with all output columns appended to its ORDER BY."""
    body = sql[select.start : select.body_end].rstrip().rstrip(";")
    columns = ", ".join(f"{place} COLLATE BINARY {way}" for place in range(1, width + 1))
    return f"{body}\n{',' if select.is_ordered else ' ORDER BY'} {columns}\n"


def _cuts(text: str, rows: int | None) -> list[int] | None:
    """Return the row counts at which a LIMIT clause cuts, or None if it is not constant.

    Args:
        text: The clause after its keyword, without spaces.
        rows: Number of rows of the result, if known; a greater LIMIT does not cut.
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        return None
    limit, offset = int(match[1]), int(match[3] or 0)
    if match[2] == ",":
        limit, offset = offset, limit
    offset = max(offset, 0)
    cuts = [offset]
    if limit >= 0 and (rows is None or rows >= limit):
        cuts.append(offset + limit)
    return [cut for cut in cuts if cut > 0]


def _with_clause(sql: str) -> str:
    """Return the WITH clause at the start of a query, or ""."""
    depth = 0
    tokens = tokens_of(sql)
    if not tokens or tokens[0].token_type is not TokenType.WITH:
        return ""
    for token in tokens:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0 and kind is TokenType.SELECT:
            return sql[: token.start]
    return ""


def _selects(sql: str) -> list[_Select]:
    """Return the contents of all parentheses, innermost first, and finally the entire query."""
    tokens = tokens_of(sql)
    selects: list[_Select] = []
    open_places: list[int] = []
    own: list[list[Token]] = [[]]  # for each open parenthesis, the tokens outside of deeper ones
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            open_places.append(place)
            own.append([])
            continue
        if token.token_type is TokenType.R_PAREN and open_places:
            start, inside = open_places.pop(), own.pop()
            exists = start > 0 and tokens[start - 1].token_type is TokenType.EXISTS
            selects.append(_select(inside, tokens[start].end + 1, token.start, exists))
        own[-1].append(token)
    # The text after the last token is a comment, which would hide an appended clause.
    end = tokens[-1].end + 1 if tokens else 0
    return [*selects, _select(own[0], 0, end, False)]


def _select(own: list[Token], start: int, end: int, exists: bool) -> _Select:
    ordered = any(token.token_type is TokenType.ORDER_BY for token in own)
    for place, token in enumerate(own):
        if token.token_type is TokenType.LIMIT:
            text = "".join(later.text.upper() for later in own[place + 1 :])
            return _Select(start, end, token.start, text, ordered, exists)
    return _Select(start, end, None, "", ordered, exists)
