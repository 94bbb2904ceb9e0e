"""A training run from its settings to its verdict.

Read `settings` first, then `phases` (imitate, measure, reinforce, measure again); `evaluations`
are what it is measured on, `gain` what may be said of it, `audit` judges its rollouts again.
"""
