"""Comparison of query results: are two the same, and if not, how close are they?

`compare` is the sound comparison. Two results are equal if they have the same columns in the same
order and the same rows as often, in the same order if the gold query orders at top level (rows that
tie there may change places: `sqlgym.judging.ties`); and

| value  | equal if                                                                   |
|--------|----------------------------------------------------------------------------|
| NULL   | both are NULL                                                              |
| number | an integer: the same number, so 3 = 3.0; two floats: within 1e-6 relative  |
| text   | the same after Unicode NFC; case and blanks count, and '3' is not 3        |
| bytes  | the same                                                                   |

An empty gold equals nothing: it could be had by any query that finds nothing. The verdict's reason
is for reports; an agent never sees it, since it would give the gold away.

`overlap` is how close a result comes to the gold, for the reward's progress.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, permutations
from typing import Any

from sqlglot import TokenType

from sqlgym.database.database import QueryResult
from sqlgym.database.parsing import tokens_of
from sqlgym.judging.nfc import nfc


def pair_up(size: int, fits: Callable[[int, int], bool]) -> bool:
    """Whether each left thing can get a right thing of its own that fits.

    "Fits" is no equality: within a tolerance two things may fit a third and not each other, so the
    first partner need not be the right one. Hopcroft and Karp (1973) take `n * n * sqrt(n)` steps,
    whatever the answers are; trying partners one after another can ask `n * n * n` times.

    Args:
        size: How many there are on each side.
        fits: Whether left thing `i` fits right thing `j`; asked at most once for each pair.
    """
    choices: list[list[int]] = []
    for left in range(size):
        choices.append([right for right in range(size) if fits(left, right)])
        if not choices[-1]:
            return False
    if len({right for row in choices for right in row}) < size:
        return False
    partner = [-1] * size  # of each left thing
    owner = [-1] * size  # of each right thing
    while -1 in partner:
        levels = _levels(choices, partner, owner)
        if not sum(_lead(left, choices, partner, owner, levels) for left in _free(partner)):
            return False
    return True


def clusters(numbers: Iterable[float], fits: Callable[[float, float], bool]) -> dict[float, int]:
    """The cluster of each number; numbers of two clusters never fit, and need not be paired.

    Args:
        numbers: In any order, none of them NaN.
        fits: Whether two of them do; of numbers further apart, only if those between do.
    """
    places: dict[float, int] = {}
    last: float | None = None
    place = 0
    for number in sorted(set(numbers)):
        place += last is not None and not fits(last, number)
        places[number] = place
        last = number
    return places


def _free(partner: Sequence[int]) -> list[int]:
    return [left for left, right in enumerate(partner) if right < 0]


def _levels(choices: list[list[int]], partner: list[int], owner: list[int]) -> list[int]:
    """How many exchanges each left thing is away from one without a partner; -1 if it is not."""
    layer = _free(partner)
    levels = [-1] * len(choices)
    for left in layer:
        levels[left] = 0
    depth, is_end = 0, False
    while layer and not is_end:
        depth += 1
        following = []
        for left in layer:
            for right in choices[left]:
                other = owner[right]
                if other < 0:
                    is_end = True
                elif levels[other] < 0:
                    levels[other] = depth
                    following.append(other)
        layer = following
    return levels


def _lead(
    first: int, choices: list[list[int]], partner: list[int], owner: list[int], levels: list[int]
) -> bool:
    """Find a right thing for a left one by a chain of exchanges along the levels, and exchange.

    A left thing that leads nowhere loses its level, so that all searches together look at each
    choice once. The chain is a list and no recursion: it can be as long as there are things.
    """
    chain = [(first, iter(choices[first]))]
    exchanged: list[int] = []
    while chain:
        left, rest = chain[-1]
        for right in rest:
            other = owner[right]
            if other < 0:
                for (each, _), new in zip(chain, [*exchanged, right], strict=True):
                    partner[each], owner[new] = new, each
                    levels[each] = -1
                return True
            if levels[other] == levels[left] + 1:
                exchanged.append(right)
                chain.append((other, iter(choices[other])))
                break
        else:
            levels[left] = -1
            chain.pop()
            if exchanged:
                exchanged.pop()
    return False


TOLERANCE = 1e-6
"""Relative difference that is no difference: sums depend on the order of their terms."""
TINY = 1e-12
"""Absolute difference that is noise around zero."""
MATCHED_EXACTLY = 300
"""Up to so many differing rows are assigned to each other exactly; more are sorted and paired."""
COMPARED = 1_000_000
"""Values of pairs of columns that are compared to measure closeness; see `_shared_values`."""
REARRANGED = 24
"""So many ways are tried to tell columns apart that hold the same values in other rows."""

Row = Sequence[Any]


@dataclass(frozen=True)
class Verdict:
    """Whether two things are equal, and the first reason why not (empty if they are)."""

    equal: bool
    reason: str = ""


def compare(
    gold_rows: Sequence[Row], rows: Sequence[Row], ordered: bool, runs: Sequence[int] = ()
) -> Verdict:
    """Whether a result is the gold result.

    Args:
        ordered: The gold query orders at top level; see `is_ordered`.
        runs: With `ordered`, the sizes of the runs of rows that tie and may change places; see
            `sqlgym.judging.ties.free_runs`. Without, no two rows may.

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
    """The sound verdict on what a query gave.

    A query that reads no table is a guess, and not right even where the guess is: `SELECT 3` says
    nothing of a database. A gold without a table is exempt.

    Args:
        runs: See `sqlgym.judging.ties.free_runs`; empty where the order of rows does not count.
    """
    if gold.tables_read and not result.tables_read:
        return Verdict(False, "no table read")
    return compare(gold.rows, result.rows, bool(runs), runs)


