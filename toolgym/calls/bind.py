"""Matches raw calls to tools and validates their arguments.

The result is a `ToolCall` with valid arguments or with an error.

The schema in the prompt is strict, but binding is lenient and records every deviation from the
schema as a repair. `bind` first resolves the tool's name, then the shape of the arguments, their
keys, and finally their values. An object that is nested in another object or encoded as a string is
unpacked. A call with two possible interpretations results in an error.

Strict parsing repairs nothing. A call that strict parsing accepts has the same result in lenient
parsing, with one exception: lenient parsing removes a code fence around code, whereas strict
parsing passes the fence to the tool.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json, to_jsonable_python

from toolgym.calls import errors as call_errors
from toolgym.calls.mend import decode_json
from toolgym.calls.repairs import (
    COERCED_VALUE,
    DECODED_ARGUMENTS,
    DROPPED_ARGUMENT,
    DROPPED_NULL,
    POSITIONAL_ARGUMENTS,
    RENAMED_KEY,
    RENAMED_TOOL,
    REPLACED_SURROGATE,
    STRIPPED_FENCE,
    UNWRAPPED_ARGUMENTS,
    Repair,
    in_order,
)
from toolgym.calls.tool_index import MAX_NAME, Match, Plan, fold, match_name, plan_of
from toolgym.errors import ToolError
from toolgym.tools import ToolSpec

Parsing = Literal["lenient", "strict"]
Specs = Mapping[str, ToolSpec]

WRAPPERS = ("arguments", "parameters", "args", "input", "kwargs", "params", "tool_input")
MAX_WRAPPED = 4  # an object in an object in an object ...
MAX_OPENED = 3  # as in a list with one entry, which is JSON text, which is a number
MAX_ENCODED = 4  # JSON text in JSON text in JSON text ...
MAX_DEPTH = 40
MAX_VALUES = 50_000
MAX_INTEGER_BITS = 1024  # the range of a float; Python does not print integers of 4,300 digits


@dataclass(slots=True)  # not frozen, because frozen instances are slower and every call creates one
class RawCall:
    """A call found in text, with the name and the arguments that the model wrote.

    Attributes:
        name: The tool's name, or None if the call has no name.
        arguments: Usually a dict; the values of a list are bound by position.
        format: The name of the format in `toolgym.calls.formats`, or `parsed` for calls given as
            data. If several formats open a call with the same string, this is the first one that
            can read the call.
        repairs: The repairs that were needed to read the call.
        error: The error if the call cannot be read. A call with an error may have an incomplete
            name or incomplete arguments.
        textual: Whether the format writes values as plain text, without their types.
        positional: Values of the positional arguments of a Python call.
        whole: Whether the end of the call is unambiguous, with no bracket missing or added.
        unfinished: Whether the text ends before the arguments are closed, so that some may be
            missing.
    """

    name: Any
    arguments: Any
    format: str
    repairs: tuple[Repair, ...] = ()
    error: ToolError | None = None
    textual: bool = False
    positional: tuple[Any, ...] = ()
    whole: bool = True
    unfinished: bool = False

    def with_repairs(self, *repairs: Repair) -> RawCall:
        """Return a copy of the call with additional repair codes."""
        return replace(self, repairs=(*self.repairs, *repairs)) if repairs else self


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool, ready to be executed unless it has an error.

    Attributes:
        name: The tool's name, or the name that the model wrote if there is an error.
        arguments: Values by argument name, in the types that the tool declares; omitted arguments
            are absent. If there is an error, only the arguments that could be read are present.
        repairs: Codes of the repairs that were needed, in the order of `REPAIRS`, without
            repetition.
        error: The reason why the call must not be executed, or None.

    >>> ToolCall("look", {"at": "sky"}) == ToolCall("look", {"at": "sky"})
    True
    """

    name: str
    arguments: dict[str, Any]
    repairs: tuple[str, ...] = ()
    error: ToolError | None = None

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.arguments), self.repairs))

    def to_json(self) -> dict[str, Any]:
        """Return the name and arguments as plain data.

        Dates become strings, and enum members become their values.
        """
        plain = {"name": self.name, "arguments": self.arguments}
        # `to_jsonable_python` alone rejects lone surrogates.
        copied: dict[str, Any] = json.loads(json.dumps(plain, default=to_jsonable_python))
        return copied


