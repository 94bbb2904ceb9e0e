"""Parts that both trainers share: settings, models, supervised training, guards and evaluations.

None of these modules depends on a particular trainer. Demonstrations, supervised steps, evaluations
and the run folder are the same for every trainer.
"""
