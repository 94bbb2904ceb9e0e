"""Unicode's composed form (NFC) of any text, in time that grows with its length.

`unicodedata.normalize` puts the marks that follow a letter into their canonical order by walking
back over all of them, one by one, so a thousand accents on one letter take a million steps, and
50,000 take seconds. Here long texts are taken apart letter by letter and their marks sorted first;
what `normalize` gets then is in order, and it walks back over nothing. The result is the same:
sorting marks by their class, equals in their order, is what the canonical order is.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

SHORT: Final = 256
"""Characters up to which a text is given to `unicodedata.normalize` as it is."""


def nfc(text: str) -> str:
    """Return a text in Unicode's normal form C.

    >>> nfc("Ile\\u0301") == "Il\\u00e9"
    True
    """
    if text.isascii():
        return text
    if len(text) > SHORT:
        text = _in_order(text)
    return unicodedata.normalize("NFC", text)


def _in_order(text: str) -> str:
    """Return a text taken apart, with the marks behind each letter in the order of their
    classes.
    """
    apart = {ord(each): unicodedata.normalize("NFD", each) for each in set(text)}
    text = text.translate(apart)
    marks = "".join(each for each in set(text) if unicodedata.combining(each))
    if not marks:
        return text
    # A class of single characters, greedy and with nothing behind it: no way back to try.
    return re.sub(f"[{re.escape(marks)}]{{2,}}", _sorted_marks, text)


def _sorted_marks(match: re.Match[str]) -> str:
    return "".join(sorted(match[0], key=unicodedata.combining))
