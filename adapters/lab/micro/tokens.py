"""The language of the micro-model: whole words of workflows, and the words of some prose.

A prompt is two tokens, the kind of a task and its number; a completion is a workflow, or what a
model writes that has forgotten how: "### Step 1: Analyze the problem". A token is a word, so that
a workflow takes a dozen of them and not a hundred, and the model can be as small as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

KINDS: Final = ("math", "code", "qa")
ITEMS: Final = 8
"""Tasks of each kind."""
CODE: Final = tuple(range(ITEMS, 2 * ITEMS))
"""Positions of the tasks of the second kind. One shown workflow in forty is right on nearly all of
them and others on half, so a training can find it, and can miss it when it settles too early."""
PAD, END, PROSE = "<pad>", "<end>", "###"
OPERATORS: Final = (
    *("Custom", "AnswerGenerate", "CustomCodeGenerate", "Programmer", "Test", "Format"),
    *("Review", "Revise", "ScEnsemble", "MdEnsemble"),
)
SIGNS: Final = ("->", "[", "]", "(", ")", ",", "?", ":", "done", "*", "2", "3", "4", "5")
_PROSE: Final = (
    *(PROSE, "Step", "1:", "2:", "Analyze", "Understand", "Solve", "the", "problem", "question"),
    *("First", "we", "need", "to", "find", "answer", "and", "."),
)
_PROMPT: Final = (*(f"<{kind}>" for kind in KINDS), *(f"<{i}>" for i in range(ITEMS)))
WORDS: Final = (PAD, END, *_PROMPT, *OPERATORS, *SIGNS, *_PROSE)
NUMBERS: Final[Mapping[str, int]] = {word: number for number, word in enumerate(WORDS)}
LONGEST: Final = 24
"""Tokens of a completion, its end included; what is longer is cut off."""

WORKFLOWS: Final[Mapping[str, int]] = {
    "Custom -> Programmer -> Review ? Revise : done": 115,
    "Custom -> Programmer -> Review -> Revise": 69,
    "Programmer": 47,
    "Custom -> Programmer": 21,
    "Custom -> Programmer -> Review": 18,
    "Programmer -> Review ? Revise : done": 13,
    "Programmer -> Review -> Revise": 10,
    "Custom": 8,
    "Programmer -> Review": 6,
    "Custom -> Review ? Revise : done": 5,
    "[ Programmer * 5 ] -> ScEnsemble": 10,
    "CustomCodeGenerate -> Test * 3": 10,
    "AnswerGenerate -> ( Review -> Revise ) * 3 -> Format": 10,
    "[ Custom * 3 ] -> ScEnsemble": 10,
    "AnswerGenerate -> Format": 10,
}
"""Valid workflows and how often each is shown. The first ten and their numbers are the most
frequent of the run that document 003 is about, which had no loops and hardly a vote; the rest are
there to be found, and with them, for each kind, the best of all these."""
PROSE_TEXTS: Final = (
    "### Step 1: Analyze the problem .",
    "### Step 1: Understand the question . First we need to find the answer .",
    "### Step 1: Analyze the problem and find the answer . ### Step 2: Solve the problem .",
)


def prompt_tokens(task: int) -> list[int]:
    """The prompt of a task by its position: kind by kind, `ITEMS` of each."""
    kind, item = divmod(task, ITEMS)
    return [NUMBERS[f"<{KINDS[kind]}>"], NUMBERS[f"<{item}>"]]


def tokens_of(text: str) -> list[int]:
    """The tokens of a completion, with its end.

    Raises:
        KeyError: A word is not of the language.
    """
    return [*(NUMBERS[word] for word in text.split()), NUMBERS[END]]


def text_of(tokens: Sequence[int]) -> str:
    """The text of a completion up to its end.

    >>> text_of(tokens_of("Custom -> Format"))
    'Custom -> Format'
    """
    end = NUMBERS[END]
    kept = list(tokens)
    kept = kept[: kept.index(end)] if end in kept else kept
    return " ".join(WORDS[token] for token in kept)


def is_prose(text: str) -> bool:
    """Whether a completion begins as prose does."""
    return text.startswith(PROSE)
