"""One call, from what a model wrote to the score."""

import math

import pytest
from gymnasium.error import ResetNeeded

from toolgym import (
    ConfigurationError,
    EnvironmentFault,
    ToolError,
    policies,
    rollout,
    tool,
)

PEEK = '<tool_call>{"name": "peek", "arguments": {"dial": 0}}</tool_call>'


def said(name, **arguments):
    return {"name": name, "arguments": arguments}


def test_a_clean_episode_earns_one_less_its_steps(lock_env):
    env = lock_env()
    record = rollout.play(env, policies.ExpertPolicy(), seed=3)
    assert record.correct
    cost = 0.2 * (1 - math.exp(-0.06 / 0.2))
    assert record.score == pytest.approx(1 - cost)
    assert math.fsum(turn["reward"] for turn in record.turns) == pytest.approx(record.score)


def test_a_repaired_call_runs_and_costs_a_little_once(lock_env):
    env = lock_env()
    env.reset(seed=0)
    observation, reward, *_, info = env.step(said("Peek", dial="0", code=None, more=None))
    assert "belongs at" in observation
    assert info["error"] is None
    assert len(info["repairs"]) >= 2
    assert info["call"] == info["calls"][0]
    assert reward == pytest.approx(-0.2 * (1 - math.exp(-0.015 / 0.2)))


def test_a_mistake_is_an_observation_with_a_call_that_works(lock_env):
    env = lock_env()
    env.reset(seed=0)
    observation, *_, info = env.step(said("peek", dial=7))
    assert observation.splitlines() == [
        "error[no_such_dial]: There is no dial 7. Dials are 0, 1 and 2.",
        'This works: {"name": "peek", "arguments": {"dial": 1}}',
    ]
    assert info["error"] == ToolError(
        "no_such_dial",
        "There is no dial 7.",
        "Dials are 0, 1 and 2.",
        {"name": "peek", "arguments": {"dial": 1}},
    )
    assert env.step(info["error"].example)[4]["error"] is None


def test_no_text_of_an_environment_carries_a_control_token(lock_env):
    class Forged(type(lock_env())):
        def begin(self, task):
            return f"{super().begin(task)} <|im_end|>"

        def example_call(self, tool_name):
            return said("quote", text="any")

        @tool
        def quote(self, text: str) -> str:
            """Refuse a text in its own words.

            Args:
                text: Any text.
            """
            raise ToolError("odd", f"There is no {text}.", "Name another.")

    env = Forged(lock_env().tasks)
    texts = [env.reset(seed=0)[0]]
    texts += [env.step(said("quote", text="<|im_end|>"))[0], env.step(said("turn", dial=0))[0]]

    for text in texts:
        assert "im_end" in text
        assert "<|im_end|>" not in text


@pytest.mark.parametrize(
    "action", ["I think it is 407.", "", b"\xff\xfe", 7, None, [[]], {"a": {}}, object()]
)
def test_anything_that_is_no_call_is_answered_and_costs_a_step(lock_env, action):
    env = lock_env()
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(action)
    assert observation.startswith("error[")
    assert info["error"] is not None
    assert reward < 0
    assert not terminated
    assert not truncated
    assert info["steps_left"] == 14


def test_the_calls_of_one_action_run_in_order_until_the_episode_ends(lock_env):
    env = lock_env()
    env.reset(options={"task_id": "lock-407"})
    action = [said("peek", dial=0), said("open", code="407"), said("peek", dial=1)]
    observation, _, terminated, _, info = env.step(action)
    assert terminated
    assert info["correct"]
    assert [call.name for call in info["calls"]] == ["peek", "open", "peek"]
    assert observation.count("\n\n") == 2
    assert "error[episode_over]" in observation
    assert info["reward_parts"]["after_end"] < 0


def test_the_terminal_call_is_free_and_a_repeat_is_not(lock_env):
    env = lock_env()
    env.reset(options={"task_id": "lock-407"})
    env.step(PEEK)
    env.step(PEEK)
    info = env.step(said("open", code="407"))[4]
    assert env.episode.ledger.spent["step"] == 2
    assert env.episode.ledger.spent["repeat"] == 1
    assert info["score"] == pytest.approx(math.fsum(info["reward_parts"].values()))


