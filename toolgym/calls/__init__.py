"""Parsing of tool calls in the text of a model.

`parsing` has the public functions. `find` finds raw calls in a text by the table in `formats`,
which describes how each model family writes them. `mend` reads JSON and mends it, and `bind`
matches calls to their tools. `repairs` is the table of mistakes that are repaired, and `errors` the
table of mistakes that are not.
"""

from toolgym.calls.bind import Parsing, ToolCall
from toolgym.calls.errors import CALL_ERRORS
from toolgym.calls.formats import FORMATS, Format, opened_thought
from toolgym.calls.parsing import (
    bind_call,
    formats_in,
    parse_calls,
    render_call,
    render_calls,
    specs_of,
)
from toolgym.calls.repairs import REPAIRS, Repair

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
