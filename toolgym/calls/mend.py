"""Reads a JSON object in the text of a model, and repairs invalid JSON with one possible reading.

Valid JSON is decoded unchanged, regardless of tags in its strings. Invalid JSON is repaired if it
has only one possible reading. Repairs concern raw control characters in strings, missing brackets
at the end, Python notation (single quotes, True, a comma after the last value), and keys without
quotes. Any other invalid JSON is an error that quotes the position. No value is guessed.

A text that was cut off is not repaired. If it ends inside a string, a number or a list, or before a
value, the object is `truncated`, because a part of an answer must not be executed. Brackets are
added only after a complete value.

In invalid JSON, a tag that closes a call may also be part of a string. In this case, the object is
read beyond the tag if it can be repaired there. Otherwise it is an error. It is never cut at the
tag.

Repair is slow, so at most `MAX_MENDED` characters of one message are repaired.
"""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass
from typing import Any

from toolgym.calls.repairs import REPAIRED_JSON, Repair

MAX_NESTING = 60


@dataclass(slots=True)
class Outline:
    """The bracket structure of a text: the end of its first value, or the brackets that are open.

    Attributes:
        end: Position after the value; None if brackets are open.
        closers: The missing closing brackets.
        complete: With open brackets: whether the text ends after a complete value of an object.
        depth: Maximum depth of nesting.
        open_at: Start of the string in which the text ends; -1 if it does not end in a string.
    """

    end: int | None
    closers: str = ""
    complete: bool = False
    depth: int = 0
    open_at: int = -1


# The repetitions are possessive (`*+`), so they never backtrack, and an unclosed string
# costs one pass over the rest of the text.
THREE_DOUBLE = r'"""(?:[^"\\]++|\\.|"(?!""))*+"""'
THREE_SINGLE = r"'''(?:[^'\\]++|\\.|'(?!''))*+'''"
DOUBLE = r'"(?:[^"\\]++|\\.)*+"'
SINGLE = r"'(?:[^'\\]++|\\.)*+'"
_STRING = {
    mark: re.compile(pattern, re.DOTALL)
    for mark, pattern in (
        ('"""', THREE_DOUBLE),
        ("'''", THREE_SINGLE),
        ('"', DOUBLE),
        ("'", SINGLE),
    )
}
_TOKEN = re.compile(r"\s++|\"\"\"|'''|[\"'{}\[\](),:]|[^\s\"'{}\[\](),:]++")
_CLOSER = {"{": "}", "[": "]", "(": ")"}
_BEFORE_VALUE = "{[(,:="


def outline(text: str) -> Outline:
    """Follow the brackets from the start of a text, outside of strings in single or double quotes.

    An apostrophe opens a string only where a value can begin. Each token is read once, so the time
    grows linearly with the length of the text.
    """
    stack: list[str] = []
    unclosed: set[str] = set()
    depth = position = 0
    before, last, is_blank = "", "{", False  # the last two tokens, without spaces
    while position < len(text):
        token = _TOKEN.match(text, position).group()  # type: ignore[union-attr]
        begins = last in _BEFORE_VALUE
        if token[0] == '"' or (token[0] == "'" and begins):
            string = None
            for mark in (token, token[0]):
                string = None if mark in unclosed else _STRING[mark].match(text, position)
                if string or begins:
                    break
                unclosed.add(mark)
            if string is None:
                return Outline(None, "".join(reversed(stack)), False, depth, position)
            token = string.group()
        position += len(token)
        is_blank = token.isspace()
        if is_blank:
            continue
        if token in _CLOSER:
            stack.append(_CLOSER[token])
            depth = max(depth, len(stack))
            if depth > MAX_NESTING:
                return Outline(None, "", False, depth)
        elif token in "}])" and stack:
            stack.pop()
            if not stack:
                return Outline(position, "", True, depth)
        before, last = last, "=" if token.endswith("=") else token
    if last[0] in "\"'":
        complete = before in ":=" or (stack == [")"] and before in "(,")
    else:  # a number or a word may continue unless a space follows it
        ends = is_blank and before in ":=(" and last not in _BEFORE_VALUE
        complete = last in "}])" or ends
    complete = complete and bool(stack) and "]" not in stack
    return Outline(None, "".join(reversed(stack)), complete, depth)


