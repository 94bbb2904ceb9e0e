"""A second, independent judge of recorded answers, so that a slip of the first one shows.

The gold SQL runs on a plain read-only connection of `sqlite3`, not under our guard and cache, and a
recorded answer is flattened into cells in a few ways and compared by separate rules. Both judges
are meant to accept the same answers (docs/sql-answers.md has the table, and the tests hold both
against it), but nothing is shared with `sqlgym.judging.answer_parsing` and `sqlgym.judging.cells`;
only the reading of units (`sqlgym.judging.units`) is the same. This judge may call an answer wrong
that is right but oddly written: `toolgym audit` prints where the two differ, for people to check.

Rows may come in any order unless the gold orders them. Which of them may change places all the same
is found by breaking their ties once upwards and once downwards: what both runs have put before a
place belongs before it.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

from sqlgym.database.functions import bound_texts
from sqlgym.judging.nfc import nfc
from sqlgym.judging.units import ANY, Units, units_of
from toolgym.sanitize import change_texts, unescape_control_tokens

_SEPARATORS: Final = (" | ", "|", ";", ", ", ",", "\t")
_PREFIX: Final = re.compile(r"\A(?:the )?(?:final )?answer(?: is)?[:= ] *", re.I)
_BRACKET: Final = re.compile(r"[\[\](){}]")
_DENYING: Final = {"not", "no", "never", "wrong", "false", "incorrect", "except"}
_FILLING: Final = {"is", "isn", "t", "it", "the", "this", "answer", "value", "result"}
_BULLET: Final = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s+")
_NUMBER: Final = re.compile(
    r"([-+]?)([$€£]?)([-+]?)((?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.(\d*))?(?:e[-+]?\d+)?)\s*+(.{0,60})",
    re.I,
)
_DEEPEST: Final = 20  # brackets in brackets; an answer is a list of rows at most
_LARGEST: Final = 400  # powers of ten; SQLite's numbers end at 308
_DAYS: Final = ("%Y-%m-%d", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y")


def cells_of(answer: Any, columns: Sequence[str], needs_rows: bool) -> Iterator[list[Any]]:
    """The answer as a flat list of cells, in each way that it can be taken apart.

    An object with a key that says that its value is no answer has none.

    Args:
        columns: Names of the gold's columns, in lower case; a first line, or the keys of an object,
            may repeat them.
        needs_rows: The gold has several rows of several cells, so a flat list says too little.
    """
    if isinstance(answer, Mapping):
        answer = answer["rows"] if answer.keys() == {"columns", "rows"} else [answer]
    if isinstance(answer, list | tuple):
        if not all(_is_named(row, columns) for row in answer if isinstance(row, Mapping)):
            return
        rows = [_by_name(row, columns) if isinstance(row, Mapping) else row for row in answer]
        lists = [row if isinstance(row, list | tuple) else [row] for row in rows]
        if not needs_rows or all(isinstance(row, list | tuple) for row in rows):
            yield [cell for row in lists for cell in row]
        return
    yield [answer]
    if isinstance(answer, str):
        text = _PREFIX.sub("", answer.strip())
        data = _data(text)
        if data is not None:
            yield from cells_of(data, columns, needs_rows)
        yield from _split(text, columns, needs_rows)


def _split(text: str, columns: Sequence[str], needs_rows: bool) -> Iterator[list[Any]]:
    """The cells of a text, by lines and at each separator, without a line of column names."""
    lines = [_BULLET.sub("", line).strip() for line in text.splitlines() if line.strip()]
    for separator in (None, *_SEPARATORS):  # one table at a time: a long text makes large ones
        cut = [[line] if separator is None else line.split(separator) for line in lines]
        rows = [[cell.strip() for cell in row] for row in cut]
        if len(rows) > 1 and [cell.casefold() for cell in rows[0]] == list(columns):
            del rows[0]
        if len(rows) > 1 or not needs_rows:
            yield [cell for row in rows for cell in row]
    if not needs_rows:
        yield [cell.strip() for cell in text.strip("[]()").split(",")]


def _by_name(row: Mapping[Any, Any], columns: Sequence[str]) -> list[Any]:
    by_name = {str(key).casefold(): value for key, value in row.items()}
    return (
        [by_name[name] for name in columns] if by_name.keys() == set(columns) else [*row.values()]
    )


def _is_named(row: Mapping[Any, Any], columns: Sequence[str]) -> bool:
    """Whether the keys can be names of columns; those of the gold stand in its order or are all."""
    keys = [str(key).strip().casefold() for key in row]
    if sorted(keys) == sorted(columns):
        return True
    places = zip(keys, columns, strict=False)
    if any(key in columns and key != column for key, column in places):
        return False
    return not any(_is_denial(key) for key in keys if key not in columns)


def _is_denial(key: str) -> bool:
    """Whether a key is a number, no word at all, or says that its value is not the answer."""
    words = re.findall(r"[^\W_]+", key)
    if not words or not words[0][0].isalpha():
        return True
    return not _DENYING.isdisjoint(words) and (_DENYING | _FILLING).issuperset(words)


def _data(text: str) -> Any:
    """The list or object that a text spells, in JSON or in Python; None if it spells none."""
    if text[:1] not in ("[", "(", "{") or _depth(text) > _DEEPEST:
        return None  # Python's parser takes long for brackets in brackets
    for read in (_from_json, _from_python):
        try:
            data = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(data, list | tuple | dict):
            return data
    return None


def _from_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_each_key_once)


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, value in pairs:
        if row.setdefault(key, value) != value:
            raise ValueError("a key has two values")
    return row


def _from_python(text: str) -> Any:
    """A list as Python writes it; an object is written as JSON."""
    tree = ast.parse(text, mode="eval")
    if any(isinstance(node, ast.Dict) for node in ast.walk(tree)):
        raise ValueError("an object")
    return ast.literal_eval(tree)


def _depth(text: str) -> int:
    """How deeply brackets stand in each other at most, those in quotes counted too."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest


