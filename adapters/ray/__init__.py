"""The workers of a Ray cluster, for evaluations and the synthesis of tasks.

`toolgym eval` and `toolgym tasks synth` find `workers.ray_workers` by the entry point `ray` of the
group `toolgym.workers` when they are given `--ray`. It needs the extra `ray`.
"""
