"""A user's operators in a run: a prompt, or a function with a contract."""

from collections import Counter

import pytest

from aflowgym import execute, load_tasks, parse
from aflowgym.backends import ScriptedBackend
from aflowgym.operators import OPERATORS, Operator
from toolgym.errors import ConfigurationError, EnvironmentFault, ToolError

MATH = next(task for task in load_tasks("bundled", "train") if task.kind == "math")


def vote(context):
    """The most frequent of three replies, asked at the same time."""
    replies = context.ask_each([{}] * 3)
    return {"solution": Counter(replies).most_common(1)[0][0]}


DECOMPOSE = Operator("Decompose", "List the steps of the problem.", "List the steps:\n\n{problem}")
VOTE3 = Operator(
    "Vote3",
    "Answer three times, and take the most frequent answer.",
    "Solve:\n{problem}\n\nSteps:\n{solution}",
    optional=("solution",),
    calls=(3, 3),
    run=vote,
)


def ran(workflow, *own, **replies):
    operators = OPERATORS.of([*OPERATORS.values(), *own])
    backend = ScriptedBackend({"Custom": ["Answer: 1"], **replies})
    parsed = parse(workflow, kind="math", operators=operators)
    return execute(parsed.workflow, MATH, backend, operators=operators), backend


def test_a_workflow_runs_operators_of_a_user():
    replies = {"Decompose": ["1. Add."], "Vote3": ["Answer: 2", "Answer: 12", "Answer: 12"]}
    result, backend = ran("Decompose -> Vote3", DECOMPOSE, VOTE3, **replies)

    assert (result.solution, result.usage.calls) == ("Answer: 12", 4)
    assert MATH.question in backend.requests[0].prompt
    assert "1. Add." in backend.requests[1].prompt
    assert [request.number for request in backend.requests] == [0, 0, 1, 2]


def test_a_reply_is_read_by_the_outputs_of_the_operator():
    check = Operator(
        "Look", "Judge it.", "{problem}\n{solution}", ("solution",), outputs=("verdict", "feedback")
    )
    result, _ = ran("Custom -> Look", check, Look=["Verdict: wrong\nThe sum is off."])
    unread, _ = ran("Custom -> Look", check, Look=["It may be."])

    assert (result.verdict, result.trace.children[1].outputs["feedback"]) == (
        False,
        "The sum is off.",
    )
    assert (unread.failure.code, unread.solution) == ("E-REPLY", "Answer: 1")


def operator_of(run, **changes):
    given = {"inputs": ("solution",), "calls": (0, 1), "run": run}
    return Operator("Own", "Do it.", **{**given, **changes})


def test_a_function_that_cannot_go_on_leaves_the_solution_before_it():
    result, _ = ran("Custom -> Own", operator_of(lambda context: context.fail("no luck.")))

    assert (result.failure.code, result.failure.path) == ("E-OPERATOR", "1")
    assert result.solution == "Answer: 1"


def broken(error):
    def run(context):
        raise error

    return run


@pytest.mark.parametrize(
    "run",
    [
        lambda context: None,
        lambda context: {},
        lambda context: {"answer": "12"},
        lambda context: {"solution": "12", "verdict": True},
        lambda context: {"solution": 12},
        broken(KeyError("x")),
        broken(ToolError("made_up", "It is right.")),
        lambda context: context.ask(),
        lambda context: context.warn("", "It may be off.") or {"solution": "12"},
    ],
)
def test_a_function_that_breaks_its_contract_is_an_error_of_the_caller(run):
    with pytest.raises(ConfigurationError, match=r"Own|warning"):
        ran("Custom -> Own", operator_of(run), Own=["12"])


def test_a_fault_of_the_machine_passes_through_a_function():
    with pytest.raises(EnvironmentFault, match="down"):
        ran("Custom -> Own", operator_of(broken(EnvironmentFault("down"))))
