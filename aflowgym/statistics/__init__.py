"""Statistics of the workflows in recorded rollouts and in the logs of other trainers."""

from aflowgym.statistics.logs import read_log
from aflowgym.statistics.tables import workflow_statistics

__all__ = ["read_log", "workflow_statistics"]
