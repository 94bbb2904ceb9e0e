"""Put the bundled tasks into the wheel: `data/sql` becomes `sqlgym/_data/sql`, and so on.

In a checkout the tasks are text under `data/`, beside the packages that read them; in a wheel
they must lie inside a package. An editable install reads the checkout, so it gets no copy:
hatchling's plain `force-include` would make one there too, which is why this is a hook.
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
