"""Parses SQL with sqlglot in a bounded number of steps.

sqlglot tries several ways to read a clause and backtracks after each. With nested clauses (`JOIN a
JOIN a JOIN a`), the attempts multiply, so a line of a hundred words could take hours to parse.
Therefore the steps of the parser are counted. Ordinary queries take fewer than two steps per token.
A query is rejected if it takes more than `STEPS` steps per token or exceeds Python's recursion
limit.

Code that walks or prints a deep tree can also exceed the recursion limit, so it must use `careful`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, TypeVar

from sqlglot import Dialect, Token, exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

STEPS: Final = 10
"""Maximum number of parser steps per token."""
LEAST: Final = 2_000
"""Number of parser steps that are allowed for any text, however short."""

T = TypeVar("T")


class TooMuch(SqlglotError):
    """Raised for SQL that takes too many steps to parse or is nested too deeply.

    The exception is not a `ParseError`, because sqlglot itself catches `ParseError`.
    """


@cache
def _counting_parser(dialect: str) -> type[Any]:
    """Return a sqlglot parser for a dialect that stops when its steps are used up."""
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
    """Return the syntax tree of the first statement in SQL text.

    Raises:
        SqlglotError: The text cannot be parsed. The subclass `TooMuch` is raised if parsing would
            take too many steps or recurse too deeply.
    """
    reading = Dialect.get_or_raise(dialect)
    tokens = reading.tokenize(sql)
    parser = _counting_parser(dialect)(dialect=reading, error_level=error_level)
    parser.steps_left = LEAST + STEPS * len(tokens)
    trees: list[Any] = careful(lambda: parser.parse(tokens, sql))
    if not trees or trees[0] is None:
        raise ParseError("there is no statement in the text")
    several = len(trees) > 1 and hasattr(exp, "Block")  # as `sqlglot.parse_one` does
    tree: exp.Expr = exp.Block(expressions=trees) if several else trees[0]
    return tree


@lru_cache(maxsize=16)
def shared_tree(sql: str) -> exp.Expr:
    """Return the cached syntax tree of SQL text. Callers must not modify the tree.

    Raises:
        SqlglotError: As for `parse`.
    """
    return parse(sql)


def tokens_of(sql: str) -> list[Token]:
    """Return the tokens of SQL text, or an empty list if it cannot be tokenized."""
    try:
        return list(Dialect.get_or_raise("sqlite").tokenize(sql))
    except SqlglotError:
        return []


def careful(work: Callable[[], T]) -> T:
    """Return the result of a function that walks or prints a tree.

    Raises:
        TooMuch: The tree exceeds the recursion limit of Python.
    """
    try:
        return work()
    except RecursionError:
        raise TooMuch("the query is nested too deeply") from None
