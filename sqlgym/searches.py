"""Which searches of a full-text table are bounded.

A search is one step of SQLite's machine, however long it takes, and with many terms it takes long:
`NEAR` of 4,000 terms over 300 short rows needs twenty seconds. What is searched for is a value, and
SQLite tells nobody about it. So it must stand in the statement as one short text, not be put
together or come from a column. Only files with virtual tables of their own are concerned.
"""

from __future__ import annotations

import re

LONGEST = 1_000
"""Bytes of what is searched for; a tenth of a second for the slowest that was found."""
_NOT_RUN = ("insert", "replace", "create", "update", "delete")  # the authorizer refuses these
_TEXT = r"'(?:[^']|'')*+'"
_SEARCH = re.compile(rf"\bmatch\b(?!\s*{_TEXT}\s*+(?!\|\||->|collate))")
_GIVEN = re.compile(rf"(?:\bmatch\b|=|\()\s*({_TEXT})")


def is_plain(lowered: str, table: str) -> bool:
    """Whether all that a statement searches this table for stands in it, and is short.

    Args:
        lowered: The statement in lower case.
        table: Name of the virtual table in lower case.
    """
    if lowered.startswith(_NOT_RUN):
        return True
    if _SEARCH.search(lowered):
        return False
    name = rf"[\"`\[]?(?<!\w){re.escape(table)}(?!\w)[\"`\]]?"
    given = rf"\s*{_TEXT}\s*+(?!\|\||->|collate)"
    put_together = (
        rf"{name}\s*(?:(?:==?|\()(?!{given})|in\b)|=\s*(?:\w+\s*\.\s*)?{name}\s*(?![\s.])"
    )
    if re.search(put_together, lowered):
        return False
    return all(len(text.encode()) <= LONGEST for text in _GIVEN.findall(lowered))
