"""The parts of a training run: evaluations and their tasks, supervised training, GRPO, audit.

`train` in `adapters.commands.train_run` is the sequence of its phases.
"""
