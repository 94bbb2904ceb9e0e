"""Calls written as Python: `describe(table_name="singer")`, `[describe("a"), sample("b")]`.

The source is parsed and its arguments are read as literals; nothing is evaluated. A name in front
of a bracket is also how prose talks about a tool, so a call must begin its line, end its line,
name a tool that exists, and hold literals only; anything less is prose, except where the whole
message is the call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from toolgym.calls import errors as call_errors
from toolgym.calls.json_reading import (
    MAX_MENDED,
    ConflictingKeys,
    NotALiteral,
    literal_value,
    outline,
    parse_expression,
)
from toolgym.calls.raw import RawCall
from toolgym.calls.repairs import REPAIRED_JSON, Repair
from toolgym.calls.tool_names import match_name
from toolgym.tools import ToolSpec

_NAME = re.compile(r"[A-Za-z_][\w.\-/:]*(?=\()")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|"[^"\\]*(?:\\.[^"\\]*)*"|\'[^\'\\]*(?:\\.[^\'\\]*)*\'',
    re.DOTALL,
)
_VALUE = re.compile(r"\s*(?:\w+\s*=|[\"'\[{]|-?[\d.]+\s*$)")  # how an argument begins
_LINE_END = re.compile(r"[ \t]*[;`]*[ \t]*(?:#[^\n]*)?(?=\n|$|</tool_call>)")


@dataclass(frozen=True)
class PythonRead:
    """Calls read up to `end`; no calls means that the text is prose."""

    calls: tuple[RawCall, ...]
    end: int


def read_python(
    text: str, start: int, specs: Mapping[str, ToolSpec], *, sure: bool = False
) -> PythonRead:
    """Read a call, or a list of calls, that begins at `start`.

    Args:
        text: The message.
        start: Where a name, or the bracket of a list, stands.
        specs: The tools by name.
        sure: A tag says that this is a call, so what cannot be read is an error, not prose.
    """
    listed = text[start] == "["
    first = _NAME.match(text, start + 1 if listed else start)
    whole = sure or not text[:start].strip()
    if not first or (not match_name(first.group(), specs).near and first.group() not in specs):
        return PythonRead((), start)
    window = text[start : start + MAX_MENDED]
    shape = outline(window if listed else window[first.end() - start :])
    offset = start if listed else first.end()
    if shape.end is None:
        return _unclosed(text, start, offset, shape.complete, shape.closers, specs)
    end = offset + shape.end
    tail = _LINE_END.match(text, end)
    if tail is None and not sure:
        return PythonRead((), start)
    source = text[start:end]
    calls = _calls(source, ())
    if calls is None:
        alone = whole and first.group() in specs and not text[end:].strip(" \t\n;`")
        calls = _unreadable(first.group(), specs) if alone else ()
    return PythonRead(calls, tail.end() if tail else end)


def _unclosed(
    text: str, start: int, offset: int, complete: bool, closers: str, specs: Mapping[str, ToolSpec]
) -> PythonRead:
    """A call whose bracket stays open: mended behind a whole value, an error inside of one."""
    name = text[start:offset].lstrip("[") or "["
    calls = _calls(text[start:].rstrip() + closers, (REPAIRED_JSON,)) if complete else None
    if calls is not None:
        return PythonRead(calls, len(text))
    if name in specs and _VALUE.match(text, offset + 1):
        error = call_errors.truncated_call(specs)
        return PythonRead((RawCall(name, {}, "python", error=error),), len(text))
    return PythonRead((), start)


def _unreadable(name: str, specs: Mapping[str, ToolSpec]) -> tuple[RawCall, ...]:
    error = call_errors.malformed_call("its arguments must be literal values", specs)
    return (RawCall(name, {}, "python", error=error),)


def _calls(source: str, repairs: tuple[Repair, ...]) -> tuple[RawCall, ...] | None:
    """The calls in Python source, or None if it is anything but calls of literals."""
    names: list[str] = []

    def plain_name(found: re.Match[str]) -> str:
        names.append(found.group())
        return "f"  # names such as `tools/describe` are no Python

    mended = _STRING.sub(_one_line, source)
    if mended != source:
        repairs = (*repairs, REPAIRED_JSON)
    pieces = _STRING.split(mended)
    strings = [*_STRING.findall(mended), ""]
    joined = "".join(
        _NAME.sub(plain_name, piece) + string for piece, string in zip(pieces, strings, strict=True)
    )
    try:
        tree = parse_expression(joined)
        nodes = tree.elts if isinstance(tree, ast.List) else [tree]
        return tuple(_call(node, name, repairs) for node, name in zip(nodes, names, strict=True))
    except (NotALiteral, ConflictingKeys, ValueError):
        return None


def _call(node: ast.expr, name: str, repairs: tuple[Repair, ...]) -> RawCall:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise NotALiteral("no call")
    values = [literal_value(value) for value in node.args]
    named: dict[str, object] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in named:
            raise NotALiteral("unpacked or repeated")
        named[keyword.arg] = literal_value(keyword.value)
    return RawCall(name, named, "python", repairs, positional=tuple(values))


def _one_line(found: re.Match[str]) -> str:
    """A string literal whose raw line breaks are escaped, unless triple quotes allow them."""
    text = found.group()
    if text.startswith('"""'):
        return text
    return text.replace("\n", "\\n").replace("\r", "\\r")
