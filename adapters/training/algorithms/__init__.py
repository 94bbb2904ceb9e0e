"""Algorithms that trainers share: groups, advantages, dynamic sampling, metrics.

Read `groups` first, then `advantages`. `dynamic_sampling` replaces groups with one outcome,
`rollout_metrics` computes the metrics of a batch, and `workers` runs tool calls in threads.
"""
