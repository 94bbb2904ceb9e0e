"""Guards: they watch the metrics of a training, and warn, skip an update, roll back or stop.

Read `guards` first, then `checks` (the table of guards) and `config`; `advice` has the cures.
"""

from adapters.training.guards.guards import Guards

__all__ = ["Guards"]
