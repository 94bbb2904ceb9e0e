"""One contract over every registered environment, and the vectors that are made of them."""

import random
from types import UnionType
from typing import get_origin, get_type_hints

import gymnasium as gym
import numpy as np
import pytest

import toolgym
from toolgym import ConfigurationError
from toolgym.episode import Info
from toolgym.testing import ContractBroken, check_tool_env

LUCKY = ["aflowgym/Compose-v0", "aflowgym/Operate-v0"]  # their operators succeed by chance
ENV_IDS = [*LUCKY, "sqlgym/Explore-v0", "sqlgym/TextToSQL-v0"]
OPTIONS = {"sqlgym/TextToSQL-v0": {"match": "sound"}}  # which builds no instances of databases


def test_no_environment_left_the_contract():
    """An import that fails must fail here, not shorten the list above."""
    assert toolgym.load_environments() == {}
    ours = [i for i in toolgym.tool_env_ids() if i.startswith(("sqlgym/", "aflowgym/"))]
    assert ours == ENV_IDS


@pytest.mark.parametrize("env_id", ENV_IDS)
@pytest.mark.parametrize("parsing", ["lenient", "strict"])
def test_an_environment_keeps_the_contract(env_id, parsing):
    check_tool_env(env_id, parsing=parsing, luck=env_id in LUCKY, **OPTIONS.get(env_id, {}))


def test_an_environment_with_one_tool_keeps_the_contract():
    check_tool_env("sqlgym/TextToSQL-v0", tools=("answer",), match="sound")


@pytest.mark.parametrize("parsing", ["lenient", "strict"])
def test_an_environment_whose_whole_message_is_read_keeps_the_contract(parsing):
    check_tool_env("aflowgym/Compose-v0", one_shot=True, parsing=parsing, luck=True)


class Yes(toolgym.ToolEnv):
    """Say yes."""

    right = "yes"

    def begin(self, task):
        return task.question

    def expert(self):
        yield call("say", word="yes")

    def example_call(self, tool_name):
        return call("say", word="no")

    @toolgym.tool(terminal=True)
    def say(self, word: str) -> str:
        """Say it.

        Args:
            word: A word.
        """
        return self.submit(word == self.right)


class WrongExpert(Yes):
    """Say yes."""

    right = "no"


class WithoutDocstring(Yes):
    __doc__ = None


class WithoutEnd(Yes):
    """Say yes."""

    @toolgym.tool
    def say(self, word: str) -> str:
        """Say it.

        Args:
            word: A word.
        """
        return word


class ForgetsToBegin(Yes):
    """Say yes."""

    said = 0

    def begin(self, task):
        self.said += 1
        return f"{task.question} {self.said}"


class KeepsCount(Yes):
    """Say yes."""

    counted = 0

    def expert(self):
        yield call("count")
        yield call("say", word="yes")

    def example_call(self, tool_name):
        return call("count")

    @toolgym.tool
    def count(self) -> str:
        """Count."""
        self.counted += 1
        return f"no {self.counted}"


class BeginsWithNothing(Yes):
    """Say yes."""

    def begin(self, task):
        self.said = []


class ReachesFive(Yes):
    """Say yes."""

    @toolgym.tool(terminal=True)
    def say(self, word: str) -> str:
        """Say it.

        Args:
            word: A word.
        """
        self.reach(5)
        return self.submit(word == "yes")


class DrawsGlobally(Yes):
    """Say yes."""

    def begin(self, task):
        return f"{task.question} {random.random()}"


class FailingExample(Yes):
    """Say yes."""

    def example_call(self, tool_name):
        return call("tell", word="yes")


class Raises(Yes):
    """Say yes."""

    @toolgym.tool(terminal=True)
    def say(self, word: str) -> str:
        """Say it.

        Args:
            word: A word.
        """
        return self.submit(word[0] == "y")


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (WrongExpert, "seed 0, task 'a': the expert fails; check that the terminal tool returns"),
        (WithoutDocstring, "has no docstring; the system prompt begins with it"),
        (WithoutEnd, r"no tool ends the episode; mark one with @tool\(terminal=True\)"),
        (ForgetsToBegin, "turn 0: .* in a second episode; reset in `begin` everything"),
        (KeepsCount, "turn 2: 'no 1', but 'no 3' in a second episode; reset in `begin`"),
        (DrawsGlobally, "turn 0: .*, but .* in another copy; use self.np_random"),
        (BeginsWithNothing, "BeginsWithNothing.begin returned None: it must return the question"),
        (ReachesFive, "the environment failed: .*progress must be between 0 and 1, got 5"),
        (
            FailingExample,
            r"example_call\('say'\) returns .*, which needs repairs or is invalid",
        ),
        (Raises, r"raised EnvironmentFault\(.*IndexError.*raise toolgym.ToolError"),
    ],
)
def test_a_mistake_in_an_own_environment_is_named_with_what_to_change(kind, problem):
    tasks = toolgym.TaskSet([toolgym.Task("a", "Say yes.")])
    gym.register("own/Own-v0", entry_point=lambda **kwargs: kind(tasks, **kwargs))
    try:
        with pytest.raises((ContractBroken, ConfigurationError), match=problem):
            check_tool_env("own/Own-v0", seeds=1)
    finally:
        del gym.registry["own/Own-v0"]


