"""One HTML page about one or several runs: results, learning curves, transcripts and settings.

The page is one file that loads nothing, so it can be mailed and opened offline.
"""

from toolgym.report.page import write_report

__all__ = ["write_report"]
