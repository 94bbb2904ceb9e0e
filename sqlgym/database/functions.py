"""SQLite's built-in functions, bounded in time and without the clock.

One function call inside SQLite cannot be interrupted, and a statement has room for many calls
between two looks at the clock. With texts of 100,000 bytes `instr`, `replace`, `trim` and `unhex`
of two arguments are quadratic (up to seconds a call), `printf` can repeat a character a billion
times, and `json_pretty` can write gigabytes of blanks. So these are replaced: long text is searched
by Python, whose algorithms take milliseconds for the same, and everything else goes to the built-in
function on a private connection, once it is known to be short work. Every result is SQLite's own,
but for an error where `printf` gives NULL for a text that is too long. Whatever SQLite takes for
text counts as text: blobs too, as far as they are UTF-8.

The date functions are replaced too: `date('now')`, `datetime()` and `strftime('%Y')` read the
clock, and `'localtime'` this machine's time zone. SQLite's authorizer sees the name of a function
and not its arguments, so the arguments are looked at when they have values (a column may hold
`'now'` too), and what is steady is handed to the built-in function.
"""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlgym.database.sqlite_file import lenient_text

# How often `printf` repeats a character, read off its template before it is called.
#
# `printf('%.*c', 1000000000, 'a')` writes for seconds into a text that has long been too long, in
# one call that nothing interrupts (SQLite before 3.41), and `'%.99999c%.99999c...'` does so a part
# at a time. `'%!.99999f%!.99999f...'` writes as many zeros and drops them, so that the text stays
# short (SQLite before 3.53). So the repetitions of all conversions are added up first. The template
# is read as the C code reads it: whatever SQLite would take for text counts as text, up to its
# first NUL, and a width that is an argument may be a number, a text or a blob that begins with one,
# cut to 32 bits.

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #!0,]*)(?:(?P<width>\*|[1-9][0-9]*)[-+ #!0,]*)?"
    r"(?:\.(?P<precision>\*|[0-9]*))?l{0,2}(?P<kind>.)",
    re.DOTALL,
)
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([-+]?[0-9]+)")
_WITHOUT_ARGUMENT = "%n"
_REPEATING = frozenset("cfeEgG")


def repetitions(arguments: tuple[Any, ...]) -> int:
    """The number of characters that a call of `printf` repeats: of its `%c`, and zeros of numbers.

    Args:
        arguments: The template and what goes into it.
    """
    template = text_of(arguments[0]) if arguments else ""
    if _REPEATING.isdisjoint(template):
        return 0
    values = iter(arguments[1:])
    return sum(_repeated(match, values) for match in _CONVERSION.finditer(template))


def text_of(value: Any) -> str:
    """A template as the C code sees it: a byte is a character, and the first NUL ends it."""
    if isinstance(value, bytes):
        return value.decode("latin-1").split("\0", 1)[0]
    return value.split("\0", 1)[0] if isinstance(value, str) else ""


def _repeated(match: re.Match[str], values: Iterator[Any]) -> int:
    """What one conversion repeats; takes its arguments from the rest that are given."""
    if match["width"] == "*":
        next(values, None)
    written = match["precision"] or ""
    if written == "*":
        precision = abs(_int32(_integer(next(values, 0))))
    else:  # 10 ** 40 is a multiple of 2 ** 32: what stands before does not count
        precision = int(written[-40:] or 0) & 0x7FFFFFFF
    if match["kind"] not in _WITHOUT_ARGUMENT:
        next(values, None)
    return precision if match["kind"] in _REPEATING else 0


def _integer(value: Any) -> int:
    """An SQL value as SQLite reads an integer from it: by its beginning, kept within 64 bits."""
    number = 0
    if isinstance(value, int | float):
        number = int(max(-(2.0**63), min(value, 2.0**63)))
    elif match := _INTEGER.match(text_of(value)):
        number = int(match[1][:40])
    return max(-(2**63), min(number, 2**63 - 1))


def _int32(value: int) -> int:
    """What C makes of an integer that it puts into 32 bits."""
    return (value + 2**31) % 2**32 - 2**31


ARITIES: dict[str, tuple[int, ...]] = {
    "instr": (2,),
    "replace": (3,),
    "trim": (2,),
    "ltrim": (2,),
    "rtrim": (2,),
    "printf": (-1,),
    "format": (-1,),
    "unhex": (2,),
    "json_pretty": (1, 2),
}
"""The functions that are replaced, with their numbers of arguments (`trim` of one is fast)."""
SHORT = 250_000
"""Comparisons of bytes that a built-in function may make: under a millisecond of work."""
_BLANKS = 1_000_000
"""Characters of indentation that `json_pretty` may write."""
_FEW = 32
"""Characters that `str.strip` is given at most; it looks at each of them in turn."""


