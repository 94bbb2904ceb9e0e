"""Policies: whoever acts in an environment.

A policy acts for a whole batch of episodes at once, because that is how a language model is fast.
It sees a `Situation` per episode and returns one action each: text as a model would write it, or a
call. What it must remember of an episode it keeps by the situation's slot.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol

from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError


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
        """One action for each situation, in order."""
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
                self._playing[situation.slot] = situation.env.expert()
                return next(self._playing[situation.slot])
            return self._playing[situation.slot].send(situation.observation)
        except StopIteration:
            return ""


class RandomPolicy:
    """Calls a random tool with a random word of what it has read: a floor, not an opponent."""

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
        fields = situation.env.tools[name].arguments.model_fields
        return {"name": name, "arguments": {field: draw.choice(words) for field in fields}}


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


def expert() -> ExpertPolicy:
    """The environment's own expert."""
    return ExpertPolicy()


def random(seed: int = 0) -> RandomPolicy:
    """Random calls with words from the observations."""
    return RandomPolicy(seed)


def scripted(actions: Sequence[Any]) -> ScriptedPolicy:
    """A fixed list of actions for every episode."""
    return ScriptedPolicy(actions)


def load(name: str, *, seed: int = 0, **options: Any) -> Policy:
    """A policy by name: `expert`, `random`, a registered one, or a model's path or hub id.

    A package registers a policy by its name in the entry-point group `toolgym.policies`: a function
    of the name, the seed and the options. The one called `model` loads whatever has no other name.

    Args:
        name: The name, path or hub id.
        seed: For policies that draw.
        options: For the model's loader, such as `temperature`.

    Raises:
        ConfigurationError: Nothing can load it; the message says what to install.
    """
    if name == "expert":
        return expert()
    if name == "random":
        return random(seed)
    found = entry_points(group="toolgym.policies")
    for entry in [*found.select(name=name), *found.select(name="model")]:  # the first one wins
        try:
            loader = entry.load()
        except ImportError as problem:
            raise ConfigurationError(
                f"--policy {name} is a model, which needs more than is installed ({problem});"
                " run: pip install 'toolgym[train]'."
            ) from problem
        policy: Policy = loader(name, seed=seed, **options)
        return policy
    raise ConfigurationError(
        f"no policy {name!r}: use expert or random, or install what loads models:"
        " pip install 'toolgym[train]'."
    )
