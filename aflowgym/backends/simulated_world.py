"""What a simulated task is made of: right, typical, loose and odd answers, as real texts.

An answer is in one of these states, and it is told from its text alone, by the extractors and
checkers that judge every answer:

* `R` right; `W` right content in a loose form, which the verifier refuses;
* `M` the typical mistake of the task, the same text whoever makes it (its first distractor);
* `U` a mistake of its own, unlike any other: it carries a number of seven digits.

A wrong program also either fails a public test or only hidden ones, which stays so however often
it is run: an even number in it says that the public tests do not find it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from aflowgym.answers.code import Outcome
from aflowgym.answers.extraction import final_answer
from aflowgym.execution.grading import grade
from aflowgym.execution.replies import answer_key
from aflowgym.execution.state import program_in
from aflowgym.tasks.task import WorkflowTask, judge
from toolgym.errors import EnvironmentFault

State = Literal["R", "W", "M", "U"]
Calls = tuple[tuple[str, str], ...]
_LEAD: Final = {
    "math": "I work it out from the numbers that are given.",
    "code": "This function does what is asked.",
    "qa": "I put the passages together.",
}
_LOOSE: Final = "it should be {}, as far as I can tell"
_ATTEMPT: Final = re.compile(r"^ATTEMPT = (\d{7})$", re.MULTILINE)
_HIDDEN: Final = 1_000_000
MOST_REMEMBERED: Final = 4096
_WORDS: Final = "bar bel cor dan dor el fen gal hol jor kel lan mer nor os pel quin ran sel tor"
_SYLLABLES: Final = _WORDS.split()


class World:
    """One task as the simulated backend sees it."""

    def __init__(self, task: WorkflowTask) -> None:
        self.task = task
        self.solver = task.kind == "code"
        self.right = _right_program(task) if self.solver else task.gold
        if not self.solver and judge(task, self.said(self.right)).correct is not True:
            raise EnvironmentFault(
                f"the verifier refuses the gold {task.gold!r} of task {task.id!r}.",
                "No right answer can be simulated; leave the task out.",
            )
        self.modal = next(each for each in _mistakes(task) if self._is_wrong(each))
        self.loose = "" if self.solver else _LOOSE.format(task.gold)
        self._modal_key = answer_key(task, self.said(self.modal))
        self.outcomes: dict[tuple[str, Calls], tuple[Outcome, ...]] = {}
        self._states: dict[str, State] = {}

    def _is_wrong(self, answer: str) -> bool:
        if self.solver:
            return program_in(answer, self.task.entry_point) is not None
        return judge(self.task, self.said(answer)).correct is False

    def said(self, answer: str) -> str:
        """An answer as an operator writes it: a program in a fence, anything else after a mark."""
        if self.solver:
            return f"{_LEAD['code']}\n```python\n{answer}```"
        return f"{_LEAD[self.task.kind]}\nAnswer: {answer}"

    def bare(self, solution: str) -> str:
        """The answer in a solution: its program, or its final answer."""
        if self.solver:
            return program_in(solution, self.task.entry_point) or solution
        return final_answer(solution).text

    def odd(self, drawn: int, revealed: bool = True) -> str:
        """A wrong answer that is unlike any other, from a number.

        Args:
            drawn: At least 64 bits of chance.
            revealed: Of a program: a public test finds it out.
        """
        marked = _HIDDEN + 2 + drawn % 4_400_000 * 2 + revealed
        if self.solver:
            return _numbered(self.modal, marked)
        if self.task.kind == "math":
            return str(marked)
        parts = [_SYLLABLES[(drawn // 20**place) % 20] for place in range(6)]
        return f"{''.join(parts[:3]).title()} {''.join(parts[3:]).title()}"

    def typical(self, revealed: bool = True) -> str:
        """The typical mistake; of a program also whether a public test finds it out."""
        return self.modal if revealed or not self.solver else _numbered(self.modal, _HIDDEN)

    def state(self, solution: str) -> State:
        """The state of an answer, read from its text."""
        known = self._states.get(solution)
        if known is None:
            if len(self._states) >= MOST_REMEMBERED:
                self._states.clear()
            known = self._states[solution] = self._read(solution)
        return known

    def _read(self, solution: str) -> State:
        answer = self.bare(solution)
        if self.solver:
            if answer == self.right:
                return "R"
            return "M" if answer in (self.modal, self.typical(False)) else "U"
        if grade(self.task, solution).correct:
            return "R"
        if answer == self.loose:
            return "W"
        return "M" if answer_key(self.task, solution) == self._modal_key else "U"


def revealed(program: str) -> bool:
    """Whether a public test finds a wrong program out."""
    found = _ATTEMPT.search(program)
    return found is None or int(found[1]) % 2 == 1


def _numbered(program: str, number: int) -> str:
    return f"{program}\nATTEMPT = {number}\n"


def _right_program(task: WorkflowTask) -> str:
    if program_in(task.solution, task.entry_point) == task.solution:
        return task.solution
    table = ", ".join(f"repr(({t.arguments}, {t.keywords})): {t.expected}" for t in task.tests)
    return f"def {task.entry_point}(*a, **k):\n    return {{{table}}}[repr((a, k))]\n"


def _mistakes(task: WorkflowTask) -> Iterator[str]:
    """Typical mistakes, the task's own first; the last ones are wrong for any task."""
    yield from task.distractors
    if task.kind == "code":
        yield f"def {task.entry_point}(*a, **k):\n    return None\n"
    elif task.kind == "math":
        yield from ("0", "1")
    else:
        yield from ("nobody knows", "anybody")
