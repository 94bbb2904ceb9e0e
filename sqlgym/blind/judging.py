"""The judge: a question, a query and a database in, agreement and findings out.

The values of a question are found first: quotations, texts of the query where the question has
them, and words with capitals that no name of the schema explains. Then its names are looked for,
its conditions and clauses are read, and all is compared with the query. The rows are asked for two
things only: whether dates have times, and whether a place stands in two columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlgym.blind.clauses import Clauses
from sqlgym.blind.comparing import Comparison
from sqlgym.blind.fitting import Finding
from sqlgym.blind.names import Names
from sqlgym.blind.phrases import UNIT_WORDS, free_of_comparisons
from sqlgym.blind.statements import Query, Unreadable, literals_of, query_of
from sqlgym.blind.values import units_of
from sqlgym.blind.words import MONTHS, Token, singular, tokens_of
from sqlgym.database import Database
from sqlgym.database.schema import Schema
from sqlgym.database.sqlite_file import quoted
from toolgym.errors import ToolError

_PLAIN = re.compile(r"-?\d++(?:\.\d++)?|\d{4}-\d{2}(?:-\d{2})?", re.ASCII)
"""Numbers and dates, which the text writes in its own ways."""


@dataclass(frozen=True)
class Verdict:
    """Whether a question and a query say the same, and where they do not."""

    agrees: bool
    findings: tuple[Finding, ...] = ()


def judge(question: str, sql: str, database: Database) -> Verdict:
    """Read a question and a query apart from each other, and compare what they say.

    Args:
        question: In English.
        sql: One SELECT, in SQLite's dialect.
        database: Its schema is read, and whether columns of dates hold times.

    >>> import sqlite3, tempfile, pathlib
    >>> from sqlgym.database import open_database
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "zoo.db"
    >>> made = sqlite3.connect(path).execute("CREATE TABLE animal (name TEXT, age INT, kind TEXT)")
    >>> zoo = open_database(path)
    >>> question = "How many animals are older than 9?"
    >>> judge(question, "SELECT count(*) FROM animal WHERE age > 9", zoo)
    Verdict(agrees=True, findings=())
    >>> judge(question, "SELECT count(*) FROM animal", zoo).findings
    (Finding(kind='unexplained_condition', about='older than 9'),)
    """
    names = _names(database.schema)
    try:
        query = query_of(sql, names.schema, names.references)
    except Unreadable as reason:
        return Verdict(False, (Finding("unreadable", str(reason)),))
    return _compared(question, query, names, database)


def _compared(question: str, query: Query, names: Names, database: Database) -> Verdict:
    tokens = _with_values(tokens_of(question), question, literals_of(query), names)
    row = units_of(tokens, names.mentions(tokens, free_of_comparisons(tokens)))
    row.read()
    clauses = Clauses(row)
    clauses.read()

    findings = Comparison(names, query, row, clauses, _Rows(database)).compare()
    return Verdict(not findings, tuple(findings))


@lru_cache(maxsize=64)
def _names(schema: Schema) -> Names:
    return Names(schema)


@dataclass(frozen=True)
class _Rows:
    """What is looked up in the rows of a database."""

    database: Database

    def has_times(self, table: str, column: str) -> bool:
        """Whether dates of this column have times of the day."""
        name = quoted(column)
        return self._any(
            f"SELECT 1 FROM {quoted(table)} WHERE typeof({name}) = 'text' AND length({name}) > 10 "
            f"AND {name} LIKE '____-__-__%' LIMIT 1"
        )

    def same_rows(self, table: str, column: str, other: str, value: str) -> bool:
        """Whether a value stands in `other` in no rows, or in those where it stands in `column`."""
        text = "'" + value.replace("'", "''") + "'"
        one, two = f"({quoted(column)} IS {text})", f"({quoted(other)} IS {text})"
        name = quoted(table)
        if not self._any(f"SELECT 1 FROM {name} WHERE {two} LIMIT 1"):
            return True
        return not self._any(f"SELECT 1 FROM {name} WHERE {one} <> {two} LIMIT 1")

    def _any(self, sql: str) -> bool:
        try:
            return bool(self.database.query(sql).rows)
        except ToolError:
            return False


def _with_values(
    tokens: Sequence[Token], text: str, literals: Sequence[str], names: Names
) -> list[Token]:
    """The tokens with each value in one: quotations, texts of the query, names with capitals."""
    spans: list[tuple[int, int]] = []
    for literal in literals:
        if _PLAIN.fullmatch(literal) or not literal or literal not in text:
            continue
        edge = re.compile(r"(?<!\w)" + re.escape(literal) + r"(?!\w)")
        spans += [
            m.span() for m in edge.finditer(text) if _stands_for_value(text, m.span(), literal)
        ]
    merged = _merged(tokens, text, spans)
    found = _months(_capitals(merged, text, names))
    return [replace(token, kind="text") if token.kind == "literal" else token for token in found]


def _stands_for_value(text: str, span: tuple[int, int], literal: str) -> bool:
    """Whether these letters of the text are a value, not a word that happens to be the same."""
    before = text[: span[0]].rstrip(" ")[-12:].lower()
    if text[span[0] - 1 : span[0]] in ("'", '"'):
        return False
    if not (literal[0].isupper() or literal[0].isdigit() or not literal[0].isalnum()):
        return False
    if len(literal) == 1:
        return before.endswith(("with", "letter", "or", "is", "grade", "of"))
    return bool(before)


def _merged(tokens: Sequence[Token], text: str, spans: list[tuple[int, int]]) -> list[Token]:
    result: list[Token] = []
    ends = sorted(spans, key=lambda s: (s[0], -s[1]))
    place = 0
    for token in tokens:
        while place < len(ends) and ends[place][1] <= token.start:
            place += 1
        inside = place < len(ends) and ends[place][0] <= token.start < ends[place][1]
        if not inside or token.kind == "quote" or token.end > ends[place][1]:
            result.append(token)
        elif token.start == ends[place][0]:
            start, end = ends[place]
            result.append(Token("literal", text[start:end], start, end, text[start:end]))
    return result


def _capitals(tokens: Sequence[Token], text: str, names: Names) -> list[Token]:
    """Runs of words with capitals that no name of the schema explains, as values."""
    result: list[Token] = []
    begins, run = True, 0
    for token in tokens:
        if _is_strange(token, begins, names):
            last = result[-1] if run else None
            if last is not None and text[last.end : token.start] in (" ", "-"):
                run += 1
            else:
                run = 1
            result.append(Token("text", token.text, token.start, token.end, str(run)))
        else:
            run = 0
            result.append(token)
        begins = token.text in (".", "?", "!", ":")
    return _joined(result, text)


def _is_strange(token: Token, begins: bool, names: Names) -> bool:
    """Whether a word has a capital, begins no sentence, and is not the schema's."""
    if token.kind != "word" or begins or not token.text[:1].isupper():
        return False
    plain = singular(token.lower) in UNIT_WORDS or token.text in ("I", "ID", "IDs")
    return not plain and token.lower not in MONTHS and not names.says(token.lower)


def _joined(tokens: Sequence[Token], text: str) -> list[Token]:
    """Each run of strange words as one value; `value` holds the place of a word in its run."""
    result: list[Token] = []
    for token in tokens:
        if token.kind == "text" and token.value.isdecimal() and int(token.value) > 1:
            result[-1] = replace(result[-1], end=token.end)
        else:
            result.append(token)
    return [
        replace(t, text=text[t.start : t.end], value=text[t.start : t.end])
        if t.kind == "text"
        else t
        for t in result
    ]


def _months(tokens: list[Token]) -> list[Token]:
    """A month without a year, after "in" or "of", as a value."""
    for place, token in enumerate(tokens[1:], 1):
        month = token.kind == "word" and token.text[:1].isupper() and token.lower in MONTHS
        if month and tokens[place - 1].lower in ("in", "of", "during", "from", "since"):
            tokens[place] = replace(token, kind="month-name", value=f"{MONTHS[token.lower]:02}")
    return tokens
