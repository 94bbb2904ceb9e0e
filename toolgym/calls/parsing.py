"""The parser: from an action to the tool calls that it means.

Two pure functions, one behind the other: *find* (text, or an object that some library parsed, to
raw calls; `toolgym.calls.formats`) and *bind* (a raw call and the tools to a `ToolCall`;
`toolgym.calls.bind`). A plainly clean call takes a shorter way to the same result
(`toolgym.calls.parsing`). Whatever is repaired on the way is recorded by a code of the one table
`REPAIRS`, and whatever cannot be repaired is a `ToolCall` that carries a `ToolError` of the table
`CALL_ERRORS`. Nothing here raises, for any action whatever: no text, object or structure that a
model or a caller passes can end an episode.

    >>> from toolgym.tools import specs_from
    >>> tools = [{"name": "look", "parameters": {"properties": {"at": {"type": "string"}},
    ...                                           "required": ["at"]}}]
    >>> parse_calls('<tool_call>{"name": "look", "arguments": {"At": "sky"}}</tool_call>', tools)
    [ToolCall(name='look', arguments={'at': 'sky'}, repairs=('renamed_key',), error=None)]
    >>> parse_calls("I look at the sky.", tools)
    []
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from json.scanner import make_scanner
from typing import Any

from pydantic import ValidationError

from toolgym.calls import errors as call_errors
from toolgym.calls.bind import Parsing, ToolCall, attributes, bind
from toolgym.calls.formats import find_calls
from toolgym.calls.mend import TRUNCATED, JsonReader
from toolgym.calls.repairs import from_codes
from toolgym.calls.source import MAX_CALLS, RawCall, from_mapping
from toolgym.calls.tool_index import Plan, plan_of
from toolgym.errors import ToolError
from toolgym.tools import ToolSpec, specs_from

# The clean call, read without detours: what a trained model writes nearly always.
#
# One JSON object with a name and arguments, bare or in `<tool_call>` tags, for a tool that exists,
# with exactly its arguments, all of them text or none at all: finding and binding it the general
# way costs more than running a short query. `read_clean` recognises it in a few microseconds and
# gives the same call that the general way gives; whatever is not plainly clean is left to that way.

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_MARKS = ("<tool_call", "</tool_call", "<function=", "[TOOL_CALLS]", "<|", "</s>", "<end_of_turn>")
_THOUGHTS = re.compile("think|```|\\[/?THINK\\]")
REMEMBERED, MOST_REMEMBERED = 2_000, 4_096
"""Length of a text, and number of texts, up to which its call is kept: a group repeats itself."""
_read_before: dict[str, tuple[ToolSpec, dict[str, Any], bool]] = {}
_QUOTES = ("`", '"', "'")
_SPACE = " \t\n"
_BLANKS = " \t\n\r"
"""What JSON takes for a blank."""


def read_clean(
    text: str, specs: Mapping[str, ToolSpec], bare: bool
) -> tuple[str, dict[str, Any]] | None:
    """The name and the arguments of a clean call; None if the general way must look at the text.

    Args:
        bare: An object without tags is a call too.
    """
    cached = _read_before.get(text)
    if cached is not None:
        spec, arguments, tagged = cached
        if specs.get(spec.name) is spec and (bare or tagged):
            return spec.name, dict(arguments)
    body = text.strip(_SPACE)
    tagged = body.startswith(_OPEN) and body.endswith(_CLOSE)
    if tagged:
        call = _read(body[len(_OPEN) : -len(_CLOSE)].strip(_SPACE), specs)
    else:
        call = _read(body, specs) if bare else None
    if call is not None and len(text) <= REMEMBERED:
        if len(_read_before) >= MOST_REMEMBERED:
            _read_before.clear()
        _read_before[text] = specs[call[0]], dict(call[1]), tagged
    return call


def _read(body: str, specs: Mapping[str, ToolSpec]) -> tuple[str, dict[str, Any]] | None:
    """The call that the JSON object is, if it is clean."""
    if not body.startswith('{"name"') or _THOUGHTS.search(body):
        return None
    if ("<" in body or "[" in body) and any(map(body.__contains__, _MARKS)):
        return None
    try:
        pairs, end = _scan(body, 0)
    except (ValueError, RecursionError, StopIteration):
        return None
    if end != len(body) or len(pairs) != 2 or pairs[0][0] != "name" or pairs[1][0] != "arguments":
        return None
    if not pairs[1][1] and body[:-1].rstrip(_BLANKS)[-1] != "}":
        return None  # an empty array was written, or an empty text
    return _fitting(pairs[0][1], pairs[1][1], specs)


_scan: Callable[[str, int], tuple[Any, int]]
_scan = make_scanner(json.JSONDecoder(object_pairs_hook=list))  # type: ignore[arg-type]


def _fitting(
    name: Any, pairs: Any, specs: Mapping[str, ToolSpec]
) -> tuple[str, dict[str, Any]] | None:
    """The call, if all arguments are the tool's own and plain text."""
    spec = specs.get(name) if type(name) is str else None
    if spec is None or type(pairs) is not list:
        return None
    plan = plan_of(spec)
    written: dict[str, Any] = {}
    for pair in pairs:
        if type(pair) is not tuple or not _is_plain(plan, *pair):
            return None  # no tuple: an array was written, not an object
        written[pair[0]] = pair[1]
    if len(written) < len(pairs) or not plan.has_exactly(written):
        return None
    try:
        model = plan.validator.validate_python(written, strict=True)
    except ValidationError:
        return None
    return name, plan.chosen(model, written)


