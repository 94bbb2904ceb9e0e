"""Reading one JSON object that a model wrote, from a known start.

Valid JSON is decoded as it is. What does not load is mended, in this order: raw control characters
inside strings, brackets that are missing at the end, Python's own notation (single quotes, True),
and at last `json_repair`. Before anything is mended, the text is checked for being cut off: where
it ends inside a string, a number, a list, or before a value, the object is `truncated`, because
half an answer must not become an answer. Only brackets missing after a complete value are put
there.

Mending is slow, so one message gets `MAX_MENDED` characters of it, whatever it contains.
"""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass
from typing import Any

import json_repair

from toolgym.calls.repairs import REPAIRED_JSON, Repair

MAX_MENDED = 16_384
MAX_NESTING = 60

TRUNCATED = "truncated"
MALFORMED = "it is not valid JSON"
CONFLICT = "one key has two different values"
NOT_FINITE = "NaN and Infinity are not JSON"


@dataclass(frozen=True)
class JsonRead:
    """What was read: a value up to `end`, or the problem (TRUNCATED, or half a sentence)."""

    value: Any
    end: int
    repairs: tuple[Repair, ...] = ()
    problem: str = ""


class ConflictingKeys(ValueError):
    """One object has one key with two different values."""


class NotALiteral(ValueError):
    """A Python expression is more than literals."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    found = {}
    for key, value in pairs:
        if value is None or found.get(key) is None:
            found[key] = value if value is not None else found.get(key)
        elif found[key] != value:
            raise ConflictingKeys(key)
    return found


_STRICT = json.JSONDecoder(object_pairs_hook=_object)
_LOOSE = json.JSONDecoder(object_pairs_hook=_object, strict=False)


class JsonReader:
    """Reads objects out of one message and keeps its budget for mending."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._left = MAX_MENDED

    def read(self, start: int, limit: int) -> JsonRead:
        """The object that begins at `start`; `limit` is where its tag, or the text, ends."""
        try:
            value, end = _STRICT.raw_decode(self.text, start)
        except ConflictingKeys:
            return JsonRead(None, limit, problem=CONFLICT)
        except (ValueError, RecursionError):
            return self._mend(start, limit)
        return JsonRead(value, end)

    def _mend(self, start: int, limit: int) -> JsonRead:
        over = limit - start > self._left
        window = self.text[start : start + self._left] if over else self.text[start:limit]
        shape = outline(window)
        if shape.end is None:
            if limit == len(self.text) and (over or not shape.complete):
                return JsonRead(None, limit, problem=TRUNCATED)
            if over:
                return JsonRead(None, limit, problem=MALFORMED)
        if shape.depth > MAX_NESTING:
            return JsonRead(None, limit, problem="it is nested too deeply")
        self._left -= len(window)
        end = start + shape.end if shape.end is not None else limit
        try:
            value = mended(window if shape.end is None else window[: shape.end], shape.closers)
        except ConflictingKeys:
            return JsonRead(None, end, problem=CONFLICT)
        if not isinstance(value, dict) or not value:
            return JsonRead(None, end, problem=MALFORMED)
        return JsonRead(value, end, (REPAIRED_JSON,))