def bind(
    raw: RawCall, specs: Specs, parsing: Parsing = "lenient", first: Sequence[Any] = ()
) -> ToolCall:
    """Bind a raw call to its tool. This function never raises an exception.

    Args:
        raw: The raw call.
        specs: The tools by name.
        parsing: `lenient` or `strict`.
        first: Values of positional arguments that Python code passed, which do not count as a
            repair.
    """
    strict = parsing == "strict"
    repairs = list(raw.repairs)
    name: Any = ""
    written: Any = None
    try:
        try:
            everything = (raw.name, raw.arguments, [*first, *raw.positional])
            (name, written, values), replaced = plain(everything)
        except Exception as problem:  # noqa: BLE001 (methods of unknown objects may raise anything)
            name = raw.name if type(raw.name) is str and raw.name.isascii() else ""
            is_ours = type(problem) is ValueError
            reason = str(problem)[:MAX_NAME] if is_ours else "one of its values cannot be read"
            raise call_errors.malformed_call(reason, specs) from None
        if replaced:
            repairs.append(REPLACED_SURROGATE)
        if raw.error:
            raise raw.error
        if not isinstance(name, str) or not name:
            raise call_errors.malformed_call("it has no tool name", specs)
        if raw.positional:
            repairs.append(POSITIONAL_ARGUMENTS)
        if strict and repairs:
            raise call_errors.malformed_call("it is not valid JSON in <tool_call> tags", specs)
        match = match_name(name, specs) if not strict or name in specs else Match(None)
        if match.name is None:
            raise call_errors.unknown_tool(name[:MAX_NAME], match.near, specs)
        if match.name != name:
            repairs.append(RENAMED_TOOL)
            name = match.name
        plan = plan_of(specs[name])
        if strict:
            fitting = _fit_exactly(plan, written, values, specs)
        else:
            fitting = _fit(plan, raw, written, values, specs, repairs)
    except ToolError as error:
        arguments = written if isinstance(written, dict) else {}
        # NaN is not equal to itself
        arguments = from_json(to_json(arguments, inf_nan_mode="strings"))
        shown = name[:MAX_NAME] if isinstance(name, str) else ""
        return ToolCall(shown, arguments, () if strict else in_order(repairs), error)
    return ToolCall(name, fitting, in_order(repairs))


def plain(value: Any) -> tuple[Any, bool]:
    """Copy a value to plain JSON types. Return the copy and whether a surrogate was replaced.

    An action can be any object, even a cyclic or infinitely nested one, or one whose methods raise
    exceptions. Lone surrogates are replaced because neither UTF-8 nor SQLite can store them.

    Raises:
        ValueError: The value cannot be copied. The error message is a clause that `malformed_call`
            can use. Methods of objects in the value may raise other exceptions.
    """
    left, replaced = MAX_VALUES, False

    def copied(value: Any, depth: int) -> Any:
        nonlocal left, replaced
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply, or too large")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            text = str.__str__(value)
            if not text.isascii():
                fixed = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
                replaced, text = replaced or fixed != text, fixed
            return text
        if isinstance(value, dict):
            return {
                str(copied(key, depth + 1)): copied(entry, depth + 1)
                for key, entry in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [copied(entry, depth + 1) for entry in value]
        if isinstance(value, int):
            number = int.__int__(value)
            if number.bit_length() > MAX_INTEGER_BITS:
                raise ValueError("it holds a number that is too large")
            return number
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, _WITH_JSON_FORM):
            return copied(to_jsonable_python(value), depth + 1)
        if type(value).__module__ == "numpy":
            return copied(value.tolist(), depth + 1)
        raise ValueError(f"it holds a value of type {type(value).__name__}")

    return copied(value, 0), replaced


def decoded(text: str) -> Any:
    """Return the plain value of JSON text, or the unchanged string if it is not JSON."""
    try:
        return plain(decode_json(text))[0]
    except ValueError:
        return text


def unquoted(text: str) -> str:
    r"""Decode a JSON string, repeatedly while the result is itself a JSON string.

    Such strings come from clients and servers that encode arguments more than once. At most
    `MAX_ENCODED` layers are decoded, each in linear time.

    >>> unquoted(r'"\"{}\""'), unquoted("{}"), unquoted('"a" || "b"')
    ('{}', '{}', '"a" || "b"')
    """
    for _ in range(MAX_ENCODED):
        if text.lstrip()[:1] != '"' or not isinstance(inner := decoded(text), str):
            break
        if inner is text:
            break
        text = inner
    return text


_WITH_JSON_FORM = (
    *(datetime.date, datetime.time, datetime.timedelta, decimal.Decimal),
    *(uuid.UUID, enum.Enum, BaseModel),
)


def _fit_exactly(plan: Plan, written: Any, values: Sequence[Any], specs: Specs) -> dict[str, Any]:
    """Return the arguments if their keys and types fit the tool without repairs.

    Raises:
        ToolError: The arguments do not fit.
    """
    written = {} if written is None else written
    if not isinstance(written, dict):
        raise call_errors.malformed_call("its arguments must be an object", specs)
    written = {**_by_position(plan, values, written), **written}
    for key in written:
        if key not in plan.names:
            raise call_errors.unexpected_argument(plan.spec, key)
    missing = [name for name in plan.required if name not in written]
    if missing:
        raise call_errors.missing_argument(plan.spec, missing)
    try:
        return _validated(plan, written, strict=True)
    except ValidationError as error:
        raise _invalid(plan, error) from None


