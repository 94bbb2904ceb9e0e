"""What a model's reply says: a verdict, a letter, a program. What cannot be read is never guessed.

`answer_key` tells which answers are the same, so that an ensemble can count them: by value for
`math`, by normalised words for `qa`, by the program without its comments and layout for `code`.
"""

from __future__ import annotations

import ast
import functools
import re
import string
from collections.abc import Hashable
from typing import Any, Final

from aflowgym.answers.code import read_literal
from aflowgym.answers.exact import Unreadable
from aflowgym.answers.extraction import final_answer
from aflowgym.answers.math_reading import Quantity, Reading, Several, read_math
from aflowgym.answers.mathematics import canonical
from aflowgym.answers.squad import normalise
from aflowgym.answers.units import words_of
from aflowgym.state import program_in
from aflowgym.tasks import WorkflowTask

_VERDICT: Final = re.compile(
    r"^\W*verdict\W+(?:(right|correct|true|pass)|(wrong|incorrect|false|fail))\w*\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_FENCED: Final = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def read_verdict(reply: str) -> tuple[bool, str] | None:
    """What a check says: whether it passes, and the text around the verdict; None if unreadable.

    >>> read_verdict("Verdict: wrong\\nThe last sum is off.")
    (False, 'The last sum is off.')
    """
    found = list(_VERDICT.finditer(reply))
    if not found:
        return None
    last = found[-1]
    return bool(last[1]), (reply[: last.start()] + reply[last.end() :]).strip()


@functools.lru_cache(maxsize=64)
def letters(count: int) -> tuple[str, ...]:
    """The names of so many candidates: letters, and numbers after Z."""
    return (*string.ascii_uppercase[:count], *(str(place + 1) for place in range(26, count)))


def read_letter(reply: str, count: int) -> int | None:
    """The place of the candidate that a reply names; None if it names none.

    >>> read_letter("Most of them say 12. Answer: (B)", 3)
    1
    """
    named = final_answer(reply).text.strip("()[]. \t").upper()
    known = letters(count)
    return known.index(named) if named in known else None


def last_block(reply: str) -> str | None:
    """The last fenced block of a reply."""
    blocks = _FENCED.findall(reply)
    return blocks[-1] if blocks else None


@functools.lru_cache(maxsize=8192)
def plain_text(value: str) -> str:
    """A returned value as an answer: a text as itself, anything else as it is written.

    >>> plain_text("'Lake Raven'"), plain_text("12")
    ('Lake Raven', '12')
    """
    if value.isascii() and value.isdigit():
        return value
    try:
        read: Any = read_literal(value)
    except ValueError:
        return value
    return read if isinstance(read, str) else value


def answer_key(task: WorkflowTask, solution: str) -> Hashable:
    """Equal for solutions that give the same answer."""
    return _key(task.kind, task.entry_point, task.question, solution)


@functools.lru_cache(maxsize=8192)
def _key(kind: str, entry_point: str, question: str, solution: str) -> Hashable:
    if kind == "code":
        program = program_in(solution, entry_point)
        return solution.strip() if program is None else _tree_of(program)
    found = final_answer(solution).text
    if kind == "qa":
        return normalise(found)
    try:
        return _value(read_math(found, words_of(question)))
    except Unreadable:
        return canonical(found)


def _tree_of(program: str) -> str:
    """A program without its comments and layout; as it stands where it is nested too deeply."""
    try:
        return ast.dump(ast.parse(program))
    except RecursionError:
        return program


def _value(read: Reading) -> Hashable:
    """A reading without what does not change the answer: its decimals, the name of the unknown."""
    if isinstance(read, Quantity):
        return read.value, read.unit
    if isinstance(read, Several):
        items = [_value(item) for item in read.items]
        return read.brackets, frozenset(items) if read.brackets in ("", "⦃") else tuple(items)
    return read.text
