"""The response templates of TRL, as transformers reads a text with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers.utils.chat_parsing import parse_response
from trl import chat_template_utils

from benchmarks.call_readers.cases import Reader
from benchmarks.call_readers.comparison import Row, compare
from benchmarks.call_readers.shapes import SHAPES
from benchmarks.call_readers.written import SCHEMAS, texts


def rows(count: int) -> Iterator[Row]:
    """`count` texts of each format that has a template, beside it."""
    for shape in SHAPES:
        if shape.name in TEMPLATES:
            written = list(texts(shape, count))
            yield compare(shape, "transformers", reader(shape.name, SCHEMAS), written)


TEMPLATES = {
    "hermes": "qwen3_template",
    "qwen3-coder": "qwen3_5_template",
    "glm": "glm4moe_template",
    "json": "llama3_template",
    "harmony": "gptoss_template",
    "lfm2": "lfm2_2_5_template",
    "gemma-4": "gemma4_template",
}


def reader(shape: str, tools: list[dict[str, Any]]) -> Reader:
    """A reader of one format; where a text does not fit its template, it finds nothing."""
    template = getattr(chat_template_utils, TEMPLATES[shape])

    def read(text: str) -> list[tuple[str, Any]]:
        try:
            message = parse_response(text, template, prefix="", tools=tools)
        except (ValueError, TypeError):
            return []
        functions = [call.get("function") for call in message.get("tool_calls", [])]
        return [
            (function.get("name"), function.get("arguments") or {})
            for function in functions
            if isinstance(function, dict)
        ]

    return read
