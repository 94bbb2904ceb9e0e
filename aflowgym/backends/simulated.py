"""A backend without a model: seeded draws in place of replies.

Every reply is a real text with a right or a wrong answer of the task. It goes through the real
extractors and checkers, and what an operator does next depends on what they read in it. Wrong
answers look like right ones: near numbers, other names of the same passages, mutated programs.

Every draw is a hash of seed, task, operator, branch and the number of the call that the operator
makes; for an operator that judges or mends an answer, also of that answer. So an operator that is
called again draws nothing new, wherever it stands in a workflow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Final, Literal

from aflowgym.answers.code import CodeTest, Outcome, passes
from aflowgym.answers.extraction import final_answer
from aflowgym.backends.presets import Preset, Skills, preset_of
from aflowgym.execution.behaviours import ALL_PASS, NO_TESTS
from aflowgym.execution.grading import grade
from aflowgym.execution.protocols import (
    SEPARATOR,
    Completion,
    Job,
    Request,
    Sandbox,
    hash_of,
    shuffled,
    unit,
)
from aflowgym.execution.replies import answer_key, letters
from aflowgym.execution.state import program_in
from aflowgym.operators.declaration import Operator
from aflowgym.tasks.task import WorkflowTask, judge
from toolgym.errors import EnvironmentFault

State = Literal["right", "loose", "wrong"]
Calls = tuple[tuple[str, str], ...]
_LEAD: Final = {
    "math": "I work it out from the numbers that are given.",
    "code": "This function does what is asked.",
    "qa": "I put the passages together.",
}
_LOOSE: Final = "it should be {}, as far as I can tell"
MOST_REMEMBERED: Final = 4096
MISTAKES: Final = 60
"""Wrong answers of a task, at most."""


class World:
    """One task as the simulated backend sees it: its right answer and its possible mistakes.

    A wrong program either fails a public test or only hidden ones. This is a property of the
    program: those at odd places among the mistakes pass the public tests.
    """

    def __init__(self, task: WorkflowTask) -> None:
        self.task = task
        self.is_code = task.kind == "code"
        self.right = _right_program(task) if self.is_code else task.gold
        if not self.is_code and judge(task, self.said(self.right)).correct is not True:
            raise EnvironmentFault(
                f"the verifier refuses the gold {task.gold!r} of task {task.id!r}.",
                "No right answer can be simulated; leave the task out.",
            )
        self.loose = "" if self.is_code else _LOOSE.format(task.gold)
        found = {answer_key(task, self.said(self.right)): ""}
        for mistake in _mistakes(task, self.right):
            if len(found) > MISTAKES:
                break
            if self._is_wrong(mistake):
                found.setdefault(answer_key(task, self.said(mistake)), mistake)
        #: The mistakes, which differ from each other; the first one is the typical one.
        self.mistakes = tuple(found.values())[1:]
        self.hidden = frozenset(self.mistakes[1::2])
        self.outcomes: dict[tuple[str, Calls], tuple[Outcome, ...]] = {}
        self._read: dict[str, tuple[str, State]] = {}

    def _is_wrong(self, answer: str) -> bool:
        if self.is_code:
            return program_in(answer, self.task.entry_point) is not None
        return judge(self.task, self.said(answer)).correct is False

    def said(self, answer: str) -> str:
        """An answer as an operator writes it: a program in a fence, anything else after a mark."""
        if self.is_code:
            return f"{_LEAD['code']}\n```python\n{answer}```"
        return f"{_LEAD[self.task.kind]}\nAnswer: {answer}"

    def read(self, solution: str) -> tuple[str, State]:
        """The answer in a solution, and whether it is right, right in a loose form, or wrong."""
        read = self._read.get(solution)
        if read is None:
            state: State = "wrong"
            if self.is_code:
                answer = program_in(solution, self.task.entry_point) or solution
                state = "right" if answer == self.right else "wrong"
            else:
                answer = final_answer(solution).text
                if grade(self.task, solution).correct:
                    state = "right"
                elif answer == self.loose:
                    state = "loose"
            if len(self._read) >= MOST_REMEMBERED:
                self._read.clear()
            read = self._read[solution] = (answer, state)
        return read

    def mistakes_that(self, revealed: bool) -> Sequence[str]:
        """The mistakes; of programs those that a public test reveals, or the others."""
        return (self.is_code and self.mistakes[not revealed :: 2]) or self.mistakes


def _right_program(task: WorkflowTask) -> str:
    if program_in(task.solution, task.entry_point) == task.solution:
        return task.solution
    table = ", ".join(f"repr(({t.arguments}, {t.keywords})): {t.expected}" for t in task.tests)
    return f"def {task.entry_point}(*a, **k):\n    return {{{table}}}[repr((a, k))]\n"


_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_FRACTION: Final = re.compile(r"(\d+)/(\d+)")
_NAME: Final = re.compile(r"(?P<before>\w*)\W+(?P<name>(?:the )?[A-Z][\w'-]*(?: [A-Z][\w'-]*)*)")
_TOKEN: Final = re.compile(r"[<>=!]=|//|\*\*|[<>+*%-]|\b(?:and|or|min|max|True|False|\d+)\b")
_OTHER: Final = dict(
    (pair[place], pair[1 - place])
    for pair in ("< <=", "> >=", "== !=", "+ -", "* +", "// *", "% //", "and or", "min max",
                 "True False", "** *")
    for place in (1, 0)
    for pair in [pair.split()]
)  # fmt: skip


def _mistakes(task: WorkflowTask, right: str) -> Iterator[str]:
    """Wrong answers, which may be equal to each other or right; the last ones fit any task."""
    if task.kind == "code":
        yield from (mutants := list(_in_order(task, _mutants(right))))
        for mutant in mutants[:MISTAKES]:
            yield from _mutants(mutant)
        yield from task.distractors
        yield f"def {task.entry_point}(*a, **k):\n    return None\n"
        return
    form = _form(right)
    yield from (each for each in task.distractors if _form(each) == form)
    if _NUMBER.search(right):
        yield from _in_order(task, _near_numbers(right))
    elif task.kind == "qa":
        yield from _in_order(task, _other_names(task, right))
    yield from task.distractors
    yield from ("0", "1") if task.kind == "math" else ("nobody knows", "anybody")


def _in_order(task: WorkflowTask, answers: Iterator[str]) -> Iterator[str]:
    """The answers in an order that is drawn by the task."""
    listed = list(dict.fromkeys(answers))
    return (listed[place] for place in shuffled(len(listed), task.id, "mistakes"))


def _form(text: str) -> str:
    """A text with one digit for each number and one letter for each name.

    >>> _form("the Rhane"), _form("139.40")
    ('the A', '0.0')
    """
    return re.sub(r"[A-Z][\w'-]*", "A", re.sub(r"\d+", "0", text))


def _near_numbers(right: str) -> Iterator[str]:
    """The text with one of its numbers a little larger or smaller, in the same form."""
    for match in _NUMBER.finditer(right):
        whole, _, decimals = match[0].partition(".")
        value = int(whole + decimals)
        grain = next((g for g in (100, 50, 10, 5) if value % g == 0 and value >= 4 * g), 1)
        for steps in (each for size in range(1, 21) for each in (size, -size)):
            near = str(value + steps * grain)
            if value + steps * grain <= 0 or (len(near) != len(str(value)) and value > 20):
                continue
            digits = near.rjust(len(decimals) + 1, "0")
            point = len(digits) - len(decimals)
            number = f"{digits[:point]}.{digits[point:]}" if decimals else digits
            text = right[: match.start()] + number + right[match.end() :]
            fraction = _FRACTION.search(text)
            if not fraction or math.gcd(int(fraction[1]), int(fraction[2])) == 1 < int(fraction[2]):
                yield text


def _other_names(task: WorkflowTask, right: str) -> Iterator[str]:
    """Names of the passages in the form of the right one that follow the same words."""
    found = [(m["before"].lower(), m["name"]) for text in task.context for m in _NAME.finditer(text)]
    before = {word for word, name in found if name == right}
    alike = [name for word, name in found if _form(name) == _form(right)]
    yield from (name for word, name in found if word in before and name in alike)
    if not before:
        yield from alike


def _mutants(program: str) -> Iterator[str]:
    """The program with one number or operator changed."""
    for match in _TOKEN.finditer(program):
        token = match[0]
        others = [_OTHER[token]] if token in _OTHER else []
        if token.isdecimal():
            others = [str(int(token) + change) for change in (-1, 1, 2) if int(token) + change >= 0]
        for other in others:
            yield program[: match.start()] + other + program[match.end() :]


_RETURNS: Final = re.compile(r"\A\s*def solve\(\):\n    (return|raise) (.+)\n\s*\Z")
BROKEN: Final = "def solve():\n    raise ValueError\n"


def solver(answer: str) -> str:
    """A program whose `solve()` returns an answer."""
    return f"def solve():\n    return {answer if answer.isdecimal() else repr(answer)}\n"


class SimulatedSandbox:
    """The sandbox of the simulated backend. It knows the outcomes of its programs and runs none.

    A program of `Programmer` returns a literal or raises, and is read. A program of a `code` task
    passes every test if it is the right one, and otherwise fails a share of them, which is not the
    share that it would fail in Python.
    """

    def __init__(self, world: Callable[[WorkflowTask], World]) -> None:
        self._world = world

    def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes of a job.

        Raises:
            EnvironmentFault: The simulated backend did not write this program.
        """
        if job.task.kind != "code":
            match = _RETURNS.match(job.program)
            if match is None:
                raise EnvironmentFault(
                    "the simulated sandbox runs only programs of the simulated backend.",
                    "Pass a real sandbox as sandbox=.",
                )
            return (Outcome(match[2]) if match[1] == "return" else Outcome(error=match[2]),)
        world = self._world(job.task)
        key = (job.program, job.calls)
        outcomes = world.outcomes.get(key)
        if outcomes is None:
            if len(world.outcomes) >= MOST_REMEMBERED:
                world.outcomes.clear()
            outcomes = world.outcomes[key] = _test_outcomes(world, job)
        return outcomes


