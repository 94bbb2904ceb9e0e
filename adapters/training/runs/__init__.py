"""A training run: settings, evaluations and their tasks, supervised training, GRPO, audit.

`train` in `adapters.commands.train_run` is the sequence of its phases.
"""
