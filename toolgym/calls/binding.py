"""A raw call and the tools -> a `ToolCall` whose arguments fit, or one that carries its error.

The schema that a model is shown is strict; what is accepted is lenient, and every difference is
recorded as a repair. A clean call takes the first branch of `_fit` and nothing else. The order
otherwise: the tool's name, then the shape of the arguments, then their keys, then their values.
Where two readings are possible there is an error and no guess.

Under strict parsing nothing is repaired. What strict accepts, lenient accepts with the same
result; the one exception is a code fence around code, which lenient strips and strict hands to
the tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolgym.calls import arguments as argument_keys
from toolgym.calls import arguments as argument_values
from toolgym.calls import errors as call_errors
from toolgym.calls.plain_values import NotPlain, PlainCopy
from toolgym.calls.repairs import (
    POSITIONAL_ARGUMENTS,
    RENAMED_TOOL,
    REPLACED_SURROGATE,
    Repair,
    in_order,
)
from toolgym.calls.source import RawCall
from toolgym.calls.tool_index import MAX_NAME, Plan, match_name, plan_of
from toolgym.errors import ToolError
from toolgym.tools import ToolSpec

Parsing = Literal["lenient", "strict"]
Specs = Mapping[str, ToolSpec]


@dataclass(frozen=True)
class ToolCall:
    """One call of one tool, ready to be executed unless it carries an error.

    Attributes:
        name: The tool's name; on an error, the name as written.
        arguments: Values by argument name, of the types that the tool declares. Arguments left to
            their defaults are absent. On an error, what was written, as far as it could be read.
        repairs: Codes of the repairs that were needed, in the order of `REPAIRS`, each once.
        error: Why the call must not be executed, or None.

    >>> ToolCall("look", {"at": "sky"}) == ToolCall("look", {"at": "sky"})
    True
    """

    name: str
    arguments: dict[str, Any]
    repairs: tuple[str, ...] = ()
    error: ToolError | None = None

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.arguments), self.repairs))


def bind(
    raw: RawCall, specs: Specs, parsing: Parsing = "lenient", first: Sequence[Any] = ()
) -> ToolCall:
    """Bind one raw call; never raises.

    Args:
        raw: The call as found.
        parsing: `lenient` repairs, `strict` does not.
        first: Values for the tool's first arguments, given by position in Python (no repair).
    """
    copied = PlainCopy()
    try:
        name, arguments, values, unnamed = copied.of(
            (raw.name, raw.arguments, tuple(first), raw.positional)
        )
    except NotPlain as problem:
        name = raw.name[:MAX_NAME] if type(raw.name) is str and raw.name.isascii() else ""
        error = raw.error or call_errors.malformed_call(str(problem), specs)
        return ToolCall(name, {}, in_order(raw.repairs), error)
    if copied.replaced:
        raw = raw.with_repairs(REPLACED_SURROGATE)
    if raw.error is not None:
        return _failed(name, arguments, raw.repairs, raw.error)
    if not isinstance(name, str) or not name:
        error = call_errors.malformed_call("it has no tool name", specs)
        return _failed(name, arguments, raw.repairs, error)
    if unnamed:
        raw = raw.with_repairs(POSITIONAL_ARGUMENTS)
        values = [*values, *unnamed]
    clean = RawCall(  # what binding needs of it; `dataclasses.replace` takes longer
        name, arguments, raw.format, raw.repairs, textual=raw.textual, unfinished=raw.unfinished
    )
    return (
        _bind_strict(clean, specs, values) if parsing == "strict" else _bind(clean, specs, values)
    )


def _bind(raw: RawCall, specs: Specs, first: list[Any]) -> ToolCall:
    match = match_name(raw.name, specs)
    repairs: list[Repair] = list(raw.repairs)
    if match.name is None:
        error = call_errors.unknown_tool(raw.name[:MAX_NAME], match.near, specs)
        return _failed(raw.name, raw.arguments, repairs, error)
    plan = plan_of(specs[match.name])
    if match.name != raw.name:
        repairs.append(RENAMED_TOOL)
    try:
        arguments = _fit(plan, raw, first, specs, repairs)
    except ToolError as error:
        return _failed(match.name, raw.arguments, repairs, error)
    return ToolCall(match.name, arguments, in_order(repairs))


def _fit(
    plan: Plan, raw: RawCall, first: list[Any], specs: Specs, repairs: list[Repair]
) -> dict[str, Any]:
    """Arguments that fit the plan; adds what it repaired to `repairs`, raises a `ToolError`."""
    written = raw.arguments
    if first or not (isinstance(written, dict) and plan.has_exactly(written)):
        shaped = argument_keys.shape(plan, written, first, specs, repairs)
        if raw.textual:
            shaped = argument_values.decode_text(plan, shaped)
        written = argument_keys.match(plan, shaped, specs, repairs)
    elif raw.textual:
        written = argument_keys.match(
            plan, argument_values.decode_text(plan, written), specs, repairs
        )
    written = argument_values.strip_code(plan, written, repairs)
    if raw.unfinished and any(name not in written for name in plan.names):
        raise call_errors.truncated_call(specs)  # the arguments that are absent may be cut off
    return argument_values.fit(plan, written, repairs)


def _bind_strict(raw: RawCall, specs: Specs, first: list[Any]) -> ToolCall:
    """The wall: exact name, exact keys, exact types, nothing repaired."""
    written = {} if raw.arguments is None else raw.arguments
    if raw.repairs:
        error = call_errors.malformed_call("it is not valid JSON in <tool_call> tags", specs)
        return _failed(raw.name, written, (), error)
    if raw.name not in specs:
        error = call_errors.unknown_tool(raw.name[:MAX_NAME], (), specs)
        return _failed(raw.name, written, (), error)
    spec = specs[raw.name]
    plan = plan_of(spec)
    if not isinstance(written, dict):
        error = call_errors.malformed_call("its arguments must be an object", specs)
        return _failed(raw.name, written, (), error)
    try:
        written = {**argument_keys.by_position(plan, first, written), **written}
        unknown = next((key for key in written if key not in plan.names), None)
        if unknown is not None:
            raise call_errors.unexpected_argument(spec, unknown)
        missing = [name for name in plan.required if name not in written]
        if missing:
            raise call_errors.missing_argument(spec, missing)
        return ToolCall(raw.name, argument_values.fit_exactly(plan, written))
    except ToolError as error:
        return _failed(raw.name, raw.arguments, (), error)


def _failed(name: Any, written: Any, repairs: Sequence[Repair], error: ToolError) -> ToolCall:
    shown = name[:MAX_NAME] if isinstance(name, str) else ""
    arguments = written if isinstance(written, dict) else {}
    return ToolCall(shown, argument_values.finite(arguments), in_order(repairs), error)
