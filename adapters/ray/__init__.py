"""Batches of episodes, and databases that tasks are written for, in the workers of a Ray cluster.

`toolgym eval` and `toolgym tasks synth` find `workers.ray_workers` by the entry point `ray` of the
group `toolgym.workers` when they are given `--ray ADDRESS|local`. It needs the extra `ray`, which
is imported when a cluster is asked for.
"""
