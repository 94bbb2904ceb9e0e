"""Ties: a query that leaves open which rows it gives, or in which order.

`ORDER BY age LIMIT 1` gives one of the youngest, and which one is the machine's choice. A task
whose gold does so is refused (`tied_limit`): an answer may be as right and still differ.

Whether a LIMIT cuts through a tie is decided by SQLite itself. The part of the query up to its
LIMIT is run twice, its ORDER BY prolonged by all output columns, once upwards and once downwards.
If the cut falls into rows that tie and differ, the first run keeps the least of them and the second
the greatest, so the two give other rows; if it does not, they give the same ones. That is exact for
the first n rows, whatever the collation and however the keys are computed; an OFFSET is a second
cut. The SQL is edited at its tokens and else stays as it was written. A subquery is run by itself;
one that cannot be (it refers to the query around it) is refused, since nothing is known of it.

Without a LIMIT the same two runs tell which rows of an ordered result may change places: a run of
rows ends wherever both have given the same rows so far.
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
_UNKNOWN = "whether its LIMIT cuts through a tie cannot be told"


@dataclass(frozen=True)
class _Select:
    """A query or subquery by its places in the text, and its LIMIT as text without blanks."""

    start: int
    end: int
    limit: int | None
    limit_text: str
    is_ordered: bool
    is_asked_only_for_existence: bool

    @property
    def body_end(self) -> int:
        """The place where its ORDER BY can be prolonged."""
        return self.end if self.limit is None else self.limit


def tied_limit(database: Database, sql: str, result: QueryResult) -> str | None:
    """Why a LIMIT of a query leaves open which rows it gives; None if none does."""
    if "limit" not in sql.lower():
        return None
    selects = _selects(sql)
    for select in selects:
        if select.limit is None or select.is_asked_only_for_existence:
            continue
        top = select is selects[-1]
        cuts = _cuts(select.limit_text, len(result.rows) if top else None)
        if cuts is None:
            return f"{_UNKNOWN}: it is no plain number."
        try:
            if any(_is_tied(database, sql, select, cut, top) for cut in cuts):
                return "its LIMIT cuts through rows that tie, so that several results are right."
        except ToolError as error:
            return f"{_UNKNOWN}: {error.message}"
    return None


def free_runs(database: Database, sql: str, result: QueryResult) -> tuple[int, ...]:
    """Return the sizes of the runs of rows that may change places, for a query that orders its
    result.

    Args:
        sql: The query; its LIMIT, if it has one, cuts through no tie.

    Returns:
        Sizes that sum to the number of rows; 1 for each row that has its place to itself.
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
    except ToolError:  # it took nearly all of its budget already
        return (1,) * len(result.rows)
    sizes = _runs(up, down)
    return sizes if sum(sizes) == len(result.rows) else (1,) * len(result.rows)


def up_to_tie(database: Database, sql: str) -> tuple[Rows, tuple[int, ...]] | None:
    """Return the rows of a query whose last rows a LIMIT cuts, with all rows that tie with these.

    Returns:
        The rows, and the sizes of the runs of rows that tie; None if the query does not end in an
        ORDER BY and a LIMIT without OFFSET, or fails.
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
    """Cut two orders of the same rows wherever both have given the same rows so far."""
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
    """Return whether the first `cut` rows of a query depend on the order of rows that tie."""
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
    """Return the query up to its LIMIT, its ORDER BY going on with every output column."""
    body = sql[select.start : select.body_end].rstrip().rstrip(";")
    columns = ", ".join(f"{place} COLLATE BINARY {way}" for place in range(1, width + 1))
    return f"{body}\n{',' if select.is_ordered else ' ORDER BY'} {columns}\n"


def _cuts(text: str, rows: int | None) -> list[int] | None:
    """After how many rows a LIMIT clause cuts; None if it is no plain number.

    Args:
        text: The clause behind its keyword, without blanks.
        rows: How many rows came of it, where that is known: fewer than the LIMIT are not cut.
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
    """Return the WITH clause that a query begins with, or nothing."""
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
    """Everything between parentheses, innermost first, and last the whole query."""
    tokens = tokens_of(sql)
    selects: list[_Select] = []
    open_places: list[int] = []
    own: list[list[Token]] = [[]]  # for each open parenthesis the tokens in no deeper one
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
    # What follows the last token is a comment, and would swallow what is added.
    end = tokens[-1].end + 1 if tokens else 0
    return [*selects, _select(own[0], 0, end, False)]


def _select(own: list[Token], start: int, end: int, exists: bool) -> _Select:
    ordered = any(token.token_type is TokenType.ORDER_BY for token in own)
    for place, token in enumerate(own):
        if token.token_type is TokenType.LIMIT:
            text = "".join(later.text.upper() for later in own[place + 1 :])
            return _Select(start, end, token.start, text, ordered, exists)
    return _Select(start, end, None, "", ordered, exists)
