"""One turn: run the calls of an action, charge what they cost, and tell the agent what came of it.

`_execute` is the one boundary between the agent's mistakes and everybody else's; see
`toolgym.errors`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from toolgym.calls import ToolCall, errors
from toolgym.episode import Info, Turn
from toolgym.errors import ConfigurationError, EnvironmentFault, ToolError
from toolgym.sanitize import encodable, escape_control_tokens
from toolgym.tools import ToolSpec

if TYPE_CHECKING:
    from toolgym.env import ToolEnv


def take_turn(
    env: ToolEnv[Any], action: Any, calls: tuple[ToolCall, ...]
) -> tuple[str, float, bool, bool, Info]:
    """Run the calls in order and record the turn.

    Args:
        env: The environment, after `reset`.
        action: What was given, for the transcript.
        calls: The calls that were found in it.

    Returns:
        What `ToolEnv.step` returns.

    Raises:
        EnvironmentFault: The machine failed; the episode is unscored and the turn is not recorded.
    """
    episode = env.episode
    before, steps_before = episode.ledger.score(), episode.steps_left
    outcomes = [_run(env, call) for call in calls] or [_without_call(env)]
    results = tuple(safe_text(text) for text, _ in outcomes)
    mistakes = tuple(error for _, error in outcomes)
    observation = "\n\n".join(results) + _notice(env, steps_before)
    score = episode.ledger.score()
    gained = score - before
    reward = 0.0 if math.isnan(gained) else gained
    kept = encodable(str.__str__(action)) if isinstance(action, str) else action
    episode.turns.append(Turn(kept, calls, results, observation, reward, mistakes))
    info = episode.info(calls, mistakes, score)
    return observation, reward, episode.terminated, episode.truncated, info


def _run(env: ToolEnv[Any], call: ToolCall) -> tuple[str, ToolError | None]:
    """Run one call and charge what it costs: the text for the agent, and what went wrong."""
    episode = env.episode
    ledger = episode.ledger
    if episode.over:
        return _after_end(env)
    if call.error is not None:
        return _refuse(env, call.error, call.name)
    if call.repairs:
        ledger.charge("repaired_call")
    fingerprint = _fingerprint(call)
    if fingerprint in episode.seen:
        ledger.charge("repeat")
    episode.seen.add(fingerprint)
    spec = env.tools[call.name]
    try:
        text = _execute(env, spec, call.arguments)
    except ToolError as error:  # a tool that gives an example knows better than anyone
        return _refuse(env, error, call.name, error.example)
    if spec.terminal:
        ledger.answered = episode.over = True
    else:
        _spend_step(env)
    return text, None


def _fingerprint(call: ToolCall) -> Hashable:
    """Equal for calls of one tool with equal arguments, in whatever order they were written."""
    arguments = call.arguments
    if not arguments:
        return call.name
    if len(arguments) == 1:
        ((key, value),) = arguments.items()
        if type(value) is str:
            return call.name, key, value
    return json.dumps([call.name, arguments], sort_keys=True, default=repr)


def _execute(env: ToolEnv[Any], spec: ToolSpec, arguments: dict[str, Any]) -> str:
    """Run a tool; the one boundary between the agent's mistakes and everybody else's."""
    if spec.function is None:
        raise ConfigurationError(f"tool {spec.name!r} has no function.")
    try:
        return str(spec.function(env, **arguments))
    except ToolError:
        raise
    except EnvironmentFault as fault:
        leave_unscored(env, fault)
        raise
    except Exception as problem:
        ours = EnvironmentFault(
            f"the tool {spec.name!r} failed on {arguments!r}: {problem!r}.",
            "This is a fault of the environment; please report it.",
        )
        leave_unscored(env, ours)
        raise ours from problem


def leave_unscored(env: ToolEnv[Any], fault: EnvironmentFault) -> None:
    """End the episode without a score, and keep the reason."""
    env.episode.ledger.faulted = True
    env.episode.over = True
    env.episode.fault = encodable(str(fault))


def _refuse(
    env: ToolEnv[Any],
    error: ToolError,
    tool_name: str = "",
    example: dict[str, Any] | None = None,
) -> tuple[str, ToolError]:
    """A failed call: it costs a step, and its example is one that works in this episode."""
    env.episode.ledger.charge("failed_call")
    _spend_step(env)
    wanted = error.example.get("name", tool_name)
    wanted = wanted if wanted in env.tools else next(iter(env.tools))
    if example and example.get("name") not in env.tools:  # a tool that is not offered here
        example = None
    working = example or env.example_call(wanted) or error.example
    told = ToolError(error.code, encodable(error.message), encodable(error.hint), working)
    return str(told), told


def _after_end(env: ToolEnv[Any]) -> tuple[str, ToolError]:
    env.episode.ledger.charge("after_end")
    error = errors.episode_over()
    return str(error), error


def _without_call(env: ToolEnv[Any]) -> tuple[str, ToolError]:
    if env.episode.over:
        return _after_end(env)
    return _refuse(env, errors.no_call(env.tools))


def _spend_step(env: ToolEnv[Any]) -> None:
    episode = env.episode
    episode.ledger.charge("step")
    episode.steps_left -= 1
    if episode.steps_left == 0:
        env.finish()


def _notice(env: ToolEnv[Any], steps_before: int) -> str:
    """The line that tells how much is left, when three steps and when one step are left."""
    episode = env.episode
    left = episode.steps_left
    if left > 3:
        return ""
    if left == 0 and steps_before > 0:
        return "\n(no calls left: the episode is over)"
    if not episode.over and any(left <= mark < steps_before for mark in (1, 3)):
        return f"\n({left} call{'s' * (left > 1)} left)"
    return ""


def safe_text(text: str) -> str:
    """Text that can be encoded and holds nothing that a chat template takes for a control token."""
    return escape_control_tokens(encodable(text))


def shown(action: Any) -> str:
    """An action as a person reads it."""
    if isinstance(action, ToolCall):
        arguments = json.dumps(action.arguments, default=repr, ensure_ascii=False)
        return encodable(f"{action.name}({arguments})")
    return encodable(str(action))
