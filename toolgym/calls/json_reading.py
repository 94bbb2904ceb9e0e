"""Reading one JSON object that a model wrote, from a known start.

Valid JSON is decoded as it is, whatever tags its strings hold. What does not load is mended where
it can be read in one way only: raw control characters inside strings, brackets that are missing at
the end, Python's own notation (single quotes, True, a comma behind the last value), and keys
without quotes. Anything else is an error that quotes the place; no value is guessed. Before
anything is mended, the text is checked for being cut off: where it ends inside a string, a number,
a list, or before a value, the object is `truncated`, because half an answer must not become an
answer. Only brackets missing after a complete value are put there.

A tag that closes a call may stand inside a string of broken JSON as well. Then the object is read
beyond it if it can be mended so, and else it is an error: it is never cut at the tag.

Mending is slow, so one message gets `MAX_MENDED` characters of it, whatever it contains.
"""

from __future__ import annotations

import ast
import json
import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolgym.calls.repairs import REPAIRED_JSON, Repair

# The brackets of a text that is no valid JSON: where its first value ends, or what is missing.
#
# Tokens are taken one after another and none is looked at twice, so the time grows with the length
# of the text and with nothing else. The repetitions are possessive (`*+`): they never give back
# what they took, so a string without its end costs one look at the rest of the text. Three quotes
# that are not closed where a value could begin are an open string; elsewhere they are looked for
# once.


MAX_NESTING = 60


@dataclass(slots=True)
class Outline:
    """The brackets of a text: where the first value ends, or how it stops short of that.

    Attributes:
        end: Position behind the value, or None if brackets stay open.
        closers: The brackets that are missing.
        complete: With brackets open: whether the text stops behind a whole value of an object.
        depth: The deepest nesting that was met.
        open_at: Where the string begins inside of which the text stops; -1 if it does not.
    """

    end: int | None
    closers: str = ""
    complete: bool = False
    depth: int = 0
    open_at: int = -1


THREE_DOUBLE = r'"""(?:[^"\\]++|\\.|"(?!""))*+"""'
THREE_SINGLE = r"'''(?:[^'\\]++|\\.|'(?!''))*+'''"
DOUBLE = r'"(?:[^"\\]++|\\.)*+"'
SINGLE = r"'(?:[^'\\]++|\\.)*+'"
_QUOTED = {
    mark: re.compile(pattern, re.DOTALL)
    for mark, pattern in (
        ('"""', THREE_DOUBLE),
        ("'''", THREE_SINGLE),
        ('"', DOUBLE),
        ("'", SINGLE),
    )
}
_TOKEN = re.compile(r"\s++|[{}\[\](),:]|[^\s\"'{}\[\](),:]++|.", re.DOTALL)
_CLOSER = {"{": "}", "[": "]", "(": ")"}
_QUOTES = "\"'"
_BEFORE_STRING = "{[(,:="


def outline(text: str) -> Outline:
    """Follow the brackets from the start of `text`, strings in double or single quotes apart."""
    stack: list[str] = []
    deepest = 0
    before, last = "", "{"  # the last two tokens, blanks left out
    position, blank = 0, False
    unclosed: set[str] = set()
    length, match = len(text), _TOKEN.match
    while position < length:
        first = text[position]
        if first in _QUOTES:
            token = _string(text, position, last, unclosed)
            if not token:
                return Outline(None, "".join(reversed(stack)), False, deepest, position)
        else:
            token = match(text, position).group()  # type: ignore[union-attr]
        position += len(token)
        blank = token.isspace()
        if blank:
            continue
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


def _string(text: str, position: int, last: str, unclosed: set[str]) -> str:
    """The string, or the apostrophe, at a position; empty if the string is not closed."""
    first = text[position]
    if first == "'" and last not in _BEFORE_STRING:
        return first  # an apostrophe, not the start of a string
    three = first * 3
    if text.startswith(three, position) and three not in unclosed:
        match = _QUOTED[three].match(text, position)
        if match:
            return match.group()
        if last in _BEFORE_STRING:
            return ""
        unclosed.add(three)
    match = _QUOTED[first].match(text, position)
    return match.group() if match else ""


def _whole(stack: list[str], before: str, last: str, blank: bool) -> bool:
    """Whether a text with open brackets stops behind a whole value, outside any list."""
    if not stack or "]" in stack:
        return False
    if last in ("}", "]", ")"):
        return True
    if last[0] in "\"'":
        return before in (":", "=") or (stack == [")"] and before in ("(", ","))
    return blank and before in (":", "=", "(") and last not in (",", ":", "=", "{", "[", "(")


MAX_MENDED = 16_384
MAX_SHOWN = 24  # characters of broken JSON that an error quotes

TRUNCATED = "truncated"
MALFORMED = "it is not valid JSON"
UNCLOSED = "a string in it is not closed before its tag"
CONFLICT = "one key has two different values"
THOUGHT = "there is thinking inside of it"


