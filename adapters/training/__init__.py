"""The common part of both trainers: settings, models, supervised training, guards, evaluations.

Nothing here depends on a trainer. Demonstrations, supervised steps, evaluations and the run folder
are the same with each.
"""
