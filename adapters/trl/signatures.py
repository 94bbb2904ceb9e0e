"""A tool's signature as TRL reads it.

TRL shows a model what `transformers.utils.get_json_schema` makes of a method: types from
`__annotations__`, which arguments are required from `__signature__`, texts from a Google docstring.
The method itself takes anything, since a model sends arguments that no signature foresees; a
literal `**kwargs` would be offered to the model as an argument, so the two are kept apart.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from toolgym.tools import ToolSpec

_BASIC = (str, int, float, bool, type(None), list, dict)


def tool_method(spec: ToolSpec) -> Callable[..., str]:
    """A method with the tool's name, types and documentation that accepts any arguments at all.

    It calls `self._call(name, args, kwargs)`.
    """

    def method(self: Any, /, *args: Any, **kwargs: Any) -> str:
        text: str = self._call(spec.name, args, kwargs)
        return text

    fields = spec.arguments.model_fields
    kinds = {name: json_type(info.annotation) for name, info in fields.items()}
    method.__name__ = spec.name
    method.__qualname__ = f"RolloutEnvironment.{spec.name}"
    method.__doc__ = docstring(spec)
    method.__annotations__ = kinds
    method.__signature__ = _signature(fields, kinds)  # type: ignore[attr-defined]
    return method


def docstring(spec: ToolSpec) -> str:
    """Description and `Args`, one line per argument, in Google's layout."""
    fields = spec.arguments.model_fields.items()
    lines = [f"    {name}: {' '.join((info.description or name).split())}" for name, info in fields]
    return "\n".join([spec.description, "", "Args:", *lines]) if lines else spec.description


def json_type(annotation: Any) -> Any:
    """The nearest type that TRL's schema reader knows; what it cannot express becomes `Any`.

    >>> json_type(Annotated[str, "SQL"]), json_type(tuple[int, ...]), json_type(str | None)
    (<class 'str'>, list[int], str | None)
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return json_type(arguments[0])
    if origin in (Union, types.UnionType):
        return functools.reduce(operator.or_, map(json_type, arguments))
    if origin in (list, set, frozenset, tuple):
        kinds = {json_type(item) for item in arguments if item is not ...}
        return list[kinds.pop()] if len(kinds) == 1 else list  # type: ignore[misc]
    if origin is dict:
        return dict[str, json_type(arguments[1])]  # type: ignore[misc]
    if annotation in _BASIC or origin is Literal or _is_enumeration(annotation):
        return annotation
    if annotation in (set, frozenset, tuple):
        return list
    return dict if _has_named_fields(annotation) else Any


def _is_enumeration(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, enum.Enum)


def _has_named_fields(annotation: Any) -> bool:
    if typing.is_typeddict(annotation) or dataclasses.is_dataclass(annotation):
        return True
    return inspect.isclass(annotation) and issubclass(annotation, BaseModel)


def _signature(fields: dict[str, FieldInfo], kinds: dict[str, Any]) -> inspect.Signature:
    """The arguments after `self`; from the first optional one on they are keyword-only."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    optional = False
    for name, info in fields.items():
        optional = optional or not info.is_required()
        kind = (
            inspect.Parameter.KEYWORD_ONLY if optional else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        default = inspect.Parameter.empty
        if not info.is_required():
            default = info.get_default(call_default_factory=True)
        annotation = kinds[name]
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    return inspect.Signature(parameters)
