"""One entry of the table of formats, and the words that its entries share.

Entries are data: no entry has code of its own. What a field means for reading is defined by the
readers that it names, in `toolgym.calls.enveloped` and `toolgym.calls.marked`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from toolgym.calls.tag_sets import Tags

JSON, PYTHON, TAGS, BRACES = "JSON", "Python", "tags", "braces"
THINK: Final = ("<think>", "</think>")


@dataclass(frozen=True, kw_only=True)
class Format:
    """How one or more families of models write calls.

    Attributes:
        name: Its name, as `formats_in` tells it.
        families: The model families that write it.
        source: Where it is documented: files of public repositories, or pages.
        arguments: How arguments are written: `JSON`, `Python`, `tags` or `braces`.
        keys: The keys of a call's name and arguments, where a call is a JSON object.
        marks: The texts behind each of which a call, or a list of calls, stands.
        frame: Other control texts: around several calls, between parts of one, behind it.
        closes: What closes a call, first, and what closes the list of calls.
        must_close: A call without its closing text was not finished as it should be.
        certain: Behind a mark there must be a call; if it cannot be read, that is an error.
        reading: Which readers are tried behind a mark, in this order.
        head: The pattern of what stands between a mark and JSON arguments, its group 1 the name.
        tags: The tags around bare text.
        quote: What stands around a text in braces.
        thinking: What opens and what closes reasoning.
        stop: The tokens that end a turn.
        result: What opens and what closes the result of a tool, where a model could write it.
    """

    name: str
    families: tuple[str, ...]
    source: str
    arguments: str
    keys: tuple[str, str] = ("name", "arguments")
    marks: tuple[str, ...] = ()
    frame: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    must_close: bool = False
    certain: bool = True
    reading: tuple[str, ...] = ()
    head: str = ""
    tags: Tags | None = None
    quote: str = ""
    thinking: tuple[str, str] | None = None
    stop: tuple[str, ...] = ()
    result: tuple[str, str] | None = None
    head_pattern: re.Pattern[str] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.head:
            object.__setattr__(self, "head_pattern", re.compile(self.head))


SGLANG: Final = "sglang python/sglang/srt/function_call/"
VLLM: Final = "vLLM vllm/tool_parsers/"
LLAMA_CPP: Final = "llama.cpp models/templates/"
NAME: Final = r"([\w.\-/]++)"
FENCE: Final = r"(?:```\w*+\s*+)?+"
DEEPSEEK_END: Final = "<\uff5cend\u2581of\u2581sentence\uff5c>"
