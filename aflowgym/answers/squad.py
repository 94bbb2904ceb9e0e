"""Is this the right answer to a question about facts? SQuAD's exact match, of what is claimed.

Both texts are put in small letters, lose punctuation and the articles a, an, the, and have their
blanks squeezed (Rajpurkar et al. 2016, arXiv:1606.05250); then they must be equal. Beyond that only
another spelling of the same name (`aflowgym.answers.names`) is right, or a sentence that has the
gold between words of the question (`aflowgym.answers.sentences`). Containing the gold is not being
it: "not the Beatles" is not "Beatles". As in HotpotQA (Yang et al. 2018, arXiv:1809.09600), a yes
or no shares nothing with any other answer. F1 is progress only.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Final

from aflowgym.answers.extraction import final_answer, stated
from aflowgym.answers.latex import plain
from aflowgym.answers.names import affirmed, same_name
from aflowgym.answers.sentences import claim, name_said
from aflowgym.answers.verdict import RIGHT, Verdict, wrong

_PUNCTUATION: Final = str.maketrans("", "", string.punctuation + "‘’“”–—´")
_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_CLOSED: Final = frozenset({"yes", "no", "noanswer"})


def normalise(text: str) -> str:
    """The text as SQuAD compares it.

    >>> normalise(" The  United Kingdom. ")
    'united kingdom'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def f1(gold: str, answer: str) -> float:
    """The F1 of the words two texts share, in [0, 1]."""
    expected, given = normalise(gold), normalise(answer)
    if expected != given and (expected in _CLOSED or given in _CLOSED):
        return 0.0
    gold_words, words = expected.split(), given.split()
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
    found = final_answer(answer)
    text = plain(found.text) if "\\" in found.text else found.text
    if not normalise(text):
        return wrong("there is no answer")
    if normalise(text) in expected or _says(golds, text, found.place == "last_line", question):
        return RIGHT
    nearest = max(f1(gold, text) for gold in golds)
    return wrong("it is another answer", nearest)


def _says(golds: Sequence[str], text: str, prose: bool, question: str) -> bool:
    """Is one of the golds what a text says, in another spelling or in a sentence?"""
    claimed = claim(text)
    said = stated(claimed) if prose and claimed is not None else None
    texts = [text, *(each for each in (claimed, said) if each)]
    for gold in golds:
        if any(same_name(gold, each) for each in texts):
            return True
        if normalise(gold) in _CLOSED and affirmed(normalise(gold), text):
            return True
    open_ = [gold for gold in map(normalise, golds) if gold not in _CLOSED]
    return name_said(text, open_, question)