def mended(chunk: str, closers: str) -> Any:
    """The value of broken JSON, by the first way that works; None if none does.

    Raises:
        ConflictingKeys: It would load, but one key has two different values.
    """
    whole = chunk.rstrip() + closers
    try:
        value, end = _LOOSE.raw_decode(whole)
        if not whole[end:].strip():
            return value
    except ConflictingKeys:
        raise
    except (ValueError, RecursionError):
        pass
    try:
        return python_literal(whole)
    except ConflictingKeys:
        raise
    except ValueError:
        pass
    try:
        return json_repair.loads(chunk, skip_json_loads=True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


@dataclass(frozen=True)
class Outline:
    """The brackets of a text: where the first value ends, or how it stops short of that.

    Attributes:
        end: Position behind the value, or None if brackets stay open.
        closers: The brackets that are missing.
        complete: With brackets open: whether the text stops behind a whole value of an object.
        depth: The deepest nesting that was met.
    """

    end: int | None
    closers: str = ""
    complete: bool = False
    depth: int = 0


_TOKEN = re.compile(
    r"\s+|[{}\[\](),:]|"
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|"[^"\\]*(?:\\.[^"\\]*)*"|'
    r"'[^'\\]*(?:\\.[^'\\]*)*'|[^\s\"'{}\[\](),:]+|.",
    re.DOTALL,
)
_CLOSER = {"{": "}", "[": "]", "(": ")"}


def outline(text: str) -> Outline:
    """Follow the brackets from the start of `text`, strings in double or single quotes apart."""
    stack: list[str] = []
    deepest = 0
    before, last = "", "{"  # the last two tokens, blanks left out
    position, blank = 0, False
    while position < len(text):
        found = _TOKEN.match(text, position)
        token = found.group() if found else text[position]
        if token[0] == "'" and last not in "{[(,:=":
            token = "'"  # an apostrophe, not the start of a string
        position += len(token)
        blank = token.isspace()
        if blank:
            continue
        if token == '"' or (token == "'" and last in "{[(,:="):
            return Outline(None, "".join(reversed(stack)), False, deepest)  # open string
        if token in _CLOSER:
            stack.append(_CLOSER[token])
            deepest = max(deepest, len(stack))
            if deepest > MAX_NESTING:
                return Outline(None, "", False, deepest)
        elif token in "}])" and stack:
            stack.pop()
            if not stack:
                return Outline(position, "", True, deepest)
        before, last = last, token[-1:] if token[-1] in "=" else token
    return Outline(None, "".join(reversed(stack)), _whole(stack, before, last, blank), deepest)


def _whole(stack: list[str], before: str, last: str, blank: bool) -> bool:
    """Whether a text with open brackets stops behind a whole value, outside any list."""
    if not stack or "]" in stack:
        return False
    if last in ("}", "]", ")"):
        return True
    if last[0] in "\"'":
        return before in (":", "=") or (stack == [")"] and before in ("(", ","))
    return blank and before in (":", "=", "(") and last not in (",", ":", "=", "{", "[", "(")


_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|[\n\\'\"abfnrtvxNuU]|.)", re.DOTALL)
_KNOWN_ESCAPE = re.compile(r"[0-3]?[0-7]{1,2}|[\n\\'\"abfnrtvxNuU]")
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}


def parse_expression(source: str) -> ast.expr:
    """Python source as a tree, without the warnings that unknown escapes such as `\\d` give.

    Raises:
        NotALiteral: It is no Python expression, or one that is too large.
    """
    if len(source) > MAX_MENDED:
        raise NotALiteral("too long")

    def kept(found: re.Match[str]) -> str:
        known = _KNOWN_ESCAPE.fullmatch(found.group(1))
        return found.group() if known else "\\" + found.group()

    try:
        return ast.parse(_ESCAPE.sub(kept, source.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotALiteral("no expression") from error


def python_literal(source: str) -> Any:
    """The value of a Python literal; `true`, `false`, `null` are read as JSON means them.

    Raises:
        NotALiteral: It is more than a literal.
        ConflictingKeys: One dict has one key with two different values.
    """
    return literal_value(parse_expression(source))


def literal_value(node: ast.expr, depth: int = 0) -> Any:
    """The value of a parsed literal; see `python_literal`."""
    if depth > MAX_NESTING:
        raise NotALiteral("too deep")
    match node:
        case ast.Constant(value=value) if not isinstance(value, (bytes, complex)):
            if value is ... or (isinstance(value, float) and not math.isfinite(value)):
                raise NotALiteral("no JSON value")
            return value
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return value if isinstance(value, bool) else -value
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return [literal_value(entry, depth + 1) for entry in entries]
        case ast.Dict(keys=keys, values=values):
            named = [literal_value(key, depth + 1) if key else None for key in keys]
            if not all(isinstance(key, str) for key in named):
                raise NotALiteral("a key that is not text")
            return _object(
                [
                    (str(key), literal_value(value, depth + 1))
                    for key, value in zip(named, values, strict=True)
                ]
            )
    raise NotALiteral("more than a literal")
