"""The catalogue of experiments: a name on the command line, and the module that has it.

A new experiment is a module with an `EXPERIMENT` and a line here. Modules are imported when they
are asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

from adapters.lab.experiment import Experiment
from toolgym.errors import ConfigurationError

MODULES: Final[Mapping[str, str]] = {
    "null-wall": "adapters.lab.experiments.null_wall",
    "post-episode": "adapters.lab.experiments.post_episode",
    "group-size": "adapters.lab.experiments.group_size",
    "advantage-collapse": "adapters.lab.experiments.advantage_collapse",
    "entropy": "adapters.lab.experiments.entropy",
    "kl": "adapters.lab.experiments.kl",
    "length": "adapters.lab.experiments.length",
    "noisy-verifier": "adapters.lab.experiments.noisy_verifier",
    "fallback": "adapters.lab.experiments.fallback",
    "warm-up": "adapters.lab.experiments.warm_up",
    "estimators": "adapters.lab.experiments.estimators",
    "estimators-sql": "adapters.lab.experiments.estimators_sql",
}
"""In the order of the report."""
HEADLINES: Final = ("null-wall", "post-episode", "group-size", "fallback")
"""Those that `--quick` runs with seeds enough for a verdict."""


def experiment(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ConfigurationError: There is none.
    """
    if name not in MODULES:
        raise ConfigurationError(
            f"there is no experiment {name!r}; choose among {', '.join(MODULES)}."
        )
    return in_module(MODULES[name])


def in_module(module: str) -> Experiment:
    """The experiment that a module has."""
    value = importlib.import_module(module).EXPERIMENT
    if not isinstance(value, Experiment):
        raise TypeError(f"{module}.EXPERIMENT is no Experiment.")
    return value
