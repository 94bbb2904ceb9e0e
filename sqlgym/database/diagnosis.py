"""Error messages for the agent about statements that failed.

The result code of SQLite determines whether the SQL, the file or the system caused the error. The
message from SQLite provides details, such as a missing name or the position of a syntax error. An
unrecognized message is returned as a plain `sql_error`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from sqlgym.database.dialects import MOST_REWRITTEN, in_sqlite
from sqlgym.database.functions import DATE_FUNCTIONS, functions_of_sqlite
from sqlgym.database.guard import FUNCTIONS
from sqlgym.database.parsing import parse
from sqlgym.database.schema import Schema, Table, bare_name, nearest, shorten, unknown_table
from sqlgym.database.sqlite_file import quoted
from toolgym.errors import ToolError

SQL_ERRORS: dict[str, str] = {
    "sql_error": "SQLite cannot parse or run the statement.",
    "unknown_table": "The table does not exist; the error names the most similar table.",
    "unknown_column": "The column does not exist; the error names the most similar column.",
    "ambiguous_column": "Several tables in the query have a column with this name.",
    "not_allowed": "The statement does something other than read from this database.",
    "nondeterministic": "The result would be random, or would depend on the current time.",
    "empty_sql": "The text contains no statement.",
    "several_statements": "The text contains several statements.",
    "too_many_steps": "The statement exceeded the step limit.",
    "too_large": "The statement, an expression in it, or a value is too large.",
    "too_much_memory": "The statement needs too much memory. This error is never cached.",
}
"""Codes of SQL errors, for the documentation."""
TRANSIENT = frozenset({"too_much_memory"})
"""Codes of errors that depend on other statements in the process and are therefore never cached."""

_SYNTAX_HINTS = {
    "near ": "Check the SQL around that word; this is SQLite.",
    "incomplete input": "The statement ends too early: something is missing at its end.",
    "unrecognized token": "Check the quotes: text is written in single quotes.",
    "misuse of aggregate": "Put conditions on aggregates into HAVING.",
}
_TOO_COMPLEX = re.compile(
    r"too many (terms|columns|arguments|FROM|references)|too large \(maximum depth"
    r"|parser stack overflow|pattern too complex|at most \d+ tables|query string is too large"
    r"|Recursion limit"  # from the parser of SQLite 3.53
)
_NO_COLUMN = re.compile(
    r"no such column: (.+?)(?: - should this be a string literal.*)?$", re.DOTALL
)
_FOREIGN = re.compile(
    r"near |unrecognized token|no such function|wrong number of arg|no such column: "
    r"(?:year|quarter|month|week|day|hour|minute|second|interval|int|varchar|decimal|float|date)$",
    re.IGNORECASE,
)
"""Messages that suggest SQL of another database system."""
_CLOCK = re.compile("now|curdate|curtime|getdate|sysdate|today", re.IGNORECASE)
_NO_SELECT = re.compile(r"\s*(?:SHOW|DESCRIBE|DESC|USE)\b|\s*\\d", re.IGNORECASE)
_KEYWORDS = [
    "SELECT",
    "DISTINCT",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "JOIN",
    "INNER",
    "LEFT",
    "OUTER",
    "CROSS",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "BETWEEN",
    "LIKE",
    "NULL",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "EXISTS",
    "WITH",
    "USING",
    "VALUES",
]
_MISSPELT = 75.0  # similarity, out of 100: FORM means FROM, but forms does not
_LONGEST = 200


def explain_refusal(code: str, what: str) -> ToolError:
    """Return the error for a statement that the guard rejected."""
    if code == "nondeterministic":
        message = f"Refused: {what}. A result must not depend on randomness or on the current time."
        return ToolError(code, message, "Write the value itself, such as '2024-05-01'.")
    if code == "too_large":
        return ToolError(
            code, f"The statement holds {what}.", "Write a shorter query, with fewer subqueries."
        )
    hint = "The database can only be read: write one SELECT statement."
    return ToolError(code, f"Not allowed here: {what}.", hint)


def explain_message(
    message: str, sql: str, schema: Schema, compiles: Callable[[str], bool]
) -> ToolError:
    """Return the error that corresponds to an error message from SQLite.

    Args:
        compiles: Function that returns whether SQLite can compile a statement. It is called with
            rewritten versions of the SQL.
    """
    if _FOREIGN.match(message) or (message.startswith("no such table") and "(" in sql):
        working = next(filter(compiles, in_sqlite(sql)), None)
        if working is not None:
            example = {"name": "query", "arguments": {"sql": working}}
            hint = "This is SQL of another database system; the example is the query for SQLite."
            return ToolError("sql_error", _sentence(message), hint, example)
    if match := _NO_COLUMN.match(message):
        return _unknown_column(match[1], sql, schema)
    if match := re.match(r"no such table: (.+)$", message, re.DOTALL):
        return unknown_table(bare_name(match[1]), schema.names)
    if match := re.match(r"ambiguous column name: (.+)$", message, re.DOTALL):
        return _ambiguous_column(match[1], sql, schema)
    if match := re.match(r"no such function: (.+)$", message, re.DOTALL):
        known = sorted((FUNCTIONS | DATE_FUNCTIONS.keys()) & functions_of_sqlite())
        near = nearest(match[1], known, _MISSPELT)
        hint = f"Did you mean {near}()?" if near else "Use a function of SQLite."
        if _CLOCK.fullmatch(match[1]):
            hint = "There is no clock here: write the date as text, such as '2024-01-31'."
        return ToolError("sql_error", f"There is no function {shorten(match[1])}().", hint)
    if "only execute one statement" in message:
        hint = "Send them one by one, or join them into one SELECT."
        return ToolError("several_statements", "There is more than one statement.", hint)
    if "Incorrect number of bindings" in message or "bindings supplied" in message:
        hint = "Write the values into the SQL instead of ? or :name."
        return ToolError("sql_error", "The query has placeholders without values.", hint)
    if _TOO_COMPLEX.search(message):
        return ToolError("too_large", _sentence(message), "Write a shorter, flatter query.")
    return ToolError("sql_error", _sentence(message), _syntax_hint(message, sql))


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
    meant = next(_tables_called(written.rpartition(".")[0], sql, schema), None)
    near = Schema((meant,)).nearest_column(name) if meant else None
    near = near or schema.nearest_column(name, mentioned)
    message = f"There is no column {shorten(written)!r} here."
    if near is None:
        hint = "Look at the table's columns first."
        if written.startswith('"'):
            hint = f"Text is written in single quotes: '{shorten(name)}'."
        return ToolError("unknown_column", message, hint)
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


def _tables_called(qualifier: str, sql: str, schema: Schema) -> Iterator[Table]:
    """Yield the tables that a qualifier can refer to in a statement, by name or alias."""
    if not qualifier or len(qualifier) > _LONGEST:
        return
    alias = re.escape(bare_name(qualifier))
    for table in schema.tables:
        named = rf"\b{re.escape(table.name)}\b[\"`\]]?\s+(?:AS\s+)?[\"`\[]?{alias}\b"
        if table.name.lower() == bare_name(qualifier).lower() or re.search(
            named, sql, re.IGNORECASE
        ):
            yield table


def _syntax_hint(message: str, sql: str) -> str:
    """Return a hint on how to correct a statement with a syntax error."""
    hint = next((h for start, h in _SYNTAX_HINTS.items() if message.startswith(start)), "")
    if not hint or message.startswith("misuse"):
        return hint
    if _NO_SELECT.match(sql):
        return "Use the tool describe; query takes a SELECT."
    near = message[:_LONGEST].partition('"')[2].rpartition('"')[0]
    before = re.findall(rf"\b([A-Za-z_]\w{{3,15}}+)\s++{re.escape(near)}", sql)
    for word in [near, *before[:20]]:
        keyword = nearest(word.upper(), _KEYWORDS, _MISSPELT)
        if keyword and keyword != word.upper() and len(word) > 3:
            return f"Did you mean {keyword} for {word!r}?"
    if len(sql) <= MOST_REWRITTEN:
        try:
            parse(sql, ErrorLevel.IMMEDIATE)
        except ParseError as error:
            description = str(error.errors[0].get("description", "")) if error.errors else ""
            if expected := re.match(r"Expect(?:ing|ed) (table name|[A-Z]+\b|\W\S*)", description):
                return f"Expected there: {expected[1]}."
        except SqlglotError:
            pass
    return hint


def _sentence(message: str) -> str:
    """Return a message of SQLite as a sentence, shortened because it may quote the query."""
    return f"SQLite says: {shorten(message.strip(), _LONGEST).rstrip('.')}."
