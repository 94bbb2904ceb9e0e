"""The protocol of a policy, and the policies that need no model: expert, random, scripted.

A policy acts for a whole batch of episodes at once, because that is how a language model is fast.
It sees a `Situation` per episode and returns one action each: text as a model would write it, or a
call. What it must remember of an episode it keeps by the situation's slot.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from toolgym.env import ToolEnv

SERVED: Final = "openai:"
"""Prefix of the name of a policy that is a model on an OpenAI-compatible server."""

_HIGHEST: Final = 100
"""The greatest random number where a schema sets no limit."""


@dataclass(frozen=True)
class Situation:
    """Where one episode stands.

    Attributes:
        slot: The same for every turn of one episode, never used again for another.
        env: The environment; a fair policy reads its tools and transcript only.
        observation: The last observation.
        seed: A number of this episode's own, for policies that draw.
    """

    slot: int
    env: ToolEnv[Any]
    observation: str
    seed: int


class Policy(Protocol):
    """Anything that acts."""

    name: str

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """One action for each situation, in order.

        Where none could be had, the `EnvironmentFault` that is the reason stands in its place: that
        episode stays unscored, and the others go on.
        """
        ...


@runtime_checkable
class Metered(Protocol):
    """A policy that knows what it has used."""

    def usage(self) -> dict[str, Any]:
        """By name, what was used so far: plain values that JSON can hold."""
        ...


class ExpertPolicy:
    """Plays `ToolEnv.expert`; after the expert's last word it says nothing more."""

    name = "expert"

    def __init__(self) -> None:
        self._playing: dict[int, Generator[Any, str, None]] = {}

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """The expert's next call, per situation."""
        return [self._next(situation) for situation in situations]

    def _next(self, situation: Situation) -> Any:
        try:
            if situation.slot not in self._playing:
                self._playing[situation.slot] = self._play(situation)
                return next(self._playing[situation.slot])
            return self._playing[situation.slot].send(situation.observation)
        except StopIteration:
            return ""

    def _play(self, situation: Situation) -> Generator[Any, str, None]:
        """The play of an episode: actions, each for the observation that it is sent."""
        return situation.env.expert()


class RandomPolicy:
    """Calls a random tool with random values: a floor, not an opponent.

    Values are of the types and within the bounds of the tool's schema; where that allows any text,
    it is a word of what the policy has read.
    """

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._draws: dict[int, random_module.Random] = {}
        self._words: dict[int, list[str]] = {}

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """A random call, per situation; the same seed gives the same calls."""
        return [self._call(situation) for situation in situations]

    def _call(self, situation: Situation) -> dict[str, Any]:
        key = f"toolgym-random-{self._seed}-{situation.seed}"
        draw = self._draws.setdefault(situation.slot, random_module.Random(key))
        words = self._words.setdefault(situation.slot, [])
        words += [word.strip('.,:?()"') for word in situation.observation.split()][:500]
        name = draw.choice(list(situation.env.tools))
        schema = situation.env.tools[name].parameters
        values = _Values(draw, words, schema.get("$defs", {}))
        fields = schema["properties"].items()
        return {"name": name, "arguments": {key: values.of(field) for key, field in fields}}


@dataclass(frozen=True)
class _Values:
    """Random values that a JSON schema allows, as far as types, bounds and choices go.

    Attributes:
        words: The texts that there are.
        named: Schemas by the name that others refer to them by.
    """

    draw: random_module.Random
    words: Sequence[str]
    named: Mapping[str, Any]

    def of(self, schema: Mapping[str, Any]) -> Any:
        """A value; a word wherever a text without conditions will do."""
        schema = self.named[schema["$ref"].split("/")[-1]] if "$ref" in schema else schema
        if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
            return self.draw.choice(choices)
        ways = schema.get("anyOf", [schema])
        if any(way.get("type", "string") == "string" and "enum" not in way for way in ways):
            return self.draw.choice(self.words)
        way = self.draw.choice(ways)
        return self._typed(way) if way is schema else self.of(way)

    def _typed(self, schema: Mapping[str, Any]) -> Any:
        match schema["type"]:
            case "integer":
                return self.draw.randint(*self._bounds(schema, 1))
            case "number":
                return self.draw.uniform(*self._bounds(schema, 0))
            case "boolean":
                return self.draw.random() < 0.5
            case "array":
                return [self.of(schema.get("items", {})) for _ in range(schema.get("minItems", 1))]
            case "object":
                fields = schema.get("properties", {})
                return {key: self.of(fields[key]) for key in schema.get("required", fields)}
        return None

    @staticmethod
    def _bounds(schema: Mapping[str, Any], margin: int) -> tuple[Any, Any]:
        """The least and the greatest value; `margin` from a bound that is excluded."""
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is None and "exclusiveMinimum" in schema:
            low = schema["exclusiveMinimum"] + margin
        if high is None and "exclusiveMaximum" in schema:
            high = schema["exclusiveMaximum"] - margin
        if low is None:
            low = 0 if high is None else min(0, high)
        return low, max(low, _HIGHEST) if high is None else high


class ScriptedPolicy:
    """Says the same things in every episode, then nothing more; for tests."""

    name = "scripted"

    def __init__(self, actions: Sequence[Any]) -> None:
        self._actions = list(actions)
        self._turn: dict[int, int] = {}

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """The next line of the script, per situation."""
        return [self._next(situation.slot) for situation in situations]

    def _next(self, slot: int) -> Any:
        turn = self._turn.get(slot, 0)
        self._turn[slot] = turn + 1
        return self._actions[turn] if turn < len(self._actions) else ""


class FunctionPolicy:
    """A function from an observation to an action, as a policy; it is called once for each turn.

    Args:
        function: It sees the observation only, and of a first turn that is the question.
    """

    def __init__(self, function: Callable[[str], Any]) -> None:
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self._function = function

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """What the function says to each observation."""
        return [self._function(situation.observation) for situation in situations]


def expert() -> ExpertPolicy:
    """The environment's own expert."""
    return ExpertPolicy()


def random(seed: int = 0) -> RandomPolicy:
    """Random calls that their tools' schemas allow, with words from the observations."""
    return RandomPolicy(seed)


def scripted(actions: Sequence[Any]) -> ScriptedPolicy:
    """A fixed list of actions for every episode."""
    return ScriptedPolicy(actions)
