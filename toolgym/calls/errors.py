"""Errors that occur in a call before its tool runs.

`CALL_ERRORS` lists their codes for the documentation, and the functions create the errors. The
example in an error is a complete call, created from the schema of the tool. The environment
replaces this example with one that works in the current episode. Errors that occur while a tool
runs, such as an unknown table or invalid SQL, are raised by the tool itself.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from toolgym.errors import ToolError
from toolgym.tools import ToolSpec

CALL_ERRORS: dict[str, str] = {
    "no_call": "The text contains no tool call.",
    "bad_action": "The action is neither a string, nor a call, nor a list of calls.",
    "truncated_call": "The text ends within the call, so the call was not executed.",
    "malformed_call": (
        "The call cannot be parsed, for example because of invalid JSON, a missing name, or a"
        " duplicate key."
    ),
    "unknown_tool": "The name of the call matches no tool, or it matches several tools.",
    "missing_argument": "A required argument is missing or null.",
    "invalid_argument": "An argument has a value of the wrong type.",
    "ambiguous_argument": "The call contains several candidates for the value of one argument.",
    "unexpected_argument": "The tool does not have this argument (strict parsing only).",
    "episode_over": "The episode had ended before this call, so the call was not executed.",
}

Specs = Mapping[str, ToolSpec]

# Maximum lengths of quoted text, since the agent's text may be a megabyte long.
MAX_QUOTED = 100
MAX_KEYS = 8
MAX_REASON = 300


def no_call(specs: Specs) -> ToolError:
    """Return the error for text without a call."""
    return ToolError("no_call", "No tool call was found.", _how_to_call(specs), example_of(specs))


def episode_over() -> ToolError:
    """Return the error for a call after the end of the episode."""
    return ToolError(
        "episode_over", "The episode is over.", "Stop here; further calls have no effect."
    )


def bad_action(kind: str, specs: Specs) -> ToolError:
    """Return the error for an action of a type that cannot contain a call."""
    message = f"An action of type {kind} cannot hold a tool call."
    return ToolError("bad_action", message, _how_to_call(specs), example_of(specs))


def truncated_call(specs: Specs) -> ToolError:
    """Return the error for text that ends inside a call, which must not be executed."""
    message = "The call was cut off before its end and was not executed."
    hint = "Write it again, shorter: less thinking and only the arguments that are needed."
    return ToolError("truncated_call", message, hint, example_of(specs))


def malformed_call(reason: str, specs: Specs) -> ToolError:
    """Return the error for a call that cannot be read.

    Args:
        reason: The reason, as a clause such as "it has no tool name".
        specs: The tools by name.
    """
    message = f"The call could not be read: {reason}."
    return ToolError("malformed_call", message, _how_to_call(specs), example_of(specs))


def unreadable(cut: bool, reason: str, specs: Specs) -> ToolError:
    """Return `truncated_call` if the text was cut off, or else `malformed_call` with the reason."""
    return truncated_call(specs) if cut else malformed_call(reason, specs)


def unknown_tool(name: str, near: Sequence[str], specs: Specs) -> ToolError:
    """Return the error for a name that matches no tool or several tools.

    `near` contains the candidates.
    """
    hint = f"Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    hint = f"{hint} The tools are {', '.join(specs)}.".strip()
    message = f"There is no tool {_quoted(name)}."
    return ToolError("unknown_tool", message, hint, example_of(specs, near))


def missing_argument(spec: ToolSpec, names: Sequence[str]) -> ToolError:
    """Return the error for required arguments that are absent or null."""
    listed = ", ".join(map(_quoted, names))
    plural = "s" if len(names) > 1 else ""
    return _wrong_argument("missing_argument", spec, f"needs the argument{plural} {listed}")


def invalid_argument(spec: ToolSpec, name: str, reason: str) -> ToolError:
    """Return the error for a value of the wrong type.

    Args:
        spec: The tool.
        name: Name of the argument.
        reason: The reason, as a clause without a period.
    """
    wrong = f"cannot use the value of {_quoted(name)}: {reason[:MAX_REASON]}"
    return _wrong_argument("invalid_argument", spec, wrong)


def ambiguous_argument(spec: ToolSpec, name: str, keys: Sequence[str]) -> ToolError:
    """Return the error for an argument that has several possible values."""
    listed = ", ".join([*map(_quoted, keys[:MAX_KEYS]), *["..."][: len(keys) > MAX_KEYS]])
    return _wrong_argument("ambiguous_argument", spec, f"cannot tell which of {listed} is {name!r}")


def unexpected_argument(spec: ToolSpec, name: str) -> ToolError:
    """Return the error of strict parsing for a key that is not an argument of the tool."""
    wrong = f"got an unexpected argument {_quoted(name)}"
    return _wrong_argument("unexpected_argument", spec, wrong)


def several_answers(spec: ToolSpec) -> ToolError:
    """Return the error for several different terminal calls in one message."""
    message = "The message contains several different answers, so none was accepted."
    hint = f"Write one call of {spec.name}() and no other that ends the episode."
    return ToolError("ambiguous_argument", message, hint, example_call(spec))


def _wrong_argument(code: str, spec: ToolSpec, wrong: str) -> ToolError:
    """Return an error about the arguments of a tool; its hint lists their names."""
    required = set(spec.required)
    shown = [name if name in required else f"[{name}]" for name in spec.fields]
    hint = f"Its arguments are {', '.join(shown)}." if shown else "It takes no arguments."
    return ToolError(code, f"{spec.name}() {wrong}.", hint, example_call(spec))


def _quoted(written: str) -> str:
    """Return text written by the agent in quotes, shortened to the maximum length of a name."""
    return repr(written[:MAX_QUOTED])


def _how_to_call(specs: Specs) -> str:
    tools = f" The tools are {', '.join(specs)}." if specs else ""
    # Without tags, because observations show them escaped and a model would copy the escapes.
    return f'Write one as JSON: {{"name": ..., "arguments": {{...}}}}.{tools}'


def example_of(specs: Specs, near: Sequence[str] = ()) -> dict[str, Any]:
    """Return an example call of the first tool in `near`, or of the first non-terminal tool."""
    names = [*near, *sorted(specs, key=lambda name: specs[name].terminal)]
    return example_call(specs[names[0]]) if names else {}


def example_call(spec: ToolSpec) -> dict[str, Any]:
    """Return a call with a value for each required argument, made from the tool's schema."""
    schemas = spec.parameters["properties"]
    arguments = {
        name: _CODE_SAMPLES.get(spec.code_argument(name) or "") or _sample_value(schemas[name])
        for name in spec.required
    }
    return {"name": spec.name, "arguments": copy.deepcopy(arguments)}


_CODE_SAMPLES = {"sql": "SELECT 1", "python": "print(1)"}
_SAMPLES: dict[str, Any] = {
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "object": {},
    "null": None,
}


def _sample_value(schema: Mapping[str, Any]) -> Any:
    """Return a value that fits the type of a JSON schema fragment."""
    for given in (schema.get("examples"), schema.get("enum"), [schema.get("const")]):
        if given and given[0] is not None:
            return given[0]
    if schema.get("anyOf"):
        return _sample_value(schema["anyOf"][0])
    if schema.get("type") == "array":
        return [_sample_value(schema.get("items") or {})]
    return _SAMPLES.get(str(schema.get("type")), "text")
