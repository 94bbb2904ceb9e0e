"""What each operator does with its prompt: how often it asks, and what it makes of the replies.

Most operators ask once and are read as their declaration says: who writes a verdict is read for
one, who writes a program for that. Four do more: `Programmer` and `Test` run programs and ask
again, `ScEnsemble` counts before it asks, `MdEnsemble` asks for votes. An operator that cannot go
on raises `Failed`; it never returns an apology.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Protocol

from aflowgym.answers.code import CodeTest, Outcome, passes
from aflowgym.execution.grading import job_of
from aflowgym.execution.protocols import Job, shuffled
from aflowgym.execution.replies import answer_key, last_block, plain_text, read_letter, read_verdict
from aflowgym.execution.state import Candidate, Failed, State, program_in
from aflowgym.operators.declaration import Operator

Outputs = dict[str, Any]
#: The feedback of `Test` where nothing fails.
ALL_PASS: Final = "All public tests pass."
#: The feedback of `Test` where the task has no public tests.
NO_TESTS: Final = "There are no public tests, so none ran: the program goes on as it is."
#: How a line begins by which `Programmer` tells itself why it has to try again.
RETRY: Final = "The last program was of no use: "


class Bench(Protocol):
    """What an operator works with.

    Attributes:
        operator: Its declaration.
        state: The state that it reads.
    """

    operator: Operator
    state: State

    @property
    def key(self) -> tuple[Any, ...]:
        """Seed, task, place and number of the next call: what shuffling may depend on."""
        ...

    async def ask(self, **inputs: Any) -> str:
        """One reply of the model to the prompt, with these slots in place of the state's."""
        ...

    async def ask_each(self, several: Sequence[Mapping[str, Any]]) -> list[str]:
        """One reply for each set of slots; empty where the model wrote nothing."""
        ...

    async def run(self, job: Job) -> Sequence[Outcome]:
        """Run a program in the sandbox."""
        ...

    def warn(self, code: str, message: str) -> None:
        """Note in the trace what did not stop the operator; a code of `RUN_CODES`."""
        ...


Behaviour = Callable[[Bench], Awaitable[Outputs]]


async def plain(bench: Bench) -> Outputs:
    """Ask once; read from the reply what the declaration says that the operator writes."""
    reply = await bench.ask()
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


async def programmer(bench: Bench) -> Outputs:
    """Write a program, run it if its value is the answer, and write it anew if it does not run."""
    task, said, trouble = bench.state.task, bench.state.feedback, ""
    for _ in range(bench.operator.calls[1]):
        told = f"{RETRY}{trouble}" if trouble else None
        reply = await bench.ask(feedback="\n".join(filter(None, (said, told))) or None)
        program = program_in(reply, task.entry_point or "solve")
        if program is None:
            trouble = "it does not define the function."
        elif task.kind == "code":
            return {"solution": program, "code": program}
        else:
            (outcome,) = await bench.run(Job(task, program, "solve"))
            value = plain_text(outcome.value)
            if not outcome.error and value.strip():
                return {"solution": value, "code": program}
            trouble = f"it {f'raised {outcome.error}' if outcome.error else 'returned nothing'}."
        if program is not None:
            trouble += f"\n```python\n{program.strip()}\n```"
    raise Failed("E-PROGRAM", f"{bench.operator.calls[1]} programs; of the last, {trouble}")


async def test(bench: Bench) -> Outputs:
    """Run the public tests; repair the program while they fail and calls are left for it.

    A program of a task without public tests passes, untouched, and a warning says so.
    """
    state, task = bench.state, bench.state.task
    solution, program = state.solution, state.code or ""
    if not task.public_tests:
        bench.warn("W-NO-TESTS", NO_TESTS)
        return {"solution": solution, "code": program, "verdict": True, "feedback": NO_TESTS}
    trouble = await _trouble(bench, program)
    for _ in range(bench.operator.calls[1]):
        if not trouble:
            break
        reply = await bench.ask(code=program, feedback=trouble)
        repaired = program_in(reply, task.entry_point)
        if repaired is not None:
            solution = program = repaired
            trouble = await _trouble(bench, program)
    feedback = trouble or ALL_PASS
    return {
        "solution": solution,
        "code": program,
        "verdict": not trouble,
        "feedback": feedback,
    }


async def _trouble(bench: Bench, program: str) -> str:
    """The first public test that fails, as feedback; empty if all pass."""
    task = bench.state.task
    outcomes = await bench.run(job_of(task, program, task.public_tests))
    for test_, outcome in zip(task.public_tests, outcomes, strict=True):
        if not passes(test_, outcome):
            return _told(test_, outcome)
    return ""


def _told(test_: CodeTest, outcome: Outcome) -> str:
    got = f"raised {outcome.error}" if outcome.error else f"returned {outcome.value}"
    return f"{test_.function}{test_.arguments} {got}, expected {test_.expected}."


async def sc_ensemble(bench: Bench) -> Outputs:
    """The answer that most candidates give; in a tie the model names one of those on top."""
    candidates = bench.state.candidates or ()
    keys = [answer_key(bench.state.task, each.solution) for each in candidates]
    counted = Counter(keys)
    most = max(counted.values())
    first = {key: keys.index(key) for key in counted if counted[key] == most}
    leading = tuple(candidates[place] for place in first.values())
    return _chosen(leading[await _named(bench, leading)])


async def _named(bench: Bench, leading: tuple[Candidate, ...]) -> int:
    """Which of these the model names; a lone one needs no asking."""
    if len(leading) == 1:
        return 0
    place = read_letter(await bench.ask(candidates=leading), len(leading))
    if place is None:
        raise Failed("E-REPLY", f"no letter of one of {len(leading)} candidates.")
    return place


async def md_ensemble(bench: Bench) -> Outputs:
    """The candidate whose answer wins most of the votes, each over a shuffled list."""
    candidates = bench.state.candidates or ()
    if len(candidates) == 1:
        return _chosen(candidates[0])
    orders = [
        shuffled(len(candidates), *bench.key, vote) for vote in range(bench.operator.calls[1])
    ]
    shown = [tuple(candidates[place] for place in order) for order in orders]
    replies = await bench.ask_each([{"candidates": each} for each in shown])
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