MAX_MENDED = 16_384
MAX_SHOWN = 24  # characters of broken JSON that an error quotes

TRUNCATED = "truncated"
MALFORMED = "it is not valid JSON"
UNCLOSED = "a string in it is not closed before its tag"
CONFLICT = "one key has two different values"


@dataclass(slots=True)
class JsonRead:
    """The result of reading a JSON object.

    Attributes:
        value: The object.
        end: The position after the object.
        repairs: The repairs that were needed.
        problem: TRUNCATED, or a clause with the reason, if the object could not be read.
        cut: Whether brackets were added before the closing tag, which may be a part of the object.
        missing: Number of brackets that are missing at the end of the text.
    """

    value: Any
    end: int
    repairs: tuple[Repair, ...] = ()
    problem: str = ""
    cut: bool = False
    missing: int = 0


class ConflictingKeys(ValueError):
    """Raised if an object has a key with two different values."""


class NotALiteral(ValueError):
    """Raised if a Python expression is not a literal."""


def members_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these pairs. Values of a repeated key must be equal, or one must be
    None.

    Raises:
        ConflictingKeys: A key has two different values.
    """
    members = dict(pairs)
    if len(members) < len(pairs):
        members = {}
        for key, value in pairs:
            before = members.get(key)
            if before is None:
                members[key] = value
            elif value is not None and (before != value or type(before) is not type(value)):
                raise ConflictingKeys(key)
    return members


_CLOSED_LATER = re.compile(r"[^{}]*+\}")
_STRICT = json.JSONDecoder(object_pairs_hook=members_of)
_LOOSE = json.JSONDecoder(object_pairs_hook=members_of, strict=False)


def decode_json(text: str) -> Any:
    """Decode JSON text in which strings may contain raw line breaks.

    Raises:
        json.JSONDecodeError: The text is not JSON, or is too large.
        ConflictingKeys: A key has two different values.
    """
    try:
        return _LOOSE.decode(text)
    except (json.JSONDecodeError, ConflictingKeys):
        raise
    except (ValueError, RecursionError):  # a number of thousands of digits, or too many brackets
        raise json.JSONDecodeError("too large", text, len(text)) from None


class JsonReader:
    """Reads the JSON objects of one message, which share a budget of characters to repair."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._left = MAX_MENDED

    def read(self, start: int, limit: int) -> JsonRead:
        """Read the object at `start`. `limit` is the position of its closing tag, or of the end of
        the text.
        """
        try:
            value, end = _STRICT.raw_decode(self.text, start)
        except ConflictingKeys:
            return JsonRead(None, limit, problem=CONFLICT)
        except (ValueError, RecursionError):
            return self._mend(start, limit)
        return JsonRead(value, end)

    def _mend(self, start: int, limit: int) -> JsonRead:
        text = self.text
        over = limit - start > self._left
        window = text[start : min(limit, start + self._left)]
        shape = outline(window)
        opened = shape.open_at
        crossing = opened >= 0 and not over and limit < len(text)
        if crossing:  # the tag at `limit` may be part of the open string
            window = text[start : start + self._left]
            shape = outline(window)
            over = start + len(window) < len(text)
            self._left -= limit - start
        last = crossing or limit == len(text)
        if shape.end is None and (over or (last and not shape.complete)):
            if crossing and (over or shape.open_at != opened):
                return JsonRead(None, limit, problem=UNCLOSED)
            if not last:
                return JsonRead(None, limit, problem=MALFORMED)
            # If only the closing tag follows, a quote is missing and the text was not cut off.
            problem = UNCLOSED if text[limit:].strip() == "</tool_call>" else TRUNCATED
            return JsonRead(None, len(text), problem=problem)
        if shape.depth > MAX_NESTING:
            return JsonRead(None, limit, problem="it is nested too deeply")
        stop = start + len(window)
        if shape.closers and _CLOSED_LATER.match(text, stop, stop + MAX_MENDED):
            return JsonRead(None, limit, problem="its closing brackets are after its closing tag")
        if not crossing:
            self._left -= len(window)
        end = stop if shape.end is None else start + shape.end
        chunk = window[: shape.end].rstrip()
        value, wrong = None, len(chunk)
        try:
            value = as_written(chunk + shape.closers)
        except ConflictingKeys:
            return JsonRead(None, end, problem=CONFLICT)
        except json.JSONDecodeError as error:
            wrong = error.pos
        if not isinstance(value, dict) or not value or (shape.closers and chunk[-1] == ","):
            shown = chunk[wrong : wrong + MAX_SHOWN]
            quoted = chunk[:wrong].rstrip().endswith('"')
            quote = r"; a quote inside a text is written as \"" if quoted else ""
            problem = f"{MALFORMED} from {shown!r} on{quote}" if shown else MALFORMED
            return JsonRead(
                None, limit if crossing else end, problem=UNCLOSED if crossing else problem
            )
        missing = len(shape.closers) if stop == len(text) else 0
        cut = bool(shape.closers) and not missing
        return JsonRead(value, end, (REPAIRED_JSON,), "", cut, missing)