@dataclass(slots=True)
class JsonRead:
    """The reading up to `end`.

    Attributes:
        value: The object.
        end: The position behind it.
        repairs: What had to be mended.
        problem: TRUNCATED, or half a sentence, if it could not be read.
        cut: Brackets were put in front of its tag, which may be a part of it.
        missing: How many brackets are missing at the end of the text.
        open_at: From where on the text belongs to this object up to its very end, because a string
            or a bracket is not closed; -1 if it does not.
    """

    value: Any
    end: int
    repairs: tuple[Repair, ...] = ()
    problem: str = ""
    cut: bool = False
    missing: int = 0
    open_at: int = -1


class ConflictingKeys(ValueError):
    """One object has one key with two different values."""


class NotALiteral(ValueError):
    """A Python expression is more than literals."""


def members_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of its pairs of keys and values; a key that is repeated keeps its one value.

    Raises:
        ConflictingKeys: It has two.
    """
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    members = {}
    for key, value in pairs:
        if value is None or members.get(key) is None:
            members[key] = value if value is not None else members.get(key)
        elif members[key] != value or type(members[key]) is not type(value):
            raise ConflictingKeys(key)
    return members


_CLOSED_LATER = re.compile(r"[^{}]*+\}")
_STRICT = json.JSONDecoder(object_pairs_hook=members_of)
_LOOSE = json.JSONDecoder(object_pairs_hook=members_of, strict=False)


class JsonReader:
    """Reads objects out of one message and keeps its budget for mending.

    Args:
        cuts: Positions at which a thought was taken out; no object reaches across one.
    """

    def __init__(self, text: str, cuts: Sequence[int] = ()) -> None:
        self.text = text
        self._cuts = cuts
        self._left = MAX_MENDED

    def read(self, start: int, limit: int) -> JsonRead:
        """The object that begins at `start`; `limit` is where its tag, or the text, ends."""
        try:
            value, end = _STRICT.raw_decode(self.text, start)
        except ConflictingKeys:
            return JsonRead(None, limit, problem=CONFLICT)
        except (ValueError, RecursionError):
            read = self._mend(start, limit)
        else:
            read = JsonRead(value, end)
        if self._cuts and self.is_cut(start, read.end) and not read.problem:
            return JsonRead(None, read.end, problem=THOUGHT)
        return read

    def is_cut(self, start: int, end: int) -> bool:
        """Whether a thought stood between two positions."""
        return bool(self._cuts) and bisect_left(self._cuts, start) < bisect_left(self._cuts, end)

    def _mend(self, start: int, limit: int) -> JsonRead:
        over = limit - start > self._left
        window = self.text[start : start + self._left] if over else self.text[start:limit]
        shape = outline(window)
        at_end = limit == len(self.text)
        if shape.end is None:
            if at_end and (over or not shape.complete):
                open_at = start + shape.open_at if shape.open_at >= 0 and not over else -1
                return JsonRead(None, limit, problem=TRUNCATED, open_at=open_at)
            if over:
                return JsonRead(None, limit, problem=MALFORMED)
            if shape.open_at >= 0:
                return self._across(start, limit, shape.open_at)
        if shape.depth > MAX_NESTING:
            return JsonRead(None, limit, problem="it is nested too deeply")
        if shape.closers and _CLOSED_LATER.match(self.text, limit, limit + MAX_MENDED):
            return JsonRead(None, limit, problem="the brackets that close it stand behind its tag")
        self._left -= len(window)
        end = start + shape.end if shape.end is not None else limit
        missing = len(shape.closers) if at_end and shape.end is None else 0
        chunk = window[: shape.end].rstrip()
        try:
            value = as_written(chunk + shape.closers)
        except ConflictingKeys:
            return JsonRead(None, end, problem=CONFLICT)
        if not isinstance(value, dict) or not value or (shape.closers and chunk[-1] == ","):
            return JsonRead(None, end, problem=self._malformed(start, end))
        cut = shape.end is None and not at_end
        open_at = start if missing else -1
        return JsonRead(value, end, (REPAIRED_JSON,), "", cut, missing, open_at)

    def _across(self, start: int, limit: int, open_at: int) -> JsonRead:
        """An object with a string that is open at `limit`: the tag there may be a part of it."""
        rest = len(self.text) - start
        window = self.text[start : start + self._left]
        self._left -= limit - start
        shape = outline(window)
        if shape.open_at == open_at and len(window) == rest:  # it is not closed anywhere
            # With nothing behind its tag a quote was forgotten, rather than the end cut off there.
            closed = len(self.text) - limit < 40 and self.text[limit:].strip() == "</tool_call>"
            problem = UNCLOSED if closed else TRUNCATED
            return JsonRead(None, len(self.text), problem=problem, open_at=start + open_at)
        whole = shape.end is not None or (shape.complete and len(window) == rest)
        end = rest if shape.end is None else shape.end
        try:
            value = as_written(window[:end].rstrip() + shape.closers) if whole else None
        except ConflictingKeys:
            return JsonRead(None, start + end, problem=CONFLICT)
        if not isinstance(value, dict) or not value:
            return JsonRead(None, limit, problem=UNCLOSED)
        missing = len(shape.closers)
        at = start if missing else -1
        return JsonRead(value, start + end, (REPAIRED_JSON,), missing=missing, open_at=at)

    def _malformed(self, start: int, end: int) -> str:
        """What is wrong with the object at `start`, with the place from which on it is no JSON."""
        try:
            _LOOSE.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            shown = self.text[error.pos : min(end, error.pos + MAX_SHOWN)]
            before = self.text[max(start, error.pos - MAX_SHOWN) : error.pos].rstrip()
            quote = r"; a quote inside a text is written as \"" if before.endswith('"') else ""
            return f"{MALFORMED} from {shown!r} on{quote}" if shown else MALFORMED
        except (ValueError, RecursionError):
            pass
        return MALFORMED


def as_written(chunk: str) -> Any:
    """The value of JSON with raw line breaks, or of Python's notation; None if it is neither.

    Python reads two texts side by side as one and skips a comment, and so would lose a quote, a
    comma or a word that was meant: that is neither.

    Raises:
        ConflictingKeys: It would load, but one key has two different values.
    """
    try:
        value, end = _LOOSE.raw_decode(chunk)
        if not chunk[end:].strip():
            return value
    except ConflictingKeys:
        raise
    except (ValueError, RecursionError):
        pass
    try:
        return None if _loses_text(chunk) else python_literal(chunk)
    except ConflictingKeys:
        raise
    except ValueError:
        return None


# A string, or what stands between strings. A backslash takes the next character along, so a quote
# that is not closed is met once only.
PIECE = re.compile(rf"({THREE_DOUBLE}|{THREE_SINGLE}|{DOUBLE}|{SINGLE})|[^\"'\\]++|\\?.", re.DOTALL)


def _loses_text(chunk: str) -> bool:
    """Whether a string follows another, or a comment stands, outside of strings."""
    behind_string = False
    for piece in PIECE.finditer(chunk):
        if piece.group(1) is not None:
            if behind_string:
                return True
            behind_string = True
        elif not piece.group().isspace():
            if "#" in piece.group():
                return True
            behind_string = False
    return False


_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|[\n\\'\"abfnrtvxNuU]|.)", re.DOTALL)
_KNOWN_ESCAPE = re.compile(r"[0-3]?[0-7]{1,2}|[\n\\'\"abfnrtvxNuU]")
CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}


def as_python(source: str) -> str:
    """The source that is parsed: without blanks around it, its unknown escapes written out."""

    def kept(found: re.Match[str]) -> str:
        known = _KNOWN_ESCAPE.fullmatch(found.group(1))
        return found.group() if known else "\\" + found.group()

    return _ESCAPE.sub(kept, source.strip())


def parse_expression(source: str) -> ast.expr:
    """Python source as a tree, without the warnings that unknown escapes such as `\\d` give.

    Raises:
        NotALiteral: It is no Python expression, or one that is too large.
    """
    if len(source) > MAX_MENDED:
        raise NotALiteral("too long")
    try:
        return ast.parse(as_python(source), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotALiteral("no expression") from error


def python_literal(source: str) -> Any:
    """The value of a Python literal; `true`, `false`, `null` are read as JSON means them.

    A key may stand without quotes: no variable can be meant there.

    Raises:
        NotALiteral: It is more than a literal.
        ConflictingKeys: One dict has one key with two different values.
    """
    tree = parse_expression(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            node.keys = [
                ast.Constant(key.id) if isinstance(key, ast.Name) else key for key in node.keys
            ]
    return literal_value(tree)


def literal_value(node: ast.expr, depth: int = 0) -> Any:
    """The value of a parsed literal; see `python_literal`."""
    if depth > MAX_NESTING:
        raise NotALiteral("too deep")
    match node:
        case ast.Constant(value=value) if not isinstance(value, (bytes, complex)):
            if value is ... or (isinstance(value, float) and not math.isfinite(value)):
                raise NotALiteral("no JSON value")
            return value
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return value if isinstance(value, bool) else -value
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return [literal_value(entry, depth + 1) for entry in entries]
        case ast.Dict(keys=keys, values=values):
            named = [literal_value(key, depth + 1) if key else None for key in keys]
            if not all(isinstance(key, str) for key in named):
                raise NotALiteral("a key that is not text")
            return members_of(
                [
                    (str(key), literal_value(value, depth + 1))
                    for key, value in zip(named, values, strict=True)
                ]
            )
    raise NotALiteral("more than a literal")
