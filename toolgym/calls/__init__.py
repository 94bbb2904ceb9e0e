"""Parsing: from the text of a model to the tool calls that it means.

`parsing` is the public face; behind it `formats` finds raw calls (one module per kind of format:
marked text, XML forms, loose JSON, Python lines), and `binding` fits them to the tools. `repairs`
and `errors` are the two tables: what can be mended, and what cannot.
"""

from toolgym.calls.binding import Parsing, ToolCall
from toolgym.calls.errors import CALL_ERRORS
from toolgym.calls.parsing import bind_call, parse_calls, render_call, specs_of
from toolgym.calls.repairs import REPAIRS, Repair

__all__ = [
    "CALL_ERRORS",
    "REPAIRS",
    "Parsing",
    "Repair",
    "ToolCall",
    "bind_call",
    "parse_calls",
    "render_call",
    "specs_of",
]
