"""Algorithms that trainers share: groups, advantages, dynamic sampling and metrics.

- `groups` defines groups of rollouts and dead groups.
- `advantages` holds the advantage estimators.
- `dynamic_sampling` replaces groups whose members all had the same outcome.
- `rollout_metrics` computes the metrics of a batch.
"""
