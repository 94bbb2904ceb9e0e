"""What both trainers share: models and how they act, demonstrations, warm-up, the job's phases.

Nothing here knows a particular trainer. A run is the same whichever one does the reinforcement
learning: the same demonstrations, the same warm-up, the same evaluations, the same run folder.
"""
