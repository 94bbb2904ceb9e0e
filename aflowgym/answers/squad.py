"""Verdicts on factual answers by SQuAD's exact match, with SQuAD's F1 score as progress.

Both answers are converted to lower case, and punctuation, articles (a, an, the) and extra spaces
are removed (Rajpurkar et al. 2016, arXiv:1606.05250). After this normalization, the answers must be
equal. In addition, other spellings of the same name are accepted (`Mt Everest`, `20 July 1969`),
and so are yes/no answers with an explanation that does not contradict them. An answer that merely
contains the gold answer is not correct: "not the Beatles" is not "Beatles". As in HotpotQA (Yang et
al. 2018, arXiv:1809.09600), the F1 score is 0 if a yes/no answer is compared with any other answer.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from aflowgym.answers.answer import RIGHT, Verdict, final_answer, plain, wrong
from aflowgym.answers.words import read_number_words

_PUNCTUATION: Final = str.maketrans("", "", string.punctuation + "‘’“”–—´")
_ARTICLE: Final = re.compile(r"\b(a|an|the)\b")
_CLOSED: Final = frozenset({"yes", "no", "noanswer"})
_SPACED: Final = str.maketrans(dict.fromkeys("-‐‑–—", " ") | dict.fromkeys("'’.", ""))
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


def normalise(text: str) -> str:
    """Return text in SQuAD's normalized form; text that consists only of articles is kept.

    >>> normalise(" The  United Kingdom. "), normalise("A")
    ('united kingdom', 'a')
    """
    words = text.lower().translate(_PUNCTUATION)
    return " ".join((_ARTICLE.sub(" ", words).strip() or words).split())


def f1(gold: str, answer: str) -> float:
    """Return the F1 score of the word overlap of two strings, from 0 to 1."""
    expected, given = normalise(gold), normalise(answer)
    if expected != given and (expected in _CLOSED or given in _CLOSED):
        return 0.0
    gold_words, words = expected.split(), given.split()
    shared = (Counter(gold_words) & Counter(words)).total()
    return 2 * shared / (len(gold_words) + len(words)) if shared else 0.0


def judge_qa(golds: Sequence[str], answer: str) -> Verdict:
    """Compare an answer with the gold answers. Never raises an exception.

    Args:
        golds: Correct answers, any of which is accepted.
        answer: Model output that contains a final answer; see `aflowgym.answers.answer`.

    >>> judge_qa(["The Beatles"], "The answer is Beatles."), judge_qa(["Beatles"], "Paris").correct
    (Verdict(correct=True, progress=1.0, reason=''), False)
    """
    expected = {normalise(gold) for gold in golds} - {""}
    if not expected:
        return Verdict(None, 0.0, "the gold answer is empty")
    text = final_answer(answer).text
    text = plain(text) if "\\" in text else text
    if not normalise(text):
        return wrong("there is no answer")
    if normalise(text) in expected or any(same_name(gold, text) for gold in golds):
        return RIGHT
    if (match := _YES_NO.match(text)) and match[1].lower() in expected:
        rest, yes = match["rest"], match[1].lower() == "yes"
        if not _TURNS.search(rest) and not (yes and _NOT.search(rest)):
            return RIGHT
    return wrong("it is another answer", max(f1(gold, text) for gold in golds))


def same_name(gold: str, answer: str) -> bool:
    """Return whether two strings are spellings of the same name.

    The order of the words matters, except in dates and for two names that are joined by `and`. Part
    of a name counts as a different name, and so does a name that is preceded by a title.

    >>> same_name("Mount Everest", "Mt. Everest"), same_name("20 July 1969", "July 20, 1969")
    (True, True)
    >>> same_name("Elizabeth II", "Elizabeth I"), same_name("Paris", "Paris Hilton")
    (False, False)
    """
    expected, words = _words(gold), _words(answer)
    if expected == words:
        return bool(words)
    months = sum(word in _MONTHS for word in expected)
    numbers = sum(word.isdecimal() for word in expected)
    is_date = months == 1 and numbers == len(expected) - 1 >= 1
    return (is_date or expected.count("and") == 1) and sorted(expected) == sorted(words)


def _words(text: str) -> list[str]:
    """Return the words of a name in a normalized spelling, without accents and abbreviations."""
    letters = unicodedata.normalize("NFKD", text)
    bare = "".join(sign for sign in letters if not unicodedata.combining(sign)).casefold()
    words = [_SHORT.get(word, word) for word in _WORD.findall(bare.translate(_SPACED))]
    if not _MONTHS.isdisjoint(words):
        words = [_ORDINAL.sub(r"\1", word) for word in words if word not in ("of", "on", "in")]
    words = [word for word in words if word not in ("a", "an", "the")]
    number = read_number_words(" ".join(words))
    return words if number is None else [str(number)]
