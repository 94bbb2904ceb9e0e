"""A run, or several, as one HTML page with plots.

The page holds everything it shows: it can be mailed, printed, and opened in ten years without a
network. It says first what was trained on what and what came of it, then how the training went,
then what the model does now that it did not do before; settings come last. What is missing is said.
"""

from toolgym.report.page import write_report

__all__ = ["write_report"]
