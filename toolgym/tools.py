"""`@tool`: turns a typed method into a tool, defined by its signature and docstring.

The signature and the Google-style docstring define the tool's name, its arguments as a pydantic
model, the JSON schema in the prompt, and the help text. The docstring is part of the prompt, so
remarks about the implementation belong elsewhere. Defining a tool fails if a type, the docstring,
or the `Args` line of an argument is missing, or if `Args` documents an argument that does not
exist.

A decorated method can be called from Python. `env.describe("singer")` goes through `ToolEnv.call`,
so it is counted and scored like a call written by a model.

    class MyEnv(ToolEnv):
        @tool
        def look(self, direction: str) -> str:
            '''Look around.

            Args:
                direction: north, east, south or west.
            '''
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from toolgym.lazy import lazy

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Code:
    """Annotation of a string argument with source code: `sql: Annotated[str, Code("sql")]`.

    The parser removes code fences and matching quotes that enclose the entire string.
    """

    language: str


@dataclass(frozen=True)
class ToolSpec:
    """The specification of one tool.

    Attributes:
        name: The name of the tool.
        description: The docstring without its sections.
        arguments: A pydantic model with one field per argument, in the order of the signature. In a
            spec that was read from a schema, the alias of each field is the name of the argument.
        terminal: Whether a call of this tool ends the episode. Terminal calls do not count as
            steps.
        aliases: Alternative names that calls of the tool can use.
        function: The undecorated method; None for a spec that was read from a schema.
        bare: Function that reads a message without a call. The function returns the arguments for
            this tool if the message consists only of these arguments, and None otherwise. The
            repair `bare_argument` is recorded for the call unless the tool is hidden.
        hidden: Whether prompts omit the tool because the agent writes no calls. In this case, the
            agent's first message is the answer, which `bare` reads.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    terminal: bool = False
    aliases: tuple[str, ...] = ()
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    bare: Callable[[str], dict[str, Any] | None] | None = field(default=None, compare=False)
    hidden: bool = False

    @lazy
    def parameters(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, which has no titles and forbids unknown keys."""
        schema = _without_titles(self.arguments.model_json_schema())
        schema.setdefault("properties", {})
        schema.pop("description", None)
        return {**schema, "additionalProperties": False}

    @lazy
    def fields(self) -> dict[str, FieldInfo]:
        """Return the pydantic fields by argument name, in the order of the signature."""
        fields = self.arguments.model_fields.items()
        return {name if info.alias is None else info.alias: info for name, info in fields}

    @lazy
    def required(self) -> tuple[str, ...]:
        """Return the names of the arguments without a default, in the order of the signature."""
        return tuple(name for name, info in self.fields.items() if info.is_required())

    def schema(self) -> dict[str, Any]:
        """Return the tool in the OpenAI function format."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}

    def code_argument(self, name: str) -> str | None:
        """Return the language of an argument annotated with `Code`, or None."""
        info = self.fields.get(name)
        marks = [mark for mark in (info.metadata if info else []) if isinstance(mark, Code)]
        return marks[0].language if marks else None


@overload
def tool(method: Method, /) -> Method: ...
@overload
def tool(*, terminal: bool = False, aliases: Sequence[str] = ()) -> Callable[[Method], Method]: ...
def tool(
    method: Callable[..., Any] | None = None,
    /,
    *,
    terminal: bool = False,
    aliases: Sequence[str] = (),
) -> Any:
    """Decorator that turns a method of a `ToolEnv` into a tool.

    Args:
        method: The method, if the decorator is used without parentheses.
        terminal: Whether a call of this tool ends the episode. Terminal calls do not count as
            steps.
        aliases: Alternative names that calls of the tool can use.

    Raises:
        TypeError: The method has no docstring, or its types and its `Args` lines do not match.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        spec = read_spec(function, terminal=terminal, aliases=tuple(aliases))

        @functools.wraps(function)
        def through_call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self.call(spec.name, *args, **kwargs)

        through_call.__tool__ = spec  # type: ignore[attr-defined]
        return through_call

    return decorate if method is None else decorate(method)


def tools_of(cls: type) -> dict[str, ToolSpec]:
    """Return the tools of a class by name, in the order of definition, base classes first."""
    specs: dict[str, ToolSpec] = {}
    for base in reversed(cls.__mro__):
        for attribute in vars(base).values():
            spec = getattr(attribute, "__tool__", None)
            if isinstance(spec, ToolSpec):
                specs[spec.name] = spec
    return specs


def read_spec(
    function: Callable[..., Any], *, terminal: bool = False, aliases: tuple[str, ...] = ()
) -> ToolSpec:
    """Build the spec of a method from its signature and docstring; see `tool`.

    Raises:
        TypeError: The method has no docstring, or its types and its `Args` lines do not match.
    """
    name = function.__name__
    description, documented = read_docstring(name, function.__doc__)
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"tool {name!r}: *{parameter.name} has no schema; write a named argument instead."
            )
        if parameter.name not in hints:
            raise TypeError(f"tool {name!r}: argument {parameter.name!r} needs a type.")
        if parameter.name not in documented:
            raise TypeError(f"tool {name!r}: argument {parameter.name!r} needs an Args line.")
        default = ... if parameter.default is parameter.empty else parameter.default
        text = documented.pop(parameter.name)
        fields[parameter.name] = (hints[parameter.name], Field(default, description=text))
    if documented:
        raise TypeError(
            f"tool {name!r}: Args documents {sorted(documented)}, which the signature lacks."
        )
    arguments = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    return ToolSpec(name, description, arguments, terminal, aliases, function)


def read_docstring(name: str, docstring: str | None) -> tuple[str, dict[str, str]]:
    """Split a Google-style docstring into its description and its `Args` lines by name.

    Raises:
        TypeError: The description is missing.
    """
    text = inspect.cleandoc(docstring or "")
    sections = re.split(r"^(Args|Returns|Raises|Yields|Examples?|Note):\s*$", text, flags=re.M)
    description = sections[0].strip()
    if not description:
        raise TypeError(f"tool {name!r} needs a docstring, which describes it to the agent.")
    arguments: dict[str, str] = {}
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        if title == "Args":
            entries = re.split(r"^(?:    |\t)(\w+)(?:\s*\([^)]*\))?:", body, flags=re.M)
            for argument, words in zip(entries[1::2], entries[2::2], strict=True):
                arguments[argument] = " ".join(words.split())
    return description, arguments


def specs_from(tools: Any) -> dict[str, ToolSpec]:
    """Return tools by name from specs, a mapping of specs, or OpenAI function schemas.

    Raises:
        TypeError: An entry is neither a `ToolSpec` nor a function schema.
    """
    entries = tools.values() if isinstance(tools, Mapping) else tools
    specs = [entry if isinstance(entry, ToolSpec) else _from_schema(entry) for entry in entries]
    return {spec.name: spec for spec in specs}


def _from_schema(schema: Any) -> ToolSpec:
    """Build a spec from an OpenAI function schema."""
    function = schema.get("function", schema) if isinstance(schema, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise TypeError(f"not a tool: {schema!r}; pass ToolSpec or OpenAI function schemas.")
    parameters = function.get("parameters") or {}
    required = set(parameters.get("required", ()))
    fields: dict[str, Any] = {}
    for name, declared in parameters.get("properties", {}).items():
        default = ... if name in required else declared.get("default")
        # Any string can be an alias, but a field must not be named `_id`, `copy` or `model_dump`.
        described = Field(default, alias=name, description=declared.get("description"))
        kind = _python_type(declared)
        fields[f"argument_{len(fields)}"] = (kind if name in required else kind | None, described)
    arguments = create_model("arguments", __config__=ConfigDict(extra="forbid"), **fields)
    return ToolSpec(function["name"], function.get("description", ""), arguments)


_JSON_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def _python_type(declared: Mapping[str, Any]) -> Any:
    """Return the Python type for a JSON schema fragment; Any if it has no known type."""
    options = declared.get("anyOf") or declared.get("oneOf")
    if options:
        return functools.reduce(lambda a, b: a | b, [_python_type(option) for option in options])
    kinds = declared.get("type")
    if isinstance(kinds, str):
        return _JSON_TYPES.get(kinds, Any)
    if isinstance(kinds, list) and kinds:
        return functools.reduce(lambda a, b: a | b, [_JSON_TYPES.get(kind, Any) for kind in kinds])
    return Any


def _without_titles(schema: Any) -> Any:
    """Copy a schema without pydantic's titles, which would cost prompt tokens."""
    if isinstance(schema, dict):
        fields = {k: v for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
        return {key: _without_titles(value) for key, value in fields.items()}
    if isinstance(schema, list):
        return [_without_titles(entry) for entry in schema]
    return schema