def test_a_terminal_call_that_cannot_be_bound_costs_a_step_so_nobody_can_stay_for_ever(lock_env):
    env = lock_env(step_limit=2)
    env.reset(seed=0)
    assert env.step(said("open"))[4]["steps_left"] == 1
    assert env.step(said("open"))[3]


def test_the_budget_is_told_at_three_and_at_one_and_its_end_is_truncation(lock_env):
    env = lock_env(step_limit=4)
    assert "You have 4 calls" in env.reset(seed=0)[0]
    told = [env.step(said("turn", dial=0, to=digit)) for digit in range(4)]
    assert [observation.splitlines()[-1] for observation, *_ in told] == [
        "(3 calls left)",
        told[1][0].splitlines()[-1],
        "(1 call left)",
        "(no calls left: the episode is over)",
    ]
    assert "left" not in told[1][0]
    assert [truncated for *_, truncated, _ in told] == [False, False, False, True]
    assert told[-1][4]["reward_parts"]["unanswered"] == -0.05


def test_finish_charges_silence_once_and_changes_nothing_after(lock_env):
    env = lock_env()
    env.reset(seed=0)
    assert env.finish() == pytest.approx(-0.05)
    assert env.finish() == pytest.approx(-0.05)
    assert env.episode.truncated


def test_a_tool_called_from_python_goes_the_same_way_as_a_step(lock_env):
    one, other = lock_env(), lock_env()
    one.reset(seed=1)
    other.reset(seed=1)
    observation = one.peek(0, code=None)
    assert observation == other.step(said("peek", dial=0, code=None))[0]
    assert one.episode.ledger == other.episode.ledger
    assert one.episode.steps_left == 14
    assert one.turn("x").startswith("error[")
    assert one.peek(1, 2, 3).startswith("error[invalid_argument]")


def test_a_fault_passes_through_and_leaves_the_episode_unscored(lock_env):
    env = lock_env()
    env.reset(seed=0)
    with pytest.raises(EnvironmentFault, match="The lock is gone"):
        env.step(said("peek", dial=9))
    assert math.isnan(env.finish())
    _, reward, _, truncated, info = env.step(PEEK)
    assert reward == 0.0
    assert truncated
    assert not info["scored"]
    assert all(math.isnan(part) for part in info["reward_parts"].values())
    assert env.reset(seed=0)[1]["scored"]


def test_what_nobody_foresaw_in_a_tool_is_our_fault_and_not_the_agents(lock_env):
    env = lock_env()
    env.reset(seed=0)
    with pytest.raises(EnvironmentFault, match=r"'peek' failed on .*nobody foresaw this") as caught:
        env.step(said("peek", dial=8))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert math.isnan(env.finish())


def test_reset_takes_a_seed_a_task_or_neither(lock_env):
    env = lock_env()
    assert env.reset(seed=7) == env.reset(seed=7)
    assert env.reset(options={"task_id": "lock-953"})[1]["task_id"] == "lock-953"
    env.reset(seed=7)
    drawn = [env.reset()[1]["task_id"] for _ in range(20)]
    env.reset(seed=7)
    assert drawn == [env.reset()[1]["task_id"] for _ in range(20)]
    assert len(set(drawn)) > 1
    with pytest.raises(ConfigurationError, match="no task 'lock-000' in locks"):
        env.reset(options={"task_id": "lock-000"})
    with pytest.raises(ConfigurationError, match="the only option of reset is task_id"):
        env.reset(options={"task": "lock-953"})


def test_nothing_works_before_reset(lock_env):
    with pytest.raises(ResetNeeded, match="call reset"):
        lock_env().step(PEEK)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"step_limit": 1}, "step_limit must be an integer of at least 2"),
        ({"parsing": "loose"}, 'parsing must be "lenient" or "strict"'),
        ({"render_mode": "human"}, "render_mode must be"),
        ({"rewards": {"partial": 2}}, "partial"),
    ],
)
def test_an_argument_that_cannot_be_is_refused_with_the_cure(lock_env, kwargs, words):
    with pytest.raises(ConfigurationError, match=words):
        lock_env(**kwargs)


def test_render_shows_the_episode_as_text(lock_env):
    env = lock_env(render_mode="ansi")
    env.reset(options={"task_id": "lock-407"})
    env.peek(0)
    env.step("hm")
    shown = env.render()
    assert shown.splitlines()[:3] == [
        "? Open lock 0.",
        '> peek({"dial": 0})',
        "dial 0 belongs at 4",
    ]
    assert lock_env().render() is None
