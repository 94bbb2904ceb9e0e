"""Guards: they watch the metrics of a training, and warn, skip an update, roll back or stop.

Read `guards` first, then `checks` (what is looked at) and `config`; `advice` says what to change.
"""

from adapters.training.guards.guards import Guards

__all__ = ["Guards"]
