"""Plug-ins of installed packages, discovered through entry points.

There are six groups: commands, environments, policies, workers, dashboards and names of models. The
plug-ins of a group are found from package metadata alone. A plug-in is imported when it is loaded.
If the import fails, the error message names the package of the plug-in.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from toolgym.errors import ToolgymError

COMMANDS = "toolgym.commands"
ENVIRONMENTS = "toolgym.environments"
POLICIES = "toolgym.policies"
WORKERS = "toolgym.workers"
DASHBOARDS = "toolgym.dashboards"
MODEL_NAMES = "toolgym.model_names"


class PluginError(ToolgymError):
    """Raised for an entry point that cannot be loaded.

    The message contains the name of the entry point, its package and the reason.
    """


@dataclass(frozen=True)
class Plugin:
    """One entry point of an installed package."""

    point: EntryPoint

    @property
    def origin(self) -> str:
        """The name and version of the plug-in's distribution."""
        dist = self.point.dist
        return f"{dist.name} {dist.version}" if dist is not None else "an unknown package"

    def load(self) -> Any:
        """Import the plug-in and return the object that the entry point's value refers to.

        Raises:
            PluginError: The import or the lookup failed.
        """
        try:
            return self.point.load()
        except Exception as problem:  # a module of another package may raise any exception
            point = self.point
            raise PluginError(
                f"the entry point {point.name!r} of {self.origin} ({point.value}) cannot be loaded:"
                f" {type(problem).__name__}: {problem}."
            ) from problem


def find_plugins(group: str) -> dict[str, Plugin]:
    """Return the entry points of a group by name, in alphabetical order, without importing them.

    If several entry points have the same name, the first one is returned.
    """
    plugins: dict[str, Plugin] = {}
    for point in entry_points(group=group):
        plugins.setdefault(point.name, Plugin(point))
    return dict(sorted(plugins.items()))
