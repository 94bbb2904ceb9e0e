"""A backend without a model, whose replies are drawn at random from a seeded generator.

Every reply contains a correct or an incorrect answer to the task. Replies are parsed and checked
like the replies of a model, and the results determine how an operator continues. Incorrect answers
resemble correct ones: they are close numbers, other names from the same passages, or mutated
programs.

Every random draw is a hash of the seed, the task, the operator, the branch, and the number of
earlier model calls in this execution of the operator. For an operator that checks or corrects an
answer, the draw also depends on this answer. Therefore an operator that runs again gets the same
draws, regardless of the operator's position in the workflow.

A `Preset` defines the skills of the operators for each kind of task. The preset `paper` is fitted
to the results published with AFlow (Zhang et al. 2024, arXiv:2410.10762), with the mean of two data
sets per kind: MATH and GSM8K, HumanEval and MBPP, HotpotQA and DROP. These results determine the
means of the generators, `false_alarm`, `weight`, `repair` and `loose`; the other values are
assumptions. The values of the preset `teaching` were chosen such that the best workflow depends on
the kind of task.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from statistics import NormalDist
from typing import Final, Literal

from aflowgym.answers.answer import final_answer
from aflowgym.answers.code import CodeTest, Outcome, passes
from aflowgym.operators.aflow import ALL_PASS, NO_TESTS, RETRY
from aflowgym.operators.context import (
    SEPARATOR,
    Completion,
    Job,
    Request,
    Sandbox,
    hash_of,
    shuffled,
    unit,
)
from aflowgym.operators.replies import answer_key, letters, program_in
from aflowgym.tasks.task import Kind, WorkflowTask, judge
from toolgym.errors import ConfigurationError, EnvironmentFault


@dataclass(frozen=True)
class Skills:
    """The skills of the operators on one kind of task.

    All values except `weight` are between 0 and 1.

    Args:
        custom: Mean probability that `Custom` writes a correct solution.
        answer_generate: Mean probability that `AnswerGenerate` writes a correct solution.
        custom_code_generate: Mean probability that `CustomCodeGenerate` writes a correct solution.
            This value is used only for `code` tasks, because a program does not answer other tasks.
        programmer: Mean probability that `Programmer` writes a correct solution.
        loose: Fraction of tasks on which answers have a form that the verifier rejects, unless a
            program or `Format` wrote the answer. Incorrect answers also have this form, so the form
            does not reveal which answers are correct.
        difficulty: Correlation between the draws for one task. With a value close to 1, nearly all
            or nearly none of the attempts at a task succeed, so voting has little effect.
        anchor: Probability that a generator copies the existing solution, unless a check rejected
            that solution.
        breaks: Probability that a program written by `Programmer` does not run.
        modal: Fraction of wrong answers that are the task's most typical mistake.
        catch: Probability that `Review` rejects a wrong solution.
        false_alarm: Probability that `Review` rejects a correct solution.
        keep: Probability that `Revise` keeps a correct solution correct after a check rejected it.
        fix: Probability that `Revise` corrects wrong content.
        bare: Probability that `Format` writes the answer in the form that the verifier accepts.
        weight: Ratio of the votes for a correct candidate to the votes for a wrong one.
        reveal: Fraction of wrong programs that fail a public test.
        repair: Probability that a single attempt of `Test` repairs a program.
    """

    custom: float
    answer_generate: float
    custom_code_generate: float
    programmer: float
    loose: float = 0.0
    difficulty: float = 0.3
    modal: float = 0.5
    anchor: float = 0.3
    breaks: float = 0.1
    catch: float = 0.35
    false_alarm: float = 0.1
    keep: float = 0.5
    fix: float = 0.15
    bare: float = 0.95
    weight: float = 1.0
    reveal: float = 0.7
    repair: float = 0.3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0 or (value > 1 and name != "weight"):
                raise ConfigurationError(f"{name} must be between 0 and 1, got {value:g}.")


@dataclass(frozen=True)
class Preset:
    """The skills of the operators for every kind of task, with a name."""

    name: str
    math: Skills
    code: Skills
    qa: Skills

    def skills(self, kind: Kind) -> Skills:
        """Return the skills for one kind of task."""
        return {"math": self.math, "code": self.code, "qa": self.qa}[kind]


PAPER: Final = Preset(
    "paper",
    math=Skills(
        custom=0.7065,
        answer_generate=0.706,
        custom_code_generate=0.0,
        programmer=0.7492,
        difficulty=0.92,
        modal=0.9495,
        false_alarm=0.1216,
        weight=0.8185,
    ),
    code=Skills(
        custom=0.794,
        answer_generate=0.802,
        custom_code_generate=0.802,
        programmer=0.802,
        difficulty=0.92,
        modal=0.6862,
        false_alarm=0.0608,
        weight=1.3031,
        repair=0.2919,
    ),
    qa=Skills(
        custom=0.7198,
        answer_generate=0.7726,
        custom_code_generate=0.0,
        programmer=0.6,
        loose=0.0525,
        difficulty=0.92,
        modal=0.9782,
        false_alarm=0.2413,
        weight=0.9046,
    ),
)

TEACHING: Final = Preset(
    "teaching",
    # Programs help, and voting helps because mistakes differ from each other.
    math=Skills(
        custom=0.35,
        answer_generate=0.45,
        custom_code_generate=0.0,
        programmer=0.6,
        difficulty=0.18,
        modal=0.2,
        catch=0.5,
        false_alarm=0.2,
        fix=0.1,
    ),
    # Tests find most mistakes. Voting finds few, because a task is nearly always or nearly never
    # solved.
    code=Skills(
        custom=0.35,
        answer_generate=0.4,
        custom_code_generate=0.5,
        programmer=0.45,
        difficulty=0.85,
        modal=0.7,
        catch=0.3,
        false_alarm=0.2,
        reveal=0.9,
        repair=0.6,
    ),
    # The benefit of Review exceeds its cost, and the form of the answer matters.
    qa=Skills(
        custom=0.5,
        answer_generate=0.6,
        custom_code_generate=0.0,
        programmer=0.25,
        loose=0.35,
        difficulty=0.85,
        modal=0.7,
        catch=0.8,
        false_alarm=0.05,
        keep=0.8,
        fix=0.5,
    ),
)

#: The presets by name.
PRESETS: Final = {preset.name: preset for preset in (PAPER, TEACHING)}


def preset_of(preset: str | Preset) -> Preset:
    """Return the preset with a given name. A `Preset` object is returned unchanged.

    Raises:
        ConfigurationError: If there is no preset with this name.
    """
    if isinstance(preset, Preset):
        return preset
    if preset not in PRESETS:
        raise ConfigurationError(f"no preset {preset!r}; there are {', '.join(PRESETS)}.")
    return PRESETS[preset]


State = Literal["right", "loose", "wrong"]
MOST_REMEMBERED: Final = 4096
MISTAKES: Final = 60
"""Maximum number of wrong answers of a task."""


class World:
    """A task with its correct and incorrect answers, for the simulated backend.

    Attributes:
        right: The correct answer.
        loose: The correct answer in a form that the verifier rejects; "" for `code`.
        mistakes: Distinct incorrect answers. The first mistake is the most typical one. The
            incorrect programs at odd indices (`hidden`) pass the public tests but fail a hidden
            test.
    """

    def __init__(self, task: WorkflowTask) -> None:
        self.task = task
        self.is_code = task.kind == "code"
        self.right = _right_program(task) if self.is_code else task.gold
        self.loose = "" if self.is_code else loosely(task.gold)
        found = {answer_key(task, self.said(self.right)): ""}
        nothing = f"def {task.entry_point}(*a, **k):\n    return None\n"
        last_resorts = (*task.distractors, "0", "1", "unknown", nothing)
        for mistakes in (_mistakes(task, self.right), last_resorts):
            if len(found) == 1:
                for each in islice(filter(self._is_wrong, mistakes), MISTAKES):
                    found.setdefault(answer_key(task, self.said(each)), each)
        self.mistakes = tuple(found.values())[1:]
        is_read = self.is_code or judge(task, self.said(self.right)).correct is True
        if not (is_read and self.mistakes):
            refused = "no other answer" if is_read else f"the gold {task.gold!r}"
            raise EnvironmentFault(
                f"the verifier refuses {refused} of task {task.id!r}.",
                "Correct and incorrect answers cannot be simulated. Exclude the task.",
            )
        self.hidden = frozenset(self.mistakes[1::2])
        #: Outcomes by call of a test: those of the correct program, of a program that fails only
        #: hidden tests, and of a program that fails a public test.
        self.outcomes: dict[tuple[str, str], tuple[Outcome, ...]] = {}
        hidden = [test for test in task.tests if test not in task.public_tests]
        missed = hidden[len(hidden) // 2 :]
        revealing = [*task.public_tests[-1:], *missed]
        for test in (*task.public_tests, *task.tests):
            right, wrong = Outcome(test.expected), _missed_outcome(test)
            self.outcomes[test.arguments, test.keywords] = (
                right,
                wrong if test in (missed or revealing) else right,
                wrong if test in revealing else right,
            )
        self._read: dict[str, tuple[str, State]] = {}

    def _is_wrong(self, answer: str) -> bool:
        if self.is_code:
            return program_in(answer, self.task.entry_point) is not None
        return judge(self.task, self.said(answer)).correct is False

    def said(self, answer: str) -> str:
        """Return an answer as an operator writes it, in a fenced block or after a marker."""
        if self.is_code:
            return f"This function does what is asked.\n```python\n{answer}```"
        work = "put the passages together" if self.task.kind == "qa" else "calculate step by step"
        return f"I {work}.\nAnswer: {answer}"

    def read(self, solution: str) -> tuple[str, State]:
        """Return the answer in a solution, and its `State`."""
        read = self._read.get(solution)
        if read is None:
            if self.is_code:
                answer = program_in(solution, self.task.entry_point) or solution
                is_right = answer == self.right
            else:
                answer = final_answer(solution).text
                is_right = bool(judge(self.task, solution).correct)
            if len(self._read) >= MOST_REMEMBERED:
                self._read.clear()
            state: State = "right" if is_right else "loose" if answer == self.loose else "wrong"
            read = self._read[solution] = (answer, state)
        return read

    def mistakes_that(self, revealed: bool) -> Sequence[str]:
        """Return the mistakes; `revealed` selects programs by whether they fail a public test."""
        return (self.is_code and self.mistakes[not revealed :: 2]) or self.mistakes


_BEFORE, _AFTER = "it should be ", ", as far as I can tell"


def loosely(answer: str) -> str:
    """Return an answer in a form that the verifier rejects."""
    return f"{_BEFORE}{answer}{_AFTER}"


def barely(answer: str) -> str:
    """Return the plain form of an answer, which is the inverse of `loosely`.

    >>> barely(loosely("12")), barely("12")
    ('12', '12')
    """
    return answer.removeprefix(_BEFORE).removesuffix(_AFTER)


def _right_program(task: WorkflowTask) -> str:
    if program_in(task.solution, task.entry_point) == task.solution:
        return task.solution
    table = ", ".join(f"repr(({t.arguments}, {t.keywords})): {t.expected}" for t in task.tests)
    return f"def {task.entry_point}(*a, **k):\n    return {{{table}}}[repr((a, k))]\n"


def _missed_outcome(test: CodeTest) -> Outcome:
    """Return an outcome that fails the test."""
    values = (Outcome(value) for value in ("None", "0", "-1"))
    return next((o for o in values if not passes(test, o)), Outcome(error="ValueError"))


# The lengths are bounded, so each search is linear in the text.
_NUMBER: Final = re.compile(r"(?<!\d)\d{1,9}(?:\.\d{1,6})?(?!\d)")
_FRACTION: Final = re.compile(r"(\d{1,9})/(\d{1,9})")
_NAME: Final = re.compile(
    r"\b(\w{1,30})\W{1,3}((?:[Tt]he )?[A-Z][\w'-]{0,30}(?: [A-Z][\w'-]{0,30}){0,5})"
)
_TOKEN: Final = re.compile(
    r"[<>=!]=|//|\*\*|[<>+*%-]|\b(?:and|or|min|max|True|False|\d{1,9})\b|(?<=['\"])[a-z](?=['\"])"
)
_OTHER: Final = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
    "*": "+", "//": "*", "%": "//", "**": "*", "and": "or", "or": "and", "min": "max",
    "max": "min", "True": "False", "False": "True",
}  # fmt: skip


def _mistakes(task: WorkflowTask, right: str) -> Iterator[str]:
    """Yield wrong answers in the form of the correct one. Some may be duplicates or correct."""
    if task.kind == "code":
        yield from (mutants := _in_order(task, _mutants(right)))
        for mutant in mutants[:MISTAKES]:
            yield from _mutants(mutant)
        return
    yield from (each for each in task.distractors if _form(each) == _form(right))
    if _NUMBER.search(right):
        yield from _in_order(task, _near_numbers(right))
    elif task.kind == "qa":
        yield from _in_order(task, _other_names(task, right))


def _in_order(task: WorkflowTask, answers: Iterator[str]) -> list[str]:
    """Return the answers in a random order that depends on the task."""
    listed = list(dict.fromkeys(islice(answers, 2 * MISTAKES)))
    return [listed[place] for place in shuffled(len(listed), task.id, "mistakes")]


def _form(text: str) -> str:
    """Return the form of a string, with one digit for each number and one letter for each name.

    >>> _form("the Rhane"), _form("139.40")
    ('the A', '0.0')
    """
    return re.sub(r"[A-Z][\w'-]*", "A", re.sub(r"\d+", "0", text))


def _near_numbers(right: str) -> Iterator[str]:
    """Yield the text with one of its numbers slightly changed, in the same form."""
    for match in _NUMBER.finditer(right):
        decimals = len(match[0].partition(".")[2])
        value = int(match[0].replace(".", ""))
        grain = next((g for g in (100, 50, 10, 5) if value % g == 0 and value >= 4 * g), 1)
        most = grain * min(20, max(8, value // 20 // grain))
        for near in range(max(1, value - most), value + most + 1, grain):
            number = f"{near / 10**decimals:.{decimals}f}"
            text = right[: match.start()] + number + right[match.end() :]
            fraction = _FRACTION.search(text)
            above, below = map(int, fraction.groups()) if fraction else (1, 2)
            is_reduced = math.gcd(above, below) == 1 < below
            if is_reduced and (value < 20 or len(number) == len(match[0])):
                yield text


def _other_names(task: WorkflowTask, right: str) -> Iterator[str]:
    """Yield names from the passages with the form and the context of the correct one."""
    text = "\n".join(task.context)
    found = [(word, name.replace("The ", "the ")) for word, name in _NAME.findall(text)]
    before = {word for word, name in found if name == right}
    form = _form(right)
    alike = dict.fromkeys(name for _, name in found if _form(name) == form)
    yield from (name for word, name in found if word in before and name in alike)
    if not before:
        yield from alike


def _mutants(program: str) -> Iterator[str]:
    """Yield the program with one number or operator changed."""
    for match in _TOKEN.finditer(program):
        token = match[0]
        others = [_OTHER[token]] if token in _OTHER else []
        if token.isdecimal():
            others = [str(int(token) + change) for change in (-1, 1, 2) if int(token) + change >= 0]
        if token not in _OTHER and token.islower():
            others = [letter for letter in "aeiourstln" if letter != token]
        for other in others:
            yield program[: match.start()] + other + program[match.end() :]


_RETURNS: Final = re.compile(r"\A\s*def solve\(\):\n    (return|raise) (.+)\n\s*\Z")
BROKEN: Final = "def solve():\n    raise ValueError\n"


def solver(answer: str) -> str:
    """Return a program whose `solve()` returns the given answer."""
    return f"def solve():\n    return {answer if answer.isdecimal() else repr(answer)}\n"


NO_FAULT: Final = "I find no fault with it."
_FAULT: Final = "One of the steps does not follow from what is given."
_PRAISE: Final = ("", NO_FAULT, ALL_PASS, NO_TESTS)
_NORMAL: Final = NormalDist()


class SimulatedBackend:
    """A backend with random replies, whose sandbox determines outcomes without running code.

    A custom operator is simulated by the built-in operator whose inputs and outputs are most
    similar:

    * An operator with candidates as input acts as `MdEnsemble`.
    * An operator whose only output is a verdict acts as `Review`; if it outputs a verdict and a
      solution, it acts as `Test`.
    * An operator with a solution as input acts as `Revise` if it has feedback, and otherwise as
      `Format`.
    * An operator with code as output acts as `CustomCodeGenerate`.
    * Any other operator acts as `Custom`.

    >>> from aflowgym import execute, load_tasks, parse
    >>> task = load_tasks("bundled", "train")[0]
    >>> execute(parse("Custom").workflow, task, SimulatedBackend("teaching"), seed=0).solution
    'I calculate step by step.\\nAnswer: 12'
    """

    sandbox: Sandbox | None

    def __init__(self, preset: str | Preset = "teaching") -> None:
        self.preset = preset_of(preset)
        self._worlds: dict[int, World] = {}
        self.sandbox = self

    def world(self, task: WorkflowTask) -> World:
        """Return the `World` of a task."""
        world = self._worlds.get(id(task))
        if world is None:
            if len(self._worlds) >= MOST_REMEMBERED:
                self._worlds.clear()
            world = self._worlds[id(task)] = World(task)
        return world

    def run(self, job: Job) -> Sequence[Outcome]:
        """Return the outcomes of a program.

        If a program only returns a literal or raises an exception, its result is determined without
        running it. For a `code` task, the correct program passes every test. Any other program
        fails some tests, which can differ from the tests that it would fail in Python.

        Raises:
            EnvironmentFault: If the program was not written by the simulated backend.
        """
        world = self.world(job.task)
        if world.is_code and all(call in world.outcomes for call in job.calls):
            is_wrong = world.read(job.program)[1] != "right"
            column = is_wrong + (is_wrong and job.program not in world.hidden)
            return [world.outcomes[call][column] for call in job.calls]
        match = _RETURNS.match(job.program)
        if match is None:
            raise EnvironmentFault(
                "the simulated sandbox runs only programs of the simulated backend.",
                "Pass a real sandbox as sandbox=.",
            )
        return (Outcome(match[2]) if match[1] == "return" else Outcome(error=match[2]),)

    def generate(self, request: Request) -> Completion:
        """Return one reply.

        Raises:
            EnvironmentFault: If the correct answer of the task cannot be represented.
        """
        text = self._text(request)
        return Completion(text, len(request.prompt) // 4 + 1, request.operator.tokens)

    def _text(self, request: Request) -> str:
        operator, inputs, kind = request.operator, request.inputs, request.task.kind
        world, skills = self.world(request.task), self.preset.skills(kind)
        solution = inputs.get("code") or inputs.get("solution")
        shown, state = world.read(solution) if solution else ("", "wrong")
        feedback = str(inputs.get("feedback") or "")
        is_blamed = bool(feedback) and feedback.partition(RETRY)[0].strip() not in _PRAISE
        works_on_it = is_blamed or "solution" in operator.inputs
        task_key = f"{request.seed}{SEPARATOR}{request.task.id}{SEPARATOR}"
        group, _, branch = request.branch.rpartition(".")
        asks = (operator.name, group, str(request.number), shown if works_on_it else "")
        list_key = task_key + SEPARATOR.join(asks) + SEPARATOR
        call_key = f"{list_key}{branch}{SEPARATOR}"

        def draw(label: str) -> float:
            """Return a random number for this operator's call."""
            return unit(hash_of(call_key + label))

        def draw_of_task(label: str) -> float:
            """Return a random number that is the same for all operators on this task."""
            return unit(hash_of(task_key + label))

        def formed(answer: str) -> str:
            return loosely(answer) if draw_of_task("loose") < skills.loose else answer

        def wrong(*, revealed: bool = False) -> str:
            """Return an incorrect answer that differs from the answer to be corrected."""
            is_modal = not works_on_it and draw("modal") < skills.modal
            luck = draw_of_task("revealed") if is_modal else draw("revealed")
            mistakes = world.mistakes_that(revealed or luck < skills.reveal)
            # The branches of a list make different mistakes, if there are enough.
            drawn = hash_of(list_key) + int(branch or 0)
            place = 0 if is_modal else 1 + drawn % max(1, len(mistakes) - 1)
            place += works_on_it and mistakes[place % len(mistakes)] == barely(shown)
            return mistakes[place % len(mistakes)]

        if "candidates" in operator.inputs:
            candidates = [each.solution for each in inputs["candidates"]]
            weights = [
                1.0 if world.read(each)[1] == "wrong" else skills.weight for each in candidates
            ]
            limit = draw("vote") * sum(weights)
            place = sum(total <= limit for total in accumulate(weights[:-1]))
            return letters(len(candidates))[place] if operator.run else candidates[place]
        if "verdict" in operator.outputs and "solution" in operator.outputs:
            is_repaired = draw("repair") < skills.repair
            return world.said(world.right if is_repaired else wrong(revealed=True))
        if "verdict" in operator.outputs:
            is_fault = draw("flag") < (skills.catch if state == "wrong" else skills.false_alarm)
            return f"Verdict: wrong\n{_FAULT}" if is_fault else f"Verdict: right\n{NO_FAULT}"
        if "solution" in operator.inputs and "feedback" in (*operator.inputs, *operator.optional):
            if not is_blamed:
                return world.said(shown)
            if state == "wrong" and draw("fix") < skills.fix:
                return world.said(formed(world.right))
            # A wrong answer is kept as often as a correct one, so that keeping it reveals nothing.
            return world.said(shown if draw("keep") < skills.keep else formed(wrong()))
        if "solution" in operator.inputs:
            return barely(shown) if draw("bare") < skills.bare else shown

        writes_code, runs = "code" in operator.outputs, operator.name == "Programmer"
        if runs and draw("breaks") < skills.breaks:
            return _in_fence(BROKEN) if kind != "code" else "I would go through it in a loop."
        if shown and not is_blamed and draw("anchor") < skills.anchor:
            answer = shown
        else:
            means = {"AnswerGenerate": skills.answer_generate, "Programmer": skills.programmer}
            other = skills.custom_code_generate if writes_code else skills.custom
            # A normal score, of whose variance the share `difficulty` belongs to the task.
            task = _NORMAL.inv_cdf(draw_of_task("difficulty") or 2**-54)
            own = _NORMAL.inv_cdf(draw("right") or 2**-54)
            score = skills.difficulty**0.5 * task + (1 - skills.difficulty) ** 0.5 * own
            is_right = _NORMAL.cdf(score) < means.get(operator.name, other)
            answer = world.right if is_right else wrong()
            answer = answer if runs else formed(answer)
        if kind == "code" or not writes_code:
            return world.said(answer)
        if runs:
            return _in_fence(solver(answer))
        answer = wrong()  # a program is an answer only to `code` tasks
        return f"{_in_fence(solver(answer))}\nAnswer: {answer}"


def _in_fence(program: str) -> str:
    return f"```python\n{program}```"
