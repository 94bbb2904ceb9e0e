"""One message and the JSON objects in it: what all recognisers of formats share.

A recogniser takes a `Source` and a position and returns a `Found`: the calls it read and where it
stopped. What cannot be read where a call must stand becomes a call that carries its error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolgym.calls import errors as call_errors
from toolgym.calls.families import FORMATS
from toolgym.calls.mend import MAX_MENDED, TRUNCATED, JsonRead, JsonReader
from toolgym.calls.repairs import FLAT_ARGUMENTS, RENAMED_FIELD, REPAIRED_JSON, Repair
from toolgym.calls.tool_index import fold, match_name
from toolgym.errors import ToolError
from toolgym.tools import ToolSpec

# A call as it was found, before its tool is known: `RawCall`.
#
# All formats end here, most of them as a mapping with a name and arguments. Which keys hold them
# differs by model family: `name` and `arguments` (Hermes, OpenAI), `name` and `parameters` (Llama).
# Other keys for the same are accepted as a repair, and so are arguments that lie flat beside the
# name.

HERMES = "hermes"
MAX_CALLS = 32  # more in one action are not looked for
MAX_INNER = 8  # an object under `function`, in an object under `function`, ...


@dataclass(slots=True)  # not frozen: it is made for every call, and frozen ones cost more
class RawCall:
    """A name and arguments, both still whatever the model wrote.

    Attributes:
        name: The tool's name, or None if there is none.
        arguments: Usually a dict; a list is bound by position.
        format: The format that it is written in, by its name in `toolgym.calls.families`; of
            several with one mark, the first. `parsed` if it came as data.
        repairs: What had to be mended to read it.
        error: Why it cannot be read; then name and arguments are only a trace.
        textual: Whether the format writes values as bare text (XML forms), so that types are
            implied.
        positional: Values without names that stood before the named ones (Python calls).
        whole: Nothing is missing: it ends where it was written to end.
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


_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = (
    *("arguments", "parameters", "args", "input", "kwargs", "params"),
    *("tool_input", "action_input"),
)
_OWN = {"name", "arguments"}
_NATIVE = {entry.name: _OWN.union(entry.keys) for entry in FORMATS}  # the keys of a template
_BESIDE = {"id", "type", "index", "call_id", "tool_call_id"}  # keys of a call, no arguments


def from_mapping(
    data: dict[Any, Any], kind: str, specs: Mapping[str, ToolSpec], repairs: tuple[Repair, ...] = ()
) -> RawCall:
    """The call that a mapping describes; its name is None where the mapping has none."""
    inner: Any = data.get("function")
    names = _names_in(data)
    for _ in range(MAX_INNER):  # OpenAI: {"id", "type": "function", "function": {...}}
        if not issubclass(type(inner), dict):
            break
        repairs = (*repairs, RENAMED_FIELD) if kind == HERMES else repairs
        data, inner = inner, inner.get("function")
        names += _names_in(data)
    if len(names) > 1 and len({match_name(name, specs).name for name in names} - {None}) > 1:
        error = call_errors.malformed_call("it names more than one tool", specs)
        return RawCall("", {}, kind, repairs, error)
    name_key = next((key for key in _NAMES if data.get(key) is not None), None)
    if name_key is None:
        return RawCall(None, None, kind, repairs)
    wrappers = [key for key in _ARGUMENTS if key in data and key != name_key]
    filled = [key for key in wrappers if data[key] is not None and data[key] != {}]
    objects = [data[key] for key in filled if issubclass(type(data[key]), dict)]
    if not wrappers or any(each != objects[0] for each in objects):  # all stand under their keys
        flat = {k: v for k, v in data.items() if k != name_key and k not in _BESIDE}
        extra = (FLAT_ARGUMENTS,) if flat else ()
        return RawCall(data[name_key], flat, kind, (*repairs, *extra, *_renamed(kind, name_key)))
    key = filled[0] if filled else wrappers[0]
    used = _renamed(kind, name_key, key if filled else "arguments")
    return RawCall(data[name_key], data[key], kind, (*repairs, *used))


