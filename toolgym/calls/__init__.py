"""Parsing: from the text of a model to the tool calls that it means.

`parsing` is the public face; behind it `formats` finds raw calls (one module per kind of format:
marked text, XML forms, loose JSON, Python lines), and `binding` fits them to the tools. `repairs`
and `errors` are the two tables: what can be mended, and what cannot.
"""

from toolgym.calls.binding import Parsing, ToolCall
from toolgym.calls.errors import CALL_ERRORS
from toolgym.calls.families import FORMATS, Format, format_named
from toolgym.calls.hidden import opened_thought
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
    "format_named",
    "formats_in",
    "opened_thought",
    "parse_calls",
    "render_call",
    "render_calls",
    "specs_of",
]
