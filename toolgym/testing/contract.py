"""The contract of an environment, for ours and for strangers'.

`check_tool_env(env_id)` holds one registered environment against everything that the trainers, the
policies and the vector environments rely on. It plays real episodes and raises `ContractBroken`
with the first promise that does not hold. It needs no test framework:

    from toolgym.testing.contract import check_tool_env

    def test_contract():
        check_tool_env("mygym/Mine-v0")
"""

from __future__ import annotations

import functools
import json
import math
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

from gymnasium.utils.env_checker import check_env

from toolgym import calls, policies, registration, rollout
from toolgym.calls import ToolCall, parse_calls, render_call, specs_of
from toolgym.env import ToolEnv
from toolgym.episode import CommonInfo, Info
from toolgym.errors import ToolError
from toolgym.tools import ToolSpec

# Fuzzing: a seeded source of random and mutated actions.
#
# Half of the promise of an environment is that no action can end it with an exception. What breaks
# parsers is less pure noise than text that is almost right. So most actions are calls in a format,
# or behind a mark, and then damaged: spans deleted, doubled, moved, cut off at the end, quotes
# flipped, tags of another format put in. The rest are things that are no text at all. One seed
# gives one sequence on every machine.


WORDS = (
    "singer",
    "SELECT 1",
    "a'b",
    'say "x"',
    "{",
    "null",
    "é",
    "\ud83d",
    "-1",
    "x\ny",
    "<think>",
)
SPANS = (
    *("<tool_call>", "</tool_call>", "<function=query>", "<parameter=sql>", "</parameter>"),
    *("[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "<think>", "</think>", "```json\n", "```", '"""'),
    *('"', "'", "\\", "{", "}", "[", "]", "(", ")", ",", ":", "null", "NaN", "\x00", "\ud83d"),
    *("\u2028", "1e999", "-", "\n", "<arg_key>", "</arg_value>", "describe("),
    *('{"name": ', '"arguments": '),
    *(text for entry in calls.FORMATS for text in (*entry.marks, *entry.closes[:1])),
)


def random_actions(seed: int, n: int, tools: Any) -> Iterator[Any]:
    """Yield `n` actions: damaged calls of the tools, noise, and values that are no text.

    Args:
        seed: One seed gives one sequence.
        tools: As for `toolgym.calls.parse_calls`.
    """
    draw = random.Random(seed)
    specs = list(specs_of(tools).values())
    for _ in range(n):
        kind = draw.random()
        if kind < 0.75:
            yield mutated(draw, random_text(draw, specs))
        elif kind < 0.85:
            yield "".join(draw.choice(SPANS) for _ in range(draw.randrange(12)))
        else:
            yield random_object(draw, specs)


def random_text(draw: random.Random, specs: list[ToolSpec]) -> str:
    """One to three calls in one random format, sometimes with prose around them."""
    writer = draw.choice(WRITERS)
    calls = [random_call(draw, specs) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    text = "\n".join(writer(name, arguments) for name, arguments in calls)
    before = draw.choice(("", "", "I look.\n", "<think>Hm.</think>\n", "The answer is 5.\n"))
    return before + text + draw.choice(("", "", "\n", "\nDone.", "<|im_end|>"))


def random_call(draw: random.Random, specs: list[ToolSpec]) -> tuple[str, dict[str, Any]]:
    """A tool's name and arguments, some of them missing, null, or unknown."""
    spec = draw.choice(specs)
    names = [name for name in spec.arguments.model_fields if draw.random() < 0.9]
    if draw.random() < 0.2:
        names.append(draw.choice(("sql", "limit", "table", "arguments", "value")))
    return spec.name, {name: random_value(draw) for name in names}


def random_value(draw: random.Random, depth: int = 0) -> Any:
    """A JSON value: mostly words, sometimes numbers, nulls, lists and objects."""
    kind = draw.random()
    if kind < 0.6 or depth > 3:
        return draw.choice(WORDS)
    if kind < 0.8:
        return draw.choice((0, 5, -2.5, 10**30, True, None))
    if kind < 0.9:
        return [random_value(draw, depth + 1) for _ in range(draw.randrange(3))]
    return {draw.choice(WORDS): random_value(draw, depth + 1) for _ in range(draw.randrange(3))}


def mutated(draw: random.Random, text: str) -> str:
    """The text after up to four random edits; one in ten stays as it is."""
    if draw.random() < 0.1:
        return text
    for _ in range(draw.randrange(1, 5)):
        start = draw.randrange(len(text) + 1)
        end = min(len(text), start + draw.choice((1, 1, 2, 5, 20)))
        text = draw.choice(EDITS)(draw, text, start, end)
    return text


Edit = Callable[[random.Random, str, int, int], str]
EDITS: tuple[Edit, ...] = (
    lambda _, text, start, end: text[:start] + text[end:],
    lambda _, text, start, end: text[:end] + text[start:],
    lambda _, text, start, end: text[:start],
    lambda _, text, start, end: text[start:],
    lambda draw, text, start, end: text[:start] + draw.choice(SPANS) + text[start:],
    lambda draw, text, start, end: text[:start] + draw.choice(SPANS) + text[end:],
    lambda _, text, start, end: text.translate(str.maketrans("\"'", "'\"")),
    lambda _, text, start, end: text[:start] + text[start:end].swapcase() + text[end:],
    lambda _, text, start, end: text[end:] + text[:start],
)


def _python(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _positional(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(map(repr, arguments.values()))})"


def _marked(entry: calls.Format, name: str, arguments: dict[str, Any]) -> str:
    """A call as JSON between the marks of a format, which may write calls in another way."""
    text = json.dumps({"name": name, "arguments": arguments})
    return "".join((*entry.marks[:1], text, *entry.closes[:1]))


Writer = Callable[[str, dict[str, Any]], str]
WRITERS: tuple[Writer, ...] = (
    render_call,
    render_call,
    _python,
    _positional,
    lambda name, arguments: json.dumps({"name": name, "parameters": arguments}),
    lambda name, arguments: f"```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```",
    *(functools.partial(_marked, entry) for entry in calls.FORMATS if entry.marks),
)


def random_object(draw: random.Random, specs: list[ToolSpec]) -> Any:
    """An action that is no text: bytes, numbers, nested lists, calls as dicts, cycles."""
    name, arguments = random_call(draw, specs)
    cyclic: list[Any] = [name]
    cyclic.append(cyclic)
    looped: dict[str, Any] = {"name": name}
    looped["arguments"] = looped
    call = {"name": name, "arguments": arguments}
    openai = {"type": "function", "function": {**call, "arguments": json.dumps(arguments)}}
    return draw.choice(
        (
            *(None, True, 5, float("nan"), b"\xff\xfe", name.encode(), object(), len, {1, 2}),
            *(
                [],
                {},
                cyclic,
                looped,
                call,
                [call, call],
                [[call]],
                [call, None],
                openai,
                arguments,
            ),
            {"role": "assistant", "content": render_call(name, arguments), "tool_calls": None},
            {"role": "assistant", "content": "", "tool_calls": [openai, draw.choice((1, call))]},
            {"name": draw.choice((None, 5, [], name.upper())), "arguments": random_value(draw)},
            {**call, "arguments": json.dumps(arguments)[: draw.randrange(20)]},
            {"name": name, **arguments},
        )
    )


_TOLERANCE = 1e-9
_COMMON = frozenset(get_type_hints(CommonInfo))
_KEYS = frozenset(get_type_hints(Info))
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
    "mistake": str,
    "unjudged": bool,
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
    messages = [str(warning.message) for warning in caught]
    _demand(not messages, f"gymnasium's check_env warns: {messages}")


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
    _demand(_COMMON <= info.keys() <= _KEYS, f"info in {where} has the keys {list(info)}")
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
