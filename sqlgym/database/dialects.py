"""Rewrites SQL of other database systems for SQLite."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from sqlgym.database.parsing import parse

READ = ("postgres", "tsql", "mysql", "snowflake", "bigquery")
"""Dialects in the order in which they are tried. `postgres` preserves the format of `TO_CHAR`."""
MOST_REWRITTEN = 5_000
"""Maximum length of a query that is rewritten, in characters."""
_FORMATS = {"YEAR": "%Y", "MONTH": "%m", "DAY": "%d", "HOUR": "%H", "MINUTE": "%M", "SECOND": "%S"}
_STARTS = {"YEAR": "%Y-01-01", "MONTH": "%Y-%m-01", "DAY": "%Y-%m-%d"}
_MISREAD = re.compile(r"JULIANDAY\((?:'[a-z]+')?\)", re.IGNORECASE)  # a unit read as a date


def in_sqlite(sql: str) -> Iterator[str]:
    """Yield versions of a query rewritten for SQLite, one per source dialect. A rewritten query can
    still fail.

    >>> next(in_sqlite("SELECT TOP 3 name FROM singer WHERE EXTRACT(YEAR FROM born) = 1970"))
    "SELECT name FROM singer WHERE CAST(STRFTIME('%Y', born) AS INTEGER) = 1970 LIMIT 3"
    """
    if len(sql) > MOST_REWRITTEN or not re.match(r"\s*\(*\s*(?:select|with)\b", sql, re.IGNORECASE):
        return
    log = logging.getLogger("sqlglot")
    seen = {sql}
    for dialect in READ:
        was_disabled, log.disabled = log.disabled, True
        try:
            tree = parse(sql, ErrorLevel.IMMEDIATE, dialect)
            text = tree.transform(_rewritten).sql("sqlite", unsupported_level=ErrorLevel.IGNORE)
        except Exception:  # noqa: BLE001  # sqlglot raises errors of any type on odd text
            continue
        finally:
            log.disabled = was_disabled
        if text not in seen and not _MISREAD.search(text):
            seen.add(text)
            yield text


def _rewritten(node: exp.Expr) -> exp.Expr:
    """Return a node in a form that SQLite accepts, where sqlglot does not produce one."""
    if isinstance(node, exp.Ordered):  # the default order of NULLs in SQLite
        node.set("nulls_first", not node.args.get("desc"))
    if isinstance(node, exp.Year | exp.Month | exp.Day | exp.Extract):
        is_extract = isinstance(node, exp.Extract)
        date = node.expression if is_extract else node.this
        if isinstance(date, exp.TsOrDsToDate | exp.Cast):
            date = date.this
        form = _FORMATS.get((node.name if is_extract else node.key).upper())
        if form:
            return exp.cast(_call("STRFTIME", _text(form), date), "int")
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc) and node.unit:
        form = _STARTS.get(node.unit.name.upper())
        if form:
            return _call("STRFTIME", _text(form), node.this)
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
        sign = "-" if isinstance(node, exp.Sub) else "+"
        unit = node.expression.unit
        amount = f"{sign}{node.expression.name} {unit.name if unit else ''}"
        return _call("DATE", node.this, _text(amount.strip()))
    if isinstance(node, exp.Left):
        return _call("SUBSTR", node.this, exp.Literal.number(1), node.expression)
    if isinstance(node, exp.Right):
        return _call("SUBSTR", node.this, exp.Neg(this=node.expression))
    if isinstance(node, exp.Subquery) and isinstance(node.parent, exp.SetOperation):
        inner: exp.Expr = node.this
        if not inner.args.get("order") and not inner.args.get("limit"):
            return inner
    return node


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)