def _fit(
    plan: Plan,
    raw: RawCall,
    written: Any,
    values: Sequence[Any],
    specs: Specs,
    repairs: list[Repair],
) -> dict[str, Any]:
    """Return the repaired arguments. The codes of the repairs are appended to `repairs`.

    Raises:
        ToolError: The arguments have no possible interpretation, or more than one.
    """
    if values or raw.textual or not (isinstance(written, dict) and plan.has_exactly(written)):
        # Shape: make a mapping from JSON text, a nested object, or a list of values.
        for _ in range(MAX_WRAPPED):
            inner = _decoded(written, specs)
            if inner is not written:
                repairs.append(DECODED_ARGUMENTS)
                written = inner
            entries = written.items() if isinstance(written, dict) else ()
            filled = [key for key, value in entries if value is not None]
            key = filled[0] if len(filled) == 1 else ""
            if key not in WRAPPERS or key in plan.names:
                break
            if not isinstance(_decoded(written[key], specs), dict):
                break
            repairs.append(UNWRAPPED_ARGUMENTS)
            if len(written) > 1:
                repairs.append(DROPPED_NULL)
            written = written[key]
        if written is not None and not isinstance(written, dict):
            repairs.append(POSITIONAL_ARGUMENTS)
            listed = written if isinstance(written, list) else [written]
            if len(plan.names) == 1 and len(listed) != 1 and plan.accepts(plan.names[0], listed):
                listed = [listed]  # the list can only be the one argument's own value
            values = [*values, *listed]
            while len(values) > len(plan.names) and values[-1] is None:
                values.pop()
                repairs.append(DROPPED_NULL)
        written = written if isinstance(written, dict) else {}
        written = {**_by_position(plan, values, written), **written}
        if raw.textual:
            written = {name: _typed(plan, name, value) for name, value in written.items()}

        # Keys: match them to the arguments, and drop nulls that mean "not given".
        matched: dict[str, Any] = {}
        spare: dict[str, Any] = {}
        nulls: set[str] = set()
        for key, value in written.items():
            if value is None and key not in plan.nullable:
                nulls.add(key)
            else:
                (matched if key in plan.names else spare)[key] = value
        for key in list(spare):  # keys that differ from an argument in case and separators only
            name = plan.folded.get(fold(key))
            if name in matched and matched[name] != spare[key]:
                same = [other for other in written if fold(other) == fold(key)]
                raise call_errors.ambiguous_argument(plan.spec, name, same)
            if name is not None and name not in matched:
                matched[name] = spare.pop(key)
                repairs.append(RENAMED_KEY)
        missing = [name for name in plan.required if name not in matched]
        if missing:
            terminal = plan.spec.terminal
            # A key of another tool was intended for that tool and must not end the episode.
            foreign = {key for spec in specs.values() for key in spec.fields} if terminal else set()
            no_value = terminal and not nulls.isdisjoint(missing)
            if len(missing) > 1 or no_value or foreign.issuperset(spare):
                raise call_errors.missing_argument(plan.spec, missing)
            if len(spare) > 1:
                raise call_errors.ambiguous_argument(plan.spec, missing[0], list(spare))
            matched[missing[0]] = spare.popitem()[1]
            repairs.append(RENAMED_KEY)
        if nulls:
            repairs.append(DROPPED_NULL)
        if spare:
            repairs.append(DROPPED_ARGUMENT)
        written = matched

    for name, language in plan.code.items():
        text = written.get(name)
        if isinstance(text, str) and (bare := without_fence(text, language)) != text:
            repairs.append(STRIPPED_FENCE)
            written = {**written, name: bare}
    if raw.unfinished and any(name not in written for name in plan.names):
        raise call_errors.truncated_call(specs)  # the missing arguments may be cut off

    # Values: strict, then by pydantic's lax rules, then unwrapped or converted.
    try:
        return _validated(plan, written, strict=True)
    except ValidationError:
        repairs.append(COERCED_VALUE)
    problems: list[ValidationError] = []
    for _ in range(MAX_OPENED):
        try:
            return _validated(plan, written, strict=False)
        except ValidationError as error:
            problems.append(error)
            wrong = {str(entry["loc"][0]) for entry in error.errors() if entry["loc"]}
            opened = {name: _opened(plan, name, written[name]) for name in wrong}
            written = {**written, **opened}
    repairs.remove(COERCED_VALUE)
    raise _invalid(plan, problems[0])


