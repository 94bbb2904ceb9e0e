"""The common part of both trainers: models as policies, demonstrations, warm-up, the run's phases.

Nothing here knows a particular trainer. A run is the same whichever one does the reinforcement
learning: the same demonstrations, the same warm-up, the same evaluations, the same run folder.
"""

from toolgym.former_paths import redirect

redirect(
    {
        "adapters.training.audit": "adapters.training.runs.audit",
        "adapters.training.demonstrations": "adapters.training.models.demonstrations",
        "adapters.training.evaluations": "adapters.training.runs.evaluations",
        "adapters.training.outcomes": "adapters.training.algorithms.groups",
        "adapters.training.reporting": "toolgym.runs.dashboards",
        "adapters.training.settings": "adapters.training.runs.settings",
        "adapters.training.watch": "adapters.training.runs.progress",
    }
)
