"""`operators=`: operators of the user's own, and some of AFlow's, in both environments."""

import pickle

import pytest

from aflowgym.backends import ScriptedBackend
from aflowgym.operators import Operator
from toolgym import ConfigurationError, policies, registration, rollout
from toolgym.errors import EnvironmentFault
from toolgym.messages import system_prompt

COMPOSE, OPERATE = ENV_IDS = ["aflowgym/Compose-v0", "aflowgym/Operate-v0"]


def solve_parts(context):
    """Ask for the parts, then for the solution."""
    context.ask()
    return {"solution": context.ask()}


DECOMPOSE = Operator(
    "Decompose",
    "Split the problem into parts, and solve them.",
    prompt="Solve the parts of {problem}",
    calls=(2, 2),
    run=solve_parts,
)
SHORTEN = Operator(
    "Shorten", "Shorten the solution.", prompt="Shorten {solution}", inputs=("solution",)
)
FOLLOW = Operator("Follow", "Follow the report.", prompt="{feedback}", inputs=("feedback",))
OWN = ["Custom", "Review", DECOMPOSE, SHORTEN, FOLLOW]


def reply(request):
    return "Answer: 12" if request.operator.name == "Decompose" else "Answer: 12 dollars"


def made(env_id, **options):
    options |= {"kind": "math", "backend": ScriptedBackend(reply), "operators": OWN}
    env = registration.make(env_id, **options)
    env.reset(seed=0, options={"task_id": "math-change-1"})
    return env


def test_compose_lists_reads_and_runs_them():
    env = made(COMPOSE)
    description = env.tools["run_workflow"].description
    assert "- Decompose (2): Split the problem into parts, and solve them." in description
    assert "Programmer" not in description
    assert description.splitlines()[-1] in system_prompt(made(COMPOSE, one_shot=True))
    env.step("Decompose -> Shorten")
    assert env.episode.ledger.spent["step"] == 1 + 3
    *_, info = env.step({"name": "run_workflow", "arguments": {"dsl": "Programmer"}})
    assert info["error"].message.startswith("E-OP-UNKNOWN")
    assert env.step(info["error"].example)[4]["error"] is None


def test_operate_has_a_tool_for_each():
    env = made(OPERATE)
    assert list(env.tools) == ["custom", "review", "decompose", "shorten", "follow", "answer"]
    for name, code in (("shorten", "needs_solution"), ("follow", "needs_feedback")):
        *_, info = env.step({"name": name})
        assert info["error"].code == code
        assert env.step(info["error"].example)[4]["error"] is None
    assert "Solution:\nAnswer: 12" in env.decompose()
    assert env.episode.ledger.spent["step"] == 5 + 2 + 2
    env.answer()
    assert env.outcome.correct


@pytest.mark.parametrize("env_id", ENV_IDS)
@pytest.mark.parametrize("policy", [policies.ExpertPolicy(), policies.RandomPolicy()])
def test_every_player_and_the_second_rule_know_them(env_id, policy):
    env = made(env_id)
    for seed in range(10):
        record = rollout.play(env, policy, seed=seed)
        assert record.scored
        verdict = env.family.recheck(env, env.task, record.to_json()["turns"])
        assert verdict in (record.correct, None)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_they_are_pickled_with_the_environment_and_belong_to_it_alone(env_id):
    env = made(env_id)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.tools.keys() == env.tools.keys()
    assert [*copy.operators] == ["Custom", "Review", "Decompose", "Shorten", "Follow"]
    assert "Decompose" not in registration.make(env_id).operators


@pytest.mark.parametrize(
    ("operators", "problem"),
    [
        (["Review"], "none of them makes a solution from the problem alone"),
        (["Custom", "Custm"], "Custm"),
        ([Operator("Answer", "Answer.", prompt="{problem}")], "would be answer"),
    ],
)
def test_operators_that_cannot_be_used_are_refused(operators, problem):
    with pytest.raises(ConfigurationError, match=problem):
        registration.make(OPERATE, operators=operators)


def test_the_error_of_an_operator_that_breaks_its_contract_is_not_reported_as_one_of_this_package():
    broken = Operator("Broken", "Answer.", prompt="{problem}", run=lambda context: None)
    env = registration.make(COMPOSE, kind="math", operators=[broken])
    env.reset(seed=0)
    with pytest.raises(EnvironmentFault, match=r"operator Broken must return.*Correct what it"):
        env.step("Broken")
