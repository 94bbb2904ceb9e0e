"""A backend without a model: seeded draws in place of replies.

Every reply is a real text, made from the task's own right and wrong answers, which goes through the
real extractors and checkers; what an operator does next depends on what they read in it. Every draw
is a hash of seed, task, place in the workflow, number of the call there and a label, so that equal
beginnings of two workflows have equal results. `aflowgym.worth` takes the mean over many seeds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

from aflowgym.answers.code import CodeTest, Outcome, passes
from aflowgym.answers.extraction import final_answer
from aflowgym.backends.presets import GENERATORS, LEVELS, Preset, Skills, preset_of
from aflowgym.execution.grading import grade
from aflowgym.operators.aflow import ALL_PASS, RETRY
from aflowgym.operators.context import SEPARATOR, Completion, Job, Request, Sandbox, hash_of, unit
from aflowgym.operators.replies import answer_key, letters, program_in
from aflowgym.tasks.task import WorkflowTask, judge
from toolgym.errors import ConfigurationError, EnvironmentFault

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
    """One task as the simulated backend sees it: right, typical, loose and odd answers as texts.

    An answer is in one of these states, and it is told from its text alone, by the extractors and
    checkers that judge every answer:

    * `R` right; `W` right content in a loose form, which the verifier refuses;
    * `M` the typical mistake of the task, the same text whoever makes it (its first distractor);
    * `U` a mistake of its own, unlike any other: it carries a number of seven digits.

    A wrong program also either fails a public test or only hidden ones, which stays so however
    often it is run: an even number in it says that the public tests do not find it out.
    """

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
            return _with_number(self.modal, marked)
        if self.task.kind == "math":
            return str(marked)
        parts = [_SYLLABLES[(drawn // 20**place) % 20] for place in range(6)]
        return f"{''.join(parts[:3]).title()} {''.join(parts[3:]).title()}"

    def typical(self, revealed: bool = True) -> str:
        """The typical mistake; of a program also whether a public test finds it out."""
        return self.modal if revealed or not self.solver else _with_number(self.modal, _HIDDEN)

    def state(self, solution: str) -> State:
        """The state of an answer, read from its text."""
        state = self._states.get(solution)
        if state is None:
            if len(self._states) >= MOST_REMEMBERED:
                self._states.clear()
            state = self._states[solution] = self._read(solution)
        return state

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
    match = _ATTEMPT.search(program)
    return match is None or int(match[1]) % 2 == 1


def _with_number(program: str, number: int) -> str:
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


_RETURNS: Final = re.compile(r"\A\s*def solve\(\):\n    (return|raise) (.+)\n\s*\Z")
BROKEN: Final = "def solve():\n    raise ValueError\n"


def solver(answer: str) -> str:
    """A program whose `solve()` returns an answer."""
    return f"def solve():\n    return {answer if answer.isdecimal() else repr(answer)}\n"


class SimulatedSandbox:
    """The sandbox of the simulated backend: it tells what its programs return, and runs none.

    A program of `Programmer` returns a literal or raises, and is read, not executed. A program of a
    `code` task is known by its text: the right one passes every test, the others fail as many as
    their state says. They are no real programs' results: a distractor fails here whichever tests
    the draw has it fail, not those that it would fail in Python.
    """

    def __init__(self, world: Callable[[WorkflowTask], World]) -> None:
        self._world = world

    def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes of a job.

        Raises:
            ConfigurationError: The simulated backend did not write this program.
        """
        if job.task.kind != "code":
            return (_read(job.program),)
        world = self._world(job.task)
        key = (job.program, job.calls)
        outcomes = world.outcomes.get(key)
        if outcomes is None:
            if len(world.outcomes) >= MOST_REMEMBERED:
                world.outcomes.clear()
            outcomes = world.outcomes[key] = _test_outcomes(world, job)
        return outcomes


