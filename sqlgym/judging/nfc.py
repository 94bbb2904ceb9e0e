"""Unicode normalization (NFC) of arbitrary strings in nearly linear time.

`unicodedata.normalize` sorts the combining marks of a letter by insertion sort, which takes
quadratic time. For example, a thousand accents on one letter take a million steps, and 50,000
accents take seconds. `nfc` first decomposes a long string and sorts the marks of each letter by
combining class, so that `normalize` receives sorted marks. The result is the same, because
canonical ordering is a stable sort by combining class.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

SHORT: Final = 256
"""Maximum length of a text that is passed to `unicodedata.normalize` directly, in characters."""


def nfc(text: str) -> str:
    """Return a string in Unicode normalization form C.

    >>> nfc("Ile\\u0301") == "Il\\u00e9"
    True
    """
    if text.isascii():
        return text
    if len(text) > SHORT:
        text = _in_order(text)
    return unicodedata.normalize("NFC", text)


def _in_order(text: str) -> str:
    """Return a decomposed text, with the marks after each letter in the order of their classes."""
    apart = {ord(each): unicodedata.normalize("NFD", each) for each in set(text)}
    text = text.translate(apart)
    marks = "".join(each for each in set(text) if unicodedata.combining(each))
    if not marks:
        return text
    # A greedy class of single characters at the end of a pattern does not backtrack.
    return re.sub(f"[{re.escape(marks)}]{{2,}}", _sorted_marks, text)


def _sorted_marks(match: re.Match[str]) -> str:
    return "".join(sorted(match[0], key=unicodedata.combining))
