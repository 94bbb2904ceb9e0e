"""A training run from its settings to its verdict.

Read `settings` first, then `phases` (imitate, measure, reinforce, measure again); `evaluations`
says what it is measured on and what its gain is, `audit` judges its rollouts again.
"""