def _decoded(written: Any, specs: Specs) -> Any:
    """Decode a JSON object or list that was encoded as a string once or several times.

    Other values are returned unchanged.

    Raises:
        ToolError: The string begins like a JSON object or list but is not valid JSON.
    """
    if not isinstance(written, str):
        return written
    text = unquoted(written)
    if text.lstrip()[:1] not in ("{", "["):
        return written
    value = decoded(text)
    if value is text:
        reason = "its arguments are a text that is not valid JSON"
        raise call_errors.malformed_call(reason, specs)
    return value


def _by_position(plan: Plan, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Assign values to the first arguments of the signature.

    Raises:
        ToolError: There are more values than arguments, or an argument is also passed by name.
    """
    if len(values) > len(plan.names):
        reason = f"{len(values)} values were given for {len(plan.names)} arguments"
        raise call_errors.invalid_argument(plan.spec, f"#{len(plan.names) + 1}", reason)
    placed = dict(zip(plan.names, values, strict=False))
    for name in placed:
        if named.get(name) is not None:
            raise call_errors.ambiguous_argument(plan.spec, name, ["#1", name])
    return placed


def without_fence(text: str, language: str) -> str:
    """Remove a code fence or a pair of quotes that encloses all of the code.

    >>> without_fence("```sql\\nSELECT 1\\n```", "sql")
    'SELECT 1'
    >>> without_fence('"a" || "b"', "sql")
    '"a" || "b"'
    """
    whole = text.strip()
    if whole[:1] not in ("`", '"', "'"):
        return text
    label = rf"(?i:{re.escape(language)}|sqlite3?|postgresql|mysql|py|python3|text|code)"
    fence = rf"`{{3,}}+(?:[ \t]*+{label}\s)?+((?:(?!```).)++)(?:`{{3,}})?+"
    if fenced := re.fullmatch(fence, whole, re.DOTALL):
        return fenced.group(1).strip() or text
    marks = "`" if language == "python" else "`\"'"  # in Python a quoted text is an expression
    quoted = re.fullmatch(rf"(([{marks}])(?:\2\2)?+)(?!`)((?:(?!\2).)++)\1", whole, re.DOTALL)
    if quoted and re.search(r"\S\s+\S", quoted.group(3)):
        return quoted.group(3).strip()
    return text


def _typed(plan: Plan, name: str, value: Any) -> Any:
    """Convert a value that a format writes as plain text to the type of its argument."""
    if not isinstance(value, str):
        return value
    word = value.strip()
    is_null = word.lower() in ("null", "none")
    if name not in plan.names:
        return None if is_null or not word else value
    if is_null and (name in plan.nullable or name not in plan.required):
        return None
    if name in plan.texts:
        return value
    word = {"True": "true", "False": "false"}.get(word, word)  # some templates write Python
    read = decoded(word)
    return value if read is word or not plan.accepts(name, read) else read


def _opened(plan: Plan, name: str, value: Any) -> Any:
    """Unwrap or convert a value of the wrong type by one level: `["x"]` and `{"name": "x"}` become
    `"x"`.
    """
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    if isinstance(value, dict) and len(value) == 1:
        [(key, inner)] = value.items()
        # A terminal call ends the episode, and a value under another key may not be the answer.
        return inner if fold(key) == fold(name) or not plan.spec.terminal else value
    if isinstance(value, (bool, int, float)) and name in plan.texts:
        return json.dumps(value)
    if isinstance(value, str):
        text = unquoted(value)
        return decoded(text) if text.lstrip()[:1] in ("{", "[") else text
    return value


def _validated(plan: Plan, written: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    """Return the values, converted to the types of the arguments.

    The values are validated as JSON, in which dates are strings and tuples are lists.

    Raises:
        ValidationError: A value does not fit.
        ToolError: A value is NaN or infinite, which JSON and databases cannot store.
    """
    text = to_json(written)
    if text != to_json(written, inf_nan_mode="null"):
        found = (k for k, v in written.items() if to_json(v) != to_json(v, inf_nan_mode="null"))
        raise call_errors.invalid_argument(plan.spec, next(found), "it is not a finite number")
    model = plan.validator.validate_json(text, strict=strict)
    return plan.chosen(model, written)


def _invalid(plan: Plan, problem: ValidationError) -> ToolError:
    first = problem.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    options = plan.spec.parameters["properties"].get(name, {}).get("anyOf", ())
    kinds = [option.get("type", "") for option in options]
    reason = f"it must be one of {', '.join(kinds)}" if kinds and all(kinds) else first["msg"]
    return call_errors.invalid_argument(plan.spec, name, reason)


def attributes(value: Any) -> dict[str, Any] | None:
    """Return the instance dictionary of an object, or None, without evaluating properties."""
    try:
        values = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return values if type(values) is dict else None
