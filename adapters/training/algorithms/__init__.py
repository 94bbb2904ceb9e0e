"""Algorithms that trainers share: groups, advantages, dynamic sampling, metrics.

Read `groups` first, then `advantages`. `dynamic_sampling` replaces groups with one outcome, and
`rollout_metrics` computes the metrics of a batch.
"""