def _test_outcomes(world: World, job: Job) -> tuple[Outcome, ...]:
    wrong = world.state(job.program) != "R"
    failing = failing_tests(world.task, wrong, revealed(job.program))
    all_tests = (*world.task.tests, *world.task.public_tests)
    tests = {(test.arguments, test.keywords): test for test in reversed(all_tests)}
    called = [tests[call] for call in job.calls]
    return tuple(_missed_outcome(t) if t in failing else Outcome(t.expected) for t in called)


def failing_tests(task: WorkflowTask, wrong: bool, public: bool) -> tuple[CodeTest, ...]:
    """The tests that a program fails: half of the hidden ones, and the last public one if so."""
    if not wrong:
        return ()
    hidden = [test for test in task.tests if test not in task.public_tests]
    some = tuple(hidden[len(hidden) // 2 :])
    return (*task.public_tests[-1:], *some) if public or not some else some


def _missed_outcome(test: CodeTest) -> Outcome:
    """A value that the test does not expect."""
    values = (Outcome(value) for value in ("None", "0", "-1"))
    return next((o for o in values if not passes(test, o)), Outcome(error="ValueError"))


def _read(program: str) -> Outcome:
    match = _RETURNS.match(program)
    if match is None:
        raise ConfigurationError(
            "the simulated sandbox runs only what the simulated backend wrote: pass a real one as"
            " sandbox=, or take the simulated backend."
        )
    return Outcome(match[2]) if match[1] == "return" else Outcome(error=match[2])


NO_FAULT: Final = "I find no fault with it."
_FAULT: Final = "One of the steps does not follow from what is given."
_CHARACTERS_PER_TOKEN: Final = 4


class SimulatedBackend:
    """Replies by draws.

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
            ConfigurationError: The preset says nothing of the operator.
            EnvironmentFault: No right answer of the task can be written.
        """
        acted = self.preset.acts(request.operator.name)
        draws = Draws(request, self.world(request.task), self.preset.skills(request.task.kind))
        text = _generate(draws, acted) if acted in GENERATORS else _WRITERS[acted](draws)
        read = len(request.prompt) // _CHARACTERS_PER_TOKEN + 1
        return Completion(text, read, request.operator.tokens)


class Draws:
    """The draws of one request."""

    def __init__(self, request: Request, world: World, skills: Skills) -> None:
        self.request, self.world, self.skills = request, world, skills
        self.inputs: Mapping[str, object] = request.inputs
        self._task = f"{request.seed}{SEPARATOR}{request.task.id}{SEPARATOR}"
        self._call = request.key

    def uniform(self, label: str) -> float:
        """A draw of this call."""
        return unit(hash_of(self._call + label))

    def latent(self, label: str) -> float:
        """A draw that belongs to the task, wherever it is asked for."""
        return unit(hash_of(self._task + label))

    def odd(self, revealed: bool = True) -> str:
        """A wrong answer of this call's own."""
        return self.world.odd(hash_of(self._call + "odd"), revealed)

    @property
    def solution(self) -> str | None:
        """The solution that was shown; a program stands for it where only that was."""
        shown = self.inputs.get("code") or self.inputs.get("solution")
        return shown if isinstance(shown, str) else None

    @property
    def blamed(self) -> bool | None:
        """Whether the feedback that was shown finds fault; None if none was shown."""
        feedback = str(self.inputs.get("feedback") or "").partition(RETRY)[0].strip()
        return feedback not in (NO_FAULT, ALL_PASS) if feedback else None

    def right(self) -> str:
        """The right content, in the form in which it is given on this task."""
        return self.world.loose if self.latent("loose") < self.skills.loose else self.world.right

    def wrong(self) -> str:
        """A wrong answer: the typical one, or one of its own."""
        if self.uniform("modal") < self.skills.modal:
            return self.world.typical(self.latent("modal revealed") < self.skills.reveal)
        return self.odd(self.uniform("revealed") < self.skills.reveal)

    def holds_right(self, solution: str) -> bool:
        """Whether a solution has the right content, whatever its form."""
        return self.world.state(solution) in ("R", "W")


def _generate(draws: Draws, operator: str) -> str:
    """An answer of a generator, in the form that this one gives it."""
    world, kind = draws.world, draws.request.task.kind
    if operator == "CustomCodeGenerate" and kind != "code":
        # A program is no answer here: whatever it holds, it is wrong in a way of its own.
        marked = draws.odd()
        return f"```python\n{solver(marked)}```\nAnswer: see program {marked}"
    if operator == "Programmer" and draws.uniform("breaks") < draws.skills.breaks:
        return "I would go through it in a loop." if kind == "code" else _in_fence(BROKEN)
    answer = _content(draws, operator)
    if operator == "Programmer" and kind != "code":
        return _in_fence(solver(answer))
    return world.said(answer)


def _content(draws: Draws, operator: str) -> str:
    """What a generator answers: taken over from before, right, loose or wrong."""
    world, skills, before = draws.world, draws.skills, draws.solution
    if before is not None and not draws.blamed and draws.uniform("anchor") < skills.anchor:
        return world.bare(before)
    level = int(draws.latent("difficulty") * LEVELS)
    if draws.uniform("right") >= skills.odds[operator][level]:
        return draws.wrong()
    return world.right if operator == "Programmer" else draws.right()


def _in_fence(program: str) -> str:
    return f"```python\n{program}```"


def _review(draws: Draws) -> str:
    skills, solution = draws.skills, draws.solution or ""
    chance = skills.false_alarm if draws.holds_right(solution) else skills.catch
    if draws.uniform("flag") < chance:
        return f"Verdict: wrong\n{_FAULT}"
    return f"Verdict: right\n{NO_FAULT}"


def _revise(draws: Draws) -> str:
    """Told of a fault, it may mend or spoil; told of none, it leaves the answer as it is."""
    world, skills, solution = draws.world, draws.skills, draws.solution or ""
    blamed = draws.blamed
    keep, fix = (
        (skills.keep, skills.fix) if blamed else (1.0, 0.0)
        if blamed is False else (skills.blind_keep, skills.blind_fix)
    )  # fmt: skip
    answer = world.bare(solution)
    if draws.holds_right(solution):
        if draws.uniform("keep") >= keep:
            answer = draws.wrong()
    elif draws.uniform("fix") < fix:
        answer = draws.right()
    return world.said(answer)


def _format(draws: Draws) -> str:
    world, solution = draws.world, draws.solution or ""
    if world.state(solution) == "W" and draws.uniform("bare") < draws.skills.bare:
        return world.right
    return world.bare(solution)


def _test(draws: Draws) -> str:
    """One try to mend the program that was shown."""
    mended = draws.uniform("repair") < draws.skills.repair
    return draws.world.said(draws.world.right if mended else draws.solution or "")


def _tie(draws: Draws) -> str:
    count = len(_shown_candidates(draws))
    return letters(count)[int(draws.uniform("tie") * count)]


def _vote(draws: Draws) -> str:
    """A letter, that of right content so much likelier than that of wrong."""
    candidates = _shown_candidates(draws)
    weights = [draws.skills.weight if draws.holds_right(each) else 1.0 for each in candidates]
    left = draws.uniform("vote") * sum(weights)
    for letter, weight in zip(letters(len(candidates)), weights, strict=True):
        left -= weight
        if left < 0:
            return letter
    return letters(len(candidates))[-1]


def _shown_candidates(draws: Draws) -> list[str]:
    candidates = draws.inputs.get("candidates")
    return [each.solution for each in candidates] if isinstance(candidates, tuple) else []


_WRITERS: Final[Mapping[str, Callable[[Draws], str]]] = {
    "Review": _review,
    "Revise": _revise,
    "Format": _format,
    "Test": _test,
    "ScEnsemble": _tie,
    "MdEnsemble": _vote,
}
