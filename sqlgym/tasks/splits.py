"""Divides synthesized tasks into splits that have no question and no query in common.

If there are three or more databases, all tasks of a database are assigned to the same part, and
each part gets at least one database. The tasks of one or two databases are divided by the skeleton
of their SQL. The skeleton is the canonical form with a question mark for each literal or list of
literals. Queries with the same skeleton differ only in their constants. The part of a task depends
only on a hash of its skeleton, not on the seed or the number of tasks. Therefore a task that is
held out in one run is not used for training in another.

A task whose question or canonical SQL occurs in an earlier part is always dropped from the later
part.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, parse
from toolgym.errors import ConfigurationError
from toolgym.tasks import wrong_shares

Entry = Mapping[str, Any]
SHARES: Final[Mapping[str, float]] = {"train": 0.8, "dev": 0.1, "test": 0.1}
_NAME: Final = re.compile(r"[A-Za-z][\w-]*")


@functools.lru_cache(maxsize=8192)
def skeleton(canonical: str) -> str:
    """Return a query without its literals. SQL that cannot be parsed is returned unchanged.

    >>> skeleton("SELECT name FROM singer WHERE age > 30 AND city IN ('Rome', 'Oslo')")
    'SELECT name FROM singer WHERE age > ? AND city IN (?)'
    """
    try:
        return careful(lambda: str(_Skeleton(dialect=SQLite()).generate(parse(canonical))))
    except SqlglotError:
        return canonical


class _Skeleton(SQLite.Generator):  # type: ignore[misc, valid-type]  # a variable, to mypy
    """Generator that writes a query with a question mark for each literal or list of literals.

    The tree is not modified, because sqlglot passes over all siblings of a node to replace it.
    """

    def literal_sql(self, expression: exp.Literal) -> str:
        """Return a question mark."""
        return "?"

    def neg_sql(self, expression: exp.Neg) -> str:
        """Return a question mark in place of a number with a sign."""
        return "?" if _is_literal(expression) else str(super().neg_sql(expression))

    def in_sql(self, expression: exp.In) -> str:
        """Return one question mark in place of a list of literals."""
        listed = expression.expressions
        if listed and all(map(_is_literal, listed)):
            return f"{self.sql(expression, 'this')} IN (?)"
        return str(super().in_sql(expression))


def _is_literal(node: exp.Expr) -> bool:
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)


def divide(
    entries: Sequence[Entry], shares: Mapping[str, float] = SHARES
) -> dict[str, list[Entry]]:
    """Divide entries by database, or by skeleton if there are few databases.

    Args:
        entries: Entries with `db_id`, `question` and `canonical`.
        shares: Share of each part by name; see `check_shares`. Earlier parts take precedence.

    Returns:
        The entries of each part, in their original order.
    """
    db_ids = sorted({entry["db_id"] for entry in entries})
    if len(db_ids) >= max(3, len(shares)):
        homes = _homes(db_ids, shares)
        placed = [(homes[entry["db_id"]], entry) for entry in entries]
    else:
        placed = [(_part(skeleton(entry["canonical"]), shares), entry) for entry in entries]
    seen: set[str] = set()
    parts: dict[str, list[Entry]] = {}
    for part in shares:
        own = [(entry, _marks(entry)) for home, entry in placed if home == part]
        parts[part] = [entry for entry, marks in own if not seen & marks]
        seen.update(*(marks for _, marks in own))
    return parts


def check_shares(shares: Mapping[str, float]) -> None:
    """Check the shares of parts.

    Raises:
        ConfigurationError: A share is not positive, the shares do not sum to 1, or a name is not a
            valid split name.
    """
    if not shares or min(shares.values()) <= 0 or not abs(sum(shares.values()) - 1) <= 1e-6:
        raise wrong_shares(shares)
    for name in shares:
        if not _NAME.fullmatch(name) or name in ("all", "tables"):
            raise ConfigurationError(f"{name!r} cannot be the name of a split.")


def _homes(db_ids: Sequence[str], shares: Mapping[str, float]) -> dict[str, str]:
    """Return the part of each database, assigned in the order of a hash.

    A part gets its share of the databases, and at least one.
    """
    order = sorted(db_ids, key=lambda db_id: hashlib.sha256(f"toolgym-{db_id}".encode()).digest())
    counts = {part: max(1, round(share * len(order))) for part, share in shares.items()}
    while sum(counts.values()) != len(order):
        step = 1 if sum(counts.values()) < len(order) else -1
        counts[max(counts, key=lambda part: counts[part])] += step
    parts = [part for part, count in counts.items() for _ in range(count)]
    return dict(zip(order, parts, strict=True))


def _part(text: str, shares: Mapping[str, float]) -> str:
    """Return the part of a string, chosen by its hash."""
    digest = hashlib.sha256(f"toolgym-split-{text}".encode("utf-8", "surrogatepass")).digest()
    place, end = int.from_bytes(digest[:8], "big") / 2**64, 0.0
    for part, share in shares.items():
        end += share
        if place < end:
            return part
    return list(shares)[-1]  # rounding may make the sum of the shares slightly less than 1


def _marks(entry: Entry) -> set[str]:
    """Return the keys that no two parts share: the question and the SQL."""
    return {f"q:{plain_question(entry['question'])}", f"s:{entry['canonical']}"}


def plain_question(question: str) -> str:
    """Normalize a question: lower case, single spaces, no punctuation at the end.

    >>> plain_question("How many  singers are there?")
    'how many singers are there'
    """
    return " ".join(question.casefold().split()).rstrip(" ?.!")
