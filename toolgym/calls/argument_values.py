"""The values of a call's arguments: from what was written to the types that the tool declares.

A value that fits as it is stays as it is. Otherwise pydantic's lax rules apply (`"7"` for an
integer), and three more: a number for a text argument becomes text, a list or object of one is
opened, a list or object written as JSON text is decoded. NaN and infinity fit nothing: no
database and no JSON holds them. Formats that write bare text (XML) say nothing about types, so
there the argument's own type decides.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from pydantic import ValidationError

from toolgym.calls import errors as call_errors
from toolgym.calls.argument_plan import Plan, accepts
from toolgym.calls.plain_values import plain_json
from toolgym.calls.repairs import COERCED_VALUE, STRIPPED_FENCE, Repair
from toolgym.errors import ToolError

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
        return next(iter(value.values()))
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
    loaded = _loaded(value.strip())
    return loaded if fits(plan, name, loaded) else value


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
