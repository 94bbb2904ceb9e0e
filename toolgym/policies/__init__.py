"""Policies: what acts in an environment, and how one is found by its name.

`builtin` says what a policy is and holds those that need no model, `chat` plays by a model on a
server; installed packages register others. What is slow to import is imported when its name is
asked for: `ChatPolicy` stays in `toolgym.policies.chat`, which needs the client of `toolgym.chat`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, cast

from toolgym.errors import ConfigurationError
from toolgym.policies.builtin import (
    SERVED,
    ExpertPolicy,
    FunctionPolicy,
    Metered,
    Policy,
    RandomPolicy,
    ScriptedPolicy,
    Situation,
    expert,
    random,
    scripted,
)

__all__ = [
    "SERVED",
    "ByName",
    "ExpertPolicy",
    "FunctionPolicy",
    "Metered",
    "Policy",
    "RandomPolicy",
    "ScriptedPolicy",
    "Situation",
    "as_policy",
    "expert",
    "load",
    "random",
    "scripted",
]


@dataclass
class ByName:
    """A policy that is loaded where it plays, which may be in other processes.

    Attributes:
        name: As for `load`.
        seed: As for `load`.
        options: As for `load`; plain values.
        used: What the policies have used that were loaded in other processes, by name.
    """

    name: str
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    used: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """What is sent: without what was used, which is counted where the results come together."""
        return {**self.__dict__, "used": {}}

    def load(self) -> Policy:
        """The policy, for this process.

        Raises:
            ConfigurationError: Nothing can load it.
        """
        return load(self.name, seed=self.seed, **self.options)

    def count(self, usage: Mapping[str, Any]) -> None:
        """Add what was used for some episodes; what is not known of some is not known of all."""
        for name, value in usage.items():
            before = self.used.get(name, 0)
            self.used[name] = None if value is None or before is None else before + value

    def usage(self) -> dict[str, Any]:
        """What was used so far; nothing where the policy meters nothing."""
        return dict(self.used)


def as_policy(policy: Policy | ByName | Callable[[str], Any] | str) -> Policy:
    """The policy itself, the one of a function, or the one of a name such as `expert`.

    Raises:
        ConfigurationError: It is none of these, or nothing can load that name.
    """
    if isinstance(policy, str):
        return load(policy)
    if isinstance(policy, ByName):
        return policy.load()
    if not isinstance(policy, type) and callable(getattr(policy, "act", None)):
        return cast(Policy, policy)
    if not isinstance(policy, type) and callable(policy):
        return FunctionPolicy(policy)
    raise ConfigurationError(
        f"{policy!r} is no policy: give a function from an observation to an action, an object"
        " with an `act` method, or a name such as 'expert'."
    )


def load(name: str, *, seed: int = 0, **options: Any) -> Policy:
    """A policy by name: `expert`, `random`, `openai:MODEL`, a registered one, or a model's path.

    A package registers a policy by its name in the entry-point group `toolgym.policies`: a function
    of the name, the seed and the options. The one called `model` loads whatever has no other name.

    Args:
        name: The name, path or hub id; `openai:MODEL` asks a server (`toolgym.chat`).
        seed: For policies that draw.
        options: For the model's loader, such as `temperature`.

    Raises:
        ConfigurationError: Nothing can load it; the message says what to install.
    """
    if name == "expert":
        return expert()
    if name == "random":
        return random(seed)
    if name.startswith(SERVED):
        from toolgym.policies.chat import load as load_served

        return load_served(name.removeprefix(SERVED), seed=seed, **options)
    registered = entry_points(group="toolgym.policies")
    for entry in [
        *registered.select(name=name),
        *registered.select(name="model"),
    ]:  # the first one wins
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
