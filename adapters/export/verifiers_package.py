"""A package for the library verifiers, in the layout that the library's hub requires.

The file `pyproject.toml` defines a distribution that requires toolgym with the extra `verifiers`,
and `NAME/__init__.py` defines the taskset with its defaults. The package specifies only the
environment and its arguments; the code is in `adapters.verifiers`.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from adapters.export.folder import put_in_place, write_texts
from toolgym import registration
from toolgym.errors import ConfigurationError
from toolgym.records import FIGURES

_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_PROJECT: Final = """\
[project]
name = "{name}"
version = "0.1.0"
description = "{env_id} of toolgym for verifiers."
readme = "README.md"
requires-python = ">=3.11"
tags = ["tool-use", "multi-turn", "train", "eval"]
dependencies = ["toolgym[verifiers]>={toolgym}"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""
_MODULE: Final = '''\
"""{env_id} of toolgym, as a taskset of verifiers."""

from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from adapters.verifiers.environment import (
    EpisodeConfig,
    EpisodeEnv,
    EpisodeEnvConfig,
    Episodes,
    EpisodeTask,
)
from adapters.verifiers.harness import DirectHarness

ENV_KWARGS: dict[str, Any] = {env_kwargs}


class Config(EpisodeConfig):
    """The defaults of this package, which `--env.taskset.*` changes."""

    env_id: str = "{env_id}"
    env_kwargs: dict[str, Any] = Field(default_factory=lambda: dict(ENV_KWARGS))
    n: int | None = Field({n}, ge=1)
    seed: int = {seed}


class Tasks(Episodes, vf.Taskset[EpisodeTask, Config]):
    """The tasks of {env_id}."""


__all__ = ["DirectHarness", "EpisodeEnv", "EpisodeEnvConfig", "Tasks"]
'''
_README: Final = """\
# {name}

The tasks of `{env_id}`, an environment of toolgym, for verifiers. The environment answers each
message of the model. It repairs calls that have only one reading. Its error messages contain a call
that works.

    pip install -e .
    vf-eval {name} --model MODEL --client.base-url URL --num-rollouts 4 --no-push

The reward is the score of the episode. Metrics: {figures}, and the
parts of the score as `part/NAME`. `trace.info["episode"]` is the record of the episode.

Arguments of the environment: `{env_kwargs_json}`; tasks: {tasks}.
"""


def write_package(
    out: Path,
    env_id: str,
    env_kwargs: Mapping[str, Any],
    *,
    name: str | None = None,
    n: int | None = None,
    seed: int = 0,
) -> str:
    """Write the package atomically.

    Args:
        out: The folder, which must not exist or must be empty.
        env_id: Id of a registered environment.
        env_kwargs: Arguments of the environment, as JSON values.
        name: Name of the distribution. The module has the same name, with underscores in place of
            hyphens. None means `toolgym-` followed by the name of the environment.
        n: Number of tasks; None means all.
        seed: Seed of the choice of tasks.

    Returns:
        The name of the distribution.

    Raises:
        ConfigurationError: If the folder or the name cannot be used, or no task can be played.
        EnvironmentFault: If a file cannot be written.
    """
    if name is None:
        own = env_id.rpartition("/")[2].lower()
        name = "toolgym-" + "".join(letter if letter in _LETTERS else "-" for letter in own)
    module = name.replace("-", "_")
    if not set(name) <= _LETTERS or not module.isidentifier() or keyword.iskeyword(module):
        raise ConfigurationError(
            f"--name {name} is not a package name. Use small letters, digits and hyphens, as in"
            " toolgym-explore-v0."
        )
    tasks = registration.make(env_id, **env_kwargs).tasks
    if not len(tasks.first_playable(1)):
        raise ConfigurationError(tasks.nothing_playable())
    values = {
        "name": name,
        "env_id": env_id,
        "toolgym": version("toolgym"),
        "module": module,
        "env_kwargs": repr(dict(env_kwargs)),
        "env_kwargs_json": json.dumps(dict(env_kwargs), ensure_ascii=False),
        "n": n,
        "seed": seed,
        "tasks": "all that can be played" if n is None else f"{n}, seed {seed}",
        "figures": ", ".join(FIGURES),
    }
    texts = {
        "pyproject.toml": _PROJECT.format(**values),
        "README.md": _README.format(**values),
        f"{module}/__init__.py": _MODULE.format(**values),
    }
    with put_in_place(out) as built:
        write_texts(texts, built)
    return name
