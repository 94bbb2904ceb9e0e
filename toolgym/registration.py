"""Loads environments from entry points, and creates environments by id.

Gymnasium itself does not load environments from entry points. A package adds its environments
through the entry-point group `toolgym.environments`. The value of the entry point is a module that
registers them with `gymnasium.register` when it is imported. For an environment in any other
module, use an id of the form MODULE:ID, such as `mygym:mygym/Locks-v0`. The module is then imported
from the installed packages or from the current folder.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.family import TaskFamily
from toolgym.plugins import ENVIRONMENTS, PluginError, find_plugins
from toolgym.unseen import PARTS, divided, unseen


@functools.cache
def load_environments() -> dict[str, str]:
    """Import the modules of all entry points, once per process.

    Returns:
        The error of each module whose import failed, by entry-point name. Each error is also issued
        as a warning.
    """
    broken: dict[str, str] = {}
    for name, plugin in find_plugins(ENVIRONMENTS).items():
        try:
            plugin.load()
        except PluginError as problem:
            broken[name] = str(problem)
            warnings.warn(f"environments of {name!r} are skipped: {problem}", stacklevel=2)
    return broken


def tool_env_ids() -> list[str]:
    """Return the sorted ids of all registered environments that are `ToolEnv`s."""
    load_environments()
    # Loading reads the metadata of all installed packages, once per list rather than for each id.
    plugins = find_plugins(ENVIRONMENTS).values()
    families = {plugin.point.value.partition(".")[0] for plugin in plugins}
    return sorted(spec.id for spec in gym.registry.values() if _is_tool_env(spec, families))


def _is_tool_env(spec: Any, families: AbstractSet[str]) -> bool:
    entry = spec.entry_point
    if isinstance(entry, str):
        return entry.partition(":")[0].partition(".")[0] in families
    return isinstance(entry, type) and issubclass(entry, ToolEnv)


def spec_of(env_id: str) -> EnvSpec:
    """Return the registration of an environment, by its id or by MODULE:ID.

    Raises:
        ConfigurationError: The environment does not exist, or the module cannot be imported.
    """
    load_environments()
    module, _, name = env_id.rpartition(":")
    if module:
        _import_module(module, env_id)
    try:
        return gym.spec(name)
    except gym.error.Error:
        ids = tool_env_ids()
        near = "".join(f"Did you mean {each}? " for each in get_close_matches(name, ids, 1))
        cure = (
            f"{near}Known environments: {', '.join(ids)}. For an environment in your own module,"
            " use MODULE:ID, as in mygym:mygym/Locks-v0."
        )
        if module:
            points = {each: spec.entry_point for each, spec in gym.registry.items()}
            own = [
                each
                for each, point in points.items()
                if getattr(point, "__module__", str(point).partition(":")[0]) == module
            ]
            cure = f"The module {module!r} registers {', '.join(own) or 'none'}."
        raise ConfigurationError(f"there is no environment {name!r}. {cure}") from None


def _import_module(module: str, env_id: str) -> None:
    """Import a module from the installed packages or, if it is not installed, from the current
    folder.

    Raises:
        ConfigurationError: The module does not exist, or its import fails.
    """
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):  # the path of a console script lacks the current folder
        sys.path.append(here)
    try:
        importlib.import_module(module)
    except Exception as problem:  # the user's module may raise any exception
        cure = f"`python -c 'import {module}'` shows where."
        if isinstance(problem, ModuleNotFoundError) and f"{module}.".startswith(f"{problem.name}."):
            cure = (
                f"Name it as in `import {module.removesuffix('.py')}`; it must be installed or be"
                f" in the current folder, {here}."
            )
        raise ConfigurationError(
            f"{env_id}: the module {module!r} cannot be imported: {type(problem).__name__}:"
            f" {problem}. {cure}"
        ) from problem


def recorded(env_id: str) -> str:
    """Check an environment id that was read from an untrusted file, and return it unchanged.

    Raises:
        ConfigurationError: The module of the environment has not been imported yet.
    """
    if ":" in env_id and env_id.rpartition(":")[0] not in sys.modules:
        raise ConfigurationError(
            f"{env_id} comes from a file, so its module is not imported. If you trust it, pass the"
            " id of the environment yourself."
        )
    return env_id


def environment_creator(env_id: str) -> Callable[..., Any]:
    """Return the registered class or function that creates an environment, without calling it.

    Raises:
        ConfigurationError: The environment does not exist, or its module cannot be imported.
    """
    point: Any = spec_of(env_id).entry_point
    try:
        creator: Callable[..., Any] = load_env_creator(point) if isinstance(point, str) else point
    except (ImportError, AttributeError) as problem:
        raise ConfigurationError(
            f"{env_id} cannot be imported ({point}): {problem}. Install its package again."
        ) from problem
    return creator


def family_of(env_id: str) -> TaskFamily:
    """Return the family of an environment, without creating the environment.

    Raises:
        ConfigurationError: The environment does not exist, or its module cannot be imported.
    """
    family = getattr(environment_creator(env_id), "family", None)
    return family if isinstance(family, TaskFamily) else TaskFamily()


def dataset_of(env_id: str, env_kwargs: Mapping[str, Any]) -> Any:
    """Return the data set that an environment with the given arguments uses, or None.

    Raises:
        ConfigurationError: The environment does not exist, or its module cannot be imported.
    """
    own = parameters_of(environment_creator(env_id))[0].get("dataset")
    return env_kwargs.get("dataset", own)


def make(
    env_id: str, *, task_part: str | Mapping[str, Any] | None = None, **kwargs: Any
) -> ToolEnv[Any]:
    """Make an environment as `gym.make` does, but without wrappers.

    Args:
        env_id: The id of a registered environment, or MODULE:ID.
        task_part: The part of the environment's tasks to keep. Environments without splits also
            support this argument. "training" and "evaluation" are the two parts of
            `toolgym.unseen.divided`. `{"unseen_by": OTHER, "kind": "tasks"}` keeps the tasks that,
            with respect to this kind, are absent from the environment made with `{**kwargs,
            **OTHER}`.
        kwargs: Arguments of the environment.

    Raises:
        ConfigurationError: The environment does not exist or is not a `ToolEnv`, an argument is
            unknown, or the part has no tasks.
    """
    env = _make_environment(env_id, kwargs)
    if isinstance(task_part, str):
        parts = divided(env.tasks, env.family)
        if task_part not in parts:
            raise ConfigurationError(
                f"{env_id} has no part {task_part!r} of its tasks: there are {' and '.join(PARTS)},"
                " where it has at least two tasks that are not the same."
            )
        env.tasks = parts[task_part]
    elif task_part is not None:
        other = make(env_id, **{**kwargs, **task_part["unseen_by"]})
        env.tasks = unseen(env.tasks, other.tasks, task_part["kind"], env.family)
        if not len(env.tasks):
            raise ConfigurationError(
                f"{env.tasks.name}: all of its tasks are also in {other.tasks.name}."
            )
    return env


def _make_environment(env_id: str, kwargs: Mapping[str, Any]) -> ToolEnv[Any]:
    spec = spec_of(env_id)
    try:
        env = gym.make(spec, disable_env_checker=True, **kwargs).unwrapped
    except gym.error.Error as problem:
        raise ConfigurationError(str(problem)) from None
    except TypeError as problem:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(problem))
        if unknown is None or unknown[1] not in kwargs:
            raise ConfigurationError(f"{env_id} cannot be created: {problem}.") from problem
        has = ", ".join(parameters_of(environment_creator(env_id))[0]) or "none"
        raise ConfigurationError(
            f"{env_id} has no argument {unknown[1]!r}. Its arguments: {has}."
        ) from None
    if not isinstance(env, ToolEnv):
        raise ConfigurationError(f"{env_id!r} has no tools: it is not a toolgym.ToolEnv.")
    if env.spec is not None:
        env.spec.id = env_id  # including the module, because records of episodes need it
    return env


def parameters_of(creator: Callable[..., Any]) -> tuple[dict[str, Any], bool]:
    """Return the named arguments of an environment's class or function, with their defaults.

    A class that accepts `**kwargs` passes them to its base class, so the arguments of the base
    class that have a default are included.

    Returns:
        The defaults of the arguments by name (`inspect.Parameter.empty` if there is none), and
        whether other keyword arguments are accepted.
    """
    makers: list[Any] = [creator]
    if isinstance(creator, type):
        makers = [vars(base)["__init__"] for base in creator.__mro__ if "__init__" in vars(base)]
    options: dict[str, Any] = {}
    takes_any: list[bool] = []
    for maker in makers:
        parameters = list(inspect.signature(maker).parameters.values())
        for each in parameters[1:] if isinstance(creator, type) else parameters:
            named = each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
            if named and (not takes_any or each.default is not each.empty):
                options.setdefault(each.name, each.default)
        takes_any.append(any(each.kind is each.VAR_KEYWORD for each in parameters))
        if not takes_any[-1]:
            break
    return options, takes_any[0]
