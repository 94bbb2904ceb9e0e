"""`aflowgym/Operate-v0`: operators as tools over one state, and the errors of a state."""

import pytest

import aflowgym
from aflowgym.backends import ScriptedBackend, SimulatedBackend
from aflowgym.envs.base import solution_in
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
            name, copies = each if isinstance(each, tuple) else (each, None)
            env.step(call(name, copies=copies) if copies else call(name))
        workflow = aflowgym.parse(dsl).workflow
        result = aflowgym.execute(workflow, env.task, SimulatedBackend(), seed=seed)
        assert env.interpreter.context.solution == result.solution
        *_, info = env.step(call("answer"))
        assert info["correct"] == aflowgym.grade(env.task, result.solution, env.sandbox).correct
        assert env.episode.ledger.spent["step"] == len(calls) + result.usage.calls


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


def test_candidates_are_no_answer_until_one_is_chosen():
    env = made(kind="math")
    env.step(call("programmer"))
    observation, *_ = env.step(call("programmer", copies=3))
    assert "Candidates:\nA: " in observation
    assert solution_in(observation) is None
    observation, *_ = env.step(call("answer"))
    assert "no solution to submit" in observation
    assert not env.episode.ledger.correct


def test_an_operator_that_fails_leaves_the_state_as_it_was():
    replies = {"Custom": ["Answer: 1"], "Review": ["?"], "Revise": [""]}
    env = made(kind="math", backend=ScriptedBackend(replies))
    env.step(call("custom"))
    for name, code in (("review", "E-REPLY"), ("revise", "E-REPLY-EMPTY")):
        observation, *_, info = env.step(call(name))
        assert f"left nothing. error[{code}]" in observation
        assert info["error"] is None
        assert env.interpreter.context.solution == "Answer: 1"
    assert env.episode.ledger.spent["step"] == 3 + 3


def test_a_random_policy_runs_operators():
    """It once drew `copies` from the words of the question, so that nothing ever ran."""
    found = rollout.evaluate(OPERATE, policies.RandomPolicy(), n=60, dataset="bundled", split="dev")
    assert found.validity > 0.5
    ran = [each for each in found.records if "Solution:" in str(each.to_json()["turns"])]
    assert len(ran) > 20


@pytest.mark.parametrize(
    ("code", "kind", "before", "name"),
    [
        ("needs_solution", "math", [], "review"),
        ("needs_list", "qa", ["custom"], "sc_ensemble"),
        ("open_list", "math", [call("custom", copies=2)], "format"),
        ("wrong_kind", "qa", ["custom"], "test"),
    ],
)
def test_an_operator_without_its_inputs_is_not_called_and_a_call_that_works_is_shown(
    code, kind, before, name
):
    env = made(kind=kind)
    for each in before:
        env.step(call(each) if isinstance(each, str) else each)
    steps = env.episode.ledger.spent["step"]
    *_, info = env.step(call(name))
    assert info["error"].code == code
    assert env.episode.ledger.spent["step"] == steps + 1
    *_, info = env.step(info["error"].example)
    assert info["error"] is None


def test_a_state_without_a_program_asks_for_one():
    """The simulated operators write programs for code tasks, so it is taken away."""
    env = made(kind="code")
    env.step(call("custom"))
    env.interpreter.context.code = None
    *_, info = env.step(call("test"))
    assert (info["error"].code, info["error"].example) == (
        "needs_code",
        call("custom_code_generate"),
    )
