"""The environments: a workflow that is written as a text, or composed by one operator a turn.

Read `base` first, then `compose` and `operate`. `players` are the expert and the novice, `family`
is what commands know of played tasks, `recheck` the second rule for verdicts.
"""
