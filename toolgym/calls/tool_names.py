"""Which tool a name means.

In this order: the name itself; the same but for case and separators, or a listed alias; the same
with a namespace, prefix or suffix of whole words (`functions.describe`, `sql_describe`,
`describe_table`); the nearest name by edit distance, if it is near and clearly nearer than the
next. Two candidates mean none. A terminal tool ends the episode, so it is met only by the first
two: nothing is answered by a guess.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz

from toolgym.tools import ToolSpec

NEAR = 75.0  # of 100: "qurey" is 80 from "query", "sample" is 50 from "select"
CLEARER_BY = 10.0
MAX_NAME = 100


@dataclass(frozen=True)
class Match:
    """The tool that a name means, or the candidates if it means none or several."""

    name: str | None
    near: tuple[str, ...] = ()


def match_name(written: str, specs: Mapping[str, ToolSpec]) -> Match:
    """The tool meant by a name that a model wrote."""
    if written in specs:
        return Match(written)
    known = tuple((spec.name, spec.terminal, spec.aliases) for spec in specs.values())
    return _match(written[:MAX_NAME], known)


Known = tuple[tuple[str, bool, tuple[str, ...]], ...]


@functools.lru_cache(maxsize=4096)
def _match(written: str, known: Known) -> Match:
    written = re.sub(r":\d+$", "", written)  # `functions.describe:0`, numbered as Kimi does
    folded = fold(written)
    if not folded:
        return Match(None)
    same = {name for name, _, aliases in known if folded in map(fold, (name, *aliases))}
    if same:
        return _unique(same, known, terminal_too=True)
    within = {name for name, _, aliases in known if _contains(written, (name, *aliases))}
    if within:
        return _unique(within, known)
    scores = [
        (max(fuzz.ratio(folded, fold(spelling)) for spelling in (name, *aliases)), name)
        for name, _, aliases in known
    ]
    best = max((score for score, _ in scores), default=0.0)
    if best < NEAR:
        return Match(None)
    return _unique({name for score, name in scores if score > best - CLEARER_BY}, known)


def fold(name: str) -> str:
    """A name without its case and separators: `finalAnswer`, `final-answer` -> `finalanswer`."""
    return re.sub(r"[\W_]+", "", name.casefold())


def _contains(written: str, spellings: tuple[str, ...]) -> bool:
    """Whether the whole words at the start or the end of a name are one of the spellings."""
    words = [fold(word) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+", written)]
    runs = {"".join(words[:k]) for k in range(1, len(words))}
    runs |= {"".join(words[k:]) for k in range(1, len(words))}
    return any(fold(spelling) in runs for spelling in spellings)


def _unique(names: set[str], known: Known, *, terminal_too: bool = False) -> Match:
    near = tuple(name for name, _, _ in known if name in names)
    terminal = {name for name, ends, _ in known if ends}
    if len(near) != 1 or (near[0] in terminal and not terminal_too):
        return Match(None, near)
    return Match(near[0], near)