def overlap(gold_rows: Sequence[Row], rows: Sequence[Row]) -> float:
    """How close a result is to the gold, from 0 to 1.

    Columns are assigned to the gold's by their values. The closeness is the product of two F1
    scores: of the columns that found a partner, and of the rows that are equal in those columns.
    So columns or rows too many cost as much as those missing, and a dumped table earns little. It
    is 1 exactly if both have the same rows as often, up to the order of rows and columns.

    >>> overlap([("Joe",)], [("Joe",)]), overlap([("Joe",)], [("Joe", 52), ("Ann", 43)])
    (1.0, 0.4444444444444444)
    """
    if not gold_rows or not rows:
        return 0.0
    if compare(gold_rows, rows, ordered=False).equal:
        return 1.0
    gold, other = [rounded_row(row) for row in gold_rows], [rounded_row(row) for row in rows]
    return max((_closeness(gold, other, pairs) for pairs in _assignments(gold, other)), default=0.0)


def is_ordered(sql: str) -> bool:
    """Whether a query orders its result: it has an ORDER BY outside of all parentheses.

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
    """The begin and end of each run of rows; without runs, of each row by itself.

    >>> spans((1, 2), 3), spans((), 2)
    ([(0, 1), (1, 3)], [(0, 1), (1, 2)])
    """
    ends = list(accumulate(runs or (1,) * rows))
    return list(zip([0, *ends], ends, strict=False))


def rounded_row(row: Row) -> tuple[Any, ...]:
    """A row as a key: equal rows have equal keys, but for noise at the edge of rounding."""
    return tuple(map(_rounded, row))


def _normal_rows(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return [tuple(nfc(v) if type(v) is str else v for v in row) for row in rows]


def _same_row(gold: Row, row: Row) -> bool:
    return len(gold) == len(row) and all(map(_same_value, gold, row))


def _same_value(gold: Any, value: Any) -> bool:
    if isinstance(gold, float) and isinstance(value, float):
        return _is_close(gold, value)
    return bool(gold == value)  # 3 == 3.0, and None, text and bytes equal only their own kind


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TINY)


def _same_multiset(gold: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]) -> bool:
    """Equal as multisets: equals cancel, and the rest must pair up within the tolerance."""
    left, right = Counter(gold), Counter(rows)
    gold_rest, rest = (left - right), (right - left)
    groups: dict[Any, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    near = [_near(column) for column in zip(*gold_rest, *rest, strict=False)]
    for side, counts in enumerate((gold_rest, rest)):
        for row in counts.elements():
            groups[tuple(map(_marked, row, near))][side].append(row)
    sides = groups.values()
    return all(len(g) == len(r) for g, r in sides) and all(_paired(g, r) for g, r in sides)


def _near(column: Sequence[Any]) -> dict[float, int]:
    """The clusters of the numbers of a column: those of two clusters are not within tolerance."""
    numbers = (value for value in column if isinstance(value, int | float))
    return clusters(numbers, _is_close)


def _marked(value: Any, near: dict[float, int]) -> Any:
    """What equal values have in common: the value, or the cluster of a number."""
    return near[value] if isinstance(value, int | float) else (value,)


def _paired(gold: list[Row], rows: list[Row]) -> bool:
    """Whether rows that agree in all but numbers near each other each have a partner."""
    gold, rows = (sorted(side, key=_numbers) for side in (gold, rows))
    if all(map(_same_row, gold, rows)):
        return True
    if len(gold) > MATCHED_EXACTLY:
        return False  # it would have to be noise that swaps neighbours in several columns at once
    return pair_up(len(gold), lambda i, j: _same_row(gold[i], rows[j]))


def _numbers(row: Row) -> list[float]:
    return [v for v in row if isinstance(v, int | float)]


def _rounded(value: Any) -> Any:
    """A value such that equal ones are equal as keys; floats by their first six digits."""
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.6g}")
    return nfc(value) if type(value) is str else value


Pairs = list[tuple[int, int]]


def _assignments(gold: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]) -> list[Pairs]:
    """Ways to assign columns of the gold to columns with values in common, the likeliest first."""
    gold_columns = [Counter(column) for column in zip(*gold, strict=True)]
    columns = [Counter(column) for column in zip(*rows, strict=True)]
    shared = _shared_values(gold_columns, columns)
    pairs: Pairs = []
    paired: tuple[set[int], set[int]] = set(), set()
    for i, j in sorted(shared, key=lambda p: (-shared[p], abs(p[0] - p[1]), p)):
        if i not in paired[0] and j not in paired[1]:
            pairs.append((i, j))
            paired[0].add(i)
            paired[1].add(j)
    if len(gold) != len(rows) or len(gold_columns) != len(columns):
        return [pairs] if pairs else []
    return [pairs, *_rearranged(pairs, gold_columns)] if pairs else []


def _rearranged(pairs: Pairs, gold_columns: list[Counter[Any]]) -> list[Pairs]:
    """Other assignments of the gold columns that hold the same values as another one."""
    alike: dict[frozenset[Any], list[tuple[int, int]]] = defaultdict(list)
    for i, j in pairs:
        alike[frozenset(gold_columns[i].items())].append((i, j))
    twins = [group for group in alike.values() if len(group) > 1]
    others: list[Pairs] = []
    for group in twins:
        fixed = [pair for pair in pairs if pair not in group]
        for order in islice(permutations([j for _, j in group]), 1, REARRANGED):
            others.append(fixed + [(i, j) for (i, _), j in zip(group, order, strict=True)])
        if len(others) >= REARRANGED:
            break
    return others[:REARRANGED]


def _shared_values(
    gold: list[Counter[Any]], other: list[Counter[Any]]
) -> dict[tuple[int, int], int]:
    """How many values each two columns have in common; no pair that has none.

    Columns of many values, and many of them, are looked at from the diagonal outwards (queries
    mostly keep the order of columns) until `COMPARED` values are. What is further away counts as
    different, which can make two wide results less close to each other, but no verdict.
    """
    shared: dict[tuple[int, int], int] = {}
    places = ((i, j) for i in range(len(gold)) for j in range(len(other)))
    looked_at = 0
    for i, j in sorted(places, key=lambda place: abs(place[0] - place[1])):
        looked_at += 1 + min(len(gold[i]), len(other[j]))
        if looked_at > COMPARED:
            break
        count = _shared(gold[i], other[j])
        if count:
            shared[i, j] = count
    return shared


def _shared(gold: Counter[Any], other: Counter[Any]) -> int:
    """How many values two columns have in common, each as often as in both."""
    small, large = (gold, other) if len(gold) <= len(other) else (other, gold)
    return sum(min(count, large[value]) for value, count in small.items() if value in large)


def _closeness(gold: list[tuple[Any, ...]], rows: list[tuple[Any, ...]], pairs: Pairs) -> float:
    """F1 of the paired columns times F1 of the rows that agree in them."""
    left = Counter(tuple(row[i] for i, _ in pairs) for row in gold)
    right = Counter(tuple(row[j] for _, j in pairs) for row in rows)
    columns = 2 * len(pairs) / (len(gold[0]) + len(rows[0]))
    return columns * 2 * _shared(left, right) / (len(gold) + len(rows))
