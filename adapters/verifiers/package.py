"""A package for verifiers, in the layout of its hub: what `toolgym export verifiers` writes.

    pyproject.toml        its name, and that it needs toolgym with the extra `verifiers`
    README.md             what it is, and how it is run
    NAME/__init__.py      the taskset with its defaults, and what plays it

The code lies in toolgym; the package says which environment, with which arguments. Nothing of this
needs verifiers.
"""

from __future__ import annotations

import json
import keyword
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.records import FIGURES

_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_PROJECT: Final = """\
[project]
name = {name}
version = "0.1.0"
description = {description}
readme = "README.md"
requires-python = ">=3.11"
tags = ["tool-use", "multi-turn", "train", "eval"]
dependencies = ["toolgym[verifiers]>={toolgym}"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = [{module}]
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
    """The defaults of this package; each may be set by `--env.taskset.*`."""

    env_id: str = {quoted}
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
message of the model: calls that have one plain meaning are mended and priced, mistakes are answered
with a call that works.

    pip install -e .
    vf-eval {name} --model MODEL --client.base-url URL --num-rollouts 4 --no-push

The reward is the score of the episode. Metrics: {figures}, and the
parts of the score as `part/NAME`. `trace.info["episode"]` is the whole record.

Arguments of the environment: `{env_kwargs}`; tasks: {tasks}.
"""


@dataclass(frozen=True)
class Package:
    """What a package says.

    Attributes:
        name: Of the distribution; its module has underscores for hyphens.
        env_id: A registered environment.
        env_kwargs: By which it is made; JSON can hold them.
        n: Tasks; None for all.
        seed: Chooses them.
    """

    name: str
    env_id: str
    env_kwargs: Mapping[str, Any]
    n: int | None = None
    seed: int = 0

    @property
    def module(self) -> str:
        """Of its code."""
        return self.name.replace("-", "_")

    def files(self) -> dict[str, str]:
        """The texts, by their paths."""
        given = dict(self.env_kwargs)
        description = f"{self.env_id} of toolgym: tools, repaired calls, taught errors, a score."
        told = {
            "env_id": self.env_id,
            "env_kwargs": repr(given),
            "n": self.n,
            "seed": self.seed,
            "quoted": json.dumps(self.env_id),
        }
        return {
            "pyproject.toml": _PROJECT.format(
                name=json.dumps(self.name),
                description=json.dumps(description),
                toolgym=version("toolgym"),
                module=json.dumps(self.module),
            ),
            "README.md": _README.format(
                name=self.name,
                env_id=self.env_id,
                figures=", ".join(FIGURES),
                env_kwargs=json.dumps(given, ensure_ascii=False),
                tasks="all that can be played" if self.n is None else f"{self.n}, seed {self.seed}",
            ),
            f"{self.module}/__init__.py": _MODULE.format(**told),
        }


def default_name(env_id: str) -> str:
    """The name of a package that is given none.

    >>> default_name("sqlgym/Explore-v0")
    'toolgym-explore-v0'
    """
    own = env_id.rpartition("/")[2].lower()
    return "toolgym-" + "".join(letter if letter in _LETTERS else "-" for letter in own)


def checked_name(name: str) -> str:
    """The name, if a distribution and a module can be called so.

    Raises:
        ConfigurationError: They cannot.
    """
    module = name.replace("-", "_")
    if not set(name) <= _LETTERS or not module.isidentifier() or keyword.iskeyword(module):
        raise ConfigurationError(
            f"--name {name} is no name for a package: take small letters, digits and hyphens, as in"
            " toolgym-explore-v0."
        )
    return name


def check_empty(out: Path) -> None:
    """Refuse a place that is taken.

    Raises:
        ConfigurationError: It is a file, or a folder with something in it.
    """
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise ConfigurationError(f"--out {out} is not an empty folder: name another one.")


def write_package(package: Package, out: Path) -> None:
    """Write the folder; it is there as a whole or not at all.

    Raises:
        ConfigurationError: The place is taken.
        EnvironmentFault: It cannot be written.
    """
    check_empty(out)
    place = out.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as name:
            built = Path(name) / "built"
            for path, text in package.files().items():
                (built / path).parent.mkdir(parents=True, exist_ok=True)
                (built / path).write_text(text, encoding="utf-8")
            built.rename(place)  # over an empty folder, if there is one
    except OSError as problem:
        raise EnvironmentFault(
            f"{out} cannot be written: {problem.strerror or problem}.",
            "Make room there, or name another folder with --out.",
        ) from problem
