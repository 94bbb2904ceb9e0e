"""Sets of words, written as text.

A set of hundreds of words reads best as the words and nothing else.
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text, each once.

    >>> sorted(word_set("name title name"))
    ['name', 'title']
    """
    return frozenset(text.split())
