"""Policies: objects that act in an environment, and how one is loaded by its name.

`builtin` defines what a policy is and holds those that need no model, `chat` plays by a model on a
server; installed packages register others. Slow modules are imported when a name needs them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from typing import Any, Final, cast

from toolgym.errors import ConfigurationError
from toolgym.plugins import MODEL_NAMES, POLICIES, find_plugins
from toolgym.policies.builtin import (
    SERVED,
    ExpertPolicy,
    FunctionPolicy,
    Policy,
    RandomPolicy,
    ScriptedPolicy,
    Situation,
)

__all__ = [
    "SERVED",
    "ByName",
    "ExpertPolicy",
    "FunctionPolicy",
    "Policy",
    "RandomPolicy",
    "ScriptedPolicy",
    "Situation",
    "as_policy",
    "load",
]


BUILT_IN: Final = ("expert", "random")
"""Names of the policies that need no model."""


@dataclass(frozen=True)
class ByName:
    """The name and options of a policy, which is loaded in each process that plays.

    Attributes:
        name: As for `load`.
        seed: As for `load`.
        options: As for `load`; plain values.
    """

    name: str
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


def as_policy(policy: Policy | ByName | Callable[[str], Any] | str) -> Policy:
    """The policy itself, the policy of a function, or the one with a name such as `expert`.

    Raises:
        ConfigurationError: It is none of these, or no policy has that name.
    """
    if isinstance(policy, str):
        return load(policy)
    if isinstance(policy, ByName):
        return load(policy.name, seed=policy.seed, **policy.options)
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
    of the name, the seed and the options. The one called `model` loads all names that are not
    registered.

    Args:
        name: The name, path or hub id; `openai:MODEL` asks a server (`toolgym.chat`).
        seed: For policies that draw.
        options: For the model's loader, such as `temperature`.

    Raises:
        ConfigurationError: Nothing can load it; the message says what to install.
    """
    if name in BUILT_IN:
        if options:
            raise ConfigurationError(
                f"{name} takes no options of models: leave {', '.join(options)} out."
            )
        return ExpertPolicy() if name == "expert" else RandomPolicy(seed)
    if name.startswith(SERVED):
        from toolgym.policies.chat import load as load_served

        return load_served(name.removeprefix(SERVED), seed=seed, **options)
    plugins = find_plugins(POLICIES)
    if name not in plugins:
        _check_name(name)
    plugin = plugins.get(name) or plugins.get("model")
    if plugin is None:
        raise ConfigurationError(
            f"no policy {name!r}: use expert or random, or install what loads models:"
            " pip install 'toolgym[train]'."
        )
    try:
        loader = plugin.point.load()
    except ImportError as problem:
        raise ConfigurationError(
            f"the policy {name} is a model, which needs more than is installed ({problem});"
            " run: pip install 'toolgym[train]'."
        ) from problem
    try:
        policy: Policy = loader(name, seed=seed, **options)
    except TypeError as problem:
        raise ConfigurationError(f"{name} does not take these options: {problem}.") from problem
    return policy


def _check_name(name: str) -> None:
    """Refuse what can be no model, before a loader spends seconds on it.

    Raises:
        ConfigurationError: It is no path, no hub id and no name of a published model.
    """
    if near := get_close_matches(name, BUILT_IN, n=1):
        raise ConfigurationError(f"there is no policy {name!r}; did you mean {near[0]!r}?")
    published = (plugin.load()() for plugin in find_plugins(MODEL_NAMES).values())
    if "/" not in name and not os.path.exists(name) and name not in chain(*published):
        raise ConfigurationError(
            f"there is no policy {name!r}. For a model on a server write {SERVED}{name}; a model on"
            " the hub is OWNER/NAME."
        )
