"""Reads and writes `toolgym.json`, which records the environment and the settings of a checkpoint's
run.

A training run writes the file into every checkpoint, so that a copied or moved checkpoint can be
evaluated on the same data. The file contains `env_id`, `env_kwargs` and `max_new_tokens`.
`env_kwargs` are the arguments of the environment in the run's evaluations (data set, split, step
limit, options of the family), with absolute paths. `max_new_tokens` is the maximum number of tokens
of a turn.

A checkpoint may come from an untrusted source, so its `toolgym.json` can specify data, but neither
code nor a server. An environment that is defined in a module, and the address of a server, must be
given by the caller.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolgym.errors import ConfigurationError
from toolgym.policies import SERVED
from toolgym.registration import recorded
from toolgym.runs.files import object_text, plain, read_object, replace_file

FILE: Final = "toolgym.json"
_PATHS: Final = ("dataset", "databases")
_OF_THE_DATA: Final = ("split", "task_part", "databases", "synthesis")
"""Arguments of the run that are ignored if the caller gives another data set."""


@dataclass(frozen=True)
class Origin:
    """The environment and the settings of the run that wrote a checkpoint.

    Attributes:
        folder: The folder of the checkpoint, as given by the caller.
        env_id: The id of the environment.
        env_kwargs: The arguments of the environment in evaluations.
        max_new_tokens: Maximum number of tokens of a turn in evaluations; None if unknown.
    """

    folder: str
    env_id: str
    env_kwargs: Mapping[str, Any]
    max_new_tokens: int | None = None

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the caller's arguments, completed with arguments of the run.

        If the caller gives a data set, the run's split is not used. If the caller gives a split,
        the run's restriction to a part of its split is not used.

        Raises:
            ConfigurationError: An argument of the run contains the address of a server or the name
                of a model on a server.
        """
        left_out = {*given}
        if "dataset" in given:
            left_out.update(_OF_THE_DATA)
        if "split" in given:
            left_out.add("task_part")
        taken = {name: value for name, value in self.env_kwargs.items() if name not in left_out}
        for name, value in taken.items():
            text = json.dumps(value)
            if "://" in text or SERVED in text:  # requests to such a model contain a key
                raise ConfigurationError(
                    f"{self.folder}/{FILE} names a server: {name}={text}. If you trust it,"
                    f" pass the argument yourself, as in --set {name}=VALUE."
                )
        return {**taken, **given}


def write_origin(
    folder: Path, env_id: str, env_kwargs: Mapping[str, Any], max_new_tokens: int | None = None
) -> None:
    """Write `toolgym.json` into the folder of a checkpoint.

    Args:
        folder: The folder of the checkpoint.
        env_id: The id of the environment.
        env_kwargs: The arguments of the environment in evaluations.
        max_new_tokens: Maximum number of tokens of a turn in evaluations.

    Raises:
        ConfigurationError: An argument cannot be converted to JSON.
    """
    names = data_sets_of(env_id)
    kwargs = {
        name: str(Path(value).expanduser().resolve()) if _is_path(name, value, names) else value
        for name, value in plain(env_kwargs, "env_kwargs").items()
    }
    record = {"env_id": env_id, "env_kwargs": kwargs, "max_new_tokens": max_new_tokens}
    replace_file(folder / FILE, [object_text(record)])


def origin_of(model: str) -> Origin | None:
    """Read the origin of a model. Return None if the model is not a folder or the folder contains
    no `toolgym.json`.

    Raises:
        ConfigurationError: The file is damaged.
    """
    file = Path(model).expanduser() / FILE
    try:
        if not file.is_file():
            return None
    except (OSError, ValueError):  # the name is not a valid path
        return None
    record = read_object(file)
    env_id, kwargs = record.get("env_id"), record.get("env_kwargs")
    tokens = record.get("max_new_tokens")
    is_count = tokens is None or (type(tokens) is int and tokens > 0)
    if not isinstance(env_id, str) or not isinstance(kwargs, dict) or not is_count:
        raise ConfigurationError(
            f"{file} must have `env_id`, `env_kwargs` and `max_new_tokens`, as `toolgym train`"
            " writes them: delete it, and give the environment and its data set yourself."
        )
    return Origin(model, env_id, kwargs, tokens)


def named_environment(model: str) -> str:
    """Return the id of the environment that a checkpoint was trained for.

    Raises:
        ConfigurationError: The folder contains no `toolgym.json`, or the environment is defined in
            a module, which would have to be imported.
    """
    origin = origin_of(model)
    if origin is None:
        raise ConfigurationError(
            "name an environment, such as sqlgym/Explore-v0 (`toolgym envs` lists all). It can be"
            f" left out only for a checkpoint of `toolgym train`, and {model!r} has no {FILE}."
        )
    return recorded(origin.env_id)


def environment_of(model: str) -> tuple[str, dict[str, Any]]:
    """Return the id and the arguments of the environment for evaluations of a checkpoint.

    Args:
        model: The folder of a checkpoint of `toolgym train`.

    Raises:
        ConfigurationError: The folder contains no `toolgym.json`, or this file names code or a
            server.
    """
    env_id = named_environment(model)
    return env_id, with_settings_of(model, env_id, {}, {})[0]


def with_settings_of(
    model: str, env_id: str, env_kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Complete the settings of an evaluation with settings of the run that wrote a checkpoint.

    Args:
        model: A model. No settings are added if the model is not a checkpoint of a run.
        env_id: The environment of the evaluation.
        env_kwargs: The arguments of the environment that the caller gives.
        options: The options of the policy that the caller gives.

    Returns:
        The arguments, the options, and a sentence about the settings taken from the run ("" without
        a run).

    Raises:
        ConfigurationError: The `toolgym.json` of the checkpoint is damaged, or names a server.
    """
    arguments, chosen = dict(env_kwargs), dict(options)
    origin = origin_of(model)
    if origin is None:
        return arguments, chosen, ""
    if env_id.rpartition(":")[2] != origin.env_id.rpartition(":")[2]:
        notice = f"{model} was trained for {origin.env_id}: none of its settings are used."
        return arguments, chosen, notice
    arguments = origin.complete(env_kwargs)
    taken = {name: value for name, value in arguments.items() if name not in env_kwargs}
    if origin.max_new_tokens is not None and "max_new_tokens" not in options:
        taken["max_new_tokens"] = chosen["max_new_tokens"] = origin.max_new_tokens
    listed = ", ".join(f"{name}={value}" for name, value in taken.items()) or "none"
    return arguments, chosen, f"Settings of the run that trained {model}: {listed}."


def data_sets_of(env_id: str) -> tuple[str, ...]:
    """Return the names of the data sets in the package that defines an environment."""
    module = sys.modules.get(env_id.partition("/")[0].partition(":")[0])
    return tuple(getattr(module, "DATA_SETS", ()))


def _is_path(name: str, value: Any, names: tuple[str, ...]) -> bool:
    if name not in _PATHS or not isinstance(value, str) or value in names:
        return False
    return Path(value).expanduser().exists()
