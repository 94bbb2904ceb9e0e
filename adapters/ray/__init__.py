"""The workers of a Ray cluster, for evaluations and the synthesis of tasks.

With `--ray`, `toolgym eval` and `toolgym tasks synth` find `workers.ray_workers` by the entry point
`ray` of the group `toolgym.workers`. It needs the extra `ray`.
"""
