"""Check a recorded episode a second time, by simple rules that share no code with the verifiers.

The submitted solution is read from the transcript; it is the last solution that was shown. Numbers
are compared as fractions, and text as a list of plain words; a program is compared with the known
correct and incorrect programs of the task. For any other solution (a formula, a unit, a rounded
number, another spelling, another program), the result is undecided.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from aflowgym.answers.literals import parse_program
from toolgym.episode import without_notice
from toolgym.sanitize import unescape_control_tokens

_LABEL: Final = re.compile(r"answer\s*:\s*", re.IGNORECASE)
_FENCE: Final = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
_NUMBER: Final = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:\.\d{1,3}|/[1-9]\d{0,8})?", re.ASCII
)


def recheck(env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
    """Return whether the recorded turns of a workflow episode end with the correct solution.

    Args:
        env: An environment of this family, whose tools are used to read the transcript.
        task: A `WorkflowTask`.
        turns: The turns, as in `EpisodeRecord.turns`.

    Returns:
        The verdict. The result is None if the solution or the gold answer is not a plain number,
        plain words, or a known program.
    """
    shown = ""
    for turn in turns:
        if len(turn["calls"]) > 1:
            return None  # the results of several calls are in one text
        text = f"\n{turn['observation']}"
        if "\nSolution:\n" in text or "\nCandidates:\n" in text:
            shown = text
        if turn["calls"] and not turn["errors"] and env.tools[turn["calls"][0]["name"]].terminal:
            _, mark, solution = shown.partition("\nSolution:\n")
            solution = unescape_control_tokens(without_notice(solution))
            return _right(task, solution) if mark else False
    return False


def _right(task: Any, solution: str) -> bool | None:
    if task.kind == "code":
        return _is_known_program(task, solution)
    answer = _LABEL.split(solution.strip())[-1]
    if "\n" in answer or "<" in answer:
        return None
    if task.kind == "math":
        gold, value = _number(task.gold), _number(answer)
        return None if gold is None or value is None else value == gold
    names, words = [_words(name) for name in (task.gold, *task.aliases)], _words(answer)
    if words in names:
        return True
    joined = "".join(sum(names, words))
    if not joined.isascii() or any(map(str.isdigit, joined)):
        return None  # numbers and accents have several spellings
    near = any({*words} & {*name} or "".join(words) == "".join(name) for name in names)
    return None if near else False


def _number(text: str) -> Fraction | None:
    """Return a plain number or a reduced fraction, or None for any other text."""
    bare = text.strip().rstrip(".")
    if not _NUMBER.fullmatch(bare):
        return None
    number = Fraction(bare.replace(",", ""))
    return number if "/" not in bare or str(number) == bare.lstrip("+") else None


def _words(text: str) -> list[str]:
    """Return the words without case, punctuation and articles."""
    letters = "".join(c for c in text.casefold() if c not in string.punctuation)
    return [word for word in letters.split() if word not in ("a", "an", "the")]


def _is_known_program(task: Any, solution: str) -> bool | None:
    program = _statements([solution, *_FENCE.findall(solution)][-1])
    if program is None:
        return False
    if task.solution and program == _statements(task.solution):
        return True
    wrong = filter(None, map(_statements, task.distractors))
    # A known wrong program with text after it is still wrong.
    return False if any(program[: len(each)] == each for each in wrong) else None


def _statements(program: str) -> list[str] | None:
    """Return the statements of a program without their layout, or None if it does not parse."""
    try:
        return [ast.dump(each) for each in parse_program(program).body]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
