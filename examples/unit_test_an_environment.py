"""Unit-test an environment without a model or a trainer.

The tools of an environment are methods, a fixed list of actions is a policy, and `check_tool_env`
tests everything that the trainers and commands expect. Run it as a script or with pytest:

    python examples/unit_test_an_environment.py
    pytest examples/unit_test_an_environment.py
"""
# ruff: noqa: D103 - the name of a test describes it

import gymnasium as gym

from toolgym import ToolEnv, policies, rollout
from toolgym.registration import load_environments
from toolgym.testing import check_tool_env

ENV_ID = "sqlgym/Explore-v0"
load_environments()


def opened(seed: int = 0) -> ToolEnv:
    """Return an unwrapped environment in a new episode."""
    env = gym.make(ENV_ID).unwrapped
    env.reset(seed=seed)
    return env


def first_table(env: ToolEnv) -> str:
    """Return a table of this episode's database, from the tool's example call."""
    return env.example_call("describe")["arguments"]["table_name"]


def test_a_tool_can_be_called_as_a_method():
    env = opened()

    text = env.describe(first_table(env))

    assert first_table(env) in text
    assert env.episode.steps_left == env.step_limit - 1


def test_an_extra_null_is_repaired_and_changes_nothing():
    clean, padded = opened(), opened()

    assert padded.describe(first_table(padded), sql=None) == clean.describe(first_table(clean))
    assert padded.episode.turns[0].calls[0].repairs == ("dropped_null",)


def test_a_wrong_table_is_answered_with_a_call_that_works():
    env = opened()

    observation, reward, *_, info = env.step({"name": "describe", "arguments": {"table_name": "x"}})

    assert info["error"].code == "unknown_table"
    assert reward < 0
    assert env.step(info["error"].example)[4]["error"] is None
    assert "This works" in observation


def test_the_expert_scores_more_than_a_guess():
    expert = rollout.play(ENV_ID, policies.ExpertPolicy(), seed=7)
    guess = rollout.play(ENV_ID, policies.ScriptedPolicy(["answer('no idea')"]), seed=7)

    assert expert.correct
    assert not guess.correct
    assert expert.score - guess.score >= 0.3  # guaranteed between correct and incorrect episodes


def test_the_environment_passes_check_tool_env():
    check_tool_env(ENV_ID, seeds=1)


if __name__ == "__main__":
    tests = [thing for name, thing in sorted(globals().items()) if name.startswith("test_")]
    for test in tests:
        test()
        print(f"passed: {test.__name__.removeprefix('test_').replace('_', ' ')}")
