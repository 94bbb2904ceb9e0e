"""The folder that a run leaves behind: config, metrics, rollouts, summary.

Read `run` first; `files` writes whole lines and whole files, `metrics` is the vocabulary of
`metrics.jsonl`, `episodes` reads the episodes of runs, evaluations and files.
"""

from toolgym.runs.run import Run

__all__ = ["Run"]
