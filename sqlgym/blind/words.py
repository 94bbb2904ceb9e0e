"""Words as the judge of questions sees them: a question cut into tokens, and which words are alike.

A token is a word, a number, a quotation, a date or a sign; hyphens part words, as `_` does in a
name. Two words are alike when they are the same but for a plural (`exact`), come from one root
("storage" and "stored") or are synonyms ("born" and "birth"). Nothing here knows a schema.

All is one pass over the text: the expression of a token has no nested repetition.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(
    r"(?P<open>(?<!\w)')"
    r"|\"(?P<double>[^\"\n]*)\""
    r"|(?P<day>\d{4}-\d{2}-\d{2})(?!\d)"
    r"|(?P<number>(?:(?<![\w-])-)?\d++(?:,\d{3}(?!\d))*+(?:\.\d+)?)(?P<ordinal>(?:st|nd|rd|th)\b)?"
    r"|(?P<word>[eE]-mails?\b|[^\W\d_]+)"
    r"|(?P<sign>[^\s\w])"
)


def word_list(text: str) -> tuple[str, ...]:
    """The words of a text, in order."""
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_CLOSING = re.compile(r"'(?!\w)")
LONGEST_NUMBER = 25
"""Characters of a number; what is longer counts nothing that a database holds."""
LONGEST_WORD = 60
"""Characters of a word that is taken apart; a longer one is like itself alone."""
MONTHS = {
    name: number
    for number, name in enumerate(
        word_list(
            "january february march april may june july august september october november december"
        ),
        1,
    )
}
NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        word_list("zero one two three four five six seven eight nine ten eleven twelve")
    )
}
_SYNONYMS = (
    "born birth birthday birthdate",
    "died death dead deceased",
    "earn salary pay paid wage",
    "cost price",
    "old age aged",
    "gender sex",
    "town city",
    "hometown hometown",
    "movie film",
    "staff employee worker",
    "colour color",
    "phone telephone",
    "pupil student",
    "boss manager",
    "given giver give",
    "kid child",
    "kind type",
    "people person",
    "admission admitted",
    "enrolment enrolled enrollment",
    "built construction constructed",
    "bought purchase purchased",
    "sold sale",
    "lent lending lend",
    "paid payment",
    "expired expiry",
    "received receipt",
    "resolved resolution",
    "submitted submission",
    "diagnosed diagnosis",
    "decided decision",
    "produced production",
    "introduced introduction",
    "modified changed edited change",
    "added addition",
    "identified identification",
    "certified certification",
    "verified verification",
    "departed departure",
    "begun began start",
    "created creation",
    "written writing",
    "sent sending",
    "used use",
    "deceased death",
)
_ENDINGS = word_list(
    "ations ation ators ator ates ated ating ate ions ion ings ing ments ment ages age ers er ors "
    "or ures ure ies ied y ed en es ten s e n al ance ence"
)
_IRREGULAR = {
    "people": "person",
    "shelves": "shelf",
    "halves": "half",
    "lives": "life",
    "country": "country",
    "children": "child",
    "men": "man",
    "women": "woman",
    "feet": "foot",
    "series": "series",
    "species": "species",
    "media": "medium",
    "indices": "index",
    "criteria": "criterion",
    "data": "data",
    "lent": "lend",
    "sold": "sell",
    "bought": "buy",
    "held": "hold",
    "left": "leave",
    "paid": "pay",
    "written": "write",
    "wrote": "write",
    "given": "give",
    "built": "build",
    "flown": "fly",
    "flew": "fly",
    "shown": "show",
    "began": "begin",
    "begun": "begin",
    "sent": "send",
    "made": "make",
    "won": "win",
    "taken": "take",
    "spent": "spend",
    "sown": "sow",
    "died": "die",
    "status": "status",
    "address": "address",
    "gas": "gas",
    "canvas": "canvas",
    "bus": "bus",
    "class": "class",
}


@dataclass(frozen=True)
class Token:
    """A piece of the question: what it is (`kind`), as written, and what it means.

    `kind` is word, number, quote, sign, day ("2018-03-24" in `value`) or month ("2018-03").
    """

    kind: str
    text: str
    start: int
    end: int
    value: str = ""

    @property
    def lower(self) -> str:
        """The text in small letters."""
        lower = self.text.lower()
        return lower.replace("-", "") if self.kind == "word" else lower

    @property
    def number(self) -> float | None:
        """The number that it says, in digits or as a word; None if it is none."""
        if self.kind == "number":
            return float(self.value)
        return NUMBER_WORDS.get(self.lower) if self.kind == "word" else None


def tokens_of(text: str) -> list[Token]:
    """The tokens of a question, dates put together.

    >>> [(t.kind, t.value or t.text) for t in tokens_of("on 3 May 1960, over 1,200")][1:]
    [('day', '1960-05-03'), ('sign', ','), ('word', 'over'), ('number', '1200')]
    """
    plain: list[Token] = []
    closing = [found.start() for found in _CLOSING.finditer(text)]
    lines = [place for place, sign in enumerate(text) if sign == "\n"]
    at = 0
    while found := _TOKEN.search(text, at):
        kind, at = str(found.lastgroup), found.end()
        start, value = found.start(), ""
        if kind == "open":
            end = _after(closing, start)
            if end > 0 and not 0 < _after(lines, start) < end:
                kind, value, at = "quote", text[start + 1 : end], end + 1
            else:
                kind = "sign"
        elif kind == "double":
            kind, value = "quote", found["double"]
        elif kind in ("number", "ordinal"):
            value = found["number"].replace(",", "")
            kind = "number" if len(value) <= LONGEST_NUMBER else "word"
        elif kind == "day":
            value = found[0]
        plain.append(Token(kind, text[start:at], start, at, value))
    return _with_dates(plain)


def _after(places: list[int], start: int) -> int:
    """The first of some sorted places behind another; -1 if there is none."""
    found = bisect_right(places, start)
    return places[found] if found < len(places) else -1


def _with_dates(plain: list[Token]) -> list[Token]:
    result: list[Token] = []
    place = 0
    while place < len(plain):
        taken, value = _date_at(plain, place)
        if taken:
            first, last = plain[place], plain[place + taken - 1]
            kind = "day" if value.count("-") == 2 else "month"
            text = " ".join(t.text for t in plain[place : place + taken])
            result.append(Token(kind, text, first.start, last.end, value))
            place += taken
        else:
            result.append(plain[place])
            place += 1
    return result


def _date_at(plain: list[Token], place: int) -> tuple[int, str]:
    """How many tokens a date takes here, and its ISO form; (0, "") if there is none."""
    here = plain[place : place + 4]
    months = [MONTHS.get(t.lower, 0) if t.text[:1].isupper() else 0 for t in here]
    years = [t.value if t.kind == "number" and len(t.value) == 4 else "" for t in here]
    days = [
        int(t.value) if t.kind == "number" and t.value.isdecimal() and len(t.value) < 3 else 0
        for t in here
    ]
    if len(here) >= 3 and days[0] and months[1] and years[2]:
        return 3, f"{years[2]}-{months[1]:02}-{days[0]:02}"
    if len(here) >= 3 and months[0] and days[1] and years[2]:
        return 3, f"{years[2]}-{months[0]:02}-{days[1]:02}"
    if len(here) == 4 and months[0] and days[1] and here[2].text == "," and years[3]:
        return 4, f"{years[3]}-{months[0]:02}-{days[1]:02}"
    if len(here) >= 2 and months[0] and years[1]:
        return 2, f"{years[1]}-{months[0]:02}"
    return 0, ""


def singular(word: str) -> str:
    """A noun without its plural ending, a verb of ours in its plain form.

    >>> singular("cities"), singular("classes"), singular("lent"), singular("boxes")
    ('city', 'class', 'lend', 'box')
    """
    return _singular(word) if len(word) <= LONGEST_WORD else word


@lru_cache(maxsize=65536)
def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for ending, instead, shortest in (
        ("ies", "y", 5),
        ("ches", "ch", 5),
        ("shes", "sh", 5),
        ("sses", "ss", 5),
        ("xes", "x", 4),
        ("uses", "us", 6),
    ):
        if word.endswith(ending) and len(word) >= shortest:
            return word[: -len(ending)] + instead
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 2:
        return word[:-1]
    return word


@lru_cache(maxsize=65536)
def root(word: str) -> str:
    """What is left of a word without the endings that derive one word from another.

    >>> root("storage") == root("stored"), root("writer") == root("written")
    (True, True)
    """
    word = singular(word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= (6 if ending == "y" else 3):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.rstrip("e") if len(word) > 3 else word


_GROUPS: dict[str, set[int]] = {}
for _place, _line in enumerate(_SYNONYMS):
    for _word in _line.split():
        _GROUPS.setdefault(singular(_word), set()).add(_place)
_NONE: frozenset[int] = frozenset()


def alike(one: str, other: str) -> float:
    """How alike two words are: 1 the same, 0.8 one root, 0.6 synonyms, 0 not alike."""
    if max(len(one), len(other)) > LONGEST_WORD:
        return float(one == other)
    return _alike(one, other)


@lru_cache(maxsize=65536)
def _alike(one: str, other: str) -> float:
    first, second = singular(one), singular(other)
    if first == second or one == other + "s" or other == one + "s":
        return 1.0
    if root(first) == root(second) and (
        len(root(first)) >= 4 or root(first) + "e" in (first, second)
    ):
        return 0.8
    if min(len(one), len(other)) > 3 and (one + "ed" == other or other + "ed" == one):
        return 0.8  # "joined" and "did ... join"
    if _GROUPS.get(first, _NONE) & _GROUPS.get(second, _NONE):
        return 0.6
    return 0.0
