"""Environments in which the agent writes a workflow as text or calls individual operators.

* `base` contains the base class of the environments in `compose` and `operate`.
* `players` contains the expert and the novice.
* `family` supports the commands that read recorded episodes.
* `recheck` checks recorded episodes with a second, independent method.
"""
