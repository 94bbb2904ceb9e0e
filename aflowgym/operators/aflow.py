"""AFlow's ten operators, as `Operator` objects.

Two of them differ from AFlow's implementation. `ScEnsemble` counts equal answers and calls the
model only to break a tie. `Test` runs the public tests and calls the model only for repairs. Each
prompt requests a single simple form of reply: a line `Answer: ...`, one fenced block, a line
`Verdict: ...`, or a letter. `aflowgym.operators.replies` parses these replies.

The names and roles of the operators are AFlow's (Zhang et al. 2024, arXiv:2410.10762).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, Final

from aflowgym.answers.code import passes
from aflowgym.operators.context import Candidate, Context, shuffled
from aflowgym.operators.operator import Operator, Operators
from aflowgym.operators.replies import answer_key, plain_text, program_in, read_letter

Outputs = dict[str, Any]

#: Feedback of `Test` if all tests pass.
ALL_PASS: Final = "All public tests pass."
#: Feedback of `Test` if the task has no public tests.
NO_TESTS: Final = "There are no public tests, so none ran: the program is unchanged."
#: Beginning of the line in which `Programmer` tells the model why its last program failed.
RETRY: Final = "The last program was of no use: "
_PREVIOUS: Final = "Previous work:\n{solution}\n\nWhat was said of it:\n{feedback}"


def write_program(context: Context) -> Outputs:
    """Write a program, and run it if the task asks for a value instead of a program.

    If the program fails, write another one.
    """
    task, most, trouble = context.task, context.operator.calls[1], ""
    for _ in range(most):
        retry = f"{RETRY}{trouble}" if trouble else None
        reply = context.ask(feedback="\n".join(filter(None, (context.feedback, retry))) or None)
        program = program_in(reply, task.entry_point or "solve")
        if program is None:
            trouble = "it does not define the function."
            continue
        if task.kind == "code":
            return {"solution": program, "code": program}
        outcome = context.run_program(program)
        value = plain_text(outcome.value)
        if not outcome.error and value.strip():
            return {"solution": value, "code": program}
        reason = f"raised {outcome.error}" if outcome.error else "returned nothing"
        trouble = f"it {reason}.\n```python\n{program.strip()}\n```"
    context.fail(f"{most} programs; of the last, {trouble}", "E-PROGRAM")


def run_tests(context: Context) -> Outputs:
    """Run the public tests. Repair the program as long as a test fails and calls remain.

    If the task has no public tests, the operator returns the program unchanged, with a warning.
    """
    task, solution, program = context.task, context.solution, context.code or ""
    if not task.public_tests:
        context.warn("W-NO-TESTS", NO_TESTS)
        return {"solution": solution, "code": program, "verdict": True, "feedback": NO_TESTS}
    trouble = _first_failure(context, program)
    for _ in range(context.operator.calls[1]):
        if not trouble:
            break
        reply = context.ask(code=program, feedback=trouble)
        repaired = program_in(reply, task.entry_point)
        if repaired is not None:
            solution = program = repaired
            trouble = _first_failure(context, program)
    verdict, feedback = not trouble, trouble or ALL_PASS
    return {"solution": solution, "code": program, "verdict": verdict, "feedback": feedback}


def _first_failure(context: Context, program: str) -> str:
    """Return the first failing public test as feedback, or "" if all pass."""
    outcomes = context.run_tests(program)
    for test, outcome in zip(context.task.public_tests, outcomes, strict=True):
        if not passes(test, outcome):
            return f"{test.function}{test.arguments} {outcome}, expected {test.expected}."
    return ""


def count_answers(context: Context) -> Outputs:
    """Choose the most frequent answer among the candidates.

    If there is a tie, the model chooses.
    """
    candidates = context.candidates or ()
    keys = [answer_key(context.task, each.solution) for each in candidates]
    counted = Counter(keys)
    most = max(counted.values())
    leading = tuple(candidates[keys.index(key)] for key in counted if counted[key] == most)
    if len(leading) == 1:
        return _chosen(leading[0])
    place = read_letter(context.ask(candidates=leading), len(leading))
    if place is None:
        context.fail(f"no letter of one of {len(leading)} candidates.", "E-REPLY")
    return _chosen(leading[place])


def vote(context: Context) -> Outputs:
    """Choose the answer with the most votes. The candidates are shuffled before each vote."""
    candidates = context.candidates or ()
    if len(candidates) == 1:
        return _chosen(candidates[0])
    start = (context.seed, context.task.id, context.operator.name, context.branch)
    shown = [
        tuple(candidates[place] for place in shuffled(len(candidates), *start, number))
        for number in range(context.operator.calls[1])
    ]
    replies = context.ask_each([{"candidates": each} for each in shown])
    votes: Counter[Hashable] = Counter()
    for each, reply in zip(shown, replies, strict=True):
        place = read_letter(reply, len(each))
        if place is not None:
            votes[answer_key(context.task, each[place].solution)] += 1
    if not votes:
        context.fail("no vote names a candidate.", "E-REPLY")
    winner = votes.most_common(1)[0][0]  # among equal answers, the one that got a vote first
    return _chosen(
        next(each for each in candidates if answer_key(context.task, each.solution) == winner)
    )


def _chosen(candidate: Candidate) -> Outputs:
    code = {} if candidate.code is None else {"code": candidate.code}
    return {"solution": candidate.solution, **code}


OPERATORS: Final = Operators(
    (
        Operator(
            name="Custom",
            summary="Answer the problem directly.",
            prompt=f"""Solve this problem.

