"""`aflowgym/Operate-v0`: operators as tools over one state, and the errors of a state."""

from dataclasses import replace

import pytest

import aflowgym
from aflowgym.backends import PRESETS, SimulatedBackend
from aflowgym.envs.base import solution_in
from aflowgym.execution.errors import WORKFLOW_ERRORS, not_ready
from aflowgym.operators.aflow import OPERATORS
from toolgym import policies, registration, rollout

OPERATE = "aflowgym/Operate-v0"


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def made(**options):
    env = registration.make(OPERATE, **options)
    env.reset(seed=1)
    return env


def test_every_operator_is_a_tool_with_the_words_of_its_declaration():
    env = made()
    assert list(env.tools) == [*(each.tool for each in OPERATORS.values()), "answer"]
    for operator in OPERATORS.values():
        spec = env.tools[operator.tool]
        assert spec.description.startswith(operator.summary)
        assert ("copies" in spec.arguments.model_fields) == (not operator.inputs)


@pytest.mark.parametrize(
    ("dsl", "calls"),
    [
        ("Custom -> Review -> Revise -> Format", ["custom", "review", "revise", "format"]),
        ("[Programmer * 5] -> ScEnsemble", [("programmer", 5), "sc_ensemble"]),
        ("[Custom * 3] -> MdEnsemble -> Custom", [("custom", 3), "md_ensemble", "custom"]),
        ("CustomCodeGenerate -> Test -> Test", ["custom_code_generate", "test", "test"]),
    ],
)
def test_calls_in_a_row_leave_what_the_workflow_leaves(dsl, calls):
    env = registration.make(OPERATE, kind="code" if "Test" in dsl else None)
    for seed in range(15):
        env.reset(seed=seed)
        for each in calls:
            name, copies = each if isinstance(each, tuple) else (each, 1)
            env.step(call(name, copies=copies) if copies > 1 else call(name))
        workflow = aflowgym.parse(dsl).workflow
        result = aflowgym.execute(workflow, env.task, SimulatedBackend(), seed=seed)
        assert env.interpreter.context.solution == result.solution
        *_, info = env.step(call("answer"))
        right = aflowgym.grade(env.task, result.solution, env.sandbox).correct
        assert info["correct"] == right
        assert env.episode.ledger.spent["step"] == len(calls) + result.usage.calls


PROVOKED = {
    "needs_solution": ("math", [], "review"),
    "needs_code": ("code", ["answer_generate"], "test"),
    "needs_list": ("qa", ["custom"], "sc_ensemble"),
    "open_list": ("math", [call("custom", copies=2)], "format"),
    "wrong_kind": ("qa", ["custom"], "test"),
}


@pytest.mark.parametrize("code", PROVOKED)
def test_an_operator_without_what_it_needs_tells_a_call_that_works(code):
    kind, before, name = PROVOKED[code]
    if code == "needs_code":
        # The simulated operators write programs for code tasks; this state has none.
        env = made(kind=kind)
        env.step(call("custom"))
        env.interpreter.context.code = None
        refused = not_ready(OPERATORS["Test"], env.interpreter.context, OPERATORS)
        assert (refused.code, refused.example) == (code, call("custom_code_generate"))
        return
    env = made(kind=kind)
    for each in before:
        env.step(call(each) if isinstance(each, str) else each)
    steps = env.episode.ledger.spent["step"]
    *_, info = env.step(call(name))
    assert info["error"].code == code
    assert env.episode.ledger.spent["step"] == steps + 1  # no operator was called
    *_, info = env.step(info["error"].example)
    assert info["error"] is None


def test_a_program_of_a_task_without_public_tests_goes_on_as_it_is_and_the_agent_is_told():
    tests = ["assert one() == 1"]
    row = {"kind": "code", "question": "Write one().", "entry_point": "one", "tests": tests}
    env = made(kind="code", dataset=[row])
    before, *_ = env.step(call("custom_code_generate"))
    after, *_, info = env.step(call("test"))

    assert info["error"] is None
    assert "There are no public tests, so none ran" in after
    assert "Verdict" not in after
    assert solution_in(after) == solution_in(before)


def test_every_code_of_the_states_errors_is_documented_and_provoked():
    own = {"needs_verdict", "needs_feedback"}  # none of AFlow's operators has such an input
    others = {"invalid_workflow", "instruction_refused"}
    assert set(PROVOKED) == set(WORKFLOW_ERRORS) - own - others


def test_candidates_are_no_answer_until_one_is_chosen():
    env = made(kind="math")
    env.step(call("programmer"))
    observation, *_ = env.step(call("programmer", copies=3))
    assert "Candidates:\nA: " in observation
    assert solution_in(observation) is None
    observation, *_ = env.step(call("answer"))
    assert "no solution to submit" in observation
    assert not env.episode.ledger.correct


@pytest.mark.parametrize("copies", [0, 6, "many"])
def test_copies_out_of_range_are_an_invalid_argument(copies):
    *_, info = made().step(call("custom", copies=copies))
    assert info["error"].code == "invalid_argument"


def test_an_operator_that_fails_leaves_the_state_as_it_was():
    teaching = PRESETS["teaching"]
    breaking = replace(teaching, name="breaking", math=replace(teaching.math, breaks=1.0))
    env = registration.make(OPERATE, kind="math", backend=SimulatedBackend(breaking))
    for seed in range(20):
        env.reset(seed=seed)
        before = solution_in(env.step(call("custom"))[0])
        observation, *_, info = env.step(call("programmer"))
        assert "left nothing. error[E-PROGRAM]" in observation
        assert info["error"] is None
        assert env.interpreter.context.solution == before
        assert env.episode.ledger.spent["step"] == 2 + 1 + 3


def test_the_operators_of_an_episode_share_the_calls_of_one_run():
    env = made(kind="math", step_limit=40)
    for _ in range(6):
        env.step(call("custom", copies=5))
        env.step(call("sc_ensemble"))
    left = env.interpreter.context.calls
    for _ in range(left):
        env.step(call("custom"))
    observation, *_, info = env.step(call("custom"))
    assert env.interpreter.context.calls == 0
    assert "Custom left nothing. error[E-CALLS]" in observation
    assert info["error"] is None


def test_a_random_policy_runs_operators():
    """It once drew `copies` from the words of the question, so that nothing ever ran."""
    found = rollout.evaluate(OPERATE, policies.RandomPolicy(), n=60, dataset="bundled", split="dev")
    assert found.validity > 0.5
    ran = [each for each in found.records if "Solution:" in str(each.to_json()["turns"])]
    assert len(ran) > 20
