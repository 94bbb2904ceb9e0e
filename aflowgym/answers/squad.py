"""Answers to questions about facts: SQuAD's exact match, of what is claimed.

Both texts are put in small letters, lose punctuation and the articles a, an, the, and have their
blanks squeezed (Rajpurkar et al. 2016, arXiv:1606.05250); then they must be equal. Beyond that only
another spelling of the same name is right, or a sentence that has the gold between words of the
question (`aflowgym.answers.sentences`). Containing the gold is not being it: "not the Beatles" is
not "Beatles". As in HotpotQA (Yang et al. 2018, arXiv:1809.09600), a yes or no shares nothing with
any other answer. F1 is progress only.

Two texts are the same name (`Mt. Everest`, `20 July 1969`) if they have the same words after
accents, hyphens, abbreviations and numbers in words are written in one way. The order of the words
counts, except in a date and around an `and`. A part of a name is another name, and so is a name
with a title before it.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from aflowgym.answers.extraction import final_answer, statement_in
from aflowgym.answers.latex import plain
from aflowgym.answers.number_words import read_number_words
from aflowgym.answers.sentences import claim, name_said
from aflowgym.answers.verdict import RIGHT, Verdict, wrong

_ARTICLES: Final = frozenset({"a", "an", "the"})
_HYPHEN: Final = re.compile(r"[-‐‑–—]")
_WORD: Final = re.compile(r"[^\W_]+")
_SHORT: Final = {"mt": "mount", "st": "saint", "ft": "fort", "dr": "doctor", "prof": "professor"}
_MONTH_WORDS: Final = """january february march april may june july august september october
november december"""
_MONTHS: Final = frozenset(_MONTH_WORDS.split())
_ORDINAL: Final = re.compile(r"(\d+)(?:st|nd|rd|th)")
_YES_NO: Final = re.compile(r"\W*(yes|no)\b\s*[,.;:!—–-]\s*(?P<rest>.*)", re.I | re.DOTALL)
_TURNS: Final = re.compile(
    r"\b(?:but|however|though|although|or|maybe|perhaps|only|except|unless|yes)\b", re.IGNORECASE
)
_NOT: Final = re.compile(r"\b(?:not|no|never|neither|none|nobody)\b|n[’']t\b", re.IGNORECASE)


def same_name(gold: str, answer: str) -> bool:
    """Whether two texts are spellings of one name.

    >>> same_name("Mount Everest", "Mt. Everest"), same_name("20 July 1969", "July 20, 1969")
    (True, True)
    >>> same_name("Elizabeth II", "Elizabeth I"), same_name("Paris", "Paris Hilton")
    (False, False)
    """
    for joint in (" ", ""):
        expected, words = _words(gold, joint), _words(answer, joint)
        if not expected or not words:
            return False
        if expected == words:
            return True
        if sorted(expected) == sorted(words) and expected.count("and") == 1:
            return True
    return _of_date(gold) is not None and _of_date(gold) == _of_date(answer)


def affirms(gold: str, answer: str) -> bool:
    """Whether a text begins with this yes or no, and says nothing else after it.

    >>> affirms("yes", "Yes, both of them were."), affirms("yes", "Yes, but only one of them.")
    (True, False)
    """
    match = _YES_NO.match(answer)
    if match is None or match[1].lower() != gold or _TURNS.search(match["rest"]):
        return False
    return gold == "no" or _NOT.search(match["rest"]) is None


def _words(text: str, joint: str) -> list[str]:
    """The words of a name in one spelling; hyphens join or part them."""
    letters = unicodedata.normalize("NFKD", text)
    bare = "".join(sign for sign in letters if not unicodedata.combining(sign)).casefold()
    bare = _HYPHEN.sub(joint, bare).replace("'", "").replace("’", "").replace(".", "")
    plain_words = [word for word in _WORD.findall(bare) if word not in _ARTICLES]
    words = [_SHORT.get(word, word) for word in plain_words]
    number = read_number_words(" ".join(words))
    if number is not None:
        return [str(number)]
    return [_number(word) for word in words]


def _number(word: str) -> str:
    number = read_number_words(word) if word != "second" else None
    return str(number) if number is not None else word


def _of_date(text: str) -> frozenset[str] | None:
    """The month, the day and the year of a date; None if it is none."""
    words = [_ORDINAL.sub(r"\1", word) for word in _WORD.findall(text.lower())]
    parts = frozenset(words) - {"of", "the", "on", "in"}
    months = parts & _MONTHS
    numbers = [word for word in parts if word.isdecimal()]
    return parts if len(months) == 1 and len(numbers) == len(parts) - 1 >= 1 else None


_PUNCTUATION: Final = str.maketrans("", "", string.punctuation + "‘’“”–—´")
_ARTICLE: Final = re.compile(r"\b(a|an|the)\b")
_CLOSED: Final = frozenset({"yes", "no", "noanswer"})


def normalise(text: str) -> str:
    """The text as SQuAD compares it.

    >>> normalise(" The  United Kingdom. ")
    'united kingdom'
    """
    words = text.lower().translate(_PUNCTUATION)
    return " ".join((_ARTICLE.sub(" ", words).strip() or words).split())  # option A is no article


def f1(gold: str, answer: str) -> float:
    """The F1 of the words two texts share, in [0, 1]."""
    expected, plain_answer = normalise(gold), normalise(answer)
    if expected != plain_answer and (expected in _CLOSED or plain_answer in _CLOSED):
        return 0.0
    gold_words, words = expected.split(), plain_answer.split()
    shared = (Counter(gold_words) & Counter(words)).total()
    return 2 * shared / (len(gold_words) + len(words)) if shared else 0.0


def judge_qa(golds: Sequence[str], answer: str, question: str = "") -> Verdict:
    """Judge what was written against the gold and its other names. Never raises.

    Args:
        golds: The right answers; any of them will do.
        answer: A text that ends in an answer; see `aflowgym.answers.extraction`.
        question: Its words may stand around a name in a sentence; see
            `aflowgym.answers.sentences`.

    >>> judge_qa(["The Beatles"], "The answer is Beatles."), judge_qa(["Beatles"], "Paris").correct
    (Verdict(correct=True, progress=1.0, reason=''), False)
    """
    expected = {normalise(gold) for gold in golds} - {""}
    if not expected:
        return Verdict(None, 0.0, "the gold answer is empty")
    final = final_answer(answer)
    text = plain(final.text) if "\\" in final.text else final.text
    if not normalise(text):
        return wrong("there is no answer")
    if normalise(text) in expected or _says(golds, text, final.place == "last_line", question):
        return RIGHT
    nearest = max(f1(gold, text) for gold in golds)
    return wrong("it is another answer", nearest)


def _says(golds: Sequence[str], text: str, prose: bool, question: str) -> bool:
    """Is one of the golds what a text says, in another spelling or in a sentence?"""
    claimed = claim(text)
    statement = statement_in(claimed) if prose and claimed is not None else None
    texts = [text, *(each for each in (claimed, statement) if each)]
    for gold in golds:
        if any(same_name(gold, each) for each in texts):
            return True
        if normalise(gold) in _CLOSED and affirms(normalise(gold), text):
            return True
    open_ = [gold for gold in map(normalise, golds) if gold not in _CLOSED]
    return name_said(text, open_, question)
