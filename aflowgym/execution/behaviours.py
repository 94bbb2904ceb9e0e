"""The behaviour of each operator: how often it asks, and what it makes of the replies.

Most operators ask once and are read as their declaration says: who writes a verdict is read for
one, who writes a program for that. Four do more: `Programmer` and `Test` run programs and ask
again, `ScEnsemble` counts before it asks, `MdEnsemble` asks for votes. An operator that cannot go
on raises `Failed`; it never returns an apology.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from aflowgym.answers.code import Outcome, passes
from aflowgym.execution.grading import job_of
from aflowgym.execution.protocols import (
    Backend,
    Completion,
    Job,
    Request,
    Sandbox,
    needed,
    shuffled,
)
from aflowgym.execution.replies import (
    answer_key,
    last_block,
    letters,
    plain_text,
    read_letter,
    read_verdict,
    without_thoughts,
)
from aflowgym.execution.state import Candidate, Failed, Lane, State, program_in
from aflowgym.execution.trace import NOTHING, Failure, Step, Usage
from aflowgym.operators.declaration import Operator, Registry
from aflowgym.operators.prompts import fill
from toolgym.sanitize import encodable

Outputs = dict[str, Any]
#: The feedback of `Test` where nothing fails.
ALL_PASS: Final = "All public tests pass."
#: The feedback of `Test` where the task has no public tests.
NO_TESTS: Final = "There are no public tests, so none ran: the program goes on as it is."
#: How a line begins by which `Programmer` tells itself why it has to try again.
RETRY: Final = "The last program was of no use: "


class Run:
    """The state that the operators of one run share.

    Attributes:
        backend: Who answers the prompts.
        sandbox: Where programs run; None where none can.
        seed: Of all draws.
        made: Calls of the model by path; no two branches share a path.
        used: What each call took.
        warned: Whether a step has a warning.
    """

    def __init__(
        self, backend: Backend, sandbox: Sandbox | None, operators: Registry, seed: int
    ) -> None:
        self.backend, self.sandbox = backend, sandbox
        self.operators, self.seed = operators, seed
        self.made: dict[str, int] = {}
        self.used: list[Usage] = []
        self.warned = False

    @property
    def usage(self) -> Usage:
        """The usage of all calls together."""
        return Usage(*map(sum, zip(*self.used, strict=True))) if self.used else NOTHING


class Bench:
    """The means of one operator in one place of one run."""

    __slots__ = ("account", "instruction", "operator", "shared", "state", "step")

    def __init__(
        self, shared: Run, operator: Operator, instruction: str, lane: Lane, step: Step
    ) -> None:
        self.shared, self.operator, self.instruction = shared, operator, instruction
        self.state, self.account, self.step = lane.state, lane.account, step

    @property
    def key(self) -> tuple[Any, ...]:
        """Seed, task, place and number of the next call: what shuffling may depend on."""
        made = self.shared.made.get(self.step.path, 0)
        return self.shared.seed, self.state.task.id, self.step.path, made

    def ask(self, **inputs: Any) -> str:
        """One reply of the model to the prompt, with these slots in place of the state's."""
        self.account.take()
        completion = self._reply(self._request(inputs))
        if completion.cut:
            raise Failed("E-REPLY-CUT", f"it was cut off after {completion.tokens_out} tokens.")
        text = without_thoughts(completion.text)
        if not text.strip():
            raise Failed("E-REPLY-EMPTY", "the model wrote nothing.")
        return text

    def ask_each(self, several: Sequence[Mapping[str, Any]]) -> list[str]:
        """One reply for each set of slots; some may be empty."""
        self.account.take(len(several))
        requests = [self._request(inputs) for inputs in several]
        replies = [self._reply(each) for each in requests]
        return ["" if each.cut else without_thoughts(each.text) for each in replies]

    def run(self, job: Job) -> Sequence[Outcome]:
        """Run a program in the sandbox."""
        return needed(self.shared.sandbox).run(job)

    def warn(self, code: str, message: str) -> None:
        """Note in the trace what did not stop the operator; a code of `RUN_CODES`."""
        self.step.failure = Failure(code, message, self.step.path)
        self.shared.warned = True

    def _request(self, inputs: Mapping[str, Any]) -> Request:
        shown = {**self.step.inputs, **inputs} if inputs else self.step.inputs
        path, task = self.step.path, self.state.task
        number = self.shared.made.get(path, 0)
        self.shared.made[path] = number + 1
        operator = self.operator
        fields = {slot: _slot_text(shown.get(slot)) for slot in operator.inputs}
        prompt = encodable(fill(operator.prompt, task, {"instruction": self.instruction, **fields}))
        return Request(
            task, operator.name, prompt, shown, path, number, self.shared.seed,
            operator.tokens, self.account.tokens,
        )  # fmt: skip

    def _reply(self, request: Request) -> Completion:
        completion = self.shared.backend.generate(request)
        used, step = Usage(1, completion.tokens_in, completion.tokens_out), self.step
        step.usage = used if step.usage is NOTHING else step.usage.plus(used)
        self.account.tokens -= used.tokens
        self.shared.used.append(used)
        return completion._replace(text=encodable(completion.text))