def _is_plain(plan: Plan, key: str, value: Any) -> bool:
    """Whether nothing about the argument could need a repair."""
    if type(value) is not str or key not in plan.texts or not value.isascii():
        return False
    return key not in plan.code or value.strip()[:1] not in _QUOTES


def parse_calls(action: Any, tools: Any, *, parsing: Parsing = "lenient") -> list[ToolCall]:
    """The calls that an action holds, in their order; never raises for any action.

    Args:
        action: Text; a call or an assistant message as a dict or as an object of the openai
            package; a list of those; or a `ToolCall`, which is bound again.
        tools: `ToolSpec`s, a mapping of them by name, or OpenAI function schemas.
        parsing: `lenient` repairs what it can; `strict` takes only valid Hermes text, or parsed
            calls, with exact names, keys and types.

    Returns:
        At most 32 calls; none if a text holds none. A call that must not be executed has its
        `error`. Of different calls of terminal tools only the first is returned, with an error,
        and no call behind it.

    Raises:
        TypeError: `tools` holds something that is no tool: the caller's mistake, not the agent's.
    """
    specs = specs_of(tools)
    clean = read_clean(action, specs, parsing == "lenient") if type(action) is str else None
    if clean is not None:
        return [ToolCall(*clean)]
    calls: list[ToolCall] = []
    for raw in _found_in(action, specs, parsing):
        calls.append(raw if isinstance(raw, ToolCall) else bind(raw, specs, parsing))
    return _with_one_answer(calls, specs)


def _with_one_answer(calls: list[ToolCall], specs: Mapping[str, ToolSpec]) -> list[ToolCall]:
    """The same calls; up to the first answer, now an error, where they hold different answers."""
    ends = [k for k, call in enumerate(calls) if _is_answer(call, specs)]
    if len(ends) < 2:
        return calls
    first, *others = (calls[k] for k in ends)
    if all(calls[k].error for k in ends) or all(_is_same(first, other) for other in others):
        return calls
    error = call_errors.several_answers(specs[first.name])
    return [*calls[: ends[0]], ToolCall(first.name, {}, first.repairs, error)]


def _is_answer(call: ToolCall, specs: Mapping[str, ToolSpec]) -> bool:
    return type(call.name) is str and call.name in specs and specs[call.name].terminal


def _is_same(call: ToolCall, other: ToolCall) -> bool:
    if call.error or other.error:
        return False
    return call.name == other.name and call.arguments == other.arguments


def bind_call(
    name: str,
    arguments: Any,
    tools: Any,
    parsing: Parsing = "lenient",
    *,
    args: Sequence[Any] = (),
) -> ToolCall:
    """Bind a call whose name and arguments are known apart.

    Args:
        arguments: A dict; a list is bound by position (as a repair).
        tools: As for `parse_calls`.
        parsing: `lenient` or `strict`.
        args: Values for the first arguments that were given by position in Python, where that is
            no mistake and so no repair.
    """
    return bind(RawCall(name, arguments, "parsed"), specs_of(tools), parsing, args)


_ONLY_SPECS = frozenset({ToolSpec})


