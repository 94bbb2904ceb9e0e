"""Diagnosis of a failed statement: SQLite's error as a message for the agent.

SQLite's result codes decide whose fault it was; its message, the one text that must be read here,
only adds detail: which name was not found, where the syntax broke. The messages are stable over
versions, and each pattern below is held by a test against the real library. An unread message is
not lost: it becomes the text of a plain `sql_error`.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from sqlgym.database import dialect
from sqlgym.database.functions import DATE_FUNCTIONS
from sqlgym.database.guard import FUNCTIONS, Denial
from sqlgym.database.limits import Limits
from sqlgym.database.schema import Schema, bare_name, nearest, shorten, unknown_table
from sqlgym.database.sqlite_file import quoted, result_code
from toolgym.errors import ToolError

SQL_ERRORS: dict[str, str] = {
    "sql_error": "SQLite cannot read or run the statement.",
    "unknown_table": "There is no such table; the nearest name is told.",
    "unknown_column": "There is no such column; the nearest name and its table are told.",
    "ambiguous_column": "Several tables of the query have a column of this name.",
    "not_allowed": "The statement would do something else than read this database.",
    "nondeterministic": "The result would depend on chance or on the moment.",
    "empty_sql": "There is no statement.",
    "several_statements": "There is more than one statement.",
    "too_many_steps": "The statement took more work than it may.",
    "too_large": "The statement, an expression in it, or a value is too large.",
    "deadline": "The statement took too long on this machine; never kept in a cache.",
    "too_much_memory": "The statement needs too much memory; never kept in a cache.",
}
"""The codes of what can be wrong with SQL, for the documentation."""
TRANSIENT = frozenset({"deadline", "too_much_memory"})
"""Codes that depend on the machine's load: counted, and never kept in a cache."""

_SYNTAX_HINTS = {
    "near ": "Check the SQL around that word; this is SQLite.",
    "incomplete input": "The statement ends too early: something is missing at its end.",
    "unrecognized token": "Check the quotes: text stands in single quotes.",
    "misuse of aggregate": "Put conditions on aggregates into HAVING.",
}
"""What to do about a message that begins so, where nothing more is known."""
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_EXPLAIN = re.compile(
    r"(?:[\s;\ufeff]|--[^\n]*+|/\*.*?(?:\*/|$))*+explain\b", re.DOTALL | re.IGNORECASE
)
_TOO_COMPLEX = re.compile(
    r"too many (terms|columns|arguments|FROM|references)|too large \(maximum depth"
    r"|parser stack overflow|pattern too complex|at most \d+ tables|query string is too large"
    r"|Recursion limit"  # of the parser of SQLite 3.53
)


def check_text(sql: str, limits: Limits) -> str:
    """The statement without blanks and semicolons around it.

    Raises:
        ToolError: `empty_sql`, `not_allowed` for EXPLAIN, `too_large`, or `sql_error` for text that
            SQLite cannot be given.
    """
    statement = sql.strip().rstrip("; \t\r\n")
    if not statement:
        raise empty_sql()
    # It can stand nowhere else than at the start, and the authorizer does not see it.
    if "explain" in statement.lower() and _EXPLAIN.match(statement):
        raise _refused(Denial("not_allowed", "EXPLAIN, whose result depends on SQLite's version"))
    if "\0" in statement:
        raise ToolError("sql_error", "The SQL contains a NUL character.", "Leave it out.")
    try:
        size = len(statement.encode())
    except UnicodeEncodeError:
        raise ToolError(
            "sql_error", "The SQL contains half a Unicode character.", "Leave it out."
        ) from None
    if size > limits.sql_bytes:
        message = f"The SQL is {size:,} bytes long; at most {limits.sql_bytes:,} are read."
        raise ToolError("too_large", message, "Write a shorter query.")
    return statement


def no_result(statement: str) -> ToolError:
    """SQLite took the text, but it gives no columns: it is a comment, or does nothing here."""
    if _COMMENT.sub("", statement).strip():
        return _refused(Denial("not_allowed", "a statement that gives no result"))
    return empty_sql()


def row_too_large(limits: Limits) -> ToolError:
    """A single row takes more memory than a whole result may."""
    message = f"One row of the result is larger than {limits.result_bytes:,} bytes."
    return ToolError("too_large", message, "Select fewer columns, or their length().")


def empty_sql() -> ToolError:
    """There is no statement in the text."""
    return ToolError("empty_sql", "There is no SQL to run.", "Write one SELECT statement.")


@dataclass(frozen=True)
class Failure:
    """The failure of a statement: the exception of Python's `sqlite3`, and its cause.

    Attributes:
        error: What was raised.
        denial: What the guard refused.
        stopped: Why the meter ended it.
    """

    error: Exception
    denial: Denial | None
    stopped: str | None


def explain(failure: Failure, sql: str, schema: Schema, limits: Limits) -> ToolError:
    """The error message for the agent about a statement that failed.

    Raises:
        TypeError: `error` is none of SQLite's.
    """
    error = failure.error
    if failure.stopped is not None:
        return _stopped(failure.stopped, sql, limits)
    if isinstance(error, MemoryError):
        return _stopped("too_much_memory", sql, limits)
    if failure.denial is not None:
        return _refused(failure.denial)
    if result_code(error) == sqlite3.SQLITE_TOOBIG:
        message = f"A value in the query is longer than {limits.value_bytes:,} bytes."
        return ToolError("too_large", message, "Leave that column out, or ask for its length().")
    return _read_message(str(error), sql, schema)


