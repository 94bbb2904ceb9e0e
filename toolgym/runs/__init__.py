"""Run folders: config, metrics, rollouts, summary and checkpoints of a training run or an
evaluation.

`run` defines the folder, `files` reads and writes JSON files, `metrics` lists the keys of
`metrics.jsonl`, and `episodes` reads the episodes of runs, evaluations and files.
"""

from toolgym.runs.run import Run

__all__ = ["Run"]