def _slot_text(value: Any) -> str:
    """A slot as a prompt shows it."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        names = letters(len(value))
        return "\n\n".join(
            f"{name}:\n{each.solution}" for name, each in zip(names, value, strict=True)
        )
    return str(value)


Behaviour = Callable[[Bench], Outputs]


def plain(bench: Bench) -> Outputs:
    """Ask once; read from the reply what the declaration says that the operator writes."""
    reply = bench.ask()
    writes, outputs = bench.operator.writes, Outputs()
    if "verdict" in writes:
        read = read_verdict(reply)
        if read is None:
            raise Failed("E-REPLY", "no line `Verdict: right` or `Verdict: wrong`.")
        outputs["verdict"], reply = read
    if "feedback" in writes:
        outputs["feedback"] = reply
    if "code" in writes:
        outputs["code"] = _program(bench.state, reply)
    if "solution" in writes:
        outputs["solution"] = reply
    return outputs


def _program(state: State, reply: str) -> str:
    function = state.task.entry_point
    program = program_in(reply, function) if function else last_block(reply)
    if program is None:
        raise Failed("E-PROGRAM", f"no program that defines {function or 'a function'}.")
    return program


def programmer(bench: Bench) -> Outputs:
    """Write a program, run it if its value is the answer, and write it anew if it does not run."""
    task, feedback, trouble = bench.state.task, bench.state.feedback, ""
    for _ in range(bench.operator.calls[1]):
        retry = f"{RETRY}{trouble}" if trouble else None
        reply = bench.ask(feedback="\n".join(filter(None, (feedback, retry))) or None)
        program = program_in(reply, task.entry_point or "solve")
        if program is None:
            trouble = "it does not define the function."
        elif task.kind == "code":
            return {"solution": program, "code": program}
        else:
            (outcome,) = bench.run(Job(task, program, "solve"))
            value = plain_text(outcome.value)
            if not outcome.error and value.strip():
                return {"solution": value, "code": program}
            trouble = f"it {f'raised {outcome.error}' if outcome.error else 'returned nothing'}."
        if program is not None:
            trouble += f"\n```python\n{program.strip()}\n```"
    raise Failed("E-PROGRAM", f"{bench.operator.calls[1]} programs; of the last, {trouble}")


def test(bench: Bench) -> Outputs:
    """Run the public tests; repair the program while they fail and calls are left for it.

    A program of a task without public tests passes, untouched, and a warning says so.
    """
    state, task = bench.state, bench.state.task
    solution, program = state.solution, state.code or ""
    if not task.public_tests:
        bench.warn("W-NO-TESTS", NO_TESTS)
        return {"solution": solution, "code": program, "verdict": True, "feedback": NO_TESTS}
    trouble = _trouble(bench, program)
    for _ in range(bench.operator.calls[1]):
        if not trouble:
            break
        reply = bench.ask(code=program, feedback=trouble)
        repaired = program_in(reply, task.entry_point)
        if repaired is not None:
            solution = program = repaired
            trouble = _trouble(bench, program)
    feedback = trouble or ALL_PASS
    return {"solution": solution, "code": program, "verdict": not trouble, "feedback": feedback}


def _trouble(bench: Bench, program: str) -> str:
    """The first public test that fails, as feedback; empty if all pass."""
    task = bench.state.task
    outcomes = bench.run(job_of(task, program, task.public_tests))
    for test_, outcome in zip(task.public_tests, outcomes, strict=True):
        if not passes(test_, outcome):
            return f"{test_.function}{test_.arguments} {outcome}, expected {test_.expected}."
    return ""


def sc_ensemble(bench: Bench) -> Outputs:
    """The answer that most candidates give; in a tie the model names one of those on top."""
    candidates = bench.state.candidates or ()
    keys = [answer_key(bench.state.task, each.solution) for each in candidates]
    counted = Counter(keys)
    most = max(counted.values())
    first = {key: keys.index(key) for key in counted if counted[key] == most}
    leading = tuple(candidates[place] for place in first.values())
    return _chosen(leading[_ask_for_candidate(bench, leading)])


def _ask_for_candidate(bench: Bench, leading: tuple[Candidate, ...]) -> int:
    """Which of these the model names; a lone one needs no asking."""
    if len(leading) == 1:
        return 0
    place = read_letter(bench.ask(candidates=leading), len(leading))
    if place is None:
        raise Failed("E-REPLY", f"no letter of one of {len(leading)} candidates.")
    return place


def md_ensemble(bench: Bench) -> Outputs:
    """The candidate whose answer wins most of the votes, each over a shuffled list."""
    candidates = bench.state.candidates or ()
    if len(candidates) == 1:
        return _chosen(candidates[0])
    orders = [
        shuffled(len(candidates), *bench.key, vote) for vote in range(bench.operator.calls[1])
    ]
    shown = [tuple(candidates[place] for place in order) for order in orders]
    replies = bench.ask_each([{"candidates": each} for each in shown])
    votes: Counter[Hashable] = Counter()
    for each, reply in zip(shown, replies, strict=True):
        place = read_letter(reply, len(each))
        if place is not None:
            votes[answer_key(bench.state.task, each[place].solution)] += 1
    if not votes:
        raise Failed("E-REPLY", "no vote names a candidate.")
    # Of equals the one that was voted for first wins: a Counter keeps that order.
    winner = votes.most_common(1)[0][0]
    return _chosen(
        next(c for c in candidates if answer_key(bench.state.task, c.solution) == winner)
    )


def _chosen(candidate: Candidate) -> Outputs:
    outputs: Outputs = {"solution": candidate.solution}
    if candidate.code is not None:
        outputs["code"] = candidate.code
    return outputs


#: Operators that do more than ask once.
BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "Programmer": programmer,
    "Test": test,
    "ScEnsemble": sc_ensemble,
    "MdEnsemble": md_ensemble,
}
