"""Phrases of comparison and units of measure, and a question as a row of units.

Tables tell which words before and after a value say which comparison, which adjectives say a column
and a direction, and which words are aggregations. A unit is a mention of a name, a value, a word or
a sign; words that belong to a comparison or follow a number as its unit are no part of a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlgym.blind.names import Mention
from sqlgym.blind.words import NUMBER_WORDS, Token, word_list, word_set

_AFTER_VALUE = {
    ">=": "or more|or later|or above|or greater|or higher|or over|or longer|or after|or older"
    "|or larger|or better|or heavier|onwards|onward|upwards|and later|and above|and over|or newer",
    "<=": "or less|or fewer|or earlier|or before|or below|or lower|or under|or shorter|or younger"
    "|or smaller|or lighter|and below|and earlier|or cheaper",
}
_BEFORE_VALUE = {
    ">=": "at least|no less than|not less than|no fewer than|not fewer than|a minimum of|minimum of"
    "|on or after|no earlier than|not earlier than|not before|not below|not under|starting from"
    "|in or after|as of|from at least|since",
    "<=": "at most|no more than|not more than|up to|a maximum of|maximum of|on or before"
    "|no later than|not later than|not after|not above|not over|in or before|until|by"
    "|does not exceed|do not exceed|not exceeding",
    ">": "more than|greater than|higher than|larger than|bigger than|over|above|exceeds|exceed"
    "|exceeding|exceeded|later than|after|better than|beyond|past|in excess of|more recent than",
    "<": "less than|fewer than|lower than|smaller than|under|below|before|earlier than|worse than"
    "|prior to|short of",
    "=": "exactly|equal to|equals|precisely|called|named|titled|just|on|in|during|known as|set to"
    "|written as|identical to|valued at|equalling|namely",
    "<>": "not|is not|are not|other than|different from|anything but|not equal to|except|isn t"
    "|but not|except for|not called|not named|differs from|differ from|outside",
    "prefix": "starts with|begins with|start with|begin with|starting with|beginning with"
    "|starts with the letter|begins with the letter|start with the letter|begin with the letter"
    "|starting with the letter|beginning with the letter",
    "suffix": "ends with|ending with|end with|ends in|ending in",
    "contains": "contains|contain|containing|includes|including|contains the word|contain the word"
    "|containing the word|with the word|has the word|have the word|includes the word"
    "|including the word|the word|mentions|mention|contains the text|with the text|has the text"
    "|mentioning",
}
ADJECTIVES = {
    "older": ("age", ">"),
    "younger": ("age", "<"),
    "heavier": ("weight mass", ">"),
    "lighter": ("weight mass", "<"),
    "longer": ("length duration distance", ">"),
    "shorter": ("length duration distance|height", "<"),
    "taller": ("height", ">"),
    "tall": ("height", ">"),
    "cheaper": ("price cost fee fare", "<"),
    "dearer": ("price cost fee fare", ">"),
    "costlier": ("price cost fee fare", ">"),
    "expensive": ("price cost fee fare", ">"),
    "deeper": ("depth", ">"),
    "shallower": ("depth", "<"),
    "wider": ("width", ">"),
    "narrower": ("width", "<"),
    "faster": ("speed", ">"),
    "slower": ("speed", "<"),
    "richer": ("budget income wealth", ">"),
    "bigger": ("size area population capacity", ">"),
    "larger": ("size area population capacity", ">"),
    "smaller": ("size area population capacity", "<"),
    "higher": ("height altitude elevation", ">"),
    "lower": ("height altitude elevation", "<"),
    "newer": ("year", ">"),
}
"""Adjectives that say a column and a direction: what the column is about, and the comparison.

