"""Statistics of many recorded workflows.

Read `tables` first, which puts together what the others count.
"""

from aflowgym.statistics.tables import workflow_statistics

__all__ = ["workflow_statistics"]