def as_written(chunk: str) -> Any:
    """Decode JSON with raw line breaks, or a Python literal.

    Raises:
        json.JSONDecodeError: The text is neither.
        ConflictingKeys: A key has two different values.
    """
    try:
        return decode_json(chunk)
    except json.JSONDecodeError as problem:
        try:
            return python_literal(chunk)
        except NotALiteral:
            raise problem from None


TEXT = rf"(?:{THREE_DOUBLE}|{THREE_SINGLE}|{DOUBLE}|{SINGLE})"
# A string, or the text between strings. A backslash includes the next character, so an unclosed
# quote is read only once.
PIECE = re.compile(rf"({TEXT})|[^\"'\\]++|\\?.", re.DOTALL)
# Python joins adjacent strings and skips comments, so it would lose a quote, a comma or a word that
# the model meant.
_LOSES_NOTHING = re.compile(rf"(?:{TEXT}(?!\s*+[\"'])|[^\"'#]++)*+", re.DOTALL)
# Python shows warnings for a number that runs into a word (`1or 2`) and for some byte strings and
# f-strings. None of these is a literal. A backslash includes only a quote or a backslash, because a
# number after it must still be checked.
_WARNED = r"(?i:\d\w*?(?:\.\w*?)?(?:and|else|for|i[fns]|not|or)|(?:[bft]r?|r[bft])[\"'])"
_WITHOUT_WARNING = re.compile(
    rf"(?:{TEXT}|[^\"'\w\\]++|\\[\"'\\]?|(?!{_WARNED})\w++|[\"'])*+", re.DOTALL
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}(?![0-7])|[\n\\'\"abfnrtvxNuU])?")
CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}


def as_python(source: str) -> str:
    """Return the source for the parser: stripped, with backslashes of unknown escapes doubled."""
    return _ESCAPE.sub(lambda found: found.group() if found.group(1) else r"\\", source.strip())


def parse_expression(source: str) -> ast.expr:
    """Parse a Python expression without showing warnings.

    Raises:
        NotALiteral: The source is not an expression, or is too large.
    """
    if len(source) > MAX_MENDED or not _WITHOUT_WARNING.fullmatch(source):
        raise NotALiteral("too long, or no literal")
    try:
        return ast.parse(as_python(source), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotALiteral("no expression") from error


def python_literal(source: str) -> Any:
    """Return the value of a Python literal, in which `true`, `false` and `null` have their JSON
    meaning.

    Keys may be written without quotes, because they cannot be variables.

    Raises:
        NotALiteral: The source is not a literal.
        ConflictingKeys: A dict has a key with two different values.
    """
    if not _LOSES_NOTHING.fullmatch(source):
        raise NotALiteral("a text may be lost")
    tree = parse_expression(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            node.keys = [
                ast.Constant(key.id) if isinstance(key, ast.Name) else key for key in node.keys
            ]
    return literal_value(tree)


def literal_value(node: ast.expr | None, depth: int = 0) -> Any:
    """Return the value of a parsed literal; see `python_literal`."""
    if depth > MAX_NESTING:
        raise NotALiteral("too deep")
    match node:
        case ast.Constant(value=None | str() | int() | float() as value) if value != math.inf:
            return value
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as number):
            return -literal_value(number)
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return [literal_value(entry, depth + 1) for entry in entries]
        case ast.Dict(keys=keys, values=values):
            names = [literal_value(key, depth + 1) for key in keys]
            if all(isinstance(name, str) for name in names):
                entries = [literal_value(value, depth + 1) for value in values]
                return members_of(list(zip(names, entries, strict=True)))
    raise NotALiteral("more than a literal")