What stands behind a bar is meant only where a table has nothing of what stands before it.
"""
GENERIC = {
    **dict.fromkeys(word_list("more greater higher larger bigger later better"), ">"),
    **dict.fromkeys(word_list("less fewer lower smaller earlier lesser worse"), "<"),
}
STRONGEST = word_set(
    "most least expensive oldest youngest cheapest heaviest lightest tallest fastest slowest"
    " deepest biggest newest richest widest"
)
AGGREGATES = {
    **dict.fromkeys(word_list("average mean"), "avg"),
    **dict.fromkeys(word_list("total sum combined overall"), "sum"),
    **dict.fromkeys(
        word_list("highest largest maximum greatest biggest latest longest newest top"), "max"
    ),
    **dict.fromkeys(
        word_list("lowest smallest minimum least earliest shortest fewest slowest"), "min"
    ),
}
UNIT_WORDS = word_set(
    "m km cm mm kg g t nm s h ms kw mg au metre meter kilometre kilometer square cubic degree mile"
    " nautical minute second hour tonne ton million billion thousand euro dollar pound percent"
    " gram kilogram gramme centimetre millimetre litre liter celsius usd eur gbp kilowatt c day"
    " milligram year month week unit astronomical"
)
UNIT_SIGNS = frozenset("%€$£°²³")
COPULAS = word_set(
    "is are was were be been being of has have had a an the that which with value s whose at either"
    " any to both either equal as do does did must being it"
)


def _table(phrases: dict[str, str]) -> dict[tuple[str, ...], str]:
    return {
        tuple(phrase.split()): sign for sign, line in phrases.items() for phrase in line.split("|")
    }


AFTER = _table(_AFTER_VALUE)
BEFORE = _table(_BEFORE_VALUE)
_ORDER_WORDS = word_set("alphabetical descending ascending decreasing increasing this reverse")
_LONG = (
    {words for words in BEFORE if len(words) > 1}
    | {("leaving", "out"), ("leave", "out"), ("marked", "as")}
    | {(word,) for word in ("contains", "containing", "named", "called", "titled", "shared")}
)


_BEFORE_ONE = word_set("least most than exactly only just with over under above")
"""After these, "one" is a number; elsewhere it stands for a noun."""
_SHORT_UNITS = word_set("m km cm mm kg g t nm ms kw mg au km2 m2")


def _without_unit(tokens: Sequence[Token], place: int, free: list[bool]) -> None:
    """A short unit after a number is no part of a name."""
    after = tokens[place + 1].lower if place + 1 < len(tokens) else ""
    if place < len(tokens) and tokens[place].lower in _SHORT_UNITS and after not in ("per", "of"):
        free[place] = False


def free_of_comparisons(tokens: Sequence[Token]) -> list[bool]:
    """Which tokens may be part of a name: no value, and no part of a comparison's phrase."""
    free = [token.kind in ("word", "number", "sign") for token in tokens]
    for place in range(len(tokens)):
        for length in (5, 4, 3, 2, 1):
            words = tuple(token.lower for token in tokens[place : place + length])
            if words in _LONG:
                free[place : place + length] = [False] * length
                break
        words = tuple(token.lower for token in tokens[place : place + 3])
        if tokens[place].lower in NUMBER_WORDS and place and tokens[place - 1].lower in _BEFORE_ONE:
            free[place] = False
        if tokens[place].kind == "number" or tokens[place].lower == "in":
            _without_unit(tokens, place + 1, free)
        if words[1:2] == ("order",) and words[0] in _ORDER_WORDS:
            free[place + 1] = False
        if words[:1] and words[0] in AGGREGATES and words[1:] in (("of", "all"), ("of", "the")):
            free[place] = False
    return free


@dataclass
class Unit:
    """A mention, a value, a word or a sign of the question; `used` once a fact explains it."""

    kind: str
    start: int
    end: int
    text: str
    mention: Mention | None = None
    value: tuple[str, str] = ("", "")
    used: bool = False

    @property
    def word(self) -> str:
        """The word in small letters; empty for what is no word."""
        return self.text.lower() if self.kind == "word" else ""

    def prefers_column(self) -> bool:
        """Whether what fits best is a column."""
        if self.mention is None:
            return False
        counted = self.is_column() and self.text.lower().startswith("number")
        return counted or self.mention.fits[0][1].kind == "column"

    def may_be_column(self) -> bool:
        """Whether a column fits about as well as anything."""
        if self.mention is None:
            return False
        columns = self.mention.of_kind("column")
        return bool(columns) and columns[0][0] > self.mention.fits[0][0] - 0.15

    def is_table(self) -> bool:
        """Whether a table, or the rows of a reference, is mentioned here."""
        return self.mention is not None and self.mention.is_table()

    def is_column(self) -> bool:
        """Whether a column is mentioned here."""
        return self.mention is not None and self.mention.is_column()


_REQUESTS = word_set(
    "give show list find tell return report write look need want them they one ones me these"
)
REACH = 60
"""Units that words may stand apart and still belong together."""
_NEVER_ALONE = word_set("number numbers count first last middle full at in on")


def says_no_name(mention: Mention, tokens: Sequence[Token]) -> bool:
    """Whether a mention of one word says an aggregation, a count or a place in an order."""
    if mention.end - mention.start > 1:
        return False
    word = tokens[mention.start].lower
    after = tokens[mention.end].lower if mention.end < len(tokens) else ""
    if word in _REQUESTS:
        return True
    if word in ("first", "last", "middle") and after in ("and", "or", ","):
        return False
    before = tokens[mention.start - 1].lower if mention.start else ""
    if word in ("name", "group", "count") and (
        before in ("", ".", ":", ",") and after in ("the", "all", "every")
    ):
        return True
    if word == "year" and (after[:4].isdecimal() or before == "any"):
        return True
    return word in AGGREGATES or word in _NEVER_ALONE


def plain_unit(token: Token, place: int, before: str) -> Unit:
    """The unit of a token that belongs to no mention; `before` is the word before it."""
    number = token.number
    if number is not None and (token.lower != "one" or before in _BEFORE_ONE):
        return Unit("value", place, place + 1, token.text, value=("number", _plain(number)))
    if token.kind in ("quote", "text", "day", "month"):
        kind = "text" if token.kind == "quote" else token.kind
        return Unit("value", place, place + 1, token.text, value=(kind, token.value))
    if token.kind == "month-name":
        return Unit("value", place, place + 1, token.text, value=("month-name", token.value))
    return Unit(token.kind, place, place + 1, token.text)


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)
