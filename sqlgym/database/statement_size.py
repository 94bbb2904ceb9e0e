"""Bounds on a statement that are checked before SQLite gets it: nothing can stop it later.

Compiling cannot be interrupted, nor can a line of function calls or a search of a full-text table.
Most statements pay for a few counts of words here; only one of several SELECTs or of views that
could become large is looked at closely (`sqlgym.database.written_out`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlgym.database.limits import Limits
from sqlgym.database.written_out import CALL, CHEAP_CALL, SELECT, weight

# Which searches of a full-text table are bounded.
#
# A search is one step of SQLite's machine, however long it takes, and with many terms it takes
# long: `NEAR` of 4,000 terms over 300 short rows needs twenty seconds. What is searched for is a
# value, and SQLite tells nobody about it. So it must stand in the statement as one short text, not
# be put together or come from a column. Only files with virtual tables of their own are concerned.

LONGEST = 1_000
"""Bytes of what is searched for; a tenth of a second for the slowest that was found."""
_NOT_RUN = ("insert", "replace", "create", "update", "delete")  # the authorizer refuses these
_TEXT = r"'(?:[^']|'')*+'"
_SEARCH = re.compile(rf"\bmatch\b(?!\s*{_TEXT}\s*+(?!\|\||->|collate))")
_GIVEN = re.compile(rf"(?:\bmatch\b|=|\()\s*({_TEXT})")


def is_plain(lowered: str, table: str) -> bool:
    """Whether all that a statement searches this table for stands in it, and is short."""
    if lowered.startswith(_NOT_RUN):
        return True
    if _SEARCH.search(lowered):
        return False
    name = rf"[\"`\[]?(?<!\w){re.escape(table)}(?!\w)[\"`\]]?"
    one_text = rf"\s*{_TEXT}\s*+(?!\|\||->|collate)"
    put_together = (
        rf"{name}\s*(?:(?:==?|\()(?!{one_text})|in\b)|=\s*(?:\w+\s*\.\s*)?{name}\s*(?![\s.])"
    )
    if re.search(put_together, lowered):
        return False
    return all(len(text.encode()) <= LONGEST for text in _GIVEN.findall(lowered))


WRITTEN_OUT = ", its views and WITH tables written out"
_MAKES_TEXT = re.compile(
    r"\|\||\[|printf|format|replace|concat|agg|hex|quote|char|json|strftime|unistr"
)
_PATTERN_BYTES = 2_400
"""Length of all LIKE and GLOB patterns of a statement that makes long texts by itself, in bytes:
half a second for the slowest, if all stand in one line."""

_may_make_text = re.compile(
    r"printf|format|replace|concat|agg|hex|quote|char|json|strftime|unistr|trim|upper|lower|substr"
    r"|instr|soundex|match|date|time|unicode"
).search
_SELECT_LENGTH = 14  # "select" and "from", with blanks
_OVERHEAD = 2  # characters that each mention of a name takes at least
_NESTED_VIEWS, _MUCH = 5, 50_000


class StatementSize:
    """Looks at statements on one file.

    Args:
        views: The CREATE statements of the file's views, by their names in lower case.
        searched: Names of the file's virtual tables in lower case.

    Attributes:
        always: Even a statement of one SELECT is to be looked at.
    """

    def __init__(self, limits: Limits, views: Mapping[str, str], searched: Sequence[str]) -> None:
        self._limits, self._views, self._searched = limits, views, searched
        self.always = bool(views) or bool(searched)
        self._with_views = with_views({name: text.lower() for name, text in views.items()})

    def refusal(self, sql: str, lowered: str) -> str:
        """The part of a statement that is too large, in words; "" if none is."""
        for name in self._searched:
            if name in lowered and not is_plain(lowered, name):
                return "a search that is long or put together"
        written = lowered
        for name, text in self._with_views.items():
            if name in lowered:
                written += text * lowered.count(name)
        if not may_be_large(written, self._limits.written_out):
            return ""
        words, deepest = weight(sql, self._views), 2 * self._limits.expression_depth
        if words > self._limits.written_out:
            return f"more than {self._limits.written_out:,} words{WRITTEN_OUT}"
        if words > deepest and weight(sql, self._views, "depth") > deepest:
            return f"an expression deeper than {deepest:,}{WRITTEN_OUT}"
        return ""

    def pattern_bytes(self, sql: str, lowered: str) -> int | None:
        """The most bytes of each LIKE and GLOB pattern where calls can be slow; None where not.

        A pattern takes long on a long text only, and such a text the statement must make itself.
        """
        if not ("like" in lowered or "glob" in lowered) or not _MAKES_TEXT.search(lowered):
            return None
        patterns = max(
            weight(sql, self._views, "patterns"), lowered.count("like") + lowered.count("glob")
        )
        return min(self._limits.like_pattern_bytes, _PATTERN_BYTES // patterns)


def may_be_large(lowered: str, most: int) -> bool:
    """Whether a statement could weigh more than `most`: quick, and yes where it is unsure."""
    selects = lowered.count("select") + lowered.count("values")
    if selects < 2:
        return False
    left = max(0, len(lowered) - _SELECT_LENGTH * selects) / _OVERHEAD
    calls = lowered.count("(") - lowered.count("(select")
    inner = min(selects, 40) - 1
    copies = (left / inner + 1) ** inner
    if copies * max(left / selects, CALL * calls, SELECT) <= most:
        return False
    return copies * max(left / selects, CHEAP_CALL * calls, SELECT) > most or (
        _may_make_text(lowered) is not None
    )


def with_views(views: Mapping[str, str]) -> dict[str, str]:
    """Views with the text of those that they read: as much as is needed to tell that it is much.

    Args:
        views: Their CREATE statements by name, both in lower case.
    """
    texts = dict(views)
    for _ in range(min(len(views), _NESTED_VIEWS)):
        for name in texts:
            more = [views[other] * views[name].count(other) for other in views if other != name]
            texts[name] = " ".join([views[name], *filter(None, more)])[:_MUCH]
        views, texts = texts, dict(texts)
    return texts
