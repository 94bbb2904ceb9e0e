"""The keys of a call's arguments: from whatever shape was written to the names that the tool has.

First the shape (`shape`): arguments inside a JSON string, inside one more object, or by position.
Then the keys (`match`): nulls that mean "not given", names spelt another way, the one name that
is left for the one argument that is missing, and what is left over at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolgym.calls import errors as call_errors
from toolgym.calls.argument_plan import Plan
from toolgym.calls.argument_values import fits
from toolgym.calls.plain_values import plain_json
from toolgym.calls.repairs import (
    DECODED_ARGUMENTS,
    DROPPED_ARGUMENT,
    DROPPED_NULL,
    POSITIONAL_ARGUMENTS,
    RENAMED_KEY,
    UNWRAPPED_ARGUMENTS,
    Repair,
)
from toolgym.calls.tool_names import fold
from toolgym.tools import ToolSpec

WRAPPERS = ("arguments", "parameters", "args", "input", "kwargs", "params", "tool_input")
MAX_WRAPPED = 4  # an object in an object in an object ...


def shape(plan: Plan, written: Any, first: Sequence[Any], repairs: list[Repair]) -> dict[str, Any]:
    """A mapping of arguments out of whatever was written in their place.

    Raises:
        ToolError: Values by position do not fit the signature.
    """
    for _ in range(MAX_WRAPPED):
        inner = _decoded(written)
        if inner is not written:
            repairs.append(DECODED_ARGUMENTS)
            written = inner
        key = _wrapper(plan, written)
        if key is None:
            break
        repairs.append(UNWRAPPED_ARGUMENTS)
        if any(name != key for name in written):
            repairs.append(DROPPED_NULL)
        written = written[key]
    named = written if isinstance(written, dict) else {}
    values: list[Any] = []
    if not isinstance(written, dict) and written is not None:
        values = _values(plan, written, repairs)
        repairs.append(POSITIONAL_ARGUMENTS)
    return {**by_position(plan, [*first, *values], named), **named}


def by_position(plan: Plan, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Values given to the first arguments of the signature.

    Raises:
        ToolError: There are more values than arguments, or one is named as well.
    """
    if len(values) > len(plan.names):
        reason = f"{len(values)} values were given for {len(plan.names)} arguments"
        raise call_errors.invalid_argument(plan.spec, f"#{len(plan.names) + 1}", reason)
    placed = dict(zip(plan.names, values, strict=False))
    for name in placed:
        if named.get(name) is not None:
            raise call_errors.ambiguous_argument(plan.spec, name, ["#1", name])
    return placed


def match(
    plan: Plan, written: dict[str, Any], specs: Mapping[str, ToolSpec], repairs: list[Repair]
) -> dict[str, Any]:
    """The same arguments under the names that the tool has.

    Raises:
        ToolError: A required argument is missing, or several values could be meant for one.
    """
    known = {key: value for key, value in written.items() if key in plan.names}
    spare = {key: value for key, value in written.items() if key not in plan.names}
    nulls = [k for k, v in known.items() if v is None and k not in plan.nullable]
    nulls += [key for key, value in spare.items() if value is None]
    for key in nulls:
        known.pop(key, None)
        spare.pop(key, None)
    _respell(plan, known, spare, repairs)
    missing = [name for name in plan.required if name not in known]
    if missing:
        _fill(plan, missing, known, spare, specs, repairs)
    if nulls:
        repairs.append(DROPPED_NULL)
    if spare:
        repairs.append(DROPPED_ARGUMENT)
    return known


def _respell(
    plan: Plan, known: dict[str, Any], spare: dict[str, Any], repairs: list[Repair]
) -> None:
    """Move keys that differ from an absent argument in case and separators only."""
    claims: dict[str, list[str]] = {}
    for key in spare:
        name = plan.folded.get(fold(key))
        if name is not None and name not in known:
            claims.setdefault(name, []).append(key)
    for name, keys in claims.items():
        if len(keys) > 1:
            raise call_errors.ambiguous_argument(plan.spec, name, keys)
        known[name] = spare.pop(keys[0])
        repairs.append(RENAMED_KEY)


def _fill(
    plan: Plan,
    missing: list[str],
    known: dict[str, Any],
    spare: dict[str, Any],
    specs: Mapping[str, ToolSpec],
    repairs: list[Repair],
) -> None:
    """Give the one key left over to the one argument missing.

    For a terminal tool not if another tool has an argument of that name: the value was then meant
    for that tool, and must not end the episode.
    """
    candidates = list(spare)
    if plan.spec.terminal:
        foreign = {key for spec in specs.values() for key in spec.arguments.model_fields}
        candidates = [key for key in spare if key not in foreign]
    if len(missing) > 1 or not candidates:
        raise call_errors.missing_argument(plan.spec, missing)
    if len(spare) > 1:
        raise call_errors.ambiguous_argument(plan.spec, missing[0], list(spare))
    known[missing[0]] = spare.pop(candidates[0])
    repairs.append(RENAMED_KEY)


def _decoded(written: Any) -> Any:
    """The object or list that a text holds as JSON; the same object if it holds none."""
    if not isinstance(written, str) or written.lstrip()[:1] not in ("{", "["):
        return written
    try:
        found = plain_json(written, strict=False)
    except ValueError:
        return written
    return found if isinstance(found, (dict, list)) else written


def _wrapper(plan: Plan, written: Any) -> str | None:
    """The key under which all arguments lie one level deeper, if there is one."""
    if not isinstance(written, dict):
        return None
    filled = [key for key, value in written.items() if value is not None]
    if len(filled) != 1 or filled[0] not in WRAPPERS or filled[0] in plan.names:
        return None
    inner = _decoded(written[filled[0]])
    return filled[0] if isinstance(inner, dict) else None


def _values(plan: Plan, written: Any, repairs: list[Repair]) -> list[Any]:
    """Values by position; a list that can only be the one argument's own value is that value."""
    if not isinstance(written, list):
        return [written]
    values = list(written)
    while len(values) > len(plan.names) and values[-1] is None:
        values.pop()
        repairs.append(DROPPED_NULL)
    if len(plan.names) == 1 and len(values) != 1 and fits(plan, plan.names[0], written):
        return [written]
    return values
