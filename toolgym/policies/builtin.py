"""The protocol of a policy, and the policies without a model: expert, random, scripted.

A policy acts for a batch of episodes at once, because language models process batches efficiently.
The policy receives a `Situation` for each episode and returns one action for each, a string or a
call. The policy's state for an episode is stored in `Situation.memory`, which is discarded after
the episode.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from toolgym.env import ToolEnv

SERVED: Final = "openai:"
"""Prefix of the names of policies that use a model on an OpenAI-compatible server."""

_HIGHEST: Final = 100
"""The upper bound of random numbers if a schema defines no maximum."""


@dataclass(frozen=True)
class Situation:
    """The state of one episode before a turn, as it is passed to a policy.

    Attributes:
        env: The environment. A policy without privileged information uses only the tools and the
            transcript of the environment.
        observation: The last observation.
        seed: The seed of the episode, for policies that make random choices.
        memory: State of the policy for this episode. The same dict is passed in every turn.
    """

    env: ToolEnv[Any]
    observation: str
    seed: int
    memory: dict[str, Any] = field(default_factory=dict)


class Policy(Protocol):
    """The protocol of a policy: a name, and a method that returns actions.

    A policy may also have a method `usage` that returns a dict of the amounts used so far, such as
    tokens. An unknown amount is None.
    """

    name: str

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """Return one action for each situation, in order.

        If a policy returns an `EnvironmentFault` in place of an action, the episode is not scored.
        The other episodes continue.
        """
        ...


class ExpertPolicy:
    """The policy that returns the actions of `ToolEnv.expert`. After the expert's last action, the
    policy returns "".
    """

    name = "expert"

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """Return the expert's next action for each situation."""
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
        """Return the generator of an episode, which yields actions and receives observations."""
        return situation.env.expert()


class RandomPolicy:
    """The policy that calls random tools with random values, as a baseline for other policies.

    Values have the types and bounds of the tool's schema. Where any string is allowed, a word from
    the observations is chosen.
    """

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """Return a random call for each situation. The same seed always produces the same calls."""
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
    """Return a random value with the type, bounds and choices of a JSON schema.

    Args:
        named: Schemas by the names that other schemas refer to.
        words: The strings to choose from where any string is valid.
        items: Length of lists without a fixed length. The length is 0 inside an object, since
            schemas may be recursive.
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
            margin = int(kind == "integer")  # distance from an exclusive bound
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
    """A policy for tests that returns the same actions in every episode, and then ""."""

    name = "scripted"

    def __init__(self, actions: Sequence[Any]) -> None:
        self._actions = list(actions)

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """Return the next action of the script for each situation."""
        turns = (len(situation.env.episode.turns) for situation in situations)
        return [self._actions[turn] if turn < len(self._actions) else "" for turn in turns]


class FunctionPolicy:
    """A policy that calls a function once per turn.

    Args:
        function: Function that maps an observation to an action. In the first turn, the observation
            is the question.
    """

    def __init__(self, function: Callable[[str], Any]) -> None:
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self._function = function

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """Return the function's action for each observation."""
        return [self._function(situation.observation) for situation in situations]
