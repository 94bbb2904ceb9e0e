"""SQL of other databases that SQLite does not read, each with the form that it does.

Two tables: functions by name, and constructs by a pattern. They are asked only after SQLite has
refused a statement, so what SQLite reads (backticks, brackets, `LIMIT 5, 10`, `||`) is never
complained about, and a newer SQLite that knows a function never asks. Text in quotes and comments
are blanked out before a pattern is tried.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from rapidfuzz import fuzz, process
from sqlglot import expressions as exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from sqlgym.database.parsing import parse

_CLOCK = "There is no clock here: write the date as text, such as '2024-01-31'."
_PART = "CAST(strftime('{}', d) AS INTEGER)"
_TEXT_DATE = "Dates are text: write '2024-01-31'; strftime() formats them."
_PATTERN = "SQLite has no regular expressions here: use LIKE ('%', '_') or GLOB ('*', '[a-z]')."
_SPREAD = "Write avg(x * x) - avg(x) * avg(x) for the variance; its root is sqrt() or pow(v, 0.5)."

_FORMS = {
    "now curdate curtime getdate sysdate today localtime current_timestamp age": _CLOCK,
    "concat concat_ws": "Write a || b in SQLite.",
    "year": f"Write {_PART.format('%Y')} in SQLite.",
    "month": f"Write {_PART.format('%m')} in SQLite.",
    "day dayofmonth": f"Write {_PART.format('%d')} in SQLite.",
    "hour": f"Write {_PART.format('%H')} in SQLite.",
    "minute": f"Write {_PART.format('%M')} in SQLite.",
    "second": f"Write {_PART.format('%S')} in SQLite.",
    "dayofyear": f"Write {_PART.format('%j')} in SQLite.",
    "dayofweek weekday dayname": "Write strftime('%w', d) in SQLite: '0' is Sunday.",
    "quarter": f"Write ({_PART.format('%m')} + 2) / 3 in SQLite.",
    "date_trunc trunc_date": "Write strftime('%Y-%m-01', d) for months, '%Y-01-01' for years.",
    "extract date_part datepart": f"Write {_PART.format('%Y')} for the year, '%m' for the month.",
    "date_format to_char format_date": "Write strftime('%Y-%m', d) in SQLite.",
    "to_date to_timestamp str_to_date parse_date": _TEXT_DATE,
    "datediff date_diff": "Write julianday(a) - julianday(b) for the days between two dates.",
    "dateadd date_add date_sub adddate": "Write date(d, '+1 day') or date(d, '-3 months').",
    "string_agg listagg": "Write group_concat(x, ', ') in SQLite.",
    "array_agg": "Write json_group_array(x) in SQLite.",
    "len char_length character_length": "Write length(x) in SQLite.",
    "charindex locate strpos position": "Write instr(text, part) in SQLite.",
    "nvl isnull": "Write ifnull(x, y) in SQLite.",
    "if": "Write iif(condition, a, b), or CASE WHEN, in SQLite.",
    "greatest": "Write max(a, b) in SQLite.",
    "least": "Write min(a, b) in SQLite.",
    "regexp regexp_like rlike regexp_matches regexp_replace regexp_extract": _PATTERN,
    "stddev stddev_pop stddev_samp stdev variance var_pop var_samp": _SPREAD,
    "ucase": "Write upper(x) in SQLite.",
    "lcase": "Write lower(x) in SQLite.",
    "mid left right": "Write substr(text, start, length); a negative start counts from the end.",
    "lpad": "Write printf('%05d', x) for a number, substr('     ' || x, -5) for a text.",
    "rpad": "Write substr(x || '     ', 1, 5) in SQLite.",
    "truncate": "Write CAST(x AS INTEGER) in SQLite.",
    "to_number try_cast safe_cast convert": "Write CAST(x AS REAL) in SQLite.",
    "any_value": "Write max(x) in SQLite.",
    "count_if countif": "Write sum(condition) in SQLite: a condition is 1 or 0.",
    "bool_or bool_and every": "Write max(condition) or min(condition): a condition is 1 or 0.",
    "rollup cube grouping": "Join one SELECT for each grouping by UNION ALL.",
    "mod": "Write a % b in SQLite.",
    "top": "SQLite has no TOP: end with LIMIT n.",
    "unnest": "Use json_each(array) in SQLite.",
}
FUNCTION_FORMS = {name: hint for names, hint in _FORMS.items() for name in names.split()}
"""By the name of a function that some SQLite lacks: what to write."""

_STRFTIME = {"year": "%Y", "month": "%m", "day": "%d", "hour": "%H", "minute": "%M", "second": "%S"}
_STRFTIME |= {"dow": "%w", "doy": "%j", "week": "%W"}

_CONSTRUCTS = (
    (r"\bILIKE\b", "Write LIKE: in SQLite it ignores the case of ASCII letters."),
    (r"\bSELECT\s+(?:DISTINCT\s+)?TOP\b\W*(\d+)", "SQLite has no TOP: end with LIMIT {0}."),
    # From the start of a word only, and never back: else each letter of a long word is a start.
    (r"(?<![\w.])([\w.]++)\s*+::\s*(\w+)", "SQLite has no ::, write CAST({0} AS {1})."),
    (r"::\s*(\w+)", "SQLite has no ::, write CAST(... AS {0})."),
    (r"\bFETCH\s+(?:FIRST|NEXT)\s+(\d+)", "SQLite has no FETCH: end with LIMIT {0}."),
    (r"\bFETCH\s+(?:FIRST|NEXT)\b", "SQLite has no FETCH: end with LIMIT 1."),
    (r"\bOFFSET\s+(\d+)\s+ROWS?\b", "In SQLite it is LIMIT n OFFSET {0}."),
    (r"\bLIMIT\s+ALL\b", "Leave LIMIT ALL out."),
    (r"\bEXTRACT\s*\(\s*(\w+)\s+FROM\b", ""),
    (r"\bINTERVAL\b", FUNCTION_FORMS["date_add"]),
    (r"\b(?:DATE|TIME|TIMESTAMP)\s+'", "Write the date as text alone: '2024-01-31'."),
    (r"\bLEFT\s*\(", "Write substr(text, 1, n) for LEFT(text, n)."),
    (r"\bRIGHT\s*\(", "Write substr(text, -n) for RIGHT(text, n)."),
    (r"\bPOSITION\s*\(", FUNCTION_FORMS["position"]),
    (r"\bSUBSTR(?:ING)?\s*\([^()]*\bFROM\b", "Write substr(text, start, length) in SQLite."),
    (r"\bTRIM\s*\(\s*(?:BOTH|LEADING|TRAILING)\b", "Write trim(text, chars), ltrim() or rtrim()."),
    (r"[<>=]\s*(?:ALL|ANY|SOME)\s*\(", "Compare with (SELECT max(x) ...) or min(x), or use IN."),
    (r"\b(INTERSECT|EXCEPT)\s+ALL\b", "SQLite has {0} without ALL only."),
    (r"\bDISTINCT\s+ON\b", "Use GROUP BY with min() or max() in place of DISTINCT ON."),
    (r"\bSIMILAR\s+TO\b|\bRLIKE\b|\bREGEXP\b|!?~\*?\s*'", _PATTERN),
    (r",\s*FROM\b", "Leave out the comma before FROM."),
    (r"<=>", "Write IS for <=>."),
    (r"^\s*(?:SHOW|DESCRIBE|DESC|USE)\b|^\s*\\d", "Use the tool describe; query takes a SELECT."),
    (r"\bDIV\b", "Write / between integers in place of DIV."),
    (r"\bQUALIFY\b", "Put the query into a subquery and filter it with WHERE, not QUALIFY."),
    (r"\*\s*(?:EXCLUDE|EXCEPT)\s*\(", "Name the columns that you want."),
    (r"\bUNNEST\s*\(|\bARRAY\s*\[", FUNCTION_FORMS["unnest"]),
    (r"\bROLLUP\b|\bCUBE\b|\bGROUPING\s+SETS\b", FUNCTION_FORMS["rollup"]),
    (
        r"^\s*\(|\b(?:UNION|INTERSECT|EXCEPT)(?:\s+ALL)?\s*\(",
        "Write the parts of a UNION, INTERSECT or EXCEPT without parentheses around them.",
    ),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), hint) for pattern, hint in _CONSTRUCTS)
_QUOTES = r"'(?:[^']++|'')*'|\"(?:[^\"]++|\"\")*\"|`[^`]*`|--[^\n]*"
_QUOTED = re.compile(rf"{_QUOTES}|/\*(?:.*?\*/|.*+)", re.DOTALL)
"""Also a comment without an end, so that its end is looked for once: see `_blank_part`. Quotes
need no such care: where one has no end, there is no further one to begin with."""
_QUOTED_ONLY = re.compile(_QUOTES, re.DOTALL)
_LONGEST_NAME = 200
"""Characters of a name that is looked for in the text: each place costs its length."""
_LOOSE_NAMES = frozenset(_STRFTIME) | {"interval", "quarter", "days", "months", "years"}
_CALL = re.compile(r"\b([a-z_]+)\s*\(", re.IGNORECASE)


def function_form(name: str) -> str:
    """The SQLite form of a function that this SQLite lacks; "" where none is known."""
    return FUNCTION_FORMS.get(name.lower(), "")


def construct_form(sql: str) -> str:
    """The SQLite form of the first foreign construct in a statement; "" if there is none.

    >>> construct_form("SELECT age::int FROM singer")
    'SQLite has no ::, write CAST(age AS int).'
    """
    text = blank_quoted(sql)
    for pattern, hint in _PATTERNS:
        match = pattern.search(text)
        if match is not None:
            return hint.format(*match.groups()) if hint else _extract(match[1])
    return ""


def misread_name_form(name: str, sql: str) -> str:
    """For a name that is no name: `day` in `DATEDIFF(day, a, b)`, `d` in `POSITION(x IN d)`.

    Returns:
        What to write in place of the construct; "" where the name is most likely a name.
    """
    text = blank_quoted(sql)
    if len(name) <= _LONGEST_NAME and re.search(
        rf"\bPOSITION\s*\([^()]*\bIN\s+{re.escape(name)}\s*\)", text, re.IGNORECASE
    ):
        return FUNCTION_FORMS["position"]
    if name.lower() in _LOOSE_NAMES:
        for called in _CALL.findall(text):
            if called.lower().startswith("date") and function_form(called):
                return function_form(called)
        if name.lower() == "interval":
            return FUNCTION_FORMS["date_add"]
    return ""


def blank_quoted(sql: str) -> str:
    """The statement, as long as it was, with blanks in place of quoted text and comments."""
    return _QUOTED.sub(_blank_part, sql)


def _blank_part(match: re.Match[str]) -> str:
    part = match[0]
    if part.startswith("/*") and (len(part) < 4 or not part.endswith("*/")):
        return _QUOTED_ONLY.sub(lambda quoted: _blank(quoted[0]), part)  # no comment: it never ends
    return _blank(part)


def _blank(text: str) -> str:
    return text if len(text) < 2 else text[0] + " " * (len(text) - 2) + text[-1]


def _extract(part: str) -> str:
    form = _STRFTIME.get(part.lower(), "%Y")
    return f"Write {_PART.format(form)} in SQLite."


# Where a statement breaks, what would have to stand there, and what made it too much.
#
# SQLite says which word it stumbled over, not which occurrence of it. The place is found by giving
# an empty database the statement up to each occurrence in turn: its parser stops at the first word
# that cannot follow, whatever comes after. sqlglot, which is slower and forgives more, is asked
# only then, for what it expected. Nothing here touches the agent's database.

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
    near = _NEAR.match(message)  # a message about something else may quote this one, many times
    if near is None or not near[1]:
        return None
    text = blank_quoted(sql) if near[1][0] not in "'\"`" else sql
    places = [match.start() for match in re.finditer(re.escape(near[1]), text)]
    if len(places) < 2:
        return places[0] if places else None
    with closing(sqlite3.connect(":memory:")) as empty:
        # What is cut off there may be a whole statement, whose table expressions would be written
        # out; refused before that, its error is another one.
        empty.setlimit(sqlite3.SQLITE_LIMIT_VDBE_OP, 1_000)
        empty.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
        for place in places[:_MOST_PLACES]:
            try:
                empty.execute(f"EXPLAIN {sql[: place + len(near[1])]}").close()
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
    """The token that sqlglot expected where it stopped, such as `)`; "" if it parses."""
    if len(sql) > _MOST_PARSED:
        return ""
    try:
        parse(sql, ErrorLevel.IMMEDIATE)
    except ParseError as error:
        description = str(error.errors[0].get("description", "")) if error.errors else ""
        match = re.match(r"Expect(?:ing|ed) (table name|\S+)", description)
        return match[1] if match else ""
    except SqlglotError:
        return ""
    return ""


def misspelt_keyword(sql: str, place: int) -> tuple[str, str] | None:
    """A word at this place, or just before it, that is nearly a keyword, and the keyword."""
    text = blank_quoted(sql)
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
    """The reason for a statement's much work, as a sentence; "" where it does not show."""
    if len(sql) > _MOST_PARSED:
        return ""
    try:
        tree = parse(sql)
    except SqlglotError:
        return ""
    for select in tree.find_all(exp.Select):
        parts = _unjoined_tables(select)
        if len(parts) > 1:
            tables = " with each of ".join(parts[:3])
            return f"It pairs each row of {tables}: join them on a key."
    if any(part.args.get("recursive") for part in tree.find_all(exp.With)):
        return "Its WITH RECURSIVE does not end: give it a condition, or a LIMIT inside."
    return ""


def _unjoined_tables(select: exp.Select) -> list[str]:
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
    unjoined = dict.fromkeys(group.values())
    return list(unjoined) if len(unjoined) > 1 else []
