"""Guards: checks of the metrics of a training that warn, skip an update, roll back or stop.

Read `guards` first, then `checks` (the table of guards) and `config`. `fault_limit` ends a run
whose environment keeps failing.
"""

from adapters.training.guards.guards import Guards

__all__ = ["Guards"]
