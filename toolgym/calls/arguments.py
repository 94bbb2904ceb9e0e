"""The values of a call's arguments: from what was written to the types that the tool declares.

A value that fits as it is stays as it is. Otherwise pydantic's lax rules apply (`"7"` for an
integer), and three more: a number for a text argument becomes text, a list or object of one is
opened (for a terminal tool an object only under the argument's name), a list or object written as
JSON text is decoded. NaN and infinity fit nothing: no
database and no JSON holds them. Formats that write bare text (XML) say nothing about types, so
there the argument's own type decides.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from toolgym.calls import errors as call_errors
from toolgym.calls.plain_values import plain_json
from toolgym.calls.repairs import (
    COERCED_VALUE,
    DECODED_ARGUMENTS,
    DROPPED_ARGUMENT,
    DROPPED_NULL,
    POSITIONAL_ARGUMENTS,
    RENAMED_KEY,
    STRIPPED_FENCE,
    UNWRAPPED_ARGUMENTS,
    Repair,
)
from toolgym.calls.tool_index import Plan, accepts, fold
from toolgym.errors import ToolError
from toolgym.tools import ToolSpec

NULL_WORDS = {"null", "none", ""}
ROUNDS = 3  # a list of one, that holds JSON text, that holds a number: more is not opened


def fit(plan: Plan, written: dict[str, Any], repairs: list[Repair]) -> dict[str, Any]:
    """Values of the declared types.

    Raises:
        ToolError: A value does not fit its argument (`invalid_argument`).
    """
    _refuse_infinite(plan, written)
    fitting = _validated(plan, written)
    if fitting is not None:
        return fitting
    repairs.append(COERCED_VALUE)
    problem: ValidationError | None = None
    for _ in range(ROUNDS):
        try:
            return _chosen(plan.validator.validate_python(written), written)
        except ValidationError as error:
            problem = problem or error
            written = _reshaped(plan, written, error)
    repairs.remove(COERCED_VALUE)
    raise _invalid(plan, problem)


def fit_exactly(plan: Plan, written: dict[str, Any]) -> dict[str, Any]:
    """Values that are of the declared types already, in Python or in their JSON form.

    Raises:
        ToolError: One is not (`invalid_argument`).
    """
    _refuse_infinite(plan, written)
    fitting = _validated(plan, written)
    if fitting is not None:
        return fitting
    try:
        return _chosen(plan.validator.validate_python(written, strict=True), written)
    except ValidationError as error:
        raise _invalid(plan, error) from None


def fits(plan: Plan, name: str, value: Any) -> bool:
    """Whether a value fits one argument as it is."""
    return accepts(plan.kinds[name], value)


def decode_text(plan: Plan, written: dict[str, Any]) -> dict[str, Any]:
    """Give bare text the types of the arguments: JSON where the type is more than text."""
    return {name: _typed(plan, name, value) for name, value in written.items()}


def strip_code(plan: Plan, written: dict[str, Any], repairs: list[Repair]) -> dict[str, Any]:
    """Take fences and quotes from around the whole text of code arguments."""
    for name, language in plan.code.items():
        value = written.get(name)
        if isinstance(value, str) and value.strip()[:1] in ("`", '"', "'"):
            bare = without_fence(value, language)
            if bare != value:
                repairs.append(STRIPPED_FENCE)
                written = {**written, name: bare}
    return written


def without_fence(text: str, language: str) -> str:
    """Code without a fence or a pair of quotes around all of it; anything else is left alone.

    >>> without_fence("```sql\\nSELECT 1\\n```", "sql")
    'SELECT 1'
    >>> without_fence('"a" || "b"', "sql")
    '"a" || "b"'
    """
    whole = text.strip()
    if whole.startswith("```"):
        return _unfenced(whole, text, language)
    for mark in ('"""', "'''", "`", '"', "'"):
        inner = whole[len(mark) : -len(mark)]
        wrapped = whole.startswith(mark) and whole.endswith(mark) and len(whole) > 2 * len(mark)
        literal = language == "python" and mark != "`"  # a quoted text is a Python expression
        if wrapped and not literal and mark[0] not in inner and re.search(r"\S\s+\S", inner):
            return inner.strip()
    return text


