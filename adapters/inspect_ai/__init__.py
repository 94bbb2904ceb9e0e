"""Environments as tasks of Inspect, the UK AI Security Institute's framework for evaluations.

`inspect eval toolgym/env -T env_id=sqlgym/Explore-v0 --model ...` plays episodes with any model
that Inspect knows. Inspect finds the task by the entry point `toolgym` of the group `inspect_ai`.

Read `play` (one episode), then `task` (samples, scores and metrics). Both need the extra
`inspect-ai`; importing this package does not.
"""