def bound_texts(connection: sqlite3.Connection, most_bytes: int) -> None:
    """Replace the functions of `ARITIES` on a connection, as far as this SQLite has them.

    Args:
        most_bytes: No text may become longer than this, see `bounded_text`.
    """
    for name in sorted(functions_of_sqlite() & ARITIES.keys()):
        bounded = bounded_text(name, most_bytes)
        for arity in ARITIES[name]:
            connection.create_function(name, arity, bounded, deterministic=True)


@functools.cache
def functions_of_sqlite() -> frozenset[str]:
    """The functions that this SQLite has; newer ones have more."""
    connection = sqlite3.connect(":memory:")
    rows = connection.execute("SELECT name FROM pragma_function_list").fetchall()
    connection.close()
    return frozenset(name for (name,) in rows)


def bounded_text(name: str, most_bytes: int) -> Callable[..., Any]:
    """The built-in function `name`, for use as an SQL function that takes little time.

    Args:
        name: A key of `ARITIES`.
        most_bytes: No text may become longer than this; an `OverflowError` (which SQLite tells as
            "string or blob too big") says that it would.
    """
    builtin = _Builtin(name, most_bytes)
    if name in ("printf", "format"):
        return lambda *arguments: _formatted(builtin, most_bytes, arguments)
    if name == "json_pretty":
        return lambda *arguments: _pretty(builtin, arguments)
    if name == "unhex":
        return lambda text, ignored: _unhex(builtin, text, ignored)
    search = _SEARCHES[name]

    def bounded(*arguments: Any) -> Any:
        if all(type(argument) is str for argument in arguments):
            return search(most_bytes, *arguments)
        sizes = [len(a) if isinstance(a, str | bytes) else 25 for a in arguments]
        if None in arguments or sizes[0] * sizes[1] <= SHORT:
            return builtin(arguments)
        if name == "instr" and type(arguments[0]) is type(arguments[1]) is bytes:
            return arguments[0].find(arguments[1]) + 1
        return search(most_bytes, *[_text(builtin, argument) for argument in arguments])

    return bounded


class _Builtin:
    """The function itself, on a private connection that is opened when it is first needed."""

    def __init__(
        self, name: str, most_bytes: int, decode: Callable[[bytes], str] = lenient_text
    ) -> None:
        self._name, self._most_bytes, self._decode = name, most_bytes, decode
        self._db: sqlite3.Connection | None = None

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        marks = ", ".join("?" * len(arguments))
        return self.run(f"SELECT {self._name}({marks})", arguments)

    def run(self, sql: str, arguments: tuple[Any, ...]) -> Any:
        """The one value that a statement gives.

        Raises:
            OverflowError: It is too long.
        """
        if self._db is None:
            self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            self._db.text_factory = self._decode  # `%.1s` cuts a character in two
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._most_bytes)
        try:
            return self._db.execute(sql, arguments).fetchone()[0]
        except sqlite3.DataError as error:  # which SQLite would tell as an error of any kind
            raise OverflowError(str(error)) from error


