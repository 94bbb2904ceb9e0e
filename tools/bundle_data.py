"""Build hook that adds the bundled tasks to the wheel: `data/sql` as `sqlgym/_data/sql`, and so on.

In a checkout the tasks are under `data/`, next to the packages; in a wheel they must be inside a
package. An editable install reads the checkout and gets no copy, so hatchling's `force-include`,
which applies to both, cannot be used.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WHEREABOUTS = {
    "data/sql": "sqlgym/_data/sql",
    "data/workflows": "aflowgym/_data/workflows",
}


class BundleData(BuildHookInterface[Any]):
    """Hatchling calls `initialize` once before each build of a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the tasks to a standard wheel; a missing folder then fails the build."""
        if version != "editable":
            build_data["force_include"].update(WHEREABOUTS)
