"""The common part of both trainers: models as policies, demonstrations, warm-up, the run's phases.

Nothing here knows a particular trainer. A run is the same whichever one does the reinforcement
learning: the same demonstrations, the same warm-up, the same evaluations, the same run folder.
"""
