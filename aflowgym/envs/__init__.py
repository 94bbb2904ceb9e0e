"""The environments: the agent writes a workflow as text, or calls one operator per turn.

- `base` is the common base of `compose` and `operate`.
- `players` has the expert and the novice.
- `family` serves commands on recorded episodes.
- `recheck` is the second rule that scores recorded episodes.
"""
