"""Parts that both trainers share: settings, models, supervised training, guards and evaluations.

The modules do not depend on a trainer. Demonstrations, supervised steps, evaluations and the run
folder are the same for every trainer.
"""
