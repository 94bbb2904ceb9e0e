"""The contract of an environment, for ours and for strangers'.

`check_tool_env(env_id)` holds one registered environment against everything that the trainers, the
policies and the vector environments rely on. It plays real episodes and raises `ContractBroken`
with the first promise that does not hold. It needs no test framework:

    from toolgym.testing.contract import check_tool_env

    def test_contract():
        check_tool_env("mygym/Mine-v0")
"""

from __future__ import annotations

import json
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any, get_type_hints

from gymnasium.utils.env_checker import check_env

from toolgym import policies, registration, rollout
from toolgym.calls import ToolCall, parse_calls, render_call
from toolgym.env import ToolEnv
from toolgym.episode import Info
from toolgym.errors import ToolError
from toolgym.testing.fuzz import random_actions

_TOLERANCE = 1e-9
_KEYS = tuple(get_type_hints(Info))
_TYPES: dict[str, Any] = {
    "task_id": str,
    "call": (ToolCall, type(None)),
    "calls": tuple,
    "repairs": tuple,
    "error": (ToolError, type(None)),
    "reward_parts": dict,
    "score": float,
    "correct": bool,
    "scored": bool,
    "steps_left": int,
}


class ContractBroken(AssertionError):
    """A promise that this environment does not keep."""


def check_tool_env(
    env_id: str, *, seeds: int = 5, noise: int = 200, luck: bool = False, **env_kwargs: Any
) -> None:
    """Hold an environment against the contract.

    Args:
        env_id: A registered environment.
        seeds: Episodes per promise.
        noise: Random actions that are tried.
        luck: The environment draws by chance, so its expert need not be right on every seed.
        env_kwargs: For `gym.make`.

    Raises:
        ContractBroken: The first promise that does not hold.
    """

    def make() -> ToolEnv[Any]:
        return registration.make(env_id, **env_kwargs)

    _check_gymnasium(make())
    _check_tools(make())
    for seed in range(seeds):
        _check_determinism(make(), make(), seed)
        _check_expert(make(), seed, luck)
        _check_nulls(make(), seed)
        _check_silence(make(), seed)
    _check_noise(make(), noise)
    _check_pickle(make())


def _demand(holds: bool, promise: str) -> None:
    if not holds:
        raise ContractBroken(promise)