def specs_of(tools: Any) -> Mapping[str, ToolSpec]:
    """The tools by name; a dict of `ToolSpec` is used as it is."""
    if type(tools) is dict and _ONLY_SPECS.issuperset(map(type, tools.values())):
        return tools
    return specs_from(tools)


def formats_in(text: str, tools: Any) -> list[str]:
    """The names of the formats that the calls of a text are written in, in their order.

    Several formats with one mark are told by the first of them. Calls that cannot be read count
    too, with the format whose mark they have.

    Args:
        tools: As for `parse_calls`.
    """
    return [call.format for call in find_calls(text, specs_of(tools))]


def _found_in(action: Any, specs: Mapping[str, ToolSpec], parsing: Parsing) -> list[Any]:
    """Raw calls of an action, or ToolCalls where no more binding is needed."""
    kind = type(action)
    if issubclass(kind, str):
        return _in_text(str.__str__(action), specs, parsing)
    if issubclass(kind, (list, tuple)):
        entries = list.__iter__(action) if issubclass(kind, list) else tuple.__iter__(action)
        first = [entry for entry, _ in zip(entries, range(MAX_CALLS), strict=False)]
        calls = [raw for entry in first for raw in _in_object(entry, specs, parsing)]
        return calls[:MAX_CALLS]
    return _in_object(action, specs, parsing)


def _in_text(text: str, specs: Mapping[str, ToolSpec], parsing: Parsing) -> list[RawCall]:
    calls = find_calls(text, specs)
    return [raw for raw in calls if parsing == "lenient" or raw.format == "hermes"]


def _in_object(entry: Any, specs: Mapping[str, ToolSpec], parsing: Parsing) -> list[Any]:
    """Calls of one object: a ToolCall, a call as a dict, a whole message, or an SDK's object."""
    kind = type(entry)
    if kind is ToolCall:
        is_tool_error = issubclass(type(entry.error), ToolError)
        raw = RawCall(entry.name, entry.arguments, "parsed", from_codes(entry.repairs))
        return [entry if is_tool_error else raw]
    fields = entry if issubclass(kind, dict) else attributes(entry)
    if fields is None or (not issubclass(kind, dict) and not _CALL_FIELDS & fields.keys()):
        return [RawCall("", {}, "parsed", error=call_errors.bad_action(kind.__name__, specs))]
    fields = dict.copy(fields)
    calls = fields.get("tool_calls")
    if issubclass(type(calls), (list, tuple)) and calls:
        return [_parsed(_fields_of(call), specs) for call in list(calls)[:MAX_CALLS]]
    if "content" in fields and "name" not in fields and "function" not in fields:
        return list(_in_text(_content(fields["content"]), specs, parsing))
    return [_parsed(fields, specs)]


_CALL_FIELDS = {"tool_calls", "function", "name", "content"}


def _fields_of(entry: Any) -> dict[Any, Any] | None:
    if issubclass(type(entry), dict):
        return dict.copy(entry)
    return attributes(entry)


def _parsed(fields: dict[Any, Any] | None, specs: Mapping[str, ToolSpec]) -> RawCall:
    """A call that some library parsed; its arguments may be JSON text, as OpenAI has it."""
    if fields is None:
        return RawCall("", {}, "parsed", error=call_errors.bad_action("object", specs))
    inner = fields.get("function")
    if inner is not None and not issubclass(type(inner), str):
        fields = _fields_of(inner) or {}
    raw = from_mapping(fields, "parsed", specs)
    if raw.error or type(raw.arguments) is not str:
        return raw
    text = raw.arguments.strip()
    if not text.startswith("{"):
        return raw if text else RawCall(raw.name, {}, "parsed", raw.repairs)
    read = JsonReader(text).read(0, len(text))
    if not read.problem and text[read.end :].strip():
        read.problem = "something stands behind its arguments"
    if read.problem:
        error = call_errors.unreadable(read.problem == TRUNCATED, read.problem, specs)
        return RawCall(raw.name, {}, "parsed", raw.repairs, error)
    return RawCall(raw.name, read.value, "parsed", (*raw.repairs, *read.repairs))


def _content(content: Any) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if issubclass(type(content), str):
        return str.__str__(content)
    if type(content) is not list:
        return ""
    parts = [part.get("text") for part in content if type(part) is dict]
    return "\n".join(part for part in parts if type(part) is str)
