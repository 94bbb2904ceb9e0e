"""Guards: checks of training metrics that warn, skip an update, roll back or stop.

- `guards` decides whether to make each optimizer step.
- `checks` holds the table of guards and their checks.
- `config` holds the settings.
- `fault_limit` ends a run whose environment keeps failing.
"""

from adapters.training.guards.guards import Guards

__all__ = ["Guards"]