def _check_gymnasium(env: ToolEnv[Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env)
    told = [str(warning.message) for warning in caught]
    _demand(not told, f"gymnasium's check_env warns: {told}")


def _check_tools(env: ToolEnv[Any]) -> None:
    _demand(bool(env.tools), "it has no tools; mark methods with @toolgym.tool")
    ends = [spec.name for spec in env.tools.values() if spec.terminal]
    _demand(bool(ends), "no tool ends the episode; mark one with @tool(terminal=True)")
    env.reset(seed=0)
    for name, spec in env.tools.items():
        json.dumps(spec.schema())
        example = env.example_call(name)
        if example:
            call = parse_calls(example, env.tools)[0]
            _demand(
                call.error is None and not call.repairs and call.name == name,
                f"example_call({name!r}) gives {example!r}, which is not a clean call of it",
            )


def _check_info(info: Info, where: str) -> None:
    _demand(
        tuple(sorted(info)) == tuple(sorted(_KEYS)), f"info in {where} has the keys {list(info)}"
    )
    for key, value in info.items():
        kind = _TYPES[key]
        right = isinstance(value, kind) and (kind is not int or not isinstance(value, bool))
        _demand(right, f"info[{key!r}] in {where} is {value!r}, not {kind}")


def _check_determinism(one: ToolEnv[Any], other: ToolEnv[Any], seed: int) -> None:
    first, second = one.reset(seed=seed), other.reset(seed=seed)
    _demand(first == second, f"reset(seed={seed}) differs between two copies: {first} {second}")
    _check_info(first[1], "reset")
    _demand(first[1]["score"] == 0.0, "the score at reset is not 0")
    again = one.reset(seed=seed, options={"task_id": first[1]["task_id"]})
    _demand(again == first, f"reset by the task id of seed {seed} gives another episode")
    for action in _opening(other):
        left, right = one.step(action), other.step(action)
        _demand(left == right, f"seed {seed}, action {action!r}: {left} is not {right}")
        _check_info(left[4], f"step({action!r})")


def _opening(env: ToolEnv[Any]) -> list[Any]:
    """Some actions for any environment: an example of every tool that goes on, and garbage."""
    calls = [env.example_call(name) for name, spec in env.tools.items() if not spec.terminal]
    return [call for call in calls if call] + ["garbage", 7]


def _check_expert(env: ToolEnv[Any], seed: int, luck: bool) -> None:
    expert = rollout.play(env, policies.expert(), seed=seed)
    where = f"seed {seed} (task {expert.task_id!r})"
    right = expert.correct or (luck and expert.answered)
    _demand(right, f"the expert fails on {where}: {expert.to_json()['turns']}")
    _check_score(env, expert, where)
    if not expert.correct:
        return
    low = 1 - env.reward_config.cost_cap
    _demand(expert.score >= low, f"{where}: a correct episode scores {expert.score}, below {low}")
    before = env.finish()
    for _ in range(50):
        env.step({"name": next(iter(env.tools)), "arguments": {}})
    _demand(
        env.finish() >= low, f"{where}: calls after the end pulled {before} down to {env.finish()}"
    )


def _check_score(env: ToolEnv[Any], record: rollout.EpisodeRecord, where: str) -> None:
    low, high = env.reward_config.bounds
    _demand(
        low - _TOLERANCE <= record.score <= high, f"{where}: score {record.score} out of bounds"
    )
    summed = math.fsum(record.reward_parts.values())
    _demand(abs(summed - record.score) <= _TOLERANCE, f"{where}: the parts sum to {summed}")
    gained = math.fsum(turn["reward"] for turn in record.turns)
    _demand(abs(gained - record.score) <= _TOLERANCE, f"{where}: the rewards sum to {gained}")
    _demand(env.finish() == env.finish(), f"{where}: finish() is not idempotent")


class _Padded:
    """The expert as a model writes it that fills every parameter it has seen with null."""

    name = "padded expert"

    def __init__(self) -> None:
        self._expert = policies.expert()

    def act(self, situations: Any) -> list[Any]:
        return [
            self._pad(situation, action)
            for situation, action in zip(situations, self._expert.act(situations), strict=True)
        ]

    @staticmethod
    def _pad(situation: policies.Situation, action: Any) -> Any:
        calls = parse_calls(action, situation.env.tools)
        specs = situation.env.tools.values()
        names = {field for spec in specs for field in spec.arguments.model_fields} | {"extra"}
        return "\n".join(
            render_call(c.name, {**dict.fromkeys(sorted(names)), **c.arguments}) for c in calls
        )


def _check_nulls(env: ToolEnv[Any], seed: int) -> None:
    if env.parsing == "strict":
        return
    clean = rollout.play(env, policies.expert(), seed=seed)
    padded = rollout.play(env, _Padded(), seed=seed)
    same = (padded.correct, padded.progress_bin) == (clean.correct, clean.progress_bin)
    _demand(same, f"seed {seed}: extra nulls change the expert's result: {padded.turns}")


def _check_silence(env: ToolEnv[Any], seed: int) -> None:
    """Saying nothing ends the episode when the budget is spent, and pays for the silence."""
    silent = rollout.play(env, policies.scripted([]), seed=seed)
    _demand(not silent.correct and not silent.answered, f"seed {seed}: silence counts as an answer")
    _demand(
        len(silent.turns) == env.step_limit,
        f"seed {seed}: silence lasted {len(silent.turns)} turns",
    )
    _demand(silent.reward_parts["unanswered"] < 0, f"seed {seed}: silence did not pay `unanswered`")
    _check_score(env, silent, f"seed {seed}, silent")


def _check_noise(env: ToolEnv[Any], count: int) -> None:
    low, high = env.reward_config.bounds
    seed, fresh = 0, True
    for action in random_actions(0, count, env.tools):
        if fresh:
            env.reset(seed=seed)
            seed, total = seed + 1, 0.0
        try:
            observation, reward, terminated, truncated, info = env.step(action)
        except Exception as problem:
            raise ContractBroken(f"step({action!r}) raised {problem!r}") from problem
        total += reward
        fresh = terminated or truncated
        _demand(isinstance(observation, str), f"step({action!r}) observed {observation!r}")
        _demand(low - _TOLERANCE <= info["score"] <= high, f"step({action!r}): {info['score']}")
        _demand(
            abs(total - info["score"]) <= _TOLERANCE, f"step({action!r}): rewards sum to {total}"
        )


def _check_pickle(env: ToolEnv[Any]) -> None:
    copy: Callable[[Any], Any] = lambda value: pickle.loads(pickle.dumps(value))  # noqa: E731
    env.reset(seed=0)
    for action in ("garbage", {"name": next(iter(env.tools)), "arguments": {}}):
        info = env.step(action)[4]
        _demand(copy(info) == info, f"info of {action!r} does not survive a pickle: {info}")
