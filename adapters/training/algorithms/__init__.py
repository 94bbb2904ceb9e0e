"""What a batch of rollouts is worth to the policy: groups, advantages, metrics.

Read `groups` first, then `advantages`; `dynamic_sampling` replaces groups that teach nothing, and
`rollout_metrics` counts what a batch shows.
"""
