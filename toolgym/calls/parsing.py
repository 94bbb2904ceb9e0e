"""The parser of actions: `parse_calls` returns the tool calls in text or in an object.

`parse_calls` finds raw calls in text (`toolgym.calls.find`) or in an object that a library parsed,
and binds each to its tool (`toolgym.calls.bind`). Text that consists of one valid call takes a
faster path with the same result. Each repair is recorded by its code, as listed in the table
`REPAIRS`. A call that cannot be repaired becomes a `ToolCall` with a `ToolError` whose code is in
the table `CALL_ERRORS`. `parse_calls` raises no exception for any action.

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
from toolgym.calls.bind import Parsing, RawCall, ToolCall, attributes, bind, plain
from toolgym.calls.find import MAX_CALLS, find_calls, from_mapping
from toolgym.calls.formats import CONTROL_TEXTS, HERMES, alternatives
from toolgym.calls.mend import TRUNCATED, JsonReader
from toolgym.calls.repairs import BARE_ARGUMENT, from_codes
from toolgym.calls.tool_index import plan_of
from toolgym.errors import ToolError
from toolgym.tools import ToolSpec, specs_from


def parse_calls(action: Any, tools: Any, *, parsing: Parsing = "lenient") -> list[ToolCall]:
    """Return the calls in an action, in order.

    No exception is raised for any action, whatever its type.

    Args:
        action: A string; a call or an assistant message, as a dict or as an object of the openai
            package; a list of these; or a `ToolCall`, which is bound again.
        tools: `ToolSpec`s, a mapping of them by name, or OpenAI function schemas.
        parsing: `lenient` repairs mistakes. `strict` accepts only valid Hermes text, or parsed
            calls, with exact names, keys and types.

    Returns:
        At most 32 calls, or none for text without calls. A call that must not be executed has an
        `error`. If there are different calls of terminal tools, the first one gets an error, and
        the calls after it are omitted.

    Raises:
        TypeError: `tools` contains an object that is not a tool.
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
    """Return the call if the text is one valid JSON object for a tool, or else None.

    Trained models mostly generate such calls, and the rollouts of a group repeat them, so results
    are cached. The result is the same as that of finding and binding.
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
    """Return the tool, the arguments (strings only), and whether the object is in tags."""
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
    for argument, value in written:
        if type(value) is not str or argument not in plan.texts:
            return None
        if not value.isascii() or value.strip()[:1] in ("`", '"', "'"):
            return None
    if len(arguments) < len(written) or not plan.has_exactly(arguments):
        return None
    return spec, plan.chosen(model, arguments), tagged


def _with_one_answer(calls: list[ToolCall], specs: Mapping[str, ToolSpec]) -> list[ToolCall]:
    """Return the calls.

    If they contain different answers, return only the calls up to the first answer, which gets an
    error.
    """
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
    """Bind a call with the given name and arguments.

    Args:
        name: Name of the tool.
        arguments: The arguments as a dict. The values of a list are bound by position, which is
            recorded as a repair.
        tools: As for `parse_calls`.
        parsing: `lenient` or `strict`.
        args: Values of positional arguments that Python code passed, which do not count as a
            repair.
    """
    return bind(RawCall(name, arguments, "parsed"), specs_of(tools), parsing, args)


_ONLY_SPECS = frozenset({ToolSpec})


def specs_of(tools: Any) -> Mapping[str, ToolSpec]:
    """Return the tools by name; a dict of `ToolSpec` is returned unchanged."""
    if type(tools) is dict and _ONLY_SPECS.issuperset(map(type, tools.values())):
        return tools
    return specs_from(tools)


def formats_in(text: str, tools: Any) -> list[str]:
    """Return the format names of the calls in the text, in order.

    If several formats open a call with the same string, the name belongs to the first format that
    can read the call, or to the first format if none can read it.

    Args:
        text: Text generated by a model.
        tools: As for `parse_calls`.
    """
    return [call.format for call in find_calls(text, specs_of(tools))]


def _found_in(action: Any, specs: Mapping[str, ToolSpec], parsing: Parsing) -> list[Any]:
    """Return the raw calls of an action, or `ToolCall`s if they need no binding."""
    kind = type(action)
    if issubclass(kind, str):
        return _in_text(str.__str__(action), specs, parsing)
    if issubclass(kind, (list, tuple)):
        entries = list.__iter__(action) if issubclass(kind, list) else tuple.__iter__(action)
        first = [entry for entry, _ in zip(entries, range(MAX_CALLS), strict=False)]
        calls = [raw for entry in first for raw in _in_object(entry, specs, parsing)]
        return calls[:MAX_CALLS]
    return _in_object(action, specs, parsing)


def _in_text(text: str, specs: Mapping[str, ToolSpec], parsing: Parsing) -> list[Any]:
    """Return the raw calls in the text.

    If there are none and the text is only an argument, return the call with this argument.
    """
    found = find_calls(text, specs)
    calls: list[Any] = [raw for raw in found if parsing == "lenient" or raw.format == HERMES]
    for spec in () if calls else specs.values():
        if spec.bare is not None and (spec.hidden or parsing == "lenient"):
            arguments = spec.bare(plain(text)[0])
            if arguments is not None:
                repairs = () if spec.hidden else (BARE_ARGUMENT.code,)
                return [ToolCall(spec.name, arguments, repairs)]
    return calls


def _in_object(entry: Any, specs: Mapping[str, ToolSpec], parsing: Parsing) -> list[Any]:
    """Return the calls of a `ToolCall`, a call as a dict, a message, or an object of an SDK."""
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
    """Return a call that a library parsed; its arguments may be JSON text, as in OpenAI's API."""
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
        problem = "its arguments are followed by other text"
    if problem:
        error = call_errors.unreadable(problem == TRUNCATED, problem, specs)
        return replace(raw, arguments={}, error=error)
    return replace(raw, arguments=read.value, repairs=(*raw.repairs, *read.repairs))


def _content(content: Any) -> str:
    """Return the text of a message's content: a string, or the text parts of a list."""
    if issubclass(type(content), str):
        return str.__str__(content)
    if type(content) is not list:
        return ""
    parts = [part.get("text") for part in content if type(part) is dict]
    return "\n".join(part for part in parts if type(part) is str)


@functools.cache
def _control_texts() -> re.Pattern[str]:
    """Return the pattern of all control strings of the formats."""
    return re.compile("|".join(alternatives(CONTROL_TEXTS)))


def render_call(call: ToolCall | str, arguments: Mapping[str, Any] | None = None) -> str:
    """Return the text of a call in the format of Hermes and Qwen, to be parsed without repairs.

    Control strings in values are escaped, so that no tokenizer or parser interprets them.

    Args:
        call: A call, or the name of a tool.
        arguments: The arguments of the call, if `call` is only a name.

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
    """Return the text of several calls in one message."""
    return "\n".join(map(render_call, calls))
