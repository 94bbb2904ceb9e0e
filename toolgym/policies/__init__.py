"""Policies: what acts in an environment, and how one is found by its name.

`builtin` says what a policy is and holds those that need no model, `chat` plays by a model on a
server; installed packages register others. What is slow to import is imported when its name is
asked for: `ChatPolicy` stays in `toolgym.policies.chat`, which needs the client of `toolgym.chat`.
"""

from __future__ import annotations

from collections.abc import Callable
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


def as_policy(policy: Policy | Callable[[str], Any] | str) -> Policy:
    """The policy itself, the one of a function, or the one of a name such as `expert`.

    Raises:
        ConfigurationError: It is none of these, or nothing can load that name.
    """
    if isinstance(policy, str):
        return load(policy)
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