def _stopped(reason: str, sql: str, limits: Limits) -> ToolError:
    if reason == "too_much_memory":
        message = "The query needs more memory than there is for one."
        return ToolError("too_much_memory", message, "Sort, group or join fewer rows.")
    hint = dialect.too_much(sql) or (
        "Join on keys, add a WHERE or a LIMIT, and let no recursion run without end."
    )
    if reason == "deadline":
        return ToolError(reason, "The query was stopped: it takes too long on this machine.", hint)
    message = f"The query was stopped after {limits.steps:,} steps of work."
    return ToolError("too_many_steps", message, hint)


def _refused(denial: Denial) -> ToolError:
    if denial.code == "nondeterministic":
        message = f"Refused: {denial.what}. A result must not depend on chance or on the moment."
        return ToolError(
            "nondeterministic", message, "Write the value itself, such as '2024-05-01'."
        )
    if denial.code == "too_large":
        message = f"The statement holds {denial.what}."
        return ToolError("too_large", message, "Write a shorter, flatter query.")
    message = f"Not allowed here: {denial.what}."
    return ToolError(
        "not_allowed", message, "The database can only be read: write one SELECT statement."
    )


def _read_message(message: str, sql: str, schema: Schema) -> ToolError:
    """Read SQLite's own words: the only place that does."""
    if match := re.match(
        r"no such column: (.+?)(?: - should this be a string literal.*)?$", message, re.S
    ):
        return _unknown_column(match[1], sql, schema)
    if match := re.match(r"no such table: (.+)$", message, re.S):
        form = dialect.misread_name_form(match[1], sql)
        unknown = unknown_table(bare_name(match[1]), schema.names)
        return ToolError(unknown.code, unknown.message, form) if form else unknown
    if match := re.match(r"ambiguous column name: (.+)$", message, re.S):
        return _ambiguous_column(match[1], sql, schema)
    if match := re.match(r"no such function: (.+)$", message, re.S):
        near = nearest(match[1], sorted(FUNCTIONS | DATE_FUNCTIONS.keys()))
        hint = f"Did you mean {near}()?" if near else "Use a function of SQLite."
        hint = dialect.function_form(match[1]) or hint
        return ToolError("sql_error", f"There is no function {shorten(match[1])}().", hint)
    if "only execute one statement" in message:
        hint = "Send them one by one, or join them into one SELECT."
        return ToolError("several_statements", "There is more than one statement.", hint)
    if "Incorrect number of bindings" in message or "bindings supplied" in message:
        hint = "Write the values into the SQL instead of ? or :name."
        return ToolError("sql_error", "The query has placeholders without values.", hint)
    if _TOO_COMPLEX.search(message):
        return ToolError("too_large", f"{_sentence(message)}", "Write a shorter, flatter query.")
    return ToolError("sql_error", _sentence(message) + _position(message, sql), _cure(message, sql))


def _ambiguous_column(name: str, sql: str, schema: Schema) -> ToolError:
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    tables = [
        table.name
        for table in schema.tables
        if table.name.lower() in words and table.column(bare_name(name)) is not None
    ]
    owners = ", ".join(tables[:5]) if len(tables) > 1 else "several tables"
    message = f"The column {shorten(name)!r} is in {owners}."
    as_in = f"{tables[0] if len(tables) > 1 else 't'}.{bare_name(name)}"
    hint = f"Write the table's name or alias before it, as in {shorten(as_in)}."
    return ToolError("ambiguous_column", message, hint)


def _unknown_column(written: str, sql: str, schema: Schema) -> ToolError:
    name = bare_name(written)
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    mentioned = [table for table in schema.names if table.lower() in words]
    near = schema.nearest_column(name, mentioned)
    message = f"There is no column {shorten(written)!r} here."
    form = dialect.misread_name_form(written, sql)
    if near is None and written.startswith('"'):
        form = f"Text stands in single quotes: '{shorten(name)}'."
    if form:
        return ToolError("unknown_column", message, form)
    if near is None:
        return ToolError("unknown_column", message, "Look at the table's columns first.")
    table, column = near
    if column.name.lower() == name.lower():
        hint = f"Table {table.name!r} has a column {column.name!r}."
        if table.name in mentioned:
            hint += " Check the alias before the name."
    else:
        hint = f"Did you mean {column.name!r} of table {table.name!r}?"
    working = f"SELECT {quoted(column.name)} FROM {quoted(table.name)} LIMIT 5"
    example = {"name": "query", "arguments": {"sql": working}}
    return ToolError("unknown_column", message, hint, example)


def _position(message: str, sql: str) -> str:
    """Where the statement breaks, as a sentence of its own; "" if that cannot be told."""
    place = dialect.place_of_error(sql, message)
    return "" if place is None else f" It breaks {dialect.position_told(sql, place)}."


def _cure(message: str, sql: str) -> str:
    """What to do about a statement that SQLite cannot read or run."""
    if message.startswith(("near ", "unrecognized token", "incomplete input")):
        form = dialect.construct_form(sql)
        if form:
            return form
        place = dialect.place_of_error(sql, message)
        slip = None if place is None else dialect.misspelt_keyword(sql, place)
        if slip:
            return f"Did you mean {slip[1]} for {slip[0]!r}?"
        expected = dialect.expected_there(sql)
        if expected:
            return f"Expected there: {expected}."
    return next((hint for start, hint in _SYNTAX_HINTS.items() if message.startswith(start)), "")


def _sentence(message: str) -> str:
    """SQLite's message as a sentence; it may quote text of any length from the query."""
    return f"SQLite says: {shorten(message.strip(), 200).rstrip('.')}."
