"""A second verdict on a recorded episode, by another way, so that a slip of the first shows.

Nothing of what gives the environment's verdicts is used here but the parser of Python. The
submitted solution is read from the transcript, as the agent read it: the last one that was shown
before `answer`. A number is compared as a fraction, words as a set of plain spellings, a program by
its text with the task's own right and wrong ones. What these plain means cannot read (a formula, a
unit, a rounded number, a sentence or another spelling that has the words of the gold, a program of
some other text) is left undecided; it is never guessed.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from aflowgym.answers.literals import parse_program
from toolgym.sanitize import unescape_control_tokens

_AFTER: Final = re.compile(r"answer\s*:\s*", re.IGNORECASE)
_FENCE: Final = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
_NOTICE: Final = re.compile(r"calls? left")
_NUMBER: Final = re.compile(
    r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.(?P<decimals>[0-9]+)|/(?P<below>[0-9]+))?"
)
_MOST_DECIMALS: Final = 3  # with more, a number may be a rounded one
_RESPELT_WORDS: Final = """mount saint fort doctor professor zero four five seven eight nine
eleven twelve dozen
thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty
sixty seventy eighty ninety hundred thousand million billion half third quarter"""
_RESPELT: Final = frozenset(_RESPELT_WORDS.split())
_MARK: Final = "\nSolution:\n"


def recheck(env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether the recorded turns of a workflow episode submit the right solution.

    Args:
        env: An environment of this family; its tools are read.
        task: A `WorkflowTask`.
        turns: As in `EpisodeRecord.turns`.

    Returns:
        None where the solution or the gold is more than a plain number, words, or a known program.
    """
    ends = {name for name, spec in env.tools.items() if spec.terminal}
    place = next((n for n, turn in enumerate(turns) if _ends(turn, ends)), None)
    if place is None:
        return False
    last = turns[place]
    answer = next(call for call in last["calls"] if call["name"] in ends)
    if "value" in env.tools[answer["name"]].arguments.model_fields:
        value = str(answer["arguments"].get("value", ""))
        return _right(task, unescape_control_tokens(value))
    if len(last["calls"]) > 1 or any(len(turn["calls"]) > 1 for turn in turns[:place]):
        return None  # results of several calls stand in one text
    return _submitted(task, turns[:place])


def _ends(turn: Mapping[str, Any], ends: set[str]) -> bool:
    return not turn["errors"] and any(call["name"] in ends for call in turn["calls"])


def _submitted(task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
    """The verdict on the solution that stood last."""
    for turn in reversed(turns):
        _, mark, text = f"\n{turn['observation']}".partition(_MARK)
        if mark:
            return _right(task, unescape_control_tokens(_without_notice(text)))
        if "\nCandidates:\n" in turn["observation"]:
            return False  # nobody chose among them
    return False


def _right(task: Any, solution: str) -> bool | None:
    if task.kind == "code":
        return _same_program(task, solution)
    answer = _said(solution.strip())
    if task.kind == "qa":
        return _named([_plain(name) for name in (task.gold, *task.aliases)], _plain(answer))
    gold, value = _number(task.gold), _number(answer)
    priced = "$" in f"{task.question}{task.gold}" or "dollar" in task.question
    if gold is None or value is None or ("$" in answer and not priced):
        return None
    return value == gold


def _named(names: Sequence[tuple[str, ...]], words: tuple[str, ...]) -> bool | None:
    """True for the same words; False if a word of each name is missing that has no other form."""
    if words in names:
        return True
    joined = "".join(words)
    if not joined.isascii():
        return None
    missing = [[w for w in name if w not in joined and _is_fixed(w)] for name in names]
    return False if all(missing) else None


def _is_fixed(word: str) -> bool:
    """A word that is neither a number nor abbreviated, in any spelling of its name."""
    plain = len(word) > 3 and word.isascii() and word.isalpha() and not set(word) <= set("ivxlc")
    return plain and word not in _RESPELT


def _without_notice(text: str) -> str:
    """A text without a last line such as `(3 calls left)`."""
    before, line, notice = text.rpartition("\n(")
    inside = notice[:-1]
    if not (line and notice.endswith(")") and _NOTICE.search(inside)):
        return text
    return text if any(sign in inside for sign in "()\n") else before


def _said(solution: str) -> str:
    """What follows the first `answer:` behind which the text ends with its line."""
    last = solution.rfind("\n")
    for match in _AFTER.finditer(solution):
        if last < match.end() < len(solution):
            return solution[match.end() :].strip()
    return solution


def _number(text: str) -> Fraction | None:
    """A plain number or reduced fraction; None for anything that holds more."""
    bare = text.strip().rstrip(".").removeprefix("$")
    match = _NUMBER.fullmatch(bare)
    if match is None or len(match["decimals"] or "") > _MOST_DECIMALS:
        return None
    try:
        number = Fraction(bare.replace(",", ""))
        return number if number.denominator == int(match["below"] or number.denominator) else None
    except (ZeroDivisionError, ValueError):  # Python reads no more than some thousand digits
        return None


def _plain(text: str) -> tuple[str, ...]:
    """The words, without case, punctuation and articles."""
    letters = "".join(c for c in text.casefold() if c not in string.punctuation)
    return tuple(word for word in letters.split() if word not in ("a", "an", "the"))


def _same_program(task: Any, solution: str) -> bool | None:
    blocks = _FENCE.findall(solution)
    program = _statements(blocks[-1] if blocks else solution)
    if program is None:
        return False
    if task.solution and program == _statements(task.solution):
        return True
    wrong = [_statements(each) for each in task.distractors]
    # A known wrong program with something after it is as wrong.
    return False if any(each and program[: len(each)] == each for each in wrong) else None


def _statements(program: str) -> list[str] | None:
    """The statements of a program without their layout; None if it is none."""
    try:
        return [ast.dump(each) for each in parse_program(program).body]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
