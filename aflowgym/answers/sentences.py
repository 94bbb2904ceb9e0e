"""The answer inside a sentence: a number or a name between words of the question.

"She has 9 eggs left" answers "How many eggs does she have left?", and "Paris is the capital of
France" answers "What is the capital of France?": around the answer stand only words that the
question has asked with, and words that say nothing of themselves (`there are`, `so`, `it was`). Any
other word may change what is said ("at least 9", "a friend of Paris"), so a sentence that has one
is no answer. Neither is one that denies, doubts or compares, or a question. Nothing is looked for
among several numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import Final

from aflowgym.answers import units
from aflowgym.answers.latex import plain
from aflowgym.answers.number_words import NUMBER_WORDS, read_number_words

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_ASKS: Final = re.compile(r"\b(?:how|what|which|who|whom|whose|when|where|find)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W\d_]+)*")
_PIECE: Final = re.compile(
    r"(?P<digits>[-+]?[$€£]?[-+]?\d[\d,]*(?:\.\d+)?(?:/\d+)?)|(?P<word>[A-Za-z]+(?:['’-][A-Za-z]+)*)"
    r"|(?P<unit>[%°€£¢$])|(?P<stop>[,.;:!*'’\"“”]+)|(?P<other>\S)"
)
_DENIAL_WORDS: Final = """not no never none nobody nothing neither nor or either between almost
nearly about roughly
hardly cannot if whether unless except but without maybe perhaps"""
_DENIALS: Final = frozenset(_DENIAL_WORDS.split())
_EMPTY_WORDS: Final = """a an the is are was were be been there it he she they we i so thus
therefore hence then
now in total altogether all exactly and"""
_EMPTY: Final = frozenset(_EMPTY_WORDS.split())
_EMPTY_QA: Final = (_EMPTY - {"and", "all", "total", "altogether"}) | frozenset(
    {"on", "at", "of", "by", "its", "his", "her", "their", "this", "that", "who", "which"}
)
_HAVING: Final = frozenset({"hav", "left", "remain", "there", "are", "is", "contain", "own"})
_COMPARING: Final = frozenset({"than", "mor", "more", "fewer", "less", "les"})
_BEFORE_WORDS: Final = (
    "is was are were be been by in on at of for from to into through with the a an named"
)
_BEFORE: Final = frozenset(_BEFORE_WORDS.split())
_VERBS: Final = {
    "have": "has had", "make": "made", "sell": "sold", "buy": "bought", "spend": "spent",
    "give": "gave given", "eat": "ate eaten", "pay": "paid", "take": "took taken", "get": "got",
    "drive": "drove driven", "go": "went gone", "win": "won", "write": "wrote written",
    "read": "reading", "run": "ran", "grow": "grew grown", "find": "found", "lose": "lost",
    "sing": "sang sung", "hold": "held", "know": "knew known", "begin": "began begun",
    "speak": "spoke spoken", "build": "built", "teach": "taught", "fly": "flew flown",
    "bear": "bore born", "come": "came", "become": "became", "leave": "leaving",
    "increase": "rise rose risen raise grow growth gain", "decrease": "fall fell fallen drop",
}  # fmt: skip
_IRREGULAR: Final = {
    form: verb.rstrip("e") for verb, forms in _VERBS.items() for form in (verb, *forms.split())
}
_POSSESSIVE: Final = re.compile(r"['’]s?$")
_WRONGLY: Final = re.compile(
    r"\b(?:if|whether|unless|except|false|wrong\w*|incorrect\w*|untrue|might|could|possibl[ey]"
    r"|unknown|unlikely|anything but|nothing but|than|besides|instead)\b|\bmay (?:be|have)\b",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"\b(?:not|never|no one|nobody|none|no|neither|nor|hardly|cannot|doubt\w*|unclear|maybe"
    r"|perhaps)\b|n[’']t\b",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(r"\b(?:some|many|most|people|others?|they|critics|fans)\b", re.I)
_SAYING: Final = re.compile(r"\b(?:say|believe|think|claim|argue|assume|suspect|guess)\w*\b", re.I)
_LEAD: Final = re.compile(
    r"\s*(?:(?:(?:based on|according to|as stated in|from)\s+(?:the\s+)?(?:given\s+|provided\s+)?"
    r"(?:passages?|text|context|articles?|documents?|information)\s*(?:\d+|above)?\s*,)"
    r"|(?:so|thus|hence|therefore)\s*,?\s+|i\s+(?:think|believe)\s+(?:that\s+)?)\s*",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(r"; ?|,? but (?:rather )?", re.IGNORECASE)
_CONTRAST: Final = re.compile(r", (?:and )?not ", re.IGNORECASE)
_BECAUSE: Final = re.compile(r",? (?:since|because) ", re.IGNORECASE)


def number_said(text: str, question: str) -> str | None:
    """The one number of a sentence, with its unit, if only words of the question surround it.

    >>> number_said("She has 9 eggs left.", "How many eggs does she have left?")
    '9'
    >>> number_said("She has at least 9 eggs left.", "How many eggs does she have left?")
    """
    if not question:
        return None
    sentence = _SENTENCE.split(plain(text))[-1]
    asked, names = _asked_words(question)
    if asked & _COMPARING:  # who has more than whom is told by the order of the words
        return None
    pieces = list(_PIECE.finditer(sentence))
    place = _only_number(pieces)
    if place is None:
        return None
    first, last, number = place
    unit, past = _unit(pieces[last + 1 :])
    around = [each for each in (*pieces[:first], *pieces[last + 1 + past :]) if not each["stop"]]
    if len(around) + past == 0 or not all(each["word"] for each in around):
        return None
    words = [each["word"] for each in around]
    return f"{number} {unit}".strip() if _are_asked(words, asked, names, _EMPTY) else None


def _only_number(pieces: list[re.Match[str]]) -> tuple[int, int, str] | None:
    """The first and the last piece of the only number, and its text."""
    places = [n for n, each in enumerate(pieces) if _is_number(each)]
    if not places or places[-1] - places[0] >= 12:
        return None
    first, last = places[0], places[-1]
    if first and (pieces[first - 1]["word"] or "").lower() in ("a", "minus", "negative"):
        before = " ".join(each[0] for each in pieces[first - 1 : last + 1])
        if read_number_words(before) is not None:
            return first - 1, last, before
    text = " ".join(each[0] for each in pieces[first : last + 1])
    alone = first == last and pieces[first]["digits"]
    return (first, last, text) if alone or read_number_words(text) is not None else None


def _is_number(piece: re.Match[str]) -> bool:
    word = (piece["word"] or "").lower()
    return bool(piece["digits"]) or not NUMBER_WORDS.isdisjoint(word.split("-"))


def _unit(pieces: list[re.Match[str]]) -> tuple[str, int]:
    """The unit that begins here, and how many pieces it takes."""
    for size in range(min(4, len(pieces)), 0, -1):
        ended = pieces[size - 1]
        if ended["stop"] or (ended["word"] or "").lower() in units.LINKS:
            continue
        text = " ".join(each[0] for each in pieces[:size])
        if units.read_unit(text, frozenset()):
            return text, size
    return "", 0


def name_said(text: str, names: Collection[str], question: str) -> bool:
    """Whether a sentence answers one of the names, between words of the question only.

    Args:
        text: The sentence, or several of which the last counts.
        names: The right answers as words in small letters, without punctuation and articles.

    >>> name_said("Paris is the capital.", ["paris"], "What is the capital of France?")
    True
    >>> name_said("Paris Hilton is it.", ["paris"], "What is the capital of France?")
    False
    """
    if not question:
        return False
    sentence = claim(text)
    if sentence is None:
        return False
    words = _WORD.findall(sentence)
    asked, capitals = _asked_words(question)
    for name in names:
        parts = name.split()
        place = _place(parts, [word.lower() for word in words])
        if place is None or _EMPTY_QA.issuperset(parts) or _ASKS.fullmatch(name):
            continue
        if not _has_its_role([word.lower() for word in words], place, len(parts), asked):
            continue
        around = words[:place] + words[place + len(parts) :]
        chosen = {stem(part) for part in parts} <= asked | {stem(each) for each in capitals}
        if chosen:  # it names one of those to choose from: no other of them may be there
            barred = capitals | _alternatives(question)
            if any(word.lower() in barred for word in around):
                continue
        if _are_asked(around, asked, capitals, _EMPTY_QA):
            return True
    return False


def claim(text: str) -> str | None:
    """The claim of the last sentence, without what it rules out; None if it doubts it.

    >>> claim("It isn't London; it is Paris."), claim("Paris, not London."), claim("Is it Paris?")
    ('it is Paris.', 'Paris', None)
    """
    last = _SENTENCE.split(" ".join(text.split()))[-1]
    sentence = _BECAUSE.split(last, maxsplit=1)[0]
    if sentence.rstrip(" \"”’'*_)").endswith("?"):
        return None
    if lead := _LEAD.match(sentence):
        sentence = sentence[lead.end() :]
    if _WRONGLY.search(sentence) or (_OTHERS.search(sentence) and _SAYING.search(sentence)):
        return None
    contrast = _CONTRAST.search(sentence)
    if contrast and not _DENIED.search(sentence, 0, contrast.start()):
        return sentence[: contrast.start()]
    clauses = _CLAUSE.split(sentence)
    if len(clauses) > 1 and _DENIED.search(sentence) and not _DENIED.search(clauses[-1]):
        return clauses[-1]
    return None if _DENIED.search(sentence) else sentence


def _has_its_role(words: list[str], place: int, size: int, asked: frozenset[str]) -> bool:
    """Does a name stand where the answer stands, and not on the other side of the verb?

    "Napoleon defeated Wellington" and "Wellington was defeated by Napoleon" do not answer "Who
    defeated Napoleon?", though all their words are of the question.
    """
    before = words[place - 1] if place else ""
    if before and before not in _BEFORE and not asked & {"do", "doe", "does", "did"}:
        return False
    return before == "by" or "by" in asked or "by" not in words[:place] + words[place + size :]


def without_lead(text: str) -> str:
    """The text without a `therefore,` or `so,` before it.

    >>> without_lead("Thus, 6 students passed.")
    '6 students passed.'
    """
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead else text


def _place(parts: list[str], words: list[str]) -> int | None:
    """Where a name stands among the words, if it stands there once."""
    if not parts:
        return None
    starts = (n for n, word in enumerate(words) if word == parts[0])
    places = [n for n in starts if words[n : n + len(parts)] == parts]
    return places[0] if len(places) == 1 else None


def _are_asked(
    words: list[str], asked: frozenset[str], names: frozenset[str], empty: frozenset[str]
) -> bool:
    """Are these words of the question, or words that say nothing?"""
    for word in words:
        low = word.lower()
        if low in _DENIALS or low.endswith(("n't", "n’t")):
            return False
        fits = low in empty or low in names or stem(low) in asked
        if not fits and not (stem(low) == "hav" and asked & _HAVING):
            return False
    return True


@functools.lru_cache(maxsize=1024)
def _asked_words(question: str) -> tuple[frozenset[str], frozenset[str]]:
    """The stems of the sentence that asks, and its names; of the whole question if it has none."""
    parts = _SENTENCE.split(question.strip())
    asking = next((part for part in reversed(parts) if _ASKS.search(part)), parts[-1])
    stems = frozenset(stem(word.lower()) for word in _WORD.findall(asking))
    return stems, _capitals(asking) or _capitals(question)


def _capitals(text: str) -> frozenset[str]:
    """The words with a capital, but for those that begin a sentence and are no names."""
    capitals = {word for word in _WORD.findall(text) if word[:1].isupper()} - _STARTS
    return frozenset(word.lower() for word in capitals)


_START_WORDS: Final = """How What Which Who Whom Whose When Where Why In On At If Is Are Was Were
Did Does Do The A
An He She They It Find Solve"""
_STARTS: Final = frozenset(_START_WORDS.split())


@functools.lru_cache(maxsize=1024)
def _alternatives(question: str) -> frozenset[str]:
    """The words beside an `or` of the question."""
    words = _WORD.findall(question.lower())
    sides = (words[max(0, n - 1) : n + 2] for n, word in enumerate(words) if word == "or")
    return frozenset(word for side in sides for word in side)


@functools.lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The stem of a word in small letters: `founded` as `found`, `sold` as `sell`."""
    word = _POSSESSIVE.sub("", word)
    word = _IRREGULAR.get(word, word)
    for ending in ("ing", "ied", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            word = word.removesuffix(ending)
            break
    word = word.rstrip("eyi") if len(word) > 3 else word
    return _IRREGULAR.get(word, word)