def same_value(gold: Any, other: Any) -> bool:
    """Two cells of results: numbers as numbers, anything else exactly."""
    if isinstance(gold, int | float) and isinstance(other, int | float):
        return gold == other or _close(float(gold), float(other))
    if isinstance(gold, str) and isinstance(other, str):
        return nfc(gold) == nfc(other)
    return bool(type(gold) is type(other) and gold == other)


def same_cell(gold: Any, answer: Any, units: Units = ANY) -> bool:
    """A cell of the gold and what was given for it."""
    if gold is None:
        return answer is None or _plain(answer) in {"", "null", "none"}
    if isinstance(gold, bytes):
        return _plain(answer) == f"x'{gold.hex()}'"
    if isinstance(gold, int | float):
        return any(_same_number(gold, *read) for read in _numbers(gold, answer, units))
    if _plain(gold) == _plain(answer):
        return True
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", gold) is not None and float(gold) == answer
    days = [day for text in (gold, answer) if (day := _day(text)) is not None]
    return len(days) == 2 and days[0] == days[1]


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(nfc(text).casefold().split())
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text


def _numbers(gold: int | float, cell: Any, units: Units) -> Iterator[tuple[Decimal, int]]:
    """The numbers that one cell can be, each with the decimals that it is written with."""
    text = {"true": "1", "false": "0"}.get(_plain(cell), _plain(cell))
    match = _NUMBER.fullmatch(text)
    if match is None or not any(map(str.isdigit, match[4])):
        return
    try:
        written = Decimal(match[4].replace(",", ""))
    except InvalidOperation:  # its exponent has too many digits
        return
    if abs(written.adjusted()) > _LARGEST:
        return
    number = written * (-1 if "-" in match[1] + match[3] else 1)
    decimals, beside = len(match[5] or ""), f"{match[2]} {match[6]}".strip()
    if units.allow(beside):
        yield number, decimals
    if isinstance(gold, float) and -1 <= gold <= 1 and units.allow_share(beside):
        yield number / 100, decimals + 2


def _same_number(gold: int | float, number: Decimal, decimals: int) -> bool:
    if gold == number or isinstance(gold, int):
        return gold == number
    if _close(gold, float(number)):
        return True
    rounded = abs(gold - float(number)) <= 0.5 * 10.0 ** -max(2, decimals) * (1 + 1e-9)
    return rounded and number != 0


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)


def _day(text: Any) -> datetime | None:
    """The day that a text names, at midnight."""
    words = text.strip().removesuffix("00:00:00").strip() if isinstance(text, str) else ""
    for form in _DAYS:
        try:
            return datetime.strptime(words, form)
        except ValueError:
            continue
    return None


Row = tuple[Any, ...]
Same = Callable[[Row, Row], bool]

_TICKS: Final = 60  # of a million steps each: more than the guard allows
_MOST_ROWS: Final = 100_000
_MOST_BYTES: Final = 64_000_000
_LONGEST: Final = 100_000  # bytes of a text
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 250_000),
)
_PAIRED: Final = 500  # rows that are paired one by one; more are sorted
_ALLOWED: Final = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
_OPENING: Final = re.compile(r"['\"`\[]|--|/\*")
_CLOSING: Final = {"'": "'", '"': '"', "`": "`", "[": "]", "--": "\n", "/*": "*/"}
_PARENTHESIS: Final = re.compile(r"[()]")
_ORDER: Final = re.compile(r"\border\s+by\b(?:(?!\blimit\b|;).)*", re.I | re.S)


