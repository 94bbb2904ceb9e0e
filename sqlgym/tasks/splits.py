"""Splits of synthesised tasks that share nothing that could be learned by heart.

Of three databases or more, each goes as a whole to one part, every part with at least one. Of one
or two, the tasks are divided by the skeleton of their SQL: the canonical form with a question mark
for every literal, and one for a list of them. Two queries with one skeleton differ in their
constants and in nothing else; names stay, so that queries on different schemas have different
skeletons. Which part a skeleton belongs to is decided by a hash of it and by nothing else, so the
seed and the number of tasks do not matter: what one run trains on, no other run holds out, and the
tasks of `dev` ask other things than those of `train`, not the same of another value. The writer of
tasks bounds how many of one skeleton it keeps, by the same rule.

Whatever way they were divided, a task whose question or canonical SQL occurs in an earlier part is
dropped from the later one.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, parse
from toolgym.errors import ConfigurationError

# A quote that is doubled ends one text and begins the next, so an open one is looked for once.
_LITERAL = re.compile(r"(?:'[^']*+')++|\b\d++(?:\.\d++)?\b")


@functools.lru_cache(maxsize=8192)
def skeleton(canonical: str) -> str:
    """A query without its literals: what it asks, whatever the value.

    >>> skeleton("SELECT name FROM singer WHERE age > 30 AND city IN ('Rome', 'Oslo')")
    'SELECT name FROM singer WHERE age > ? AND city IN (?)'
    """
    try:
        return careful(lambda: str(_Skeleton(dialect=SQLite()).generate(parse(canonical))))
    except SqlglotError:
        return _LITERAL.sub("?", canonical)


class _Skeleton(SQLite.Generator):  # type: ignore[misc, valid-type]  # a variable, to mypy
    """Prints a query with a question mark for each literal, and one for a list of them.

    The tree stays as it is: to replace one of many nodes side by side, sqlglot goes through all.
    """

    def literal_sql(self, expression: exp.Literal) -> str:
        """A question mark."""
        return "?"

    def neg_sql(self, expression: exp.Neg) -> str:
        """A question mark for a number with a sign."""
        return "?" if _is_literal(expression) else str(super().neg_sql(expression))

    def in_sql(self, expression: exp.In) -> str:
        """One question mark for a list of literals."""
        listed = expression.expressions
        if listed and all(map(_is_literal, listed)):
            return f"{self.sql(expression, 'this')} IN (?)"
        return str(super().in_sql(expression))


def _is_literal(node: exp.Expr) -> bool:
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)


Entry = Mapping[str, Any]
SHARES: Final[Mapping[str, float]] = {"train": 0.8, "dev": 0.1, "test": 0.1}
_NAME: Final = re.compile(r"[A-Za-z][\w-]*")


def divide(
    entries: Iterable[Entry], shares: Mapping[str, float] = SHARES
) -> dict[str, list[Entry]]:
    """Divide entries by database, or by skeleton where there are too few databases.

    Args:
        entries: With `db_id`, `question`, `canonical`.
        shares: Part name to its share; a task belongs to the part that comes first in this order.

    Returns:
        The entries of each part, in their order. What would occur in two parts is in the first.

    Raises:
        ConfigurationError: The shares are not positive, or do not sum to 1.
    """
    check_shares(shares)
    listed = list(entries)
    db_ids = sorted({entry["db_id"] for entry in listed})
    if len(db_ids) >= max(3, len(shares)):
        homes = _homes(db_ids, shares)
        placed = [(homes[entry["db_id"]], entry) for entry in listed]
    else:
        placed = [(_part(skeleton(entry["canonical"]), shares), entry) for entry in listed]
    seen: set[str] = set()
    parts: dict[str, list[Entry]] = {}
    for part in shares:
        own = [entry for home, entry in placed if home == part]
        parts[part] = [entry for entry in own if not seen & _marks(entry)]
        seen.update(*map(_marks, own))
    return parts


def check_shares(shares: Mapping[str, float]) -> None:
    """Make sure that shares can be met.

    Raises:
        ConfigurationError: They are not positive, do not sum to 1, or a name is no split's.
    """
    if not shares or min(shares.values()) <= 0 or not abs(sum(shares.values()) - 1) <= 1e-6:
        raise ConfigurationError(f"the shares {dict(shares)} must be positive and sum to 1.")
    for name in shares:
        if not _NAME.fullmatch(name) or name in ("all", "tables"):
            raise ConfigurationError(f"{name!r} cannot be the name of a split.")


def _homes(db_ids: Sequence[str], shares: Mapping[str, float]) -> dict[str, str]:
    """The part of each database: in an order by hash, as many as its share says, at least one."""
    order = sorted(db_ids, key=lambda db_id: hashlib.sha256(f"toolgym-{db_id}".encode()).digest())
    counts = {part: max(1, round(share * len(order))) for part, share in shares.items()}
    while sum(counts.values()) != len(order):
        step = 1 if sum(counts.values()) < len(order) else -1
        counts[max(counts, key=lambda part: counts[part])] += step
    parts = [part for part, count in counts.items() for _ in range(count)]
    return dict(zip(order, parts, strict=True))


def _part(text: str, shares: Mapping[str, float]) -> str:
    """The part that a text belongs to, by its hash alone."""
    digest = hashlib.sha256(f"toolgym-split-{text}".encode("utf-8", "surrogatepass")).digest()
    place, end = int.from_bytes(digest[:8], "big") / 2**64, 0.0
    for part, share in shares.items():
        end += share
        if place < end:
            return part
    return list(shares)[-1]


def _marks(entry: Entry) -> set[str]:
    """What no two parts may share: the question, whatever its case, blanks and end; the SQL."""
    return {f"q:{plain_question(entry['question'])}", f"s:{entry['canonical']}"}


def plain_question(question: str) -> str:
    """A question as a key: case, runs of blanks and the mark at its end do not count.

    >>> plain_question("How many  singers are there?")
    'how many singers are there'
    """
    return " ".join(question.casefold().split()).rstrip(" ?.!")
