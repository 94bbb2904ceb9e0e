"""Calls written as Python: `describe(table_name="singer")`, `[describe("a"), sample("b")]`.

The source is parsed and its arguments are read as literals; nothing is evaluated. A name in front
of a bracket is also how prose talks about a tool, so a call must begin its line, end its line,
name a tool that exists, and hold literals only; anything less is prose, except where the whole
message is the call.

To follow the brackets from every line that could begin a call would take quadratic time in a text
of half calls, so one message has a budget (`Source.tried`) for doing that in vain. Patterns are
possessive for the same reason: what they took they do not give back.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolgym.calls import errors as call_errors
from toolgym.calls.mend import (
    CONSTANTS,
    MAX_MENDED,
    PIECE,
    THOUGHT,
    ConflictingKeys,
    NotALiteral,
    Outline,
    as_python,
    literal_value,
    outline,
    parse_expression,
)
from toolgym.calls.repairs import REPAIRED_JSON, Repair
from toolgym.calls.source import MAX_CALLS, Found, RawCall, Source
from toolgym.calls.tool_index import Plan, fold, is_near, match_name, plan_of
from toolgym.tools import ToolSpec

_NAME = re.compile(r"[A-Za-z_][\w.\-/:]*+(?=\()")
_INNER_NAME = re.compile(rf"(?<![\w.\-/:]){_NAME.pattern}")  # else one search for each letter
_VALUE = re.compile(r"\s*+(?:\w++\s*+=|[\"'\[{]|-?[\d.]++\s*+$)")  # how an argument begins
_LINE_END = re.compile(r"[ \t]*+[;`]*+[ \t]*+(?:#[^\n]*+)?+(?=\n|$|</tool_call>|<\|)")
# How an expression goes on of which a call is a part only.
_GOES_ON = re.compile(
    r"\s*+(?:[-+*/%|&^@(]|[=!]=|[<>]=?\s|\[(?!/)|\.\w|(?:or|and|if|in|is|not|for)\b)"
)
_NOTHING = re.compile(r"[ \t\n;`]*+\Z")
_FENCE = re.compile(r"\s*+(?:```\w*+\s*+|`)?+")
_HALF_QUOTES = re.compile(r"[(,=:\[]\s*+(?:\"\"|'')$")  # perhaps two of three quotes


@dataclass(frozen=True)
class PythonRead:
    """Calls read up to `end`; no calls means that the text is prose.

    From `open_at` on, the text belongs to the call up to its very end; -1 if it does not.
    """

    calls: tuple[RawCall, ...]
    end: int
    open_at: int = -1


def read_python(source: Source, start: int, *, sure: bool = False) -> PythonRead:
    """Read a call, or a list of calls, that begins at `start`.

    Args:
        source: The message and the tools.
        start: Where a name, or the bracket of a list, stands.
        sure: A tag says that this is a call, so what cannot be read is an error, not prose.
    """
    text, specs = source.text, source.specs
    listed = text[start] == "["
    first = _NAME.match(text, start + 1 if listed else start)
    if not first or not is_near(first.group(), specs):
        return PythonRead((), start)
    if source.tried < 0:
        return PythonRead((), start)
    offset = start if listed else first.end()
    window = text[offset : start + MAX_MENDED]
    shape = outline(window)
    if shape.end is None:
        read = _unclosed(source, start, offset, shape, first.group())
    else:
        read = _closed(source, start, offset + shape.end, first.group(), sure)
    if not read.calls:
        source.tried -= len(window) if shape.end is None else shape.end
    elif source.json.is_cut(start, read.end) and not read.calls[0].error:
        error = call_errors.malformed_call(THOUGHT, specs)
        return PythonRead((RawCall(first.group(), {}, "python", error=error),), read.end)
    return read


def _closed(source: Source, start: int, end: int, name: str, sure: bool) -> PythonRead:
    """The calls between a start and the bracket that closes there."""
    text, specs = source.text, source.specs
    tail = _LINE_END.match(text, end)
    if tail is None and not sure:
        return PythonRead((), start)
    if tail is None and _GOES_ON.match(text, end):
        return PythonRead(_unreadable(name, specs, "it is a part of an expression"), end)
    words = None
    if tail is not None and name in specs:
        whole = _NOTHING.match(text, tail.end()) and source.skip(0, _FENCE) >= start
        words = specs if sure or whole else None
    calls = _calls(text[start:end], (), words)
    if calls is None:
        alone = name in specs and _NOTHING.match(text, end) is not None
        alone = alone and (sure or source.skip(0, _FENCE) >= start)
        calls = _unreadable(name, specs, NOT_LITERAL) if alone else ()
    return PythonRead(calls, end if tail is None else tail.end())


def _unclosed(source: Source, start: int, offset: int, shape: Outline, name: str) -> PythonRead:
    """A call whose bracket stays open: mended behind a whole value, an error inside of one."""
    text, specs = source.text, source.specs
    listed, short = start == offset, len(text) - start <= MAX_MENDED
    rest = text[start:].rstrip() if short else ""
    if shape.complete and short and not _HALF_QUOTES.search(rest[-99:]):
        calls = _calls(rest + shape.closers, _MENDED)
        if calls is not None:
            cut = tuple(replace(call, whole=False, unfinished=True) for call in calls)
            return PythonRead(cut, len(text), start)
    open_at = offset + shape.open_at if short and shape.open_at >= 0 else -1
    if listed and short and open_at < 0 and name in specs and _calls(rest + shape.closers, ()):
        open_at = start  # a list of calls that stops between two of them, or inside of one
    cut_off = open_at >= 0 if listed else _VALUE.match(text, offset + 1)
    if name in specs and cut_off:
        call = RawCall(name, {}, "python", error=call_errors.truncated_call(specs))
        return PythonRead((call,), len(text), open_at)
    return PythonRead((), start)


_MENDED = (REPAIRED_JSON,)


NOT_LITERAL = r"its arguments must be literal values; a quote inside a text is written as \'"


def _unreadable(name: str, specs: Mapping[str, ToolSpec], reason: str) -> tuple[RawCall, ...]:
    error = call_errors.malformed_call(reason, specs)
    return (RawCall(name, {}, "python", error=error),)


def _calls(
    source: str, repairs: tuple[Repair, ...], specs: Mapping[str, ToolSpec] | None = None
) -> tuple[RawCall, ...] | None:
    """The calls in Python source, or None if it is anything but calls of literals.

    Args:
        specs: The tools, where words without quotes may be read as texts.
    """
    names: list[str] = []

    def plain_name(match: re.Match[str]) -> str:
        names.append(match.group())
        return "f"  # names such as `tools/describe` are no Python

    between, joined = "", list[str]()
    changed = False
    for piece in PIECE.finditer(source):
        if piece.group(1) is None:
            between += piece.group()
            continue
        if joined and not between.strip(" \t"):
            return None  # Python joins 'it''s' or ["a" "b"], where a quote or a comma may be meant
        string = _one_line(piece.group())
        changed = changed or string != piece.group()
        joined += [_INNER_NAME.sub(plain_name, between), string]
        between = ""
    joined.append(_INNER_NAME.sub(plain_name, between))
    if changed:
        repairs = (*repairs, REPAIRED_JSON)
    code = "".join(joined)
    try:
        tree = parse_expression(code)
        nodes = tree.elts if isinstance(tree, ast.List) else [tree]
        named = list(zip(nodes, names, strict=True))
        try:
            return tuple(_call(node, name, repairs, None) for node, name in named)
        except NotALiteral:
            if specs is None:
                raise
        words, repairs = _Words(code, specs), (*repairs, REPAIRED_JSON)
        return tuple(_call(node, name, repairs, words) for node, name in named)
    except (NotALiteral, ConflictingKeys, ValueError):
        return None


def _call(node: ast.expr, name: str, repairs: tuple[Repair, ...], words: _Words | None) -> RawCall:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise NotALiteral("no call")
    plan = words.plan(name) if words else None
    names = plan.names if plan else ()

    def value(written: ast.expr, argument: str) -> Any:
        is_word = isinstance(written, ast.Name) and written.id not in CONSTANTS
        return words.text(plan, written, argument) if words and is_word else literal_value(written)

    values = [value(arg, names[k] if k < len(names) else "") for k, arg in enumerate(node.args)]
    named: dict[str, object] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in named:
            raise NotALiteral("unpacked or repeated")
        named[keyword.arg] = value(keyword.value, keyword.arg)
    whole = words is None
    return RawCall(name, named, "python", repairs, positional=tuple(values), whole=whole)


class _Words:
    """Words without quotes as the texts that they are: `describe(wards)`.

    A word could also be the name of a variable or of the argument, or a constant of some language.
    So it is a text only for an argument that is text and nothing else, and never for a terminal
    tool: nothing is answered by a guess.

    Args:
        code: The source that was parsed.
        specs: The tools.
    """

    def __init__(self, code: str, specs: Mapping[str, ToolSpec]) -> None:
        # The tree has normalised the names, so they are taken from the source. Its columns count
        # bytes, and its lines end where those of `bytes.splitlines` do.
        self._lines = as_python(code).encode().splitlines()
        self._specs = specs

    def plan(self, name: str) -> Plan | None:
        """The arguments of a tool for which words may stand, if there is one of this name."""
        known = match_name(name, self._specs).name
        spec = self._specs[known] if known else None
        return plan_of(spec) if spec and not spec.terminal else None

    def text(self, plan: Plan | None, node: ast.expr, argument: str) -> str:
        """The word as it was written.

        Raises:
            NotALiteral: It cannot be a text here.
        """
        line = self._lines[node.lineno - 1]
        word = line[node.col_offset : node.end_col_offset].decode()
        is_text = plan is not None and argument in plan.texts and fold(word) not in plan.folded
        if not is_text or word.casefold() in _CONSTANTS:
            raise NotALiteral("a name")
        return word


# What Python, JSON, SQL or JavaScript means something else by than a text, in lower case.
_CONSTANTS = {
    *("true", "false", "null", "none", "nil", "undefined"),
    *("nan", "inf", "infinity", "ellipsis", "notimplemented", "__debug__"),
}


def _one_line(text: str) -> str:
    """A string literal whose raw line breaks are escaped, unless triple quotes allow them."""
    if text.startswith(('"""', "'''")):
        return text
    return text.replace("\n", "\\n").replace("\r", "\\r")


_CALL_OR_LIST = re.compile(r"\[|[^\W\d]")
_BETWEEN = re.compile(r"[\s;,]*+")


def read_python_calls(source: Source, begin: int, kind: str, *, sure: bool = True) -> Found:
    """Calls that stand in a list, or one behind the other, where a mark or a lead announces them.

    Args:
        kind: The name of the format.
        sure: Nothing else can stand here, so a call of an unknown tool is one.
    """
    calls: list[RawCall] = []
    end = position = begin
    open_at = -1
    while len(calls) < MAX_CALLS and _CALL_OR_LIST.match(source.text, position):
        read = read_python(source, position, sure=sure)
        if not read.calls:
            break
        calls.extend(replace(call, format=kind) for call in read.calls)
        end, open_at = read.end, read.open_at
        position = source.skip(end, _BETWEEN)
    if not calls and sure:
        unknown = _NAME.match(source.text, begin + source.text.startswith("[", begin))
        if unknown and not is_near(unknown.group(), source.specs):
            return Found((RawCall(unknown.group(), {}, kind),), unknown.end(), begin)
    return Found(tuple(calls), end, begin, open_at=open_at)