@dataclass(frozen=True)
class Gold:
    """The result of the gold query.

    Attributes:
        columns: The names of its columns.
        ends: Where parts of it end whose rows may change places; one part, without an order. None
            where that is not known.
    """

    columns: list[str]
    rows: list[Row]
    ends: list[int] | None


def recheck(
    env: Any,
    task: Any,
    turns: Sequence[Mapping[str, Any]],
    instances: Sequence[Path] = (),
) -> bool | None:
    """Whether the recorded turns of an SQL episode hold the right answer.

    Args:
        env: An environment of this family; its tools and its `match` are read.
        instances: Other instances of the database, on which a query is run as well.

    Returns:
        None where the gold cannot be run plainly, an order cannot be judged, a query that is right
        on the database gives other rows than the gold on an instance, or verdicts are those of
        another evaluator (`match="spider"`).
    """
    call = _answer_of(env, turns)
    if call is None:
        return False
    refused = call["name"] == "cannot_answer"
    if refused or not task.answerable:
        return refused and not task.answerable
    arguments = change_texts(call["arguments"], unescape_control_tokens)
    if getattr(env, "match", "") == "spider":
        return None
    try:
        gold = gold_of(task.database, task.gold_sql)
    except sqlite3.Error:
        return None
    name, answer = next(iter(arguments.items()), ("", None))
    if name == "sql":
        verdict = _same_query(gold, answer, task)
        return verdict and (_holds_on(instances, task.gold_sql, str(answer)) or None)
    return same_answer(gold, answer, task.question)


def same_answer(gold: Gold, answer: Any, question: str = "") -> bool | None:
    """Whether a value is the gold's result; None where that depends on an order that is unknown."""
    rows, columns = len(gold.rows), len(gold.columns)
    columns_of = zip(*gold.rows, strict=True)
    numeric = [any(isinstance(value, int | float) for value in each) for each in columns_of]
    units = units_of(question, tuple(gold.columns), tuple(numeric))

    def same(row: Row, other: Row) -> bool:
        return all(map(same_cell, row, other, units))

    names = [name.casefold() for name in gold.columns]
    verdicts = [
        _verdict(gold, [tuple(cells[i : i + columns]) for i in range(0, len(cells), columns)], same)
        for cells in cells_of(answer, names, rows > 1 and columns > 1)
        if len(cells) == rows * columns
    ]
    return True if any(verdicts) else None if None in verdicts else False


def gold_of(database: Path, sql: str) -> Gold:
    """The result of a gold query, and which of its rows may change places.

    Raises:
        sqlite3.Error: It cannot be run plainly.
    """
    columns, rows = _run(database, sql)
    place = _end_of_order(sql)
    if place is None:
        return Gold(columns, rows, [len(rows)])
    ends: list[int] | None = None
    try:
        up, down = (
            _run(database, f"{sql[:place]} {_ties(len(columns), way)} {sql[place:]}")[1]
            for way in ("ASC", "DESC")
        )
        ends = _common_ends(up, down)
    except sqlite3.Error:
        pass  # an ORDER BY that takes no further terms
    return Gold(columns, rows, ends)


def _common_ends(up: list[Row], down: list[Row]) -> list[int]:
    """Up to where both hold the same rows, in whatever order."""
    surplus: Counter[Row] = Counter()
    ends = []
    for end, (one, other) in enumerate(zip(up, down, strict=True), 1):
        for row, change in ((one, 1), (other, -1)):
            surplus[row] += change
            if not surplus[row]:
                del surplus[row]
        if not surplus:
            ends.append(end)
    return ends


def _ties(columns: int, way: str) -> str:
    return "".join(f", {column} {way}" for column in range(1, columns + 1))


def _end_of_order(sql: str) -> int | None:
    """Where the ORDER BY ends that stands outside of all parentheses; None without one."""
    match = _ORDER.search(_without_parentheses(_without_quotes(sql)))
    return len(match[0].rstrip()) + match.start() if match else None


def _without_quotes(sql: str) -> str:
    """A text as long as the SQL: blanks for comments, underscores for what is quoted.

    Scanned by hand: an end that is not there is looked for once, not once for each opening.
    """
    parts, done, place = [], 0, 0
    endless: set[str] = set()
    while match := _OPENING.search(sql, place):
        opening, place = match[0], match.start() + 1
        end = -1 if opening in endless else sql.find(_CLOSING[opening], match.end())
        if end < 0 and opening != "--":
            endless.add(opening)
            continue
        is_comment = len(opening) > 1
        place = len(sql) if end < 0 else end + (0 if opening == "--" else len(_CLOSING[opening]))
        parts += [sql[done : match.start()], ("_ "[is_comment]) * (place - match.start())]
        done = place
    return "".join([*parts, sql[done:]])


