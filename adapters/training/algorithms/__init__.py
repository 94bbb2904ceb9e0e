"""Algorithms that trainers share: groups, advantages, dynamic sampling, metrics.

Read `groups` first, then `advantages`; `dynamic_sampling` replaces groups that teach nothing, and
`rollout_metrics` counts what a batch shows.
"""
