"""How often `printf` repeats a character, read off its template before it is called.

`printf('%.*c', 1000000000, 'a')` writes for seconds into a text that has long been too long, in one
call that nothing interrupts (SQLite before 3.41), and `'%.99999c%.99999c...'` does so a part at a
time. So the repetitions of all conversions are added up first. The template is read as the C code
reads it: whatever SQLite would take for text counts as text, up to its first NUL, and a width that
is an argument may be a number, a text or a blob that begins with one, cut to 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #!0,]*)(?:(?P<width>\*|[1-9][0-9]*)[-+ #!0,]*)?"
    r"(?:\.(?P<precision>\*|[0-9]*))?l{0,2}(?P<kind>.)",
    re.DOTALL,
)
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([-+]?[0-9]+)")
_WITHOUT_ARGUMENT = "%n"


def repetitions(arguments: tuple[Any, ...]) -> int:
    """How many characters the `%c` of a call of `printf` ask for, together.

    Args:
        arguments: The template and what goes into it.
    """
    template = text_of(arguments[0]) if arguments else ""
    if "c" not in template:
        return 0
    given = iter(arguments[1:])
    return sum(_repeated(found, given) for found in _CONVERSION.finditer(template))


def text_of(value: Any) -> str:
    """A template as the C code sees it: a byte is a character, and the first NUL ends it."""
    if isinstance(value, bytes):
        return value.decode("latin-1").split("\0", 1)[0]
    return value.split("\0", 1)[0] if isinstance(value, str) else ""


def _repeated(found: re.Match[str], given: Iterator[Any]) -> int:
    """What one conversion repeats; takes its arguments from the rest that are given."""
    if found["width"] == "*":
        next(given, None)
    written = found["precision"] or ""
    if written == "*":
        precision = abs(_int32(_integer(next(given, 0))))
    else:  # 10 ** 40 is a multiple of 2 ** 32: what stands before does not count
        precision = int(written[-40:] or 0) & 0x7FFFFFFF
    if found["kind"] not in _WITHOUT_ARGUMENT:
        next(given, None)
    return precision if found["kind"] == "c" else 0


def _integer(value: Any) -> int:
    """An SQL value as SQLite reads an integer from it: by its beginning, kept within 64 bits."""
    number = 0
    if isinstance(value, int | float):
        number = int(max(-(2.0**63), min(value, 2.0**63)))
    elif found := _INTEGER.match(text_of(value)):
        number = int(found[1][:40])
    return max(-(2**63), min(number, 2**63 - 1))


def _int32(value: int) -> int:
    """What C makes of an integer that it puts into 32 bits."""
    return (value + 2**31) % 2**32 - 2**31