{{instruction}}

Problem:
{{problem}}

{_PREVIOUS}

{{form}}""",
            optional=("solution", "feedback"),
            tokens=120,
        ),
        Operator(
            name="AnswerGenerate",
            summary="Think step by step, then give a short answer.",
            prompt=f"""Solve this problem. Think step by step: write down what is given, then
each step and why it follows, and check the result against the question before you give it.

{{instruction}}

Problem:
{{problem}}

{_PREVIOUS}

{{form}}""",
            optional=("solution", "feedback"),
            aliases=("CoT", "AnswerGen", "ChainOfThought"),
            tokens=240,
        ),
        Operator(
            name="CustomCodeGenerate",
            summary="Write the Python function that a code problem asks for.",
            prompt=f"""Write the Python function that this problem asks for. Mind empty
input, single elements, repeated values and negative numbers.

{{instruction}}

Problem:
{{problem}}

{_PREVIOUS}

Give the whole program in one ```python block, with the function under the name that the problem
gives it.""",
            outputs=("solution", "code"),
            optional=("solution", "feedback"),
            aliases=("CodeGenerate",),
            tokens=200,
        ),
        Operator(
            name="Programmer",
            summary="Write a program that computes the answer, and run it; on a code task the "
            "program itself is the answer. If it does not run, write it again, up to three times.",
            prompt="""\
Write a Python program for this problem, in one ```python block. If the problem
asks for a function, write that function, under its own name. Otherwise write `solve()`, without
arguments, which computes the answer and returns it as a number, a text or a list: it is run, and
what it returns is the answer. Use the standard library only; read no input and print nothing.

{instruction}

Problem:
{problem}

Analysis so far:
{solution}

Mind this:
{feedback}""",
            outputs=("solution", "code"),
            optional=("solution", "feedback"),
            aliases=("Code", "Python", "ProgramOfThought", "PoT"),
            calls=(1, 3),
            tokens=220,
            run=write_program,
        ),
        Operator(
            name="Test",
            summary="Run the public tests of the problem on the program; while one fails, repair "
            "it, three times at most.",
            prompt="""\
This program fails one of its tests. Work out by hand what it does with that input,
say in one sentence why that is wrong, and write the whole program anew in one ```python block,
under the same name. Do not write the test's result into it: other inputs are tried as well.

{instruction}

Problem:
{problem}

Program:
{code}

Failure:
{feedback}""",
            outputs=("solution", "code", "verdict", "feedback"),
            inputs=("solution", "code"),
            optional=("feedback",),
            kinds=("code",),
            calls=(0, 3),
            tokens=220,
            run=run_tests,
        ),
        Operator(
            name="Format",
            summary="Reduce the solution to the bare answer, in as few words as possible.",
            prompt="""\
Reduce this solution to its final answer: the value, name or program alone, without
a sentence around it, and without changing it.

{instruction}

Problem:
{problem}

Solution:
{solution}""",
            inputs=("solution",),
            keeps=("code",),
            tokens=20,
        ),
        Operator(
            name="Review",
            summary="Judge whether the solution is right, and report what is wrong; the solution "
            "stays as it is.",
            prompt="""\
Check this solution. Work through it step by step against the problem. It is wrong
only if you can name the step that is, or a question that it does not answer.

{instruction}

Problem:
{problem}

Solution:
{solution}

Begin with one line, `Verdict: right` or `Verdict: wrong`. If it is wrong, then say where and why
in a few sentences; do not write a new solution.""",
            outputs=("verdict", "feedback"),
            inputs=("solution",),
            aliases=("Critique", "Check"),
            tokens=100,
        ),
        Operator(
            name="Revise",
            summary="Rewrite the solution to correct what the last check found wrong.",
            prompt="""\
Write this solution anew so that it answers the review. Keep what is right, and do
not follow the review where it errs.

{instruction}

Problem:
{problem}

Solution:
{solution}

Review:
{feedback}

{form}""",
            inputs=("solution",),
            optional=("feedback",),
            keeps=("code",),
            aliases=("Refine", "Fix"),
            tokens=180,
        ),
        Operator(
            name="ScEnsemble",
            summary="Take the answer that most candidates give; the model is asked only in a tie.",
            prompt="""Several people answered this problem, and each of these answers was given
equally often. Which is right? Reply with its letter alone.

{instruction}

Problem:
{problem}

{candidates}""",
            inputs=("candidates",),
            keeps=("code",),
            aliases=("SelfConsistency", "Vote", "ScEnsamble"),
            calls=(0, 1),
            tokens=10,
            run=count_answers,
        ),
        Operator(
            name="MdEnsemble",
            summary="Take the candidate that wins most of five votes of the model.",
            prompt="""Which of these solutions to the problem is the best? Judge whether the result
is right before you judge how it is written. Reply with its letter alone.

{instruction}

Problem:
{problem}

{candidates}""",
            inputs=("candidates",),
            keeps=("code",),
            aliases=("MajorityVote", "MedEnsemble"),
            calls=(5, 5),
            tokens=10,
            run=vote,
        ),
    )
)
"""AFlow's ten operators."""
