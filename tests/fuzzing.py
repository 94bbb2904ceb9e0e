"""A seeded source of damaged calls, noise, and values that are no text.

Text that is almost right breaks parsers more often than pure noise. So most actions are calls in a
format, or behind a mark, that were damaged: spans deleted, doubled, moved, cut off at the end,
quotes flipped, tags of another format put in. One seed gives one sequence on every machine.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from toolgym import calls
from toolgym.calls import render_call, specs_of
from toolgym.tools import ToolSpec

WORDS = (
    "singer",
    "SELECT 1",
    "a'b",
    'say "x"',
    "{",
    "null",
    "é",
    "\ud83d",
    "-1",
    "x\ny",
    "<think>",
)
SPANS = (
    *("<tool_call>", "</tool_call>", "<function=query>", "<parameter=sql>", "</parameter>"),
    *("[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "<think>", "</think>", "```json\n", "```", '"""'),
    *('"', "'", "\\", "{", "}", "[", "]", "(", ")", ",", ":", "null", "NaN", "\x00", "\ud83d"),
    *("\u2028", "1e999", "-", "\n", "<arg_key>", "</arg_value>", "describe("),
    *('{"name": ', '"arguments": '),
    *(text for entry in calls.FORMATS for text in (*entry.marks, *entry.closes[:1])),
)


def random_actions(seed: int, n: int, tools: Any) -> Iterator[Any]:
    """Yield `n` actions: damaged calls of the tools, noise, and values that are no text.

    Args:
        seed: One seed gives one sequence.
        tools: As for `toolgym.calls.parse_calls`.
    """
    draw = random.Random(seed)
    specs = list(specs_of(tools).values())
    for _ in range(n):
        kind = draw.random()
        if kind < 0.75:
            yield mutated(draw, random_text(draw, specs))
        elif kind < 0.85:
            yield "".join(draw.choice(SPANS) for _ in range(draw.randrange(12)))
        else:
            yield random_object(draw, specs)


def random_text(draw: random.Random, specs: list[ToolSpec]) -> str:
    """One to three calls in one random format, sometimes with prose around them."""
    writer = draw.choice(WRITERS)
    calls = [random_call(draw, specs) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    text = "\n".join(writer(name, arguments) for name, arguments in calls)
    before = draw.choice(("", "", "I look.\n", "<think>Hm.</think>\n", "The answer is 5.\n"))
    return before + text + draw.choice(("", "", "\n", "\nDone.", "<|im_end|>"))


def random_call(draw: random.Random, specs: list[ToolSpec]) -> tuple[str, dict[str, Any]]:
    """A tool's name and arguments, some of them missing, null, or unknown."""
    spec = draw.choice(specs)
    names = [name for name in spec.arguments.model_fields if draw.random() < 0.9]
    if draw.random() < 0.2:
        names.append(draw.choice(("sql", "limit", "table", "arguments", "value")))
    return spec.name, {name: random_value(draw) for name in names}


def random_value(draw: random.Random, depth: int = 0) -> Any:
    """A JSON value: mostly words, sometimes numbers, nulls, lists and objects."""
    kind = draw.random()
    if kind < 0.6 or depth > 3:
        return draw.choice(WORDS)
    if kind < 0.8:
        return draw.choice((0, 5, -2.5, 10**30, True, None))
    if kind < 0.9:
        return [random_value(draw, depth + 1) for _ in range(draw.randrange(3))]
    return {draw.choice(WORDS): random_value(draw, depth + 1) for _ in range(draw.randrange(3))}


def mutated(draw: random.Random, text: str) -> str:
    """The text after up to four random edits; one in ten stays as it is."""
    if draw.random() < 0.1:
        return text
    for _ in range(draw.randrange(1, 5)):
        start = draw.randrange(len(text) + 1)
        end = min(len(text), start + draw.choice((1, 1, 2, 5, 20)))
        text = draw.choice(EDITS)(draw, text, start, end)
    return text


Edit = Callable[[random.Random, str, int, int], str]
EDITS: tuple[Edit, ...] = (
    lambda _, text, start, end: text[:start] + text[end:],
    lambda _, text, start, end: text[:end] + text[start:],
    lambda _, text, start, end: text[:start],
    lambda _, text, start, end: text[start:],
    lambda draw, text, start, end: text[:start] + draw.choice(SPANS) + text[start:],
    lambda draw, text, start, end: text[:start] + draw.choice(SPANS) + text[end:],
    lambda _, text, start, end: text.translate(str.maketrans("\"'", "'\"")),
    lambda _, text, start, end: text[:start] + text[start:end].swapcase() + text[end:],
    lambda _, text, start, end: text[end:] + text[:start],
)


def _python(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _positional(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(map(repr, arguments.values()))})"


def _marked(entry: calls.Format, name: str, arguments: dict[str, Any]) -> str:
    """A call as JSON between the marks of a format, which may write calls in another way."""
    text = json.dumps({"name": name, "arguments": arguments})
    return "".join((*entry.marks[:1], text, *entry.closes[:1]))


Writer = Callable[[str, dict[str, Any]], str]
WRITERS: tuple[Writer, ...] = (
    render_call,
    render_call,
    _python,
    _positional,
    lambda name, arguments: json.dumps({"name": name, "parameters": arguments}),
    lambda name, arguments: f"```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```",
    *(functools.partial(_marked, entry) for entry in calls.FORMATS if entry.marks),
)


def random_object(draw: random.Random, specs: list[ToolSpec]) -> Any:
    """An action that is no text: bytes, numbers, nested lists, calls as dicts, cycles."""
    name, arguments = random_call(draw, specs)
    cyclic: list[Any] = [name]
    cyclic.append(cyclic)
    looped: dict[str, Any] = {"name": name}
    looped["arguments"] = looped
    call = {"name": name, "arguments": arguments}
    openai = {"type": "function", "function": {**call, "arguments": json.dumps(arguments)}}
    return draw.choice(
        (
            *(None, True, 5, float("nan"), b"\xff\xfe", name.encode(), object(), len, {1, 2}),
            *(
                [],
                {},
                cyclic,
                looped,
                call,
                [call, call],
                [[call]],
                [call, None],
                openai,
                arguments,
            ),
            {"role": "assistant", "content": render_call(name, arguments), "tool_calls": None},
            {"role": "assistant", "content": "", "tool_calls": [openai, draw.choice((1, call))]},
            {"name": draw.choice((None, 5, [], name.upper())), "arguments": random_value(draw)},
            {**call, "arguments": json.dumps(arguments)[: draw.randrange(20)]},
            {"name": name, **arguments},
        )
    )
