"""HTML report of one or several runs: results, learning curves, transcripts and settings.

The report is a single file without external resources, so it can be sent by email and opened
offline.
"""

from toolgym.report.page import write_report

__all__ = ["write_report"]
