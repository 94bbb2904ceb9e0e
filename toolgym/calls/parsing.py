"""The parser: from an action to the tool calls that it means.

`parse_calls` first finds raw calls in a text (`toolgym.calls.find`) or in an object that some
library parsed, and then binds each to its tool (`toolgym.calls.bind`). A text that is one clean
call takes a shorter way to the same result. Repairs are recorded by their codes in the table
`REPAIRS`. A call that cannot be repaired is a `ToolCall` with a `ToolError` of the table
`CALL_ERRORS`. No text, object or structure that a model or a caller passes raises an exception.

    >>> from toolgym.tools import specs_from
    >>> tools = [{"name": "look", "parameters": {"properties": {"at": {"type": "string"}},
    ...                                           "required": ["at"]}}]
    >>> parse_calls('<tool_call>{"name": "look", "arguments": {"At": "sky"}}</tool_call>', tools)
    [ToolCall(name='look', arguments={'at': 'sky'}, repairs=('renamed_key',), error=None)]
    >>> parse_calls("I look at the sky.", tools)
    []
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolgym.calls import errors as call_errors
from toolgym.calls.bind import Parsing, RawCall, ToolCall, attributes, bind
from toolgym.calls.find import MAX_CALLS, find_calls, from_mapping
from toolgym.calls.formats import CONTROL_TEXTS, HERMES, alternatives
from toolgym.calls.mend import TRUNCATED, JsonReader
from toolgym.calls.repairs import from_codes
from toolgym.calls.tool_index import plan_of
from toolgym.errors import ToolError
from toolgym.tools import ToolSpec, specs_from


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
    if type(action) is str and (clean := _clean_call(action, specs, parsing)):
        return [clean]
    calls: list[ToolCall] = []
    for raw in _found_in(action, specs, parsing):
        calls.append(raw if isinstance(raw, ToolCall) else bind(raw, specs, parsing))
    return _with_one_answer(calls, specs)


_MEMBERS = json.JSONDecoder(object_pairs_hook=tuple)
_Clean = tuple[ToolSpec, dict[str, Any], bool]
_read_before: dict[str, _Clean] = {}
_MOST_REMEMBERED = 4_096
_LONGEST_REMEMBERED = 2_000  # characters


def _clean_call(text: str, specs: Mapping[str, ToolSpec], parsing: Parsing) -> ToolCall | None:
    """The call of a text that is one JSON object and fits its tool as it is; None for other texts.

    Trained models write little else, and the rollouts of a group write the same texts, which are
    read once. The result is that of finding and binding.
    """
    clean = _read_before.get(text)
    if clean is None or specs.get(clean[0].name) is not clean[0]:
        clean = _read_clean(text, specs)
        if clean is None:
            return None
        if len(text) <= _LONGEST_REMEMBERED:
            if len(_read_before) >= _MOST_REMEMBERED:
                _read_before.clear()
            _read_before[text] = clean
    spec, arguments, tagged = clean
    return ToolCall(spec.name, dict(arguments)) if tagged or parsing == "lenient" else None


def _read_clean(text: str, specs: Mapping[str, ToolSpec]) -> _Clean | None:
    """The tool, the arguments (texts only), and whether the object is in tags."""
    body = text.strip(" \t\n")
    tagged = body.startswith("<tool_call>") and body.endswith("</tool_call>")
    if tagged:
        body = body[11:-12].strip(" \t\n")
    if not body.startswith('{"name"'):
        return None
    try:
        members, end = _MEMBERS.raw_decode(body)  # objects are tuples, arrays are lists
        (_, name), (key, written) = members
        spec, arguments = specs[name], dict(written)
        plan = plan_of(spec)
        model = plan.validator.validate_python(arguments, strict=True)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if end < len(body) or key != "arguments" or type(written) is not tuple:
        return None
    for name_of, value in written:
        if type(value) is not str or name_of not in plan.texts:
            return None
        if not value.isascii() or value.strip()[:1] in ("`", '"', "'"):
            return None
    if len(arguments) < len(written) or not plan.has_exactly(arguments):
        return None
    return spec, plan.chosen(model, arguments), tagged


def _with_one_answer(calls: list[ToolCall], specs: Mapping[str, ToolSpec]) -> list[ToolCall]:
    """The same calls; up to the first answer, now an error, where they hold different answers."""
    terminal = {name for name, spec in specs.items() if spec.terminal}
    ends = [k for k, call in enumerate(calls) if type(call.name) is str and call.name in terminal]
    answers = [calls[k] for k in ends]
    if len(answers) < 2 or all(call.error for call in answers):
        return calls
    first = answers[0]
    if not any(call.error for call in answers) and all(
        (call.name, call.arguments) == (first.name, first.arguments) for call in answers
    ):
        return calls
    error = call_errors.several_answers(specs[first.name])
    return [*calls[: ends[0]], ToolCall(first.name, {}, first.repairs, error)]


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

    Of several formats with one mark, the first that reads the call gives its name. Calls that
    cannot be read have the name of the first format with their mark.

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
    return [raw for raw in calls if parsing == "lenient" or raw.format == HERMES]


def _in_object(entry: Any, specs: Mapping[str, ToolSpec], parsing: Parsing) -> list[Any]:
    """Calls of one object: a ToolCall, a call as a dict, a whole message, or an SDK's object."""
    kind = type(entry)
    if kind is ToolCall:
        is_tool_error = issubclass(type(entry.error), ToolError)
        raw = RawCall(entry.name, entry.arguments, "parsed", from_codes(entry.repairs))
        return [entry if is_tool_error else raw]
    fields = _fields_of(entry)
    if fields is None or not (issubclass(kind, dict) or _CALL_FIELDS & fields.keys()):
        return [RawCall("", {}, "parsed", error=call_errors.bad_action(kind.__name__, specs))]
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
        return raw if text else replace(raw, arguments={})
    read = JsonReader(text).read(0, len(text))
    problem = read.problem
    if not problem and text[read.end :].strip():
        problem = "something follows its arguments"
    if problem:
        error = call_errors.unreadable(problem == TRUNCATED, problem, specs)
        return replace(raw, arguments={}, error=error)
    return replace(raw, arguments=read.value, repairs=(*raw.repairs, *read.repairs))


def _content(content: Any) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if issubclass(type(content), str):
        return str.__str__(content)
    if type(content) is not list:
        return ""
    parts = [part.get("text") for part in content if type(part) is dict]
    return "\n".join(part for part in parts if type(part) is str)


@functools.cache
def _control_texts() -> re.Pattern[str]:
    """The pattern of every control text of a format."""
    return re.compile("|".join(alternatives(CONTROL_TEXTS)))


def render_call(call: ToolCall | str, arguments: Mapping[str, Any] | None = None) -> str:
    """The text of a call as Hermes and Qwen write it; it parses back with no repair.

    A control text in a value is escaped, so no tokenizer or parser takes it for one.

    Args:
        call: A call, or the name of a tool.
        arguments: The arguments, if only a name was given.

    >>> print(render_call("look", {"at": "sky"}))
    <tool_call>
    {"name": "look", "arguments": {"at": "sky"}}
    </tool_call>
    """
    if not isinstance(call, ToolCall):
        call = ToolCall(call, dict(arguments or {}))
    text = json.dumps(call.to_json(), ensure_ascii=False)
    text = _control_texts().sub(lambda found: f"\\u{ord(found[0][0]):04x}{found[0][1:]}", text)
    return f"<tool_call>\n{text}\n</tool_call>"


def render_calls(calls: Iterable[ToolCall]) -> str:
    """The text of several calls in one message."""
    return "\n".join(map(render_call, calls))