def _without_parentheses(text: str) -> str:
    """A text as long as this one, with underscores for parentheses that match and what they hold.

    One pass with a stack: cutting out the innermost ones until none is left takes a pass for each
    level.
    """
    open_places: list[int] = []
    whole: list[tuple[int, int]] = []
    for match in _PARENTHESIS.finditer(text):
        if match[0] == "(":
            open_places.append(match.start())
        elif open_places:
            start = open_places.pop()
            while whole and whole[-1][0] > start:
                whole.pop()
            whole.append((start, match.end()))
    parts, done = [], 0
    for start, end in whole:
        parts += [text[done:start], "_" * (end - start)]
        done = end
    return "".join([*parts, text[done:]])


def _answer_of(env: Any, turns: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The call that ended the episode; None where none did."""
    ends = {name for name, spec in env.tools.items() if spec.terminal}
    calls = [(turn, call) for turn in turns for call in turn["calls"] if call["name"] in ends]
    clean = [call for turn, call in calls if not turn["errors"]]
    ran = [call for turn, call in calls if len(turn["errors"]) < len(turn["calls"])]
    chosen = clean[:1] or ran[-1:]
    return chosen[0] if chosen else None


def _run(database: Path, sql: str) -> tuple[list[str], list[Row]]:
    """The columns and rows that a query gives on a connection that can only read.

    Raises:
        sqlite3.Error: It fails, wants more than reading, or takes too long.
    """
    source = f"{Path(database).absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(source, uri=True)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        # A recorded query is a model's: one call of a text function, or one pattern, cannot be
        # stopped by the steps, so texts are as short here as in the episode, and both are bounded.
        for category, most in _LIMITS:
            connection.setlimit(category, most)
        bound_texts(connection, _LONGEST)
        connection.set_authorizer(_read_only)
        ticks = iter(range(_TICKS))
        connection.set_progress_handler(lambda: next(ticks, None) is None, 1_000_000)
        cursor = connection.execute(sql)
        columns = [str(each[0]) for each in cursor.description or ()]
        return columns, list(_bounded(cursor))


def _bounded(cursor: sqlite3.Cursor) -> Iterator[Row]:
    """The rows, as many as are compared.

    Raises:
        sqlite3.DataError: They take more memory than any result of an episode.
    """
    size = 0
    for row in islice(cursor, _MOST_ROWS):
        size += sum(map(sys.getsizeof, row))
        if size > _MOST_BYTES:
            raise sqlite3.DataError("the result is too large")
        yield row


def _read_only(action: int, *names: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _same_query(gold: Gold, sql: Any, task: Any) -> bool | None:
    """Whether a query that was given as the answer finds what the gold finds."""
    try:
        _, rows = _run(task.database, str(sql))
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return False
    return _verdict(gold, rows, lambda row, other: all(map(same_value, row, other)))


def _holds_on(instances: Sequence[Path], gold_sql: str, sql: str) -> bool:
    """Whether a query gives the rows of the gold wherever both run."""
    for instance in instances:
        try:
            rows, gold_rows = (_run(instance, each)[1] for each in (sql, gold_sql))
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            continue
        if not _same_rows(gold_rows, rows, lambda row, other: all(map(same_value, row, other))):
            return False
    return True


def _verdict(gold: Gold, rows: list[Row], same: Same) -> bool | None:
    """Whether rows are those of the gold."""
    if not gold.rows or not _same_rows(gold.rows, rows, same):
        return False
    if gold.ends is None:
        return _in_order(gold.rows, rows, same) or None
    parts = pairwise([0, *gold.ends])
    return all(_same_rows(gold.rows[i:j], rows[i:j], same) for i, j in parts)


def _in_order(gold: list[Row], rows: list[Row], same: Same) -> bool:
    return all(_same_row(g, f, same) for g, f in zip(gold, rows, strict=True))


def _same_rows(gold: list[Row], rows: list[Row], same: Same) -> bool:
    """The same rows as often, in whatever order."""
    if len(gold) != len(rows):
        return False
    if len(gold) > _PAIRED:  # of results only: answers are as short as observations
        return _in_order(sorted(gold, key=_key), sorted(rows, key=_key), same)
    left = list(rows)
    for row in gold:
        place = next((i for i, other in enumerate(left) if _same_row(row, other, same)), None)
        if place is None:
            return False
        del left[place]
    return True


def _key(row: Row) -> list[str]:
    """What to sort rows by, so that equal ones stand at equal places."""
    return [f"{v:.6g}" if isinstance(v, int | float) else repr(v) for v in row]


def _same_row(gold: Row, other: Row, same: Same) -> bool:
    return len(gold) == len(other) and same(gold, other)
