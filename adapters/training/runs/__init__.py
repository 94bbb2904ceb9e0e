"""Parts of a training run: evaluations, supervised training, GRPO and audit.

`train` in `adapters.commands.train_run` runs the phases in order.
"""
