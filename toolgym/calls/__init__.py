"""Parsing: from the text of a model to the tool calls that it means.

`parsing` is the public face. Behind it `formats` finds raw calls: `hidden` takes the thinking away,
`marked` reads what stands behind a mark and `lines` what begins a line, `mentions` tells talk about
calls from calls. `bind` fits them to the tools. Three tables: `families` (how models
write), `repairs` (what can be mended) and `errors` (what cannot). `writing` writes calls.
"""

from toolgym.calls.bind import Parsing, ToolCall
from toolgym.calls.errors import CALL_ERRORS
from toolgym.calls.families import FORMATS, Format
from toolgym.calls.hiding_tags import opened_thought
from toolgym.calls.parsing import bind_call, formats_in, parse_calls, specs_of
from toolgym.calls.repairs import REPAIRS, Repair
from toolgym.calls.writing import render_call, render_calls

__all__ = [
    "CALL_ERRORS",
    "FORMATS",
    "REPAIRS",
    "Format",
    "Parsing",
    "Repair",
    "ToolCall",
    "bind_call",
    "formats_in",
    "opened_thought",
    "parse_calls",
    "render_call",
    "render_calls",
    "specs_of",
]
