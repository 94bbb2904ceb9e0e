"""Batches of episodes, and databases that tasks are written for, in the workers of a Ray cluster.

`toolgym eval` and `toolgym tasks synth` find `spread` by the entry point `ray` of the group
`toolgym.spreads` when they are given `--ray ADDRESS|local`. Ray schedules, and does again what a
lost worker had begun; that the results are those of one process follows from the parts
(`toolgym.spread`).

Read `spread`. It needs the extra `ray`, which is imported when a cluster is asked for.
"""
