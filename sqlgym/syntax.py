"""Where a statement breaks, what would have to stand there, and what made it too much.

SQLite says which word it stumbled over, not which occurrence of it. The place is found by giving an
empty database the statement up to each occurrence in turn: its parser stops at the first word that
cannot follow, whatever comes after. sqlglot, which is slower and forgives more, is asked only then,
for what it expected. Nothing here touches the agent's database.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from rapidfuzz import fuzz, process
from sqlglot import expressions as exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from sqlgym.dialect import blanked
from sqlgym.parsing import parse

_WORDS = """
    SELECT DISTINCT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET JOIN INNER LEFT OUTER CROSS UNION
    INTERSECT EXCEPT BETWEEN LIKE NULL CASE WHEN THEN ELSE EXISTS WITH USING VALUES
"""
KEYWORDS = _WORDS.split()
"""Words that a misspelt one may be meant for."""
_NEAR = re.compile(r'near "(.*)": syntax error', re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_MISSPELT = 75.0  # of 100: FORM is FROM, forms is not
_MOST_PLACES = 50
_MOST_PARSED = 20_000  # characters that sqlglot is given: a hint is not worth more time


def place_of_error(sql: str, message: str) -> int | None:
    """The offset of the word that SQLite stumbled over; None where that cannot be told."""
    found = _NEAR.match(message)  # a message about something else may quote this one, many times
    if found is None or not found[1]:
        return None
    text = blanked(sql) if found[1][0] not in "'\"`" else sql
    places = [match.start() for match in re.finditer(re.escape(found[1]), text)]
    if len(places) < 2:
        return places[0] if places else None
    with closing(sqlite3.connect(":memory:")) as empty:
        # What is cut off there may be a whole statement, whose table expressions would be written
        # out; refused before that, its error is another one.
        empty.setlimit(sqlite3.SQLITE_LIMIT_VDBE_OP, 1_000)
        empty.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
        for place in places[:_MOST_PLACES]:
            try:
                empty.execute(f"EXPLAIN {sql[: place + len(found[1])]}").close()
            except (sqlite3.Error, sqlite3.Warning) as error:
                if str(error) == message:
                    return place
    return None


def position_told(sql: str, place: int) -> str:
    """An offset for people: line and column from 1, and the text that stands there."""
    line, start = sql.count("\n", 0, place) + 1, sql.rfind("\n", 0, place) + 1
    there = sql[place : place + 20].split("\n")[0]
    column = f"column {place - start + 1}"
    return f"at {column}, {there!r}" if "\n" not in sql else f"at line {line}, {column}, {there!r}"


def expected_there(sql: str) -> str:
    """What sqlglot expected where it stopped, such as `)`; "" if it reads the statement."""
    if len(sql) > _MOST_PARSED:
        return ""
    try:
        parse(sql, ErrorLevel.IMMEDIATE)
    except ParseError as error:
        told = str(error.errors[0].get("description", "")) if error.errors else ""
        found = re.match(r"Expect(?:ing|ed) (table name|\S+)", told)
        return found[1] if found else ""
    except SqlglotError:
        return ""
    return ""


def misspelt_keyword(sql: str, place: int) -> tuple[str, str] | None:
    """A word at this place, or just before it, that is nearly a keyword, and the keyword."""
    text = blanked(sql)
    words = [match for match in _WORD.finditer(text) if match.start() <= place][-2:]
    for word in reversed(words):
        if word[0].upper() in KEYWORDS or len(word[0]) < 4:
            continue
        near = process.extractOne(
            word[0].upper(), KEYWORDS, scorer=fuzz.ratio, score_cutoff=_MISSPELT
        )
        if near is not None:
            return word[0], near[0]
    return None


def too_much(sql: str) -> str:
    """What makes a statement take so much work, as a sentence; "" where it does not show."""
    if len(sql) > _MOST_PARSED:
        return ""
    try:
        tree = parse(sql)
    except SqlglotError:
        return ""
    for select in tree.find_all(exp.Select):
        parts = _unjoined(select)
        if len(parts) > 1:
            told = " with each of ".join(parts[:3])
            return f"It pairs each row of {told}: join them on a key."
    if any(part.args.get("recursive") for part in tree.find_all(exp.With)):
        return "Its WITH RECURSIVE does not end: give it a condition, or a LIMIT inside."
    return ""


def _unjoined(select: exp.Select) -> list[str]:
    """One table of each group of tables that no condition joins to the others; [] if unsure."""
    joins = select.args.get("joins") or []
    start = select.args.get("from_") or select.args.get("from")  # renamed between its versions
    sources = [start.this if start else None, *(join.this for join in joins)]
    names = [source.alias_or_name.lower() for source in sources if source is not None]
    group = {name: name for name in names}
    conditions = [join.args.get("on") for join in joins] + [select.args.get("where")]
    if any(join.args.get("using") or join.args.get("method") for join in joins):
        return []
    for condition in filter(None, conditions):
        for test in condition.find_all(exp.Predicate):
            columns = list(test.find_all(exp.Column))
            if len(columns) > 1 and not all(column.table for column in columns):
                return []  # whose column that is cannot be told from the text
            linked = {group[c.table.lower()] for c in columns if c.table.lower() in group}
            group = {n: min(linked) if g in linked else g for n, g in group.items()}
    kept = dict.fromkeys(group.values())
    return list(kept) if len(kept) > 1 else []
