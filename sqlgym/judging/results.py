"""Compare query results: whether they are equal, and how similar they are.

`compare` implements the comparison `match="sound"`. Two results are equal if they have the same
columns in the same order, and the same rows with the same multiplicities. If the gold query has a
top-level ORDER BY, the rows must also be in the same order, except for tied rows
(`sqlgym.judging.ties`). Values are compared by type:

| value | equal if |
|--------|-------------------------------------------------------------------------------| | NULL |
both are NULL | | number | integer: the same number, so 3 = 3.0; two floats: within 1e-6 relative |
| text | the same after Unicode NFC; case and spaces matter, and '3' does not equal 3 | | bytes |
the same bytes |

No result equals an empty gold result; otherwise, any query that returns no rows would be correct.
The reason in a verdict is intended for reports. The reason reveals the gold result, so it is never
shown to an agent.

`overlap` measures the similarity of a result to the gold result, for the progress reward.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, combinations
from typing import Any, Final

from sqlglot import TokenType

from sqlgym.database.database import QueryResult
from sqlgym.database.parsing import tokens_of
from sqlgym.judging.nfc import nfc

TOLERANCE: Final = 1e-6
"""Relative tolerance of floats, since sums depend on the order of their terms."""
TINY: Final = 1e-12
"""Absolute tolerance of floats."""
COMPARED: Final = 1_000_000
"""Maximum number of values that are compared to match columns in `overlap`."""

Row = Sequence[Any]


@dataclass(frozen=True)
class Verdict:
    """The verdict of a comparison of two results.

    If the results differ, `reason` describes the first difference.
    """

    equal: bool
    reason: str = ""


def compare(
    gold_rows: Sequence[Row], rows: Sequence[Row], ordered: bool, runs: Sequence[int] = ()
) -> Verdict:
    """Return whether a result equals the gold result.

    Args:
        ordered: Whether the gold query has a top-level ORDER BY; see `is_ordered`.
        runs: With `ordered`, the lengths of the runs of tied rows, whose order does not matter; see
            `sqlgym.judging.ties.free_runs`. If this is empty, every row has a fixed position.

    >>> compare([(1, "a"), (2, "b")], [(2.0, "b"), (1, "a")], ordered=False)
    Verdict(equal=True, reason='')
    >>> compare([(1,), (2,)], [(2,), (1,)], ordered=True).reason
    'value at row 1'
    """
    if not gold_rows:
        return Verdict(False, "empty gold")
    if len(gold_rows) != len(rows):
        return Verdict(False, "row count")
    if len(gold_rows[0]) != len(rows[0]):
        return Verdict(False, "column count")
    gold, other = _normal_rows(gold_rows), _normal_rows(rows)
    if ordered:
        for start, end in spans(runs, len(gold)):
            if not _same_multiset(gold[start:end], other[start:end]):
                return Verdict(False, f"value at row {start + 1}")
        return Verdict(True)
    return Verdict(True) if _same_multiset(gold, other) else Verdict(False, "rows differ")


def sound(gold: QueryResult, result: QueryResult, runs: Sequence[int]) -> Verdict:
    """Compare the results of two queries as with `match="sound"`.

    A query that reads no table, such as `SELECT 3`, is a guess and therefore incorrect, unless the
    gold query reads no table either.

    Args:
        runs: Lengths of runs of tied rows, from `sqlgym.judging.ties.free_runs`; empty if the order
            of rows does not matter.
    """
    if gold.tables_read and not result.tables_read:
        return Verdict(False, "no table read")
    return compare(gold.rows, result.rows, bool(runs), runs)


def overlap(gold_rows: Sequence[Row], rows: Sequence[Row]) -> float:
    """Measure the similarity of a result to the gold result, from 0 to 1.

    Columns of the two results are matched by their values. The similarity is the product of two F1
    scores: one for the matched columns, and one for the rows that are equal in these columns.
    Therefore extra columns or rows lower the score as much as missing ones, and a dump of a table
    scores low.

    >>> overlap([("Joe",)], [("Joe",)]), overlap([("Joe",)], [("Joe", 52), ("Ann", 43)])
    (1.0, 0.4444444444444444)
    """
    if not gold_rows or not rows:
        return 0.0
    if compare(gold_rows, rows, ordered=False).equal:
        return 1.0
    gold, other = [rounded_row(row) for row in gold_rows], [rounded_row(row) for row in rows]
    gold_columns, columns = (
        [Counter(c) for c in zip(*side, strict=True)] for side in (gold, other)
    )
    # Start at the diagonal, since queries mostly keep the order of columns. Stop when `COMPARED`
    # values have been compared. Columns further away count as different.
    places = ((i, j) for i in range(len(gold_columns)) for j in range(len(columns)))
    shared, compared = {}, 0
    for i, j in sorted(places, key=lambda place: abs(place[0] - place[1])):
        compared += 1 + min(len(gold_columns[i]), len(columns[j]))
        if compared > COMPARED:
            break
        shared[i, j] = _shared(gold_columns[i], columns[j])
    pairs: dict[int, int] = {}
    for i, j in sorted(shared, key=lambda p: (-shared[p], abs(p[0] - p[1]), p)):
        if shared[i, j] and i not in pairs and j not in pairs.values():
            pairs[i] = j
    if not pairs:
        return 0.0

    def closeness(pairs: dict[int, int]) -> float:
        left = Counter(tuple(row[i] for i in pairs) for row in gold)
        right = Counter(tuple(row[j] for j in pairs.values()) for row in other)
        of_columns = 2 * len(pairs) / (len(gold_columns) + len(columns))
        return of_columns * 2 * _shared(left, right) / (len(gold) + len(other))

    best = closeness(pairs)
    for one, two in combinations(pairs, 2):
        if best < 1 and gold_columns[one] == gold_columns[two]:  # only their rows distinguish them
            swapped = {**pairs, one: pairs[two], two: pairs[one]}
            if (found := closeness(swapped)) > best:
                pairs, best = swapped, found
    return best


def is_ordered(sql: str) -> bool:
    """Return whether a query has an ORDER BY outside of all parentheses.

    >>> is_ordered("SELECT a FROM t ORDER BY a")
    True
    >>> is_ordered("SELECT * FROM (SELECT a FROM t ORDER BY a)")
    False
    """
    depth = 0
    for token in tokens_of(sql):
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        elif token.token_type is TokenType.ORDER_BY and depth == 0:
            return True
    return False


def spans(runs: Sequence[int], rows: int) -> list[tuple[int, int]]:
    """Return the start and end of each run of tied rows, or of each row if there are no runs.

    >>> spans((1, 2), 3), spans((), 2)
    ([(0, 1), (1, 3)], [(0, 1), (1, 2)])
    """
    ends = list(accumulate(runs or (1,) * rows))
    return list(zip([0, *ends], ends, strict=False))


def rounded_row(row: Row) -> tuple[Any, ...]:
    """Return a key for comparing rows.

    Equal rows have equal keys, except at rounding boundaries.
    """
    return tuple(map(_rounded, row))


def _normal_rows(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return [tuple(nfc(v) if type(v) is str else v for v in row) for row in rows]


def _same_multiset(gold: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]) -> bool:
    """Return whether two results have the same rows equally often, within the tolerance of numbers.

    Rows that are not identical on both sides are sorted and compared one by one. The sort key
    consists of the other values and the clusters of the numbers, followed by the numbers
    themselves.
    """
    left, right = Counter(gold), Counter(rows)
    gold_rest, rest = [*(left - right).elements()], [*(right - left).elements()]
    clusters = [_clusters(column) for column in zip(*gold_rest, *rest, strict=True)]

    def key(row: Row) -> tuple[list[str], list[float]]:
        numbers = [value for value in row if isinstance(value, int | float)]
        pairs = zip(row, clusters, strict=True)
        return [
            str(of.get(v)) if isinstance(v, int | float) else repr(v) for v, of in pairs
        ], numbers

    sides = (sorted(side, key=key) for side in (gold_rest, rest))
    return all(map(_same_value, *map(chain.from_iterable, sides)))


def _clusters(column: Sequence[Any]) -> dict[float, int]:
    """Return the cluster of each number. Numbers of different clusters are not within tolerance."""
    clusters: dict[float, int] = {}
    last = 0.0
    for number in sorted({value for value in column if isinstance(value, int | float)}):
        clusters[number] = len(clusters) if not _is_close(last, number) else clusters.get(last, 0)
        last = number
    return clusters


def _same_value(gold: Any, value: Any) -> bool:
    if isinstance(gold, float) and isinstance(value, float):
        return _is_close(gold, value)
    # 3 == 3.0, and None, text and bytes equal only values of their own type
    return bool(gold == value)


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TINY)


def _rounded(value: Any) -> Any:
    """Return a value as a key, with floats rounded to six digits."""
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.6g}")
    return nfc(value) if type(value) is str else value


def _shared(gold: Counter[Any], other: Counter[Any]) -> int:
    """Return the number of common values of two columns, counted with repetition."""
    small, large = (gold, other) if len(gold) <= len(other) else (other, gold)
    return sum(min(count, large[value]) for value, count in small.items() if value in large)
