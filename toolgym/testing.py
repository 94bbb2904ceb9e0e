"""A test for an environment of your own.

    from toolgym.testing import check_tool_env

    def test_my_environment():
        check_tool_env("mygym/Mine-v0")

It needs no test framework, no model and no trainer.
"""

from __future__ import annotations

import json
import math
import pickle
import warnings
from typing import Any

from gymnasium.utils.env_checker import check_env

from toolgym import registration, rollout
from toolgym.calls import parse_calls
from toolgym.env import ToolEnv
from toolgym.errors import ToolgymError


class ContractBroken(ToolgymError, AssertionError):
    """A promise that an environment does not keep; the message says which and what to change."""


def check_tool_env(env_id: str, *, seeds: int = 5, luck: bool = False, **env_kwargs: Any) -> None:
    """Check that an environment keeps what policies, trainers and vectors of environments rely on.

    It plays real episodes: the expert's, the example call of every tool, and odd arguments for
    every tool. It also runs Gymnasium's `check_env`.

    Args:
        env_id: A registered environment.
        seeds: Number of episodes for each check.
        luck: The environment draws by chance, so that its expert may fail on some seeds.
        env_kwargs: Arguments of the environment, as for `gymnasium.make`.

    Raises:
        ContractBroken: The first promise that does not hold.
        ConfigurationError: The environment cannot be made.
    """

    def make() -> ToolEnv[Any]:
        return registration.make(env_id, **env_kwargs)

    _check_class(make())
    for seed in range(seeds):
        _check_reset(make(), make(), seed)
        _check_expert(make(), seed, luck)
    _check_examples(make())
    _check_odd_arguments(make())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(make())
    _demand(not caught, f"gymnasium's check_env warns: {[str(each.message) for each in caught]}")


def _demand(holds: bool, problem: str) -> None:
    if not holds:
        raise ContractBroken(problem)


def _check_class(env: ToolEnv[Any]) -> None:
    name = type(env).__name__
    _demand(bool(type(env).__doc__), f"{name} has no docstring; the system prompt begins with it")
    _demand(bool(env.tools), f"{name} has no tools; mark methods with @toolgym.tool")
    ends = any(spec.terminal for spec in env.tools.values())
    _demand(ends, "no tool ends the episode; mark one with @tool(terminal=True)")
    json.dumps(env.tool_schemas())


def _check_reset(one: ToolEnv[Any], other: ToolEnv[Any], seed: int) -> None:
    """The same seed is the same episode, in another copy and after an episode was played."""

    def play(env: ToolEnv[Any], **options: Any) -> list[Any]:
        begun = env.reset(seed=seed, **options)
        calls = [call for name in env.tools if (call := env.example_call(name))]
        return [begun, *map(env.step, [*calls, "no call", 7])]

    first, copied = play(one), play(other)
    task_id = first[0][1]["task_id"]
    again = play(one, options={"task_id": task_id})
    for place, result in enumerate(first):
        what = f"seed {seed}, task {task_id!r}: the result of turn {place} is {result}, but "
        _demand(
            result == copied[place],
            f"{what}{copied[place]} in another copy; draw from self.np_random or from a generator"
            " that is seeded by the task",
        )
        _demand(
            result == again[place],
            f"{what}{again[place]} in a second episode; `begin` has to set everything anew that an"
            " episode changes",
        )


def _check_expert(env: ToolEnv[Any], seed: int, luck: bool) -> None:
    record = rollout.play(env, "expert", seed=seed)
    where = f"seed {seed}, task {record.task_id!r}"
    _demand(
        record.correct or (luck and record.answered),
        f"{where}: the expert fails; does its terminal tool return `self.submit(verdict)`?"
        f" Its turns: {record.to_json()['turns']}",
    )
    gained = math.fsum(turn["reward"] for turn in record.turns)
    _demand(
        math.isclose(gained, record.score, abs_tol=1e-9),
        f"{where}: the rewards sum to {gained}, not to the score {record.score}",
    )


def _check_examples(env: ToolEnv[Any]) -> None:
    """The calls that error messages offer with the words "This works" do work."""
    for name in env.tools:
        env.reset(seed=0)
        example = env.example_call(name)
        if not example:
            continue
        calls = parse_calls(example, env.tools)
        clean = len(calls) == 1 and calls[0].error is None and not calls[0].repairs
        _demand(clean, f"example_call({name!r}) gives {example!r}, which is not a clean call")
        error = env.step(example)[4]["error"]
        _demand(error is None, f"example_call({name!r}) gives {example!r}, which fails: {error}")


_ODD: list[Any] = ["", "x" * 10_000, "\x00 'a\" <|im_end|>", -1, 10**30, 0.5, True, None, [], {}]


def _check_odd_arguments(env: ToolEnv[Any]) -> None:
    """No argument ends an episode with an exception; what happens survives a pickle."""
    odd: list[Any] = ["", "no call", '<tool_call>{"name": "', b"\xff", 7, None, [], {"name": 5}]
    for name, spec in env.tools.items():
        fields = spec.arguments.model_fields
        odd += [{"name": name, "arguments": dict.fromkeys(fields, value)} for value in _ODD]
        odd += [f"{name}(", {"name": name, "arguments": {"no_such_argument": None}}]
    low, high = env.reward_config.bounds
    for action in odd:
        env.reset(seed=0)
        try:
            _, reward, *_, info = env.step(action)
        except Exception as problem:
            raise ContractBroken(
                f"step({action!r:.200}) raised {problem!r:.500}; what an agent gets wrong is a"
                " toolgym.ToolError, which becomes an observation"
            ) from problem
        _demand(
            low <= info["score"] <= high and math.isclose(reward, info["score"]),
            f"step({action!r:.200}): the reward {reward} and the score {info['score']} do not fit",
        )
        kept = pickle.loads(pickle.dumps(info)) == info
        _demand(kept, f"step({action!r:.200}): info does not survive a pickle: {info}")
