"""Workers on a Ray cluster, for evaluations and task synthesis.

With `--ray`, `toolgym eval` and `toolgym tasks synth` find `workers.ray_workers` through the entry
point `ray` in the group `toolgym.workers`. The option requires the extra `ray`.
"""