def _unfenced(whole: str, text: str, language: str) -> str:
    inner = whole[3:].removesuffix("```")
    if "```" in inner or not inner.strip():
        return text
    labels = {language, "sqlite", "sqlite3", "postgresql", "mysql", "py", "python3", "text", "code"}
    label = re.match(r"[ \t]*([\w+-]+)\s", inner)
    if label and label.group(1).lower() in labels:
        inner = inner[label.end() :]
    return inner.strip()


def finite(value: Any) -> Any:
    """A copy in which NaN and infinity are words, so that records of it compare and are JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [finite(entry) for entry in value]
    return value


def _validated(plan: Plan, written: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return _chosen(plan.validator.validate_python(written, strict=True), written)
    except ValidationError:
        pass
    try:  # a date or a tuple has no other form in JSON than text or list: that is no mistake
        return _chosen(plan.validator.validate_json(json.dumps(written), strict=True), written)
    except ValidationError:
        return None


def _chosen(model: Any, written: dict[str, Any]) -> dict[str, Any]:
    values = model.__dict__
    return {name: values[name] for name in written}


def _refuse_infinite(plan: Plan, written: dict[str, Any]) -> None:
    for name, value in written.items():
        if type(value) is not str and not _is_finite(value):
            raise call_errors.invalid_argument(plan.spec, name, "it is not a finite number")


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return True


def _reshaped(plan: Plan, written: dict[str, Any], error: ValidationError) -> dict[str, Any]:
    """The same arguments, those in error opened or converted once."""
    wrong = {str(entry["loc"][0]) for entry in error.errors(include_url=False) if entry["loc"]}
    return {
        name: _opened(plan, name, value) if name in wrong else value
        for name, value in written.items()
    }


def _opened(plan: Plan, name: str, value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    if isinstance(value, dict) and len(value) == 1:
        key, inner = next(iter(value.items()))
        # A terminal call ends the episode: what stands under another key is perhaps not its value.
        return inner if fold(key) == fold(name) or not plan.spec.terminal else value
    if isinstance(value, (bool, int, float)) and name in plan.texts:
        return json.dumps(value)
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return _loaded(value)
    return value


def _typed(plan: Plan, name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    if name not in plan.names:
        return None if word in NULL_WORDS else value
    if word in ("null", "none") and (name in plan.nullable or name not in plan.required):
        return None
    if name in plan.texts:
        return value
    loaded = _PYTHON_TRUTH.get(value.strip(), value)  # some templates write values as Python does
    loaded = _loaded(value.strip()) if loaded is value else loaded
    return loaded if fits(plan, name, loaded) else value


_PYTHON_TRUTH = {"True": True, "False": False}


def _loaded(text: str) -> Any:
    try:
        return plain_json(text)
    except ValueError:
        return text


def _invalid(plan: Plan, problem: ValidationError | None) -> ToolError:
    errors = problem.errors(include_url=False) if problem else []
    name = str(errors[0]["loc"][0]) if errors and errors[0]["loc"] else ""
    options = plan.spec.parameters["properties"].get(name, {}).get("anyOf")
    if options and all("type" in option for option in options):
        reason = f"it must be one of {', '.join(option['type'] for option in options)}"
    else:
        reason = errors[0]["msg"] if errors else "it is invalid"
    return call_errors.invalid_argument(plan.spec, name, reason)


# The keys of a call's arguments: from whatever shape was written to the names that the tool has.
#
# First the shape (`shape`): arguments inside a JSON string, inside one more object, or by position.
# Then the keys (`match`): nulls that mean "not given", names spelt another way, the one name that
# is left for the one argument that is missing, and what is left over at the end.

WRAPPERS = ("arguments", "parameters", "args", "input", "kwargs", "params", "tool_input")
MAX_WRAPPED = 4  # an object in an object in an object ...


def shape(
    plan: Plan,
    written: Any,
    first: Sequence[Any],
    specs: Mapping[str, ToolSpec],
    repairs: list[Repair],
) -> dict[str, Any]:
    """A mapping of arguments out of whatever was written in their place.

    Raises:
        ToolError: Values by position do not fit the signature, or a text in their place begins as
            JSON does and is none.
    """
    for _ in range(MAX_WRAPPED):
        inner = _decoded(written, specs)
        if inner is not written:
            repairs.append(DECODED_ARGUMENTS)
            written = inner
        key = _wrapper(plan, written, specs)
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
    matched = {key: value for key, value in written.items() if key in plan.names}
    spare = {key: value for key, value in written.items() if key not in plan.names}
    nulls = [k for k, v in matched.items() if v is None and k not in plan.nullable]
    nulls += [key for key, value in spare.items() if value is None]
    for key in nulls:
        matched.pop(key, None)
        spare.pop(key, None)
    _respell(plan, matched, spare, repairs)
    missing = [name for name in plan.required if name not in matched]
    if plan.spec.terminal and any(name in nulls for name in missing):
        raise call_errors.missing_argument(plan.spec, missing)  # no value was meant for it
    if missing:
        _fill(plan, missing, matched, spare, specs, repairs)
    if nulls:
        repairs.append(DROPPED_NULL)
    if spare:
        repairs.append(DROPPED_ARGUMENT)
    return matched


def _respell(
    plan: Plan, matched: dict[str, Any], spare: dict[str, Any], repairs: list[Repair]
) -> None:
    """Move keys that differ from an absent argument in case and separators only.

    Raises:
        ToolError: Two such keys, or one and the argument itself, have two values.
    """
    claims: dict[str, list[str]] = {}
    for key in spare:
        name = plan.folded.get(fold(key))
        if name is not None and (name not in matched or matched[name] != spare[key]):
            claims.setdefault(name, [name] if name in matched else []).append(key)
    for name, keys in claims.items():
        if len(keys) > 1:
            raise call_errors.ambiguous_argument(plan.spec, name, keys)
        matched[name] = spare.pop(keys[0])
        repairs.append(RENAMED_KEY)


def _fill(
    plan: Plan,
    missing: list[str],
    matched: dict[str, Any],
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
    matched[missing[0]] = spare.pop(candidates[0])
    repairs.append(RENAMED_KEY)


def _decoded(written: Any, specs: Mapping[str, ToolSpec]) -> Any:
    """The object or list that a text holds as JSON; the same object if it is no such text."""
    if not isinstance(written, str) or written.lstrip()[:1] not in ("{", "["):
        return written
    try:
        return plain_json(written, strict=False)
    except ValueError:
        reason = "its arguments are a text that begins as JSON and is none"
        raise call_errors.malformed_call(reason, specs) from None


def _wrapper(plan: Plan, written: Any, specs: Mapping[str, ToolSpec]) -> str | None:
    """The key under which all arguments lie one level deeper, if there is one."""
    if not isinstance(written, dict):
        return None
    filled = [key for key, value in written.items() if value is not None]
    if len(filled) != 1 or filled[0] not in WRAPPERS or filled[0] in plan.names:
        return None
    inner = _decoded(written[filled[0]], specs)
    return filled[0] if isinstance(inner, dict) else None


def _values(plan: Plan, written: Any, repairs: list[Repair]) -> list[Any]:
    """Values by position; a list that can only be the one argument's own value is that value."""
    if not isinstance(written, list):
        return [written]
    if len(plan.names) == 1 and len(written) != 1 and fits(plan, plan.names[0], written):
        return [written]
    values = list(written)
    while len(values) > len(plan.names) and values[-1] is None:
        values.pop()
        repairs.append(DROPPED_NULL)
    return values