def _test_outcomes(world: World, job: Job) -> tuple[Outcome, ...]:
    is_wrong = world.read(job.program)[1] != "right"
    failing = failing_tests(world.task, job.program not in world.hidden) if is_wrong else ()
    all_tests = (*world.task.tests, *world.task.public_tests)
    tests = {(test.arguments, test.keywords): test for test in reversed(all_tests)}
    called = [tests[call] for call in job.calls]
    return tuple(_missed_outcome(t) if t in failing else Outcome(t.expected) for t in called)


def failing_tests(task: WorkflowTask, revealed: bool) -> tuple[CodeTest, ...]:
    """The tests that a wrong program fails: half of the hidden ones, and perhaps a public one."""
    hidden = [test for test in task.tests if test not in task.public_tests]
    some = tuple(hidden[len(hidden) // 2 :])
    return (*task.public_tests[-1:], *some) if revealed or not some else some


def _missed_outcome(test: CodeTest) -> Outcome:
    """A value that the test does not expect."""
    values = (Outcome(value) for value in ("None", "0", "-1"))
    return next((o for o in values if not passes(test, o)), Outcome(error="ValueError"))


NO_FAULT: Final = "I find no fault with it."
_FAULT: Final = "One of the steps does not follow from what is given."
_CHARACTERS_PER_TOKEN: Final = 4
ANCHOR: Final = 0.3
"""Probability that a generator takes over the solution that it finds, unless that was blamed."""
BREAKS: Final = 0.1
"""Probability that a program of `Programmer` does not run."""
BARE: Final = 0.95
"""Probability that `Format` finds the form that the verifier reads."""
_NORMAL: Final = NormalDist()
_MEANS: Final = {
    "Custom": "custom",
    "AnswerGenerate": "answer_generate",
    "CustomCodeGenerate": "custom_code_generate",
    "Programmer": "programmer",
}


class SimulatedBackend:
    """Replies by draws. An operator of your own acts by what it takes and leaves.

    It acts as an ensemble if it takes candidates, as `Review` if it leaves a verdict only, as
    `Test` if it leaves a verdict and a solution, as `Revise` or `Format` if it takes a solution
    with or without feedback, as `CustomCodeGenerate` if it leaves a program, else as `Custom`.

    >>> from aflowgym import execute, load_tasks, parse
    >>> task = load_tasks("bundled", "train")[0]
    >>> execute(parse("Custom").workflow, task, SimulatedBackend("teaching"), seed=0).solution
    'I work it out from the numbers that are given.\\nAnswer: 12'
    """

    sandbox: Sandbox | None

    def __init__(self, preset: str | Preset = "teaching") -> None:
        self.preset = preset_of(preset)
        self._worlds: dict[int, World] = {}
        self.sandbox = SimulatedSandbox(self.world)

    def world(self, task: WorkflowTask) -> World:
        """The simulated world of a task."""
        world = self._worlds.get(id(task))
        if world is None:
            if len(self._worlds) >= MOST_REMEMBERED:
                self._worlds.clear()
            world = self._worlds[id(task)] = World(task)
        return world

    def generate(self, request: Request) -> Completion:
        """One reply.

        Raises:
            EnvironmentFault: No right answer of the task can be written.
        """
        operator = request.operator
        draws = Draws(request, self.world(request.task), self.preset.skills(request.task.kind))
        if "candidates" in operator.inputs:
            text = _vote(draws)
        elif "verdict" in operator.outputs:
            text = _repair(draws) if "solution" in operator.outputs else _review(draws)
        elif "solution" in operator.inputs:
            text = _revise(draws) if "feedback" in operator.optional else _format(draws)
        else:
            text = _generate(draws, operator)
        read = len(request.prompt) // _CHARACTERS_PER_TOKEN + 1
        return Completion(text, read, operator.tokens)


class Draws:
    """The draws of one request, and the solution that it shows."""

    def __init__(self, request: Request, world: World, skills: Skills) -> None:
        self.request, self.world, self.skills = request, world, skills
        shown = request.inputs.get("code") or request.inputs.get("solution")
        self.shown, state = world.read(str(shown)) if shown else ("", "wrong")
        self.state: State = state
        feedback = str(request.inputs.get("feedback") or "")
        self.is_blamed = feedback not in ("", NO_FAULT, ALL_PASS, NO_TESTS)
        works_on = "solution" in request.operator.inputs or self.is_blamed
        self._task = f"{request.seed}{SEPARATOR}{request.task.id}{SEPARATOR}"
        group, _, self._branch = request.branch.rpartition(".")
        asks = (request.operator.name, group, request.number, self.shown if works_on else "")
        self._list = self._task + SEPARATOR.join(map(str, asks)) + SEPARATOR
        self._call = f"{self._list}{self._branch}{SEPARATOR}"

    def uniform(self, label: str) -> float:
        """A draw of this call."""
        return unit(hash_of(self._call + label))

    def latent(self, label: str) -> float:
        """A draw of the task, the same for all operators."""
        return unit(hash_of(self._task + label))

    def right(self) -> str:
        """The right content, in the form in which it is given on this task."""
        return self.world.loose if self.latent("loose") < self.skills.loose else self.world.right

    def wrong(self, revealed: bool = False) -> str:
        """A wrong answer other than the shown one: the typical mistake, or another one.

        Args:
            revealed: A public test reveals it in any case.
        """
        skills, is_modal = self.skills, self.uniform("modal") < self.skills.modal
        drawn = self.latent("revealed") if is_modal else self.uniform("revealed")
        mistakes = self.world.mistakes_that(revealed or drawn < skills.reveal)
        # The branches of a list make different mistakes, as far as there are enough.
        branch = int(self._branch or 0)
        place = 0 if is_modal else 1 + (hash_of(self._list) + branch) % max(1, len(mistakes) - 1)
        if mistakes[place % len(mistakes)] == self.shown:
            place += 1
        return mistakes[place % len(mistakes)]


def _generate(draws: Draws, operator: Operator) -> str:
    """An answer: taken over from before, right or wrong."""
    world, kind, skills = draws.world, draws.request.task.kind, draws.skills
    runs = operator.name == "Programmer"
    writes_code = "code" in operator.outputs
    if runs and draws.uniform("breaks") < BREAKS:
        return "I would go through it in a loop." if kind == "code" else _in_fence(BROKEN)
    if kind != "code" and writes_code and not runs:
        answer = draws.wrong()  # the program would be read as the answer
        return f"{_in_fence(solver(answer))}\nAnswer: {answer}"
    if draws.shown and not draws.is_blamed and draws.uniform("anchor") < ANCHOR:
        answer = draws.shown
    else:
        name = _MEANS.get(operator.name, "custom_code_generate" if writes_code else "custom")
        mean: float = getattr(skills, name)
        # A normal score: the share `difficulty` of its variance belongs to the task.
        task, own = (_NORMAL.inv_cdf(u or 2**-54) for u in (draws.latent("task"), draws.uniform("own")))
        score = skills.difficulty**0.5 * task + (1 - skills.difficulty) ** 0.5 * own
        if _NORMAL.cdf(score) >= mean:
            answer = draws.wrong()
        else:
            answer = world.right if runs else draws.right()
    return _in_fence(solver(answer)) if runs and kind != "code" else world.said(answer)


def _in_fence(program: str) -> str:
    return f"```python\n{program}```"


def _review(draws: Draws) -> str:
    chance = draws.skills.catch if draws.state == "wrong" else draws.skills.false_alarm
    is_flagged = draws.uniform("flag") < chance
    return f"Verdict: wrong\n{_FAULT}" if is_flagged else f"Verdict: right\n{NO_FAULT}"


def _revise(draws: Draws) -> str:
    """After a fault was found, an answer may be fixed or spoiled; otherwise it is kept."""
    answer = draws.shown
    if draws.is_blamed and draws.state == "wrong":
        answer = draws.right() if draws.uniform("fix") < draws.skills.fix else draws.wrong()
    elif draws.is_blamed and draws.uniform("keep") >= draws.skills.keep:
        answer = draws.wrong()
    return draws.world.said(answer)


def _format(draws: Draws) -> str:
    is_bare = draws.state == "loose" and draws.uniform("bare") < BARE
    return draws.world.right if is_bare else draws.shown


def _repair(draws: Draws) -> str:
    """One attempt to repair a program that failed a public test."""
    is_repaired = draws.uniform("repair") < draws.skills.repair
    return draws.world.said(draws.world.right if is_repaired else draws.wrong(revealed=True))


def _vote(draws: Draws) -> str:
    """A letter; a right candidate has the weight of the skills, a wrong one 1."""
    shown = [each.solution for each in draws.request.inputs.get("candidates") or ()]
    is_wrong = [draws.world.read(each)[1] == "wrong" for each in shown]
    weights = [1.0 if wrong else draws.skills.weight for wrong in is_wrong]
    left = draws.uniform("vote") * sum(weights)
    for letter, weight in zip(letters(len(shown)), weights, strict=True):
        left -= weight
        if left < 0:
            return letter
    return letters(len(shown))[-1]
