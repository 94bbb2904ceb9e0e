"""Texts that a model could have written: calls in a format, and what becomes of them by mistake.

A `Written` is one text and the calls that it was made from, if it still means them. Arguments are
what breaks readers: SQL with quotes and line breaks, tags and marks inside of values, numbers as
text, lists, objects, nothing at all. One text in four stays as it was written; each of the others
gets one `MISTAKES`. One seed gives one sequence.

The marks of a format are found, not listed: they are what its writer puts around plain values.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.toolgym.calls.toy_sql_tools import PLAIN, TOOLS, TYPED

Call = tuple[str, dict[str, Any]]


SPECS = {**TOOLS, **TYPED, **PLAIN}
SCHEMAS = [spec.schema() for spec in SPECS.values()]

TEXTS = (
    "singer",
    "Änderung, naïve café, 東京 🎵",
    "SELECT name FROM singer WHERE country = 'France' AND age > 20",
    'SELECT "Song Name", COUNT(*) FROM "concert" GROUP BY 1',
    "SELECT a.name,\n       b.year\nFROM singer AS a\nJOIN concert AS b ON a.id = b.id\nLIMIT 5",
    "it's 5 o'clock",
    'He said: "no".',
    "back\\slash C:\\new\\table",
    "tab\there",
    "  two blanks around  ",
    "first line\n\nthird line\n",
    "a < b and c > d",
    "{curly} [square] (round)",
    '{"name": "query", "arguments": {"sql": "SELECT 1"}}',
    "print('hi')\nif x:\n    print(\"no\")\n",
    "42",
    "true",
    "null",
    "3.10",
    "",
    "a, b, c",
    "[1, 2]",
    "<b>bold</b> &amp; more",
    "x" * 90,
)
MARKS_IN_TEXT = (
    "</tool_call>",
    "<tool_call>",
    "<think>not a thought</think>",
    "</parameter>",
    "<parameter=x>",
    "</arg_value>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<|im_end|>",
    "```",
    "</function>",
    "<|tool_call_end|>",
)
PROSE = (
    "I will look at the table first.",
    "Let me check: the `singer` table should hold it.\nThen I query it.",
    "Sure! Here is the call (one of many):",
    "Ergebnis folgt – 你好.",
)
THOUGHTS = (
    "I need the columns first. Then a query.",
    "The user wants a list.\n\nMaybe call describe, then query.",
    "",
)


@dataclass(frozen=True)
class Shape:
    """How a family writes a message around its calls.

    Attributes:
        name: The format.
        write: Calls to text.
        thought: What opens and closes its thinking; empty if it has none.
        end: Its stop token.
        most: The most calls in one message.
        python: Its calls are Python.
        alone: A message begins with its calls, since the prompt ends with their first mark.
        known: Marks of it that are not like tags.
        marks: What it puts around plain values, each up to the first name in it, in their order.
        closing: Those of them that close something, the outermost last.
    """

    name: str
    write: Callable[[Sequence[Call]], str]
    thought: tuple[str, str] | None = None
    end: str = ""
    most: int = 3
    python: bool = False
    alone: bool = False
    known: tuple[str, ...] = ()
    marks: tuple[str, ...] = field(init=False)
    closing: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        plain = self.write(_PLAIN_CALLS[: self.most])
        found = {_PLAIN.split(mark)[0] for mark in _MARK.findall(plain)} | set(self.known)
        marks = sorted(
            (mark for mark in found if mark in plain and _WORD.search(mark)), key=plain.find
        )
        closing = [mark for mark in marks if _CLOSING.search(mark)]
        object.__setattr__(self, "marks", tuple(marks))
        object.__setattr__(self, "closing", tuple(sorted(closing, key=plain.rfind)))


_PLAIN_CALLS = [("describe", {"table_name": "a"}), ("turn", {"dial": 1, "to": 2})]
_PLAIN = re.compile("describe|turn|table_name|dial|to(?!ol)")
_MARK = re.compile(r"</?[|｜]?[A-Za-z][^<>\n]{0,40}>|\[/?[A-Z_]{3,}\]|<[|｜][^<>\n]{1,40}>")
_WORD = re.compile(r"\w")
_CLOSING = re.compile(r"</|\[/|[_▁]end|^<[a-z_]+\|>")


@dataclass
class Written:
    """One text.

    Attributes:
        text: What was written.
        meant: The calls that it was made from.
        mistake: What happened to it; empty if nothing did.
    """

    text: str
    meant: list[Call]
    mistake: str = ""


def texts(shape: Shape, count: int, seed: int = 0) -> Iterator[Written]:
    """Texts in a format, some of them damaged."""
    draw = random.Random(f"{seed} {shape.name}")
    for _ in range(count):
        calls = [_call(draw) for _ in range(draw.choice((1, 1, 1, 2, shape.most)))]
        calls = calls[: shape.most]
        written = _message(draw, shape, calls)
        if draw.random() < 0.75:
            written.mistake = draw.choice(list(MISTAKES))
            written.text = MISTAKES[written.mistake](draw, written.text, shape)
        yield written


def _message(draw: random.Random, shape: Shape, calls: list[Call]) -> Written:
    before = ""
    if shape.thought and not shape.alone and draw.random() < 0.3:
        opening, closing = shape.thought
        thought = draw.choice(THOUGHTS)
        if draw.random() < 0.2:
            thought += "\n" + shape.write([_call(draw)])
        before = f"{opening}\n{thought}\n{closing}\n\n"
    if not shape.alone and draw.random() < 0.3:
        before += draw.choice(PROSE) + "\n"
    behind = shape.end if draw.random() < 0.5 else ""
    return Written(before + shape.write(calls) + behind, calls)


def _call(draw: random.Random) -> Call:
    spec = draw.choice(list(SPECS.values()))
    arguments = {}
    for name, described in spec.parameters["properties"].items():
        if name in spec.required or draw.random() < 0.5:
            arguments[name] = _value(draw, described)
    if arguments and draw.random() < 0.04:
        arguments.pop(draw.choice(list(arguments)))
    return spec.name, arguments


def _value(draw: random.Random, described: dict[str, Any]) -> Any:
    """A value of the type that a schema asks for."""
    options = described.get("anyOf", [described])
    kind = draw.choice(options).get("type", "string")
    if kind == "integer":
        return draw.choice((0, 1, 7, -3, 2015, 10**12))
    if kind == "number":
        return draw.choice((0.5, 3.25, -1.5, 2, 1e-7))
    if kind == "boolean":
        return draw.random() < 0.5
    if kind == "null":
        return None
    if kind == "array":
        inside = described.get("items", {"type": "string"})
        return [_value(draw, inside) for _ in range(draw.choice((0, 1, 2, 3)))]
    if kind == "object":
        keys = draw.sample(("sql", "limit", "deep", "on", "naïve key"), draw.randrange(4))
        return {key: draw.choice((_text(draw), 3, True, None, [1, {"a": "b"}])) for key in keys}
    return _text(draw)


def _text(draw: random.Random) -> str:
    text = draw.choice(TEXTS)
    if draw.random() < 0.12:
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice(MARKS_IN_TEXT) + text[at:]
    return text


def _cut(draw: random.Random, text: str, shape: Shape) -> str:
    return text[: draw.randrange(len(text) // 3, len(text))]


def _drop(draw: random.Random, text: str, shape: Shape) -> str:
    at = draw.randrange(len(text))
    return text[:at] + text[at + 1 :]


def _double(draw: random.Random, text: str, shape: Shape) -> str:
    at = draw.randrange(len(text))
    return text[:at] + text[at] + text[at:]


def _swap(draw: random.Random, text: str, shape: Shape) -> str:
    at = draw.randrange(len(text) - 1)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _places(text: str, marks: Sequence[str]) -> list[tuple[int, int]]:
    return [
        (found.start(), found.end())
        for mark in marks
        for found in re.finditer(re.escape(mark), text)
    ]


def _unclosed(draw: random.Random, text: str, shape: Shape) -> str:
    places = _places(text, shape.closing)
    if not places:
        return text.rstrip(")]}")
    begin, end = draw.choice(places)
    return text[:begin] + text[end:]


def _unopened(draw: random.Random, text: str, shape: Shape) -> str:
    places = _places(text, [mark for mark in shape.marks if mark not in shape.closing])
    if not places:
        return text
    begin, end = draw.choice(places)
    return text[:begin] + text[end:]


def _spaced(draw: random.Random, text: str, shape: Shape) -> str:
    blank = draw.choice((" ", "\n", "\n\n", "\t", "  "))
    for _ in range(2):
        places = [place for pair in _places(text, shape.marks) for place in pair] or [0, len(text)]
        at = draw.choice(places)
        text = text[:at] + blank + text[at:]
    return text


def _followed(draw: random.Random, text: str, shape: Shape) -> str:
    return (
        text.removesuffix(shape.end or "\0") + draw.choice(("\n", " ", "\n\n")) + draw.choice(PROSE)
    )


def _comma(draw: random.Random, text: str, shape: Shape) -> str:
    return _once(draw, text, re.compile(r"(?=[}\])])"), ",")


def _single(draw: random.Random, text: str, shape: Shape) -> str:
    at = text.find("{")
    return text if at < 0 else text[:at] + text[at:].replace('"', "'")


def _misnamed(draw: random.Random, text: str, shape: Shape) -> str:
    name = draw.choice([name for name in SPECS if name in text] or ["describe"])
    return text.replace(name, draw.choice(("fetch", name.upper(), f"functions.{name}", name + "s")))


def _twice(draw: random.Random, text: str, shape: Shape) -> str:
    """A whole `"key": "text"`, or pair of tags, written again with another text."""
    pairs = [*re.finditer(r'"(\w+)": "\w+"', text), *re.finditer(_PAIR, text)]
    if not pairs:
        return text
    found = draw.choice(pairs)
    again = re.sub(r'("|>\n?)[^<>"]+("|\n?<)', r"\1other\2", found.group()[::1])
    again = f', "{found.group(1)}": "other"' if found.group().startswith('"') else again
    return text[: found.end()] + again + text[found.end() :]


_PAIR = r"(?:<arg_key>\w+</arg_key>\s*)?<(?:parameter[^<>]+|arg_value)>[^<>]*</\w+>\n?"


def _foreign(draw: random.Random, text: str, shape: Shape) -> str:
    """A mark between two words."""
    return _once(
        draw, text, re.compile(r"(?<=[a-z]) (?=[a-z])"), " " + draw.choice(MARKS_IN_TEXT) + " "
    )


def _once(draw: random.Random, text: str, where: re.Pattern[str], what: str) -> str:
    places = list(where.finditer(text))
    if not places:
        return text
    place = draw.choice(places)
    return text[: place.start()] + what + text[place.end() :]


def _again(draw: random.Random, text: str, shape: Shape) -> str:
    """A second message behind the first."""
    return text + "\n" + shape.write([_call(draw)])


MISTAKES: dict[str, Callable[[random.Random, str, Shape], str]] = {
    "cut": _cut,
    "dropped": _drop,
    "doubled": _double,
    "swapped": _swap,
    "unclosed": _unclosed,
    "unopened": _unopened,
    "spaced": _spaced,
    "followed": _followed,
    "comma": _comma,
    "single quotes": _single,
    "misnamed": _misnamed,
    "key twice": _twice,
    "foreign mark": _foreign,
    "again": _again,
}


def json_text(value: Any) -> str:
    """JSON as chat templates write it."""
    return json.dumps(value, ensure_ascii=False)
