"""The environment that a checkpoint was trained for: `toolgym.json` in its folder.

A training run writes the file into every checkpoint, so a checkpoint that is copied or moved is
still evaluated on the right data. The file holds `env_id`; `env_kwargs`, the arguments of the
environment in which the run measures its model (data set, split, step limit, family options); and
`max_new_tokens`, the tokens of one turn. Paths of data sets are absolute.

A checkpoint may come from a stranger. Its file can name data, and no code and no server: an
environment that lies in a module, and an address, must be given by the caller.
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
from toolgym.runs.files import object_text, plain, read_object, replace_file

FILE: Final = "toolgym.json"
_PATHS: Final = ("dataset", "databases")
_OF_THE_DATA: Final = ("split", "task_part", "databases", "synthesis")
"""Arguments that make no sense with another data set."""


@dataclass(frozen=True)
class Origin:
    """What a checkpoint was trained for.

    Attributes:
        folder: The checkpoint, as the caller named it.
        env_id: The environment.
        env_kwargs: Its arguments in evaluations.
        max_new_tokens: Tokens of one turn in evaluations; None: not known.
    """

    folder: str
    env_id: str
    env_kwargs: Mapping[str, Any]
    max_new_tokens: int | None = None

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The caller's arguments, with those of the run where the caller gave none.

        Another data set than the run's leaves out the run's split, and another split leaves out the
        run's part of it.

        Raises:
            ConfigurationError: An argument of the run holds the address or a model of a server.
        """
        left_out = {*given}
        if "dataset" in given:
            left_out.update(_OF_THE_DATA)
        if "split" in given:
            left_out.add("task_part")
        taken = {name: value for name, value in self.env_kwargs.items() if name not in left_out}
        for name, value in taken.items():
            text = json.dumps(value)
            if "://" in text or SERVED in text:  # a model of the latter is asked with a key
                raise ConfigurationError(
                    f"{self.folder}/{FILE} names a server: {name}={text}. If it is yours,"
                    f" give the argument yourself, as in --set {name}=VALUE."
                )
        return {**taken, **given}


def write_origin(
    folder: Path, env_id: str, env_kwargs: Mapping[str, Any], max_new_tokens: int | None = None
) -> None:
    """Write `toolgym.json` into the folder of a checkpoint.

    Args:
        env_kwargs: The arguments of the environment in evaluations.
        max_new_tokens: Tokens of one turn in evaluations.

    Raises:
        ConfigurationError: JSON cannot hold an argument.
    """
    names = _names_of_data_sets(env_id)
    kwargs = {
        name: str(Path(value).expanduser().resolve()) if _is_path(name, value, names) else value
        for name, value in plain(env_kwargs, "env_kwargs").items()
    }
    record = {"env_id": env_id, "env_kwargs": kwargs, "max_new_tokens": max_new_tokens}
    replace_file(folder / FILE, [object_text(record)])


def origin_of(model: str) -> Origin | None:
    """The origin of a model folder; None where the name is no folder, or the folder has no file.

    Raises:
        ConfigurationError: The file is damaged.
    """
    file = Path(model).expanduser() / FILE
    try:
        if not file.is_file():
            return None
    except (OSError, ValueError):  # a name that no file system takes
        return None
    record = read_object(file)
    env_id, kwargs = record.get("env_id"), record.get("env_kwargs")
    tokens = record.get("max_new_tokens")
    is_count = tokens is None or (type(tokens) is int and tokens > 0)
    if not isinstance(env_id, str) or not isinstance(kwargs, dict) or not is_count:
        raise ConfigurationError(
            f"{file} must hold `env_id`, `env_kwargs` and `max_new_tokens`, as `toolgym train`"
            " writes them: delete it, and name the environment and its data set yourself."
        )
    return Origin(model, env_id, kwargs, tokens)


def named_environment(model: str) -> str:
    """The environment that a checkpoint was trained for, for a caller that names none.

    Raises:
        ConfigurationError: The folder does not say, or names an environment in a module, which
            would be imported.
    """
    origin = origin_of(model)
    if origin is None:
        raise ConfigurationError(
            "name an environment, such as sqlgym/Explore-v0 (`toolgym envs` lists all). Only a"
            f" checkpoint of `toolgym train` names its own, in {FILE}; {model!r} is none."
        )
    if ":" in origin.env_id:
        raise ConfigurationError(
            f"{model} was trained for {origin.env_id}, whose module would be imported. If you trust"
            " the module, give this id yourself."
        )
    return origin.env_id


def environment_of(model: str) -> tuple[str, dict[str, Any]]:
    """The environment that a checkpoint is evaluated in, and its arguments.

    Args:
        model: The folder of a checkpoint that `toolgym train` wrote.

    Raises:
        ConfigurationError: The folder does not say, or names code or a server.
    """
    env_id = named_environment(model)
    return env_id, with_settings_of(model, env_id, {}, {})[0]


def with_settings_of(
    model: str, env_id: str, env_kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What an evaluation uses: what the caller gives, and the rest from the run of a checkpoint.

    Args:
        model: A model of any kind; one that is no checkpoint of a run adds nothing.
        env_id: The environment of the evaluation.
        env_kwargs: Its arguments, as far as the caller gives them.
        options: Options of the policy, as far as the caller gives them.

    Returns:
        Arguments, options, and a sentence on what was taken from the run; empty without one.

    Raises:
        ConfigurationError: The file of the checkpoint is damaged, or names a server.
    """
    arguments, chosen = dict(env_kwargs), dict(options)
    origin = origin_of(model)
    if origin is None:
        return arguments, chosen, ""
    if env_id.rpartition(":")[2] != origin.env_id.rpartition(":")[2]:
        told = f"{model} was trained for {origin.env_id}: none of its settings are used."
        return arguments, chosen, told
    arguments = origin.complete(env_kwargs)
    taken = {name: value for name, value in arguments.items() if name not in env_kwargs}
    if origin.max_new_tokens is not None and "max_new_tokens" not in options:
        taken["max_new_tokens"] = chosen["max_new_tokens"] = origin.max_new_tokens
    listed = ", ".join(f"{name}={value}" for name, value in taken.items()) or "none"
    return arguments, chosen, f"Settings of the run that trained {model}: {listed}."


def _names_of_data_sets(env_id: str) -> tuple[str, ...]:
    """The names of the data sets that come with the package of an environment."""
    module = sys.modules.get(env_id.partition("/")[0].partition(":")[0])
    return tuple(getattr(module, "DATA_SETS", ()))


def _is_path(name: str, value: Any, names: tuple[str, ...]) -> bool:
    if name not in _PATHS or not isinstance(value, str) or value in names:
        return False
    return Path(value).expanduser().exists()
