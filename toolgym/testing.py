"""`check_tool_env`: a test for custom environments.

    from toolgym.testing import check_tool_env

    def test_my_environment():
        check_tool_env("mygym/Mine-v0")

The check needs no test framework, model or trainer.
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
from toolgym.records import EpisodeRecord


class ContractBroken(ToolgymError, AssertionError):
    """Raised if an environment violates a requirement.

    The error message states the requirement and explains how to meet it.
    """


def check_tool_env(env_id: str, *, seeds: int = 5, luck: bool = False, **env_kwargs: Any) -> None:
    """Check that an environment works with policies, trainers and vector environments.

    The check plays episodes with the expert, calls every tool with its example call and with
    invalid arguments, and runs Gymnasium's `check_env`.

    Args:
        env_id: The id of a registered environment, or MODULE:ID.
        seeds: Number of seeds for each check.
        luck: Whether outcomes are random, so that the expert may fail on some seeds.
        env_kwargs: Arguments of the environment, as for `gymnasium.make`.

    Raises:
        ContractBroken: The environment violates a requirement; only the first violation is
            reported.
        ConfigurationError: The environment cannot be created.
    """

    def make() -> ToolEnv[Any]:
        return registration.make(env_id, **env_kwargs)

    _check_class(make())
    for seed in range(seeds):
        record = rollout.play(make(), "expert", seed=seed)
        _check_reset(make(), make(), seed, [turn["action"] for turn in record.turns])
        _check_expert(record, f"seed {seed}, task {record.task_id!r}", luck)
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
    taken, _ = registration.parameters_of(type(env))
    for option in ("step_limit", "parsing", "rewards", "render_mode"):
        problem = f"{name} has no argument {option}; pass **options to ToolEnv.__init__"
        _demand(option in taken, problem)
    ids = env.tasks.ids
    _demand(len({*ids}) == len(ids), "two tasks have the same id; each needs its own")
    _demand(bool(type(env).__doc__), f"{name} has no docstring; the system prompt begins with it")
    _demand(bool(env.tools), f"{name} has no tools; mark methods with @toolgym.tool")
    ends = any(spec.terminal for spec in env.tools.values())
    _demand(ends, "no tool ends the episode; mark one with @tool(terminal=True)")
    json.dumps(env.tool_schemas())


def _check_reset(one: ToolEnv[Any], other: ToolEnv[Any], seed: int, actions: list[Any]) -> None:
    """Check that the same actions produce the same episode, in a copy and after another episode."""

    def play(env: ToolEnv[Any], **options: Any) -> list[Any]:
        begun = env.reset(seed=seed, **options)
        examples = [env.example_call(name) for name, spec in env.tools.items() if not spec.terminal]
        return [begun, *map(env.step, [7, *filter(None, examples), *actions])]

    first, copied = play(one), play(other)
    task_id = first[0][1]["task_id"]
    again = play(one, options={"task_id": task_id})
    for results, where in (
        (copied, "another copy; use self.np_random, or a generator seeded by the task"),
        (again, "a second episode; reset in `begin` everything that an episode changes"),
    ):
        for turn, both in enumerate(zip(first, results, strict=True)):
            for value, other_value in zip(*both, strict=True):
                _demand(
                    value == other_value,
                    f"seed {seed}, task {task_id!r}, turn {turn}: {value!r:.500}, but"
                    f" {other_value!r:.500} in {where}",
                )


def _check_expert(record: EpisodeRecord, where: str, luck: bool) -> None:
    _demand(record.scored, f"{where}: the environment failed: {record.fault}")
    last = [f"{turn['action']} -> {turn['observation']:.200}" for turn in record.turns[-3:]]
    _demand(
        record.correct or (luck and record.answered),
        f"{where}: the expert fails; check that the terminal tool returns `self.submit(verdict)`."
        f" Its last turns: {'; '.join(last)}",
    )
    gained = math.fsum(turn["reward"] for turn in record.turns)
    _demand(
        math.isclose(gained, record.score, abs_tol=1e-9),
        f"{where}: the rewards sum to {gained}, not to the score {record.score}",
    )


def _check_examples(env: ToolEnv[Any]) -> None:
    """Check that the example calls in error messages ("This works: ...") work."""
    for name in env.tools:
        env.reset(seed=0)
        example = env.example_call(name)
        if not example:
            continue
        calls = parse_calls(example, env.tools)
        clean = len(calls) == 1 and calls[0].error is None and not calls[0].repairs
        _demand(
            clean,
            f"example_call({name!r}) returns {example!r}, which needs repairs or is invalid",
        )
        error = env.step(example)[4]["error"]
        _demand(error is None, f"example_call({name!r}) returns {example!r}, which fails: {error}")


_ODD: list[Any] = ["", "x" * 10_000, "\x00 'a\" <|im_end|>", -1, 10**30, 0.5, True, None, [], {}]


def _check_odd_arguments(env: ToolEnv[Any]) -> None:
    """Check that no argument causes an exception, and that every `info` can be pickled."""
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
                f"step({action!r:.200}) raised {problem!r:.500}; raise toolgym.ToolError for a"
                " mistake of the agent, so that it becomes an observation"
            ) from problem
        _demand(
            low <= info["score"] <= high and math.isclose(reward, info["score"]),
            f"step({action!r:.200}): the reward {reward} differs from the score {info['score']},"
            f" or the score is outside {low} to {high}",
        )
        kept = pickle.loads(pickle.dumps(info)) == info
        _demand(kept, f"step({action!r:.200}): info changes when it is pickled: {info}")
