"""The protocol of a policy, and the policies that need no model: expert, random, scripted.

A policy acts for a whole batch of episodes at once, because that is how a language model is fast.
It gets a `Situation` per episode and returns one action each: text as a model would write it, or a
call. What it remembers of an episode it keeps in `Situation.memory`, which ends with the episode.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from toolgym.env import ToolEnv

SERVED: Final = "openai:"
"""Prefix of the name of a policy that is a model on an OpenAI-compatible server."""

_HIGHEST: Final = 100
"""The greatest random number where a schema sets no limit."""


@dataclass(frozen=True)
class Situation:
    """The state of one episode, as a policy sees it before a turn.

    Attributes:
        env: The environment; a fair policy reads its tools and transcript only.
        observation: The last observation.
        seed: The seed of the episode, for policies that draw.
        memory: What the policy keeps of the episode: the same dict in every turn of it.
    """

    env: ToolEnv[Any]
    observation: str
    seed: int
    memory: dict[str, Any] = field(default_factory=dict)


class Policy(Protocol):
    """Anything that acts.

    A policy may also have a method `usage` that returns the amounts it has used so far by name,
    such as tokens; None for an amount that is not known.
    """

    name: str

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """One action for each situation, in order.

        An `EnvironmentFault` in place of an action leaves its episode unscored; the others go on.
        """
        ...


class ExpertPolicy:
    """Plays `ToolEnv.expert`; after the expert's last word it says nothing more."""

    name = "expert"

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """The expert's next call, per situation."""
        return [self._next(situation) for situation in situations]

    def _next(self, situation: Situation) -> Any:
        memory = situation.memory
        try:
            if "expert" not in memory:
                memory["expert"] = self._play(situation)
                return next(memory["expert"])
            return memory["expert"].send(situation.observation)
        except StopIteration:
            return ""

    def _play(self, situation: Situation) -> Generator[Any, str, None]:
        """The play of one episode: yields actions, and is sent the observations."""
        return situation.env.expert()


class RandomPolicy:
    """Calls a random tool with random values: a lower bound for other policies.

    Values are of the types and within the bounds of the tool's schema; where that allows any text,
    it is a word of what the policy has read.
    """

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """A random call, per situation; the same seed gives the same calls."""
        return [self._call(situation) for situation in situations]

    def _call(self, situation: Situation) -> dict[str, Any]:
        memory = situation.memory
        if not memory:
            key = f"toolgym-random-{self._seed}-{situation.seed}"
            memory |= {"draw": random.Random(key), "words": []}
        draw, words = memory["draw"], memory["words"]
        words += [word.strip('.,:?()"') for word in situation.observation.split()][:500]
        name = draw.choice(list(situation.env.tools))
        schema = situation.env.tools[name].parameters
        schemas = schema.get("$defs", {})
        fields = schema["properties"].items()
        values = {key: _random_value(field, schemas, draw, words) for key, field in fields}
        return {"name": name, "arguments": values}


def _random_value(
    schema: Mapping[str, Any],
    named: Mapping[str, Any],
    draw: random.Random,
    words: Sequence[str],
    items: int = 1,
) -> Any:
    """A value that a JSON schema allows, as far as types, bounds and choices go.

    Args:
        named: Schemas by the name that others refer to them by.
        words: The texts to choose from; one is taken wherever any text will do.
        items: Length of a list of any length: 0 inside an object, which may hold its own kind.
    """
    if "$ref" in schema:
        return _random_value(named[schema["$ref"].split("/")[-1]], named, draw, words, items)
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return draw.choice(choices)
    ways = schema.get("anyOf", [schema])
    if any(way.get("type", "string") == "string" and "enum" not in way for way in ways):
        return draw.choice(words)
    if (way := draw.choice(ways)) is not schema:
        return _random_value(way, named, draw, words, items)
    match schema["type"]:
        case "integer" | "number" as kind:
            margin = int(kind == "integer")  # from a bound that is excluded
            low, high = schema.get("minimum"), schema.get("maximum")
            if "exclusiveMinimum" in schema:
                low = schema["exclusiveMinimum"] + margin
            if "exclusiveMaximum" in schema:
                high = schema["exclusiveMaximum"] - margin
            low = min(0, high or 0) if low is None else low
            high = max(low, _HIGHEST) if high is None else high
            return draw.randint(low, high) if margin else draw.uniform(low, high)
        case "boolean":
            return draw.random() < 0.5
        case "array":
            each, count = schema.get("items", {}), schema.get("minItems", items)
            return [_random_value(each, named, draw, words, items) for _ in range(count)]
        case "object":
            fields = schema.get("properties", {})
            keys = schema.get("required", fields)
            return {key: _random_value(fields[key], named, draw, words, 0) for key in keys}
    return None


class ScriptedPolicy:
    """Says the same things in every episode, then nothing more; for tests."""

    name = "scripted"

    def __init__(self, actions: Sequence[Any]) -> None:
        self._actions = list(actions)

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """The next line of the script, per situation."""
        turns = (len(situation.env.episode.turns) for situation in situations)
        return [self._actions[turn] if turn < len(self._actions) else "" for turn in turns]


class FunctionPolicy:
    """A function from an observation to an action, as a policy; it is called once for each turn.

    Args:
        function: Its argument is the observation; in the first turn that is the question.
    """

    def __init__(self, function: Callable[[str], Any]) -> None:
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self._function = function

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """The function's action for each observation."""
        return [self._function(situation.observation) for situation in situations]
