"""SQL as sqlglot's tree, in a number of steps that is bounded by its length.

sqlglot tries several readings of one place and backtracks after each. Where readings nest
(`JOIN a JOIN a JOIN a`) the tries multiply, and a line of a hundred words would take hours. So the
steps of the parser over its tokens are counted. Queries that people write take fewer than two for
a token; one that takes more than `STEPS` for each is refused, in the same way on every machine. So
is one that is nested so deeply that Python's stack ends.

A tree is as deep as its query, and code that walks or prints it can run out of stack as well: it
goes through `careful`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, TypeVar

from sqlglot import Dialect, Token, exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

STEPS: Final = 10
"""Steps of the parser for each token of the text."""
LEAST: Final = 2_000
"""Steps that a text may take however short it is."""

T = TypeVar("T")


class TooMuch(SqlglotError):
    """A text takes too many steps or is too deep; no `ParseError`, which sqlglot itself catches."""


@cache
def _counting_parser(dialect: str) -> type[Any]:
    """sqlglot's parser for a dialect, which ends when its steps are spent."""
    base: Any = Dialect.get_or_raise(dialect).parser_class

    class CountingParser(base):
        steps_left = LEAST

        def _advance(self, times: int = 1) -> None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise TooMuch("the text takes too many steps to parse")
            super()._advance(times)

    return CountingParser


def parse(sql: str, error_level: ErrorLevel | None = None, dialect: str = "sqlite") -> exp.Expr:
    """Return the tree of the first statement of a text.

    Raises:
        SqlglotError: It cannot be read; `TooMuch` where that would take too long or too much
            stack.
    """
    reading = Dialect.get_or_raise(dialect)
    tokens = reading.tokenize(sql)
    parser = _counting_parser(dialect)(dialect=reading, error_level=error_level)
    parser.steps_left = LEAST + STEPS * len(tokens)
    trees: list[Any] = careful(lambda: parser.parse(tokens, sql))
    if not trees or trees[0] is None:
        raise ParseError("there is no statement in the text")
    several = len(trees) > 1 and hasattr(exp, "Block")  # as `sqlglot.parse_one` gives them
    tree: exp.Expr = exp.Block(expressions=trees) if several else trees[0]
    return tree


@lru_cache(maxsize=16)
def shared_tree(sql: str) -> exp.Expr:
    """Return the tree of a text, shared by several readers that do not change it.

    Raises:
        SqlglotError: As `parse`.
    """
    return parse(sql)


def tokens_of(sql: str) -> list[Token]:
    """Return the tokens of a text; none where it cannot be read."""
    try:
        return list(Dialect.get_or_raise("sqlite").tokenize(sql))
    except SqlglotError:
        return []


def careful(work: Callable[[], T]) -> T:
    """Return the result of a function that walks or prints a tree.

    Raises:
        TooMuch: The tree is too deep for Python's stack.
    """
    try:
        return work()
    except RecursionError:
        raise TooMuch("the query is nested too deeply") from None