def _names_in(data: dict[Any, Any]) -> list[str]:
    """What a mapping has under the keys of a name."""
    values = (data.get(key) for key in _NAMES)
    return [value for value in values if type(value) is str]


def depth_of_arguments(data: dict[Any, Any]) -> int:
    """The number of brackets open around the arguments of the call that a mapping describes."""
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
    return () if _NATIVE.get(kind, _OWN).issuperset(keys) else (RENAMED_FIELD,)


CLOSE = "</tool_call>"
LOOSE = "json"  # the format of objects that no mark announces
_KEYED = {entry.name for entry in FORMATS if "keyed" in entry.reading}
_BETWEEN = re.compile(r"[\s;,]*+")
# Possessive: two runs of blanks side by side would else be divided in every possible way.
_NAMED = re.compile(
    r"\s*+(?:function\n)?+([\w.\-/:]++)\s*+(?:\[CALL_ID\][\w-]*+)?+(?:\[ARGS\])?+\s*+(?=\{)"
)
_TRIED = 4 * MAX_MENDED


@dataclass(slots=True)
class Shown:
    """A text without its thinking.

    Attributes:
        text: The rest.
        cuts: The positions at which a thought was taken out.
        begun: Something was taken from its start that ended in a lone closing tag.
        closers: The positions at which the thought taken out holds a tag that closes a value.
    """

    text: str
    cuts: tuple[int, ...] = ()
    begun: bool = False
    closers: tuple[int, ...] = ()


@dataclass(slots=True)
class Found:
    """The calls that a recogniser read, and the position behind them.

    Attributes:
        calls: In their order.
        end: Where to go on; perhaps behind a closing tag that stands further on.
        start: Where the calls begin.
        read_to: Up to where the text was understood; -1 for `end`.
        open_at: From where on the text belongs to the last call up to its very end, because a
            string or a bracket is not closed; -1 if it does not.
    """

    calls: tuple[RawCall, ...]
    end: int
    start: int = -1
    read_to: int = -1
    open_at: int = -1

    @property
    def understood(self) -> int:
        """Up to where the text was understood."""
        return self.end if self.read_to < 0 else self.read_to

    @property
    def whole(self) -> bool:
        """Whether calls were read, and each as it was written, with nothing missing."""
        for call in self.calls:
            if call.error or not call.whole:
                return False
        return bool(self.calls)

    def repaired(self, repair: Repair) -> Found:
        """Itself, with a repair noted on the first call."""
        head = [call.with_repairs(repair) for call in self.calls[:1]]
        self.calls = (*head, *self.calls[1:])
        return self


@dataclass
class Source:
    """One message without its thinking, and what all recognisers share.

    Attributes:
        cuts: Positions at which a thought was taken out.
        tried: Characters that may yet be followed in vain from the brackets of Python calls.
    """

    text: str
    specs: Mapping[str, ToolSpec]
    cuts: tuple[int, ...] = ()
    json: JsonReader = field(init=False)
    tried: int = _TRIED

    def __post_init__(self) -> None:
        self.json = JsonReader(self.text, self.cuts)
        self._finds: dict[str, tuple[int, int]] = {}

    def failed(self, reason: str, kind: str) -> RawCall:
        """A call that cannot be read; `reason` is TRUNCATED or half a sentence."""
        error = call_errors.unreadable(reason == TRUNCATED, reason, self.specs)
        return RawCall("", {}, kind, error=error)

    def find(self, what: str, start: int) -> int:
        """Position of a text at or behind `start`; the end of the message if there is none.

        The last answer is kept: a text that is far away, or nowhere, is not looked for again from
        each place that asks for it.
        """
        asked, answer = self._finds.get(what, (0, -1))
        if not asked <= start <= answer:
            position = self.text.find(what, start)
            answer = len(self.text) if position < 0 else position
            self._finds[what] = (start, answer)
        return answer

    def skip(self, start: int, pattern: re.Pattern[str]) -> int:
        """Position behind what the pattern matches at `start`."""
        match = pattern.match(self.text, start)
        return match.end() if match else start


