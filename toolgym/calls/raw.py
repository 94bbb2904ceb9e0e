"""A call as it was found, before its tool is known: `RawCall`.

All formats end here, most of them as a mapping with a name and arguments. Which keys hold them
differs by model family: `name` and `arguments` (Hermes, OpenAI), `name` and `parameters` (Llama).
Other keys for the same are accepted as a repair, and so are arguments that lie flat beside the
name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from toolgym.calls.repairs import FLAT_ARGUMENTS, RENAMED_FIELD, Repair
from toolgym.errors import ToolError

HERMES = "hermes"
MAX_CALLS = 32  # more in one action are not looked for
MAX_INNER = 8  # an object under `function`, in an object under `function`, ...


@dataclass(slots=True)  # not frozen: it is made for every call, and frozen ones cost more
class RawCall:
    """A name and arguments, both still whatever the model wrote.

    Attributes:
        name: The tool's name, or None if there is none.
        arguments: Usually a dict; a list is bound by position.
        format: Which recogniser found it (`hermes`, `json`, `xml`, ...; `parsed` if it came as
            data).
        repairs: What had to be mended to read it.
        error: Why it cannot be read; then name and arguments are only a trace.
        textual: Whether the format writes values as bare text (XML forms), so that types are
            implied.
        positional: Values without names that stood before the named ones (Python calls).
        whole: Nothing is missing and nothing was guessed: it ends where it was written to end.
        unfinished: The text ends before the arguments are closed, so more may have been meant.
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
        """The same call with further repairs."""
        return replace(self, repairs=(*self.repairs, *repairs)) if repairs else self


_NAMES = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "kwargs", "params", "tool_input")
_OWN = {"name", "arguments"}
_LLAMA = {"json", "llama"}  # formats whose template writes `parameters`
_BESIDE = {"id", "type", "index", "call_id"}  # keys of a call that are no arguments


def from_mapping(data: dict[Any, Any], kind: str, repairs: tuple[Repair, ...] = ()) -> RawCall:
    """The call that a mapping describes; its name is None where the mapping has none."""
    inner: Any = data.get("function")
    for _ in range(MAX_INNER):  # OpenAI: {"id", "type": "function", "function": {...}}
        if not issubclass(type(inner), dict):
            break
        repairs = (*repairs, RENAMED_FIELD) if kind == HERMES else repairs
        data, inner = inner, inner.get("function")
    name_key = next((key for key in _NAMES if data.get(key) is not None), None)
    if name_key is None:
        return RawCall(None, None, kind, repairs)
    wrappers = [key for key in _ARGUMENTS if key in data and key != name_key]
    filled = [key for key in wrappers if data[key] is not None]
    if not wrappers:
        flat = {k: v for k, v in data.items() if k != name_key and k not in _BESIDE}
        extra = (FLAT_ARGUMENTS,) if flat else ()
        return RawCall(data[name_key], flat, kind, (*repairs, *extra, *_renamed(kind, name_key)))
    key = filled[0] if filled else wrappers[0]
    used = _renamed(kind, name_key, key if filled else "arguments")
    return RawCall(data[name_key], data[key], kind, (*repairs, *used))


def depth_of_arguments(data: dict[Any, Any]) -> int:
    """How many brackets are open around the arguments of the call that a mapping describes."""
    depth = 0
    for _ in range(MAX_INNER):
        inner: Any = data.get("function")
        if not isinstance(inner, dict):
            break
        data, depth = inner, depth + 1
    return depth + any(key in data for key in _ARGUMENTS)


def is_call(data: Any) -> bool:
    """Whether a mapping found in loose text has both a name and a place for arguments."""
    if not isinstance(data, dict):
        return False
    inner: Any = data.get("function")
    if isinstance(inner, dict):
        return isinstance(inner.get("name"), str)
    named = any(isinstance(data.get(key), str) for key in _NAMES)
    return named and any(key in data for key in _ARGUMENTS)


def _renamed(kind: str, *keys: str) -> tuple[Repair, ...]:
    own = _OWN | {"parameters"} if kind in _LLAMA else _OWN
    return () if own.issuperset(keys) else (RENAMED_FIELD,)
