"""Parsing of tool calls in the text of a model.

`parsing` contains the public functions. `find` finds raw calls in a text, using the table of call
formats in `formats`. `mend` reads JSON and repairs it, and `bind` matches calls to tools. `repairs`
lists the mistakes that are repaired, and `errors` those that are not.
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
