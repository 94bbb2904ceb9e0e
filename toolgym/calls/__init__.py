"""Parsing: from the text of a model to the tool calls that it means.

`parsing` has the public functions. `find` finds raw calls in a text, by the table of `formats`,
which says how each family of models writes them. `mend` reads JSON and mends it, and `bind` fits
calls to their tools. `repairs` is the table of mistakes that are mended, and `errors` that of those
that are not.
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