def _text(builtin: _Builtin, value: Any) -> str:
    """What SQLite takes a value for, where it needs a text.

    Raises:
        OverflowError: It is a blob that is no UTF-8, and too long for the built-in function.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise OverflowError("a long blob that is no text") from None
    return str(builtin.run("SELECT CAST(? AS TEXT)", (value,)))


def _formatted(builtin: _Builtin, most_bytes: int, arguments: tuple[Any, ...]) -> Any:
    """`printf`, unless it repeats characters too often or its text gets too long."""
    if repetitions(arguments) > most_bytes:
        raise OverflowError(f"a text of more than {most_bytes:,} bytes")
    text = builtin(arguments)
    if text is None and arguments and arguments[0] is not None:
        raise OverflowError(f"a text of more than {most_bytes:,} bytes")
    return text


def _unhex(builtin: _Builtin, text: Any, ignored: Any) -> Any:
    """`unhex`, each character that it is to ignore told once: it looks at all of them in turn."""
    if type(ignored) is str and len(ignored) > _FEW:
        ignored = "".join(dict.fromkeys(ignored.split("\0", 1)[0]))
    longest = [len(a) if isinstance(a, str | bytes) else 25 for a in (text, ignored)]
    if longest[0] * longest[1] > 10 * SHORT:
        raise OverflowError("unhex() of much text that is to be ignored")
    return builtin((text, ignored))


def _pretty(builtin: _Builtin, arguments: tuple[Any, ...]) -> Any:
    """`json_pretty`, unless it would write far more blanks than JSON."""
    indent = arguments[1] if len(arguments) == 2 else None
    width = len(indent) if isinstance(indent, str | bytes) else 25
    value = arguments[0]
    if isinstance(value, bytes) and len(value) * width > SHORT // 250:
        raise OverflowError("json_pretty() of a blob")
    depth = deepest = lines = 0
    for mark in re.findall(r"[\[{\]},]", value) if isinstance(value, str) else ():
        lines += 1
        depth += (mark in "[{") - (mark in "]}")
        deepest = max(deepest, depth)
    if lines * deepest * width > _BLANKS:
        raise OverflowError("json_pretty() of deep JSON")
    return builtin(arguments)


def _instr(most_bytes: int, text: str, part: str) -> int:
    return text.find(part) + 1


def _replace(most_bytes: int, text: str, old: str, new: str) -> str:
    if not old or old[0] == "\0":
        return text
    growth = len(new) - len(old)
    if growth > 0 and len(text) + growth * text.count(old) > most_bytes:
        raise OverflowError(f"a text of more than {most_bytes:,} characters")
    return text.replace(old, new)


def _trim(most_bytes: int, text: str, characters: str) -> str:
    return _rtrim(most_bytes, _ltrim(most_bytes, text, characters), characters)


def _ltrim(most_bytes: int, text: str, characters: str) -> str:
    unwanted = _each_once(characters)
    if len(unwanted) <= _FEW:
        return text.lstrip("".join(unwanted))
    return text[next((i for i, c in enumerate(text) if c not in unwanted), len(text)) :]


def _rtrim(most_bytes: int, text: str, characters: str) -> str:
    unwanted = _each_once(characters)
    if len(unwanted) <= _FEW:
        return text.rstrip("".join(unwanted))
    return text[: next((i for i in range(len(text), 0, -1) if text[i - 1] not in unwanted), 0)]


def _each_once(characters: str) -> set[str]:
    return set(characters.split("\0", 1)[0])


_SEARCHES: dict[str, Callable[..., Any]] = {
    "instr": _instr,
    "replace": _replace,
    "trim": _trim,
    "ltrim": _ltrim,
    "rtrim": _rtrim,
}


DATE_FUNCTIONS = {
    name: place
    for place, names in ((0, "date time datetime julianday unixepoch timediff"), (1, "strftime"))
    for name in names.split()
}
"""Date functions, with the position of their (first) time value."""
LONGEST = 1_000_000
"""Length of a date's text, in bytes; the guard's own limit is lower."""
REMEMBERED = 100
"""Length of an argument up to which a value is remembered."""


def steady_date(name: str, refuse: Callable[[str], object]) -> Callable[..., Any]:
    """The built-in date function `name`, for use as an SQL function that cannot see the clock.

    Args:
        name: A key of `DATE_FUNCTIONS`.
        refuse: Told what was asked, in words, before a call that depends on the moment fails.
    """
    place = DATE_FUNCTIONS[name]
    evaluate = _date_evaluator(name)

    def steady(*arguments: Any) -> Any:
        reason = _unsteady_argument(arguments, place, 2 if name == "timediff" else 1)
        if reason:
            refuse(f"{name}() {reason}")
            raise sqlite3.OperationalError(reason)
        return evaluate(arguments)

    return steady


def _unsteady_argument(arguments: Iterable[Any], place: int, times: int) -> str:
    """Why these arguments of a date function make its value depend on the moment; "" if not."""
    words = [_word(argument) for argument in arguments]
    if len(words) <= place:
        return "without a time means now"
    if "now" in words:
        return "of 'now'"
    if any(word in {"subsec", "subsecond"} for word in words[place : place + times]):
        return "without a time means now"
    zones = sorted({"localtime", "utc"} & set(words))
    return f"with {zones[0]!r} depends on this machine's time zone" if zones else ""


def _word(argument: Any) -> str:
    """An argument as the C code of SQLite compares it: text up to the first NUL, in lower case."""
    if isinstance(argument, bytes):
        argument = lenient_text(argument)
    return argument.split("\0", 1)[0].strip().lower() if isinstance(argument, str) else ""


def _date_evaluator(name: str) -> Callable[[tuple[Any, ...]], Any]:
    """The built-in function `name`, which remembers its values: columns of dates repeat."""
    builtin = _Builtin(name, LONGEST, str)
    remembered = functools.lru_cache(maxsize=16_384)(builtin)

    def value(arguments: tuple[Any, ...]) -> Any:
        long = any(isinstance(a, str | bytes) and len(a) > REMEMBERED for a in arguments)
        return builtin(arguments) if long else remembered(arguments)

    return value
