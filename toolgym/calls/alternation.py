"""One pattern for many literal texts, in the shape that the search for them is quickest in.

Texts with the same beginning share it, so each character of a message is looked at once and not
once for each of a hundred marks; and each alternative begins with another character, by which the
search skips all places where none can begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolgym.lazy import lazy


class LatePattern:
    """A pattern that is compiled when it is first used.

    To compile those of some hundred texts takes as long as to import half of this package, and most
    processes never meet a text that needs them.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern, self._flags = pattern, flags

    @lazy
    def compiled(self) -> re.Pattern[str]:
        """The pattern, ready for use."""
        return re.compile(self.pattern, self._flags)


def branches(texts: Iterable[str]) -> list[str]:
    """Patterns that together match any of the texts, the longest, one for each first character."""
    by_first: dict[str, list[str]] = {}
    for text in texts:
        if text:
            by_first.setdefault(text[0], []).append(text[1:])
    return [re.escape(first) + _one_of(rests) for first, rests in by_first.items()]


def _one_of(texts: list[str]) -> str:
    rest = branches(texts)
    if not rest:
        return ""
    if len(rest) == 1 and "" not in texts:
        return rest[0]
    return f"(?:{'|'.join(rest)}){'?+' if '' in texts else ''}"