class TakesNoOptions(Yes):
    """Say yes."""

    def __init__(self, ids=("a", "b")):
        super().__init__(toolgym.TaskSet([toolgym.Task(id, "Say yes.") for id in ids]))


def test_an_environment_that_hands_no_options_on_or_repeats_an_id_is_told_so():
    gym.register("own/Own-v0", entry_point=TakesNoOptions)
    tasks = toolgym.TaskSet([toolgym.Task("a", "Say yes.")] * 2)
    gym.register("own/Own-v1", entry_point=lambda **kwargs: Yes(tasks, **kwargs))
    try:
        with pytest.raises(ContractBroken, match="TakesNoOptions has no argument step_limit"):
            check_tool_env("own/Own-v0", seeds=1)
        with pytest.raises(ContractBroken, match="two tasks have the same id"):
            check_tool_env("own/Own-v1", seeds=1)
    finally:
        del gym.registry["own/Own-v0"], gym.registry["own/Own-v1"]


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_a_null_for_every_argument_that_does_not_exist_changes_no_result(env_id):
    clean, padded = (toolgym.make(env_id, **OPTIONS.get(env_id, {})) for _ in range(2))
    names = {name for spec in clean.tools.values() for name in spec.arguments.model_fields}
    for seed in range(3):
        record = toolgym.play(clean, "expert", seed=seed)
        padded.reset(seed=seed)
        for turn in record.turns:
            for made in turn["calls"]:
                nulls = dict.fromkeys([*names, "extra"])
                padded.step(call(made["name"], **{**nulls, **made["arguments"]}))
        assert padded.outcome == clean.outcome


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def action_for(env_index: int, turn: int) -> object:
    """Every second environment errs; answers are numbers, text and SQL; one is done early."""
    if env_index % 2:
        return ["no call", call("describe", table_name="nope"), 7, '{"name": "query"'][turn % 4]
    if turn % 9 == 8 or (env_index == 0 and turn % 9 == 2):
        return [call("answer", value=42), 'answer("text")', 'answer("SELECT 1")'][turn % 3]
    return call("query", sql=f"SELECT {turn % 5}", extra=None)


@pytest.mark.parametrize("env_id", ENV_IDS)
@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.integration)])
def test_a_vector_of_environments_equals_its_members(env_id, mode):
    kwargs = {"vector_kwargs": {"shared_memory": False}} if mode == "async" else {}
    options = OPTIONS.get(env_id, {})
    vector = gym.make_vec(env_id, num_envs=4, vectorization_mode=mode, **kwargs, **options)
    singles = [gym.make(env_id, **options) for _ in range(4)]
    try:
        _, infos = vector.reset(seed=[10, 11, 12, 13])
        expected = [env.reset(seed=10 + i)[1] for i, env in enumerate(singles)]
        assert_infos_equal(infos, expected)
        done = [False] * 4
        for turn in range(60):
            actions = tuple(action_for(i, turn) for i in range(4))
            observations, rewards, terminated, truncated, infos = vector.step(actions)
            expected = []
            for i, env in enumerate(singles):
                if done[i]:  # the vector resets in the step after the end
                    observation, info = env.reset()
                    reward, done[i] = 0.0, False
                else:
                    observation, reward, over, cut, info = env.step(actions[i])
                    done[i] = over or cut
                    assert (terminated[i], truncated[i]) == (over, cut)
                assert observations[i] == observation
                assert rewards[i] == pytest.approx(reward)
                expected.append(info)
            assert_infos_equal(infos, expected)
        assert turn == 59
    finally:
        vector.close()


TYPES = get_type_hints(Info)


def assert_infos_equal(infos, expected):
    for i, info in enumerate(expected):
        assert TYPES.keys() - {"mistake", "unjudged"} <= info.keys() <= TYPES.keys()
        for key, value in info.items():
            kind = get_origin(TYPES[key])
            assert isinstance(value, TYPES[key] if kind in (None, UnionType) else kind), key
            if key == "reward_parts":
                for part, amount in value.items():
                    assert infos[key][part][i] == pytest.approx(amount), (key, part, i)
            else:
                found = infos[key][i]
                found = found.item() if isinstance(found, np.generic) else found
                assert found == value, (key, i, found, value)
            assert infos[f"_{key}"][i]