def objects(source: Source, start: int, limit: int, kind: str) -> Found:
    """JSON objects one after another, or in a list; stops at the first that cannot be read."""
    calls: list[RawCall] = []
    listed = source.text.startswith("[", start)
    position = source.skip(start + 1, _BETWEEN) if listed else start
    open_at = -1
    while len(calls) < MAX_CALLS and source.text.startswith("{", position):
        read = source.json.read(position, limit)
        if read.problem:
            calls.append(source.failed(read.problem, kind))
            return Found(tuple(calls), read.end, open_at=read.open_at)
        open_at = read.open_at
        calls.extend(_calls_of(source, read, kind))
        start = read.end
        position = source.skip(start, _BETWEEN)
    if listed and calls:
        if source.text.startswith("]", position):
            return Found(tuple(calls), position + 1)
        calls[-1] = calls[-1].with_repairs(REPAIRED_JSON)
    return Found(tuple(calls), start, open_at=open_at)


def _calls_of(source: Source, read: JsonRead, kind: str) -> list[RawCall]:
    """The call, or the calls under `tool_calls`, that one JSON object describes.

    An object in loose text, without a mark, may be no call at all.
    """
    data = read.value
    if kind in _KEYED:
        return [as_read(_under_its_name(source, data, kind, read.repairs), read)]
    inner = data.get("tool_calls") or data.get("tool_call")
    entries = inner if isinstance(inner, list) else [inner]
    calls = [entry for entry in entries if isinstance(entry, dict)]
    if calls:
        return [_call_of(source, entry, read, kind, 1) for entry in calls]
    call = _call_of(source, data, read, kind, 0)
    if kind == LOOSE and not is_call(data) and not _names_a_tool(call.name, source.specs):
        return []  # data that was quoted, not a call
    return [call]


def _under_its_name(
    source: Source, data: dict[Any, Any], kind: str, repairs: tuple[Repair, ...]
) -> RawCall:
    """The call that an object describes whose only key is the name: `{"f": {"x": ...}}`."""
    (name, arguments), *others = data.items() or [("", None)]
    if others or not isinstance(arguments, dict):
        if isinstance(data.get("name"), str):
            return from_mapping(data, kind, source.specs, repairs)
        return source.failed("an object in it has not one name with its arguments", kind)
    return RawCall(name, arguments, kind, repairs)


def _call_of(
    source: Source, data: dict[Any, Any], read: JsonRead, kind: str, depth: int
) -> RawCall:
    """One call; `depth` is how many brackets are open around its mapping."""
    call = from_mapping(data, kind, source.specs, read.repairs)
    return as_read(call, read, depth + depth_of_arguments(data) if read.missing else 0)


def as_read(call: RawCall, read: JsonRead, depth: int = 0) -> RawCall:
    """The call, marked as not whole where its JSON had to be mended.

    Args:
        depth: Brackets that may be missing though every argument was given.
    """
    if not (read.cut or read.missing):
        return call
    return replace(call, whole=False, unfinished=read.missing > depth)


def _names_a_tool(name: object, specs: Mapping[str, ToolSpec]) -> bool:
    """Whether a name in loose text is a tool's, but for case and separators."""
    return isinstance(name, str) and fold(name) in {fold(spec_name) for spec_name in specs}


def named_object(source: Source, start: int, limit: int, kind: str) -> Found:
    """A name, then a JSON object with its arguments: `describe[ARGS]{"table_name": "singer"}`."""
    return headed_object(source, _NAMED.match(source.text, start), limit, kind)


def headed_object(source: Source, head: re.Match[str] | None, limit: int, kind: str) -> Found:
    """The call of a head, its group 1 the name, and the JSON object behind it."""
    if head is None or head.group(1) is None:
        return Found((), -1)
    return object_of(source, head.group(1), head.end(), limit, kind)


def object_of(source: Source, name: str, start: int, limit: int, kind: str) -> Found:
    """The call of a name, whose arguments are the JSON object at a position."""
    read = source.json.read(start, limit)
    if read.problem:
        return Found((source.failed(read.problem, kind),), read.end, open_at=read.open_at)
    call = RawCall(name, read.value, kind, read.repairs)
    return Found((as_read(call, read),), read.end, open_at=read.open_at)
