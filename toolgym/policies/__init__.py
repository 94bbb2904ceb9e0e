"""Policies: objects that choose actions in an environment. `load` creates a policy from its name.

`builtin` contains the protocol of policies and the policies without a model. `chat` contains the
policy for a model on a server. Installed packages can register other policies. Modules that are
slow to import are imported only for the names that need them.
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
"""Names of the policies that use no model."""


@dataclass(frozen=True)
class ByName:
    """The name and options of a policy, from which each worker process loads it.

    Attributes:
        name: As for `load`.
        seed: As for `load`.
        options: As for `load`; only plain values.
    """

    name: str
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


def as_policy(policy: Policy | ByName | Callable[[str], Any] | str) -> Policy:
    """Convert a function, or a name such as `expert`, to a policy. A policy is returned unchanged.

    Raises:
        ConfigurationError: The object is not a policy, or no policy has that name.
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
        f"{policy!r} is not a policy: pass a function from an observation to an action, an object"
        " with an `act` method, or a name such as 'expert'."
    )


def load(name: str, *, seed: int = 0, **options: Any) -> Policy:
    """Load a policy by name: `expert`, `random`, `openai:MODEL`, a registered name, or a model.

    A package registers a policy in the entry-point group `toolgym.policies`, as a function of the
    name, the seed and the options. The entry point `model` handles all names that are not
    registered.

    Args:
        name: The name of a policy, or the path or hub id of a model; `openai:MODEL` is a model on a
            server (`toolgym.chat`).
        seed: Seed of policies that make random choices.
        options: Options of the loader, such as `temperature`.

    Raises:
        ConfigurationError: The policy cannot be loaded. The message states what to install.
    """
    if name in BUILT_IN:
        if options:
            raise ConfigurationError(
                f"{name} does not accept model options: remove {', '.join(options)}."
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
            f"no policy {name!r}: use expert or random, or install the packages that load models:"
            " pip install 'toolgym[train]'."
        )
    try:
        loader = plugin.point.load()
    except ImportError as problem:
        raise ConfigurationError(
            f"the policy {name} is a model, which needs packages that are not installed"
            f" ({problem}); run: pip install 'toolgym[train]'."
        ) from problem
    try:
        policy: Policy = loader(name, seed=seed, **options)
    except TypeError as problem:
        raise ConfigurationError(f"{name} does not accept these options: {problem}.") from problem
    return policy


def _check_name(name: str) -> None:
    """Reject a name that cannot be a model, before a slow loader is imported.

    Raises:
        ConfigurationError: The name is not a path, a hub id or the name of a published model.
    """
    if near := get_close_matches(name, BUILT_IN, n=1):
        raise ConfigurationError(f"there is no policy {name!r}; did you mean {near[0]!r}?")
    published = (plugin.load()() for plugin in find_plugins(MODEL_NAMES).values())
    if "/" not in name and not os.path.exists(name) and name not in chain(*published):
        raise ConfigurationError(
            f"there is no policy {name!r}. For a model on a server, use {SERVED}{name}; for a"
            " model on the Hugging Face Hub, use OWNER/NAME."
        )
