"""A workflow that fails says so with a code, and never in the words of an answer."""

from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym import Budget, execute, grade, load_tasks, parse, score
from aflowgym.answers import Outcome
from aflowgym.backends import PRESETS, ScriptedBackend, SimulatedBackend
from aflowgym.dsl.nodes import DONE, Cond, ListOf, Op, Seq
from aflowgym.operators.trace import RUN_CODES
from tests.aflowgym.dsl.test_properties import TREES

TRAIN = load_tasks("bundled", "train")
MATH = next(task for task in TRAIN if task.kind == "math")
FENCE = "```python\ndef solve():\n    return 12\n```"
REPLIES = {
    "Custom": ["Answer: 1", "Answer: 2", "Answer: 3"],
    "AnswerGenerate": ["Answer: 12"],
    "Programmer": [FENCE],
    "Review": ["Verdict: right"],
    "Revise": ["Answer: 13"],
    "ScEnsemble": ["A"],
    "MdEnsemble": ["A"],
    "Format": ["12"],
}


def ran(workflow, task=MATH, outcome=None, budget=None, **replies):
    backend = ScriptedBackend({**REPLIES, **replies}, lambda job: [outcome or Outcome("12")])
    tree = parse(workflow, kind=task.kind).workflow if isinstance(workflow, str) else workflow
    return execute(tree, task, backend, budget=budget or Budget())


def ops(*names):
    return Seq(tuple(Op(name) for name in names))


FAILS = [
    ("Custom -> Review", {"Review": ["It looks fine to me."]}, "E-REPLY", "1"),
    ("Custom -> AnswerGenerate", {"AnswerGenerate": [" \n"]}, "E-REPLY-EMPTY", "1"),
    ("[Custom, Custom] -> ScEnsemble", {"ScEnsemble": ["the first"]}, "E-REPLY", "1"),
    ("[Custom, Custom] -> MdEnsemble", {"MdEnsemble": ["none of them"]}, "E-REPLY", "1"),
    ("Programmer", {"Programmer": ["I cannot program."]}, "E-PROGRAM", "0"),
    ("CustomCodeGenerate", {"CustomCodeGenerate": ["return 12"]}, "E-PROGRAM", "0"),
    ("Custom -> Review ? Revise : Format", {"Format": [""]}, "E-REPLY-EMPTY", "1.y"),
    ("Custom -> (Review -> Revise) * 2", {"Review": ["?"]}, "E-REPLY", "1.r.0"),
]


def test_an_operator_that_fails_ends_the_run_with_its_code_and_place():
    for text, replies, code, path in FAILS:
        result = ran(text, **replies)

        assert (result.failure.code, result.failure.path) == (code, path), text
        assert result.failure in [step.failure for step in result.trace.walk()], text
        assert result.solution == ("Answer: 1" if text.startswith("Custom ->") else None), text


def test_a_failure_is_wrong_whatever_number_stands_in_it():
    """The original took `WORKFLOW_ERROR: ... line 12` for the answer 12."""
    result = ran("Programmer", outcome=Outcome(error="line 12"))

    assert "line 12" in str(result.failure)
    assert grade(MATH, result.solution).correct is False
    assert score.progress(None) < score.progress(grade(MATH, "Answer: 11"))


def test_a_failed_branch_is_left_out_with_a_warning():
    result = ran("[Custom, Programmer, Custom] -> MdEnsemble", outcome=Outcome(error="TypeError"))
    (warning,) = result.warnings

    assert result.ok
    assert (warning.code, warning.path) == ("W-BRANCH-FAIL", "0.b1")
    assert "E-PROGRAM" in warning.message
    assert result.usage.calls == 2 + 3 + 5
    assert "warning[W-BRANCH-FAIL] at step 0.b1" in str(result.trace)


def test_a_list_of_failures_is_a_failure():
    result = ran("[Programmer, Programmer] -> ScEnsemble", outcome=Outcome(error="TypeError"))

    assert result.failure.code == "E-ALL-BRANCHES"
    assert len(result.warnings) == 2


ILL_TYPED = [
    (Op("Review"), "E-STATE"),
    (ops("Custom", "ScEnsemble"), "E-STATE"),
    (ops("Programmer", "Test"), "E-STATE"),
    (ListOf((Op("Custom"), Op("Custom"))), "E-STATE"),
    (Seq((ListOf((Op("Custom"), Op("Custom"))), Op("Review"))), "E-STATE"),
    (Seq((ListOf((ListOf((Op("Custom"),)),)), Op("ScEnsemble"))), "E-ALL-BRANCHES"),
    (Cond(Op("Custom"), Op("Revise"), DONE), "E-STATE"),
    (Seq(()), "E-STATE"),
]


def test_a_tree_that_no_check_has_seen_does_not_run_on_wrong_types():
    """A string is no list of candidates, a list no solution, a review nothing without one."""
    for tree, code in ILL_TYPED:
        result = ran(tree)

        assert result.failure.code == code, tree


BUDGETS = [
    ("Custom -> Custom -> Custom", Budget(calls=2), "E-CALLS", 2),
    ("Custom -> (Review -> Revise) * 3", Budget(calls=1), "E-CALLS", 1),
    ("[Custom, Custom] -> MdEnsemble", Budget(calls=6), "E-CALLS", 2),
    ("Programmer", Budget(calls=0), "E-CALLS", 0),
    ("Custom -> Custom -> Custom", Budget(tokens=200), "E-TOKENS", 2),
]


def test_what_is_over_the_budget_fails():
    for text, budget, code, made in BUDGETS:
        result = ran(text, budget=budget)

        assert (result.failure.code, result.usage.calls) == (code, made), text


def test_branches_share_what_is_left_and_give_back_what_they_do_not_use():
    """At most 3 + 1 + 3 calls: each has its due, and the votes have what is not used."""
    text = "[Programmer, Custom, Programmer] -> MdEnsemble"

    assert ran(text, budget=Budget(calls=8)).usage.calls == 8
    assert ran(text, budget=Budget(calls=7)).failure.code == "E-CALLS"


def test_too_little_for_all_branches_fails_the_same_ones_every_time():
    text = "[Custom, Custom, Custom] -> ScEnsemble"
    result = ran(text, budget=Budget(calls=2), Custom=["Answer: 1"])

    assert [warning.path for warning in result.warnings] == ["0.b0"]
    assert result.solution == "Answer: 1"


BACKENDS = [SimulatedBackend(preset) for preset in PRESETS]


@settings(max_examples=100)
@given(
    TREES,
    st.sampled_from(TRAIN),
    st.sampled_from(BACKENDS),
    st.builds(Budget, st.integers(1, 20), st.sampled_from([800, 10**6])),
)
def test_a_run_has_a_solution_or_a_failure_and_stays_within_its_budget(tree, task, backend, budget):
    """Trees of all shapes, most of which no check would let pass, on tasks of every kind."""
    result = execute(tree, task, backend, budget=budget)

    assert result.ok == (result.solution is not None)
    assert result.ok or result.failure is not None
    assert result.usage.calls <= budget.calls
    for step in result.trace.walk():
        assert step.failure is None or step.failure.code in RUN_CODES
        assert not [code for code in RUN_CODES if code in str(step.outputs)]
