"""Statistics of many recorded workflows: counts, worth, regret, pictures.

Read `tables` first, which puts together what the others count and draw.
"""

from aflowgym.statistics.tables import workflow_statistics

__all__ = ["workflow_statistics"]
