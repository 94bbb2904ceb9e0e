"""One text as two readers read it, and when two calls are the same.

Compared is what was found (`toolgym.calls.formats.find_calls`), before a tool's name or arguments
are repaired. Where values are bare text, ours are still text: the other's is the same if the text
reads as that value.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.call_readers.written import SPECS, Call, Shape, Written
from toolgym.calls.source import RawCall
from toolgym.calls.tool_index import plan_of

Reader = Callable[[str], list[tuple[str, Any]]]


@dataclass
class Case:
    """One text as both read it.

    Attributes:
        shape: The format that it was written in.
        written: The text, and what was meant.
        ours: What we found, errors included.
        theirs: What the other reader found.
        reader: The other reader, to ask it of other texts.
    """

    shape: Shape
    written: Written
    ours: list[RawCall]
    theirs: list[tuple[str, Any]]
    reader: Reader

    @property
    def text(self) -> str:
        """What was written."""
        return self.written.text

    @property
    def found(self) -> list[RawCall]:
        """Our calls that are no errors."""
        return [call for call in self.ours if call.error is None]

    @property
    def refused(self) -> list[str]:
        """Why we refused what is an error."""
        return [f"{call.error.code}: {call.error}" for call in self.ours if call.error]

    @property
    def extra(self) -> list[tuple[str, Any]]:
        """What they found and we did not."""
        return beyond(self.found, self.theirs)

    def other(self, text: str, change: Callable[[Any], Any] = lambda value: value) -> Case:
        """The case of another text, and with other values on their side."""

        def all_changed(calls: Sequence[Call]) -> list[Call]:
            return [(name, changed(arguments, change)) for name, arguments in calls]

        def reader(asked: str) -> list[tuple[str, Any]]:
            return all_changed(self.reader(asked))

        written = replace(self.written, text=text, meant=all_changed(self.written.meant))
        return Case(self.shape, written, self.ours, reader(text), reader)


def changed(arguments: Any, change: Callable[[Any], Any]) -> Any:
    """Arguments with each value changed."""
    if not isinstance(arguments, dict):
        return arguments
    return {key: change(value) for key, value in arguments.items()}


def beyond(found: Sequence[RawCall], theirs: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Those of theirs that are not among ours, where order counts."""
    rest = list(found)
    extra = []
    for call in theirs:
        at = next((k for k, own in enumerate(rest) if is_same(own, call)), None)
        if at is None:
            extra.append(call)
        else:
            rest = rest[at + 1 :]
    return extra


def is_same(own: RawCall, other: tuple[str, Any]) -> bool:
    """Whether two calls have the same name and arguments."""
    name, arguments = other
    named = own.arguments if own.arguments is not None else {}
    if own.positional and own.name in SPECS:
        named = {**dict(zip(plan_of(SPECS[own.name]).names, own.positional, strict=False)), **named}
    if own.name != name or not isinstance(named, dict) or not isinstance(arguments, dict):
        return own.name == name and plain(named) == plain(arguments)
    if named.keys() != arguments.keys():
        return False
    same = is_text_of if own.textual else _equal
    return all(same(value, arguments[key]) for key, value in named.items())


def _equal(value: Any, other: Any) -> bool:
    return plain(value) == plain(other)


def is_text_of(text: Any, value: Any) -> bool:
    """Whether a bare text is a value, once the tool's schema says its type."""
    if not isinstance(text, str) or isinstance(value, str):
        return _equal(text, value)
    for read in (json.loads, literal, lambda word: json.loads(word.lower())):
        try:
            if _equal(read(text.strip()), value):
                return True
        except (ValueError, SyntaxError):
            continue
    return False


def literal(text: str) -> Any:
    """The value of Python source that is a literal.

    Raises:
        ValueError: It is none.
    """
    return ast.literal_eval(expression(text))


def expression(text: str) -> ast.expr:
    """Python source as a tree, without warnings of its escapes.

    Raises:
        SyntaxError: It is no expression.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text.strip(), mode="eval").body


def plain(value: Any) -> str:
    """A JSON value as text, where a number is what it counts."""

    def same(entry: Any) -> Any:
        if isinstance(entry, float) and entry.is_integer():
            return int(entry)
        if isinstance(entry, dict):
            return {str(key): same(inner) for key, inner in entry.items()}
        return [same(inner) for inner in entry] if isinstance(entry, list | tuple) else entry

    return json.dumps(same(value), sort_keys=True, default=repr)


def without_thoughts(case: Case, *, leading: bool = False) -> str:
    """The text without what stands between tags of thinking, or before a closing one alone.

    Args:
        leading: Only where the text begins with it; what follows may hold such tags in values.
    """
    text = case.text
    for opening, closing in dict.fromkeys([*THOUGHTS, case.shape.thought or THOUGHTS[0]]):
        tags = re.escape(opening), re.escape(closing)
        if leading and text.startswith(opening):
            text = text.partition(closing)[2]
        elif not leading:
            text = re.sub(r"{}.*?(?:{}|\Z)".format(*tags), "\n", text, flags=re.DOTALL)
            text = text.rpartition(closing)[2]
    return text


THOUGHTS = (("<think>", "</think>"), ("[THINK]", "[/THINK]"))


def has_conflict(text: str) -> bool:
    """Whether one key of a JSON object, or of a call in tags, has two values."""
    conflicts = []

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen and seen[key] != value:
                conflicts.append(key)
            seen[key] = value
        return seen

    decoder = json.JSONDecoder(object_pairs_hook=look, strict=False)
    for brace in re.finditer(r"\{", text):
        try:
            decoder.raw_decode(text, brace.start())
        except ValueError:
            continue
    return bool(conflicts)


def json_inner(text: str) -> str:
    """A text as it stands inside of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
