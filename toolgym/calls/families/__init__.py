"""The table of call formats: how each family of models writes a call, reasons, and ends a turn.

One `Format` for each way of writing. Calls are read by its marks (`toolgym.calls.marked`); the
tests, the documentation and the check of `toolgym.sanitize` take their lists from here. A new
family that writes a known shape is one more entry and a fixture.

Each entry names where its facts come from: the public chat template of the family, or the parser of
a serving engine.
"""

from __future__ import annotations

from typing import Final

from toolgym.calls.families.entry import Format
from toolgym.calls.families.json_formats import JSON_FORMATS
from toolgym.calls.families.named_formats import NAMED_FORMATS
from toolgym.calls.families.python_formats import PYTHON_FORMATS
from toolgym.calls.families.tag_formats import TAG_FORMATS

__all__ = ["CONTROLS", "FORMATS", "FRAMES", "Format"]

FORMATS: Final = (*JSON_FORMATS, *NAMED_FORMATS, *PYTHON_FORMATS, *TAG_FORMATS)
"""Of several formats with the same mark, the first names what is read."""
FRAMES: Final = tuple(
    dict.fromkeys(
        text
        for entry in FORMATS
        for text in entry.frame
        if text.endswith(
            ("begin\uff5c>", "begin|>", "_calls>", "function_calls>", "tool_calls\uff5c>")
        )
        and not text.startswith("</")
    )
)
"""What opens a section of calls and is no mark itself: a text that ends there was cut off."""
CONTROLS: Final = tuple(
    dict.fromkeys(
        text
        for entry in FORMATS
        for text in (*entry.marks, *entry.frame, *entry.closes, *entry.stop)
        if not text[0].isalpha()
    )
)
"""The marks, frames, closing texts and ends of turns of all formats; words of prompts left out."""
