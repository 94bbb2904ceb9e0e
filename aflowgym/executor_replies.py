"""What a model's reply says: a program, a value, an answer; `executor_readers` reads the words.

`answer_key` tells which answers are the same, so that an ensemble can count them: by value for
`math`, by normalised words for `qa`, by the program without its comments and layout for `code`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable
from typing import Any, Final

from aflowgym.answers.exact import Unreadable
from aflowgym.answers.extraction import final_answer
from aflowgym.answers.literals import read_literal
from aflowgym.answers.math_reading import Quantity, Reading, Several, read_math
from aflowgym.answers.mathematics import canonical
from aflowgym.answers.squad import normalise
from aflowgym.answers.units import words_of
from aflowgym.remembering import remembered
from aflowgym.state import program_in
from aflowgym.tasks import WorkflowTask
from toolgym.sanitize import encodable

_FENCED: Final = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def last_block(reply: str) -> str | None:
    """The last fenced block of a reply."""
    blocks = _FENCED.findall(reply)
    return blocks[-1] if blocks else None


@remembered(8192)
def plain_text(value: str) -> str:
    """A returned value as an answer: a text as itself, anything else as it is written.

    A text may hold what no file and no message can, half a surrogate pair; that is replaced.

    >>> plain_text("'Lake Raven'"), plain_text("12")
    ('Lake Raven', '12')
    """
    if value.isascii() and value.isdigit():
        return value
    try:
        read: Any = read_literal(value)
    except ValueError:
        return value
    return encodable(read) if isinstance(read, str) else value


def answer_key(task: WorkflowTask, solution: str) -> Hashable:
    """Equal for solutions that give the same answer."""
    return _key(task.kind, task.entry_point, task.question, solution)


@remembered(8192)
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
    except (RecursionError, MemoryError):
        return program


def _value(read: Reading) -> Hashable:
    """A reading without what does not change the answer: its decimals, the name of the unknown."""
    if isinstance(read, Quantity):
        return read.value, read.unit
    if isinstance(read, Several):
        items = [_value(item) for item in read.items]
        return read.brackets, frozenset(items) if read.brackets in ("", "⦃") else tuple(items)
    return read.text
