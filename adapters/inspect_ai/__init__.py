"""Environments as tasks of Inspect, the UK AI Security Institute's framework for evaluations.

`inspect eval toolgym/env -T env_id=sqlgym/Explore-v0 --model ...` runs episodes with any model that
Inspect supports. Inspect finds the task through the entry point `toolgym` in the group
`inspect_ai`.

`play` plays one episode, and `task` defines samples, scores and metrics. Both modules need the
extra `inspect-ai`; importing this package does not.
"""
