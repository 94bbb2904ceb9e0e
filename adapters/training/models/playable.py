"""The tasks that a trainer draws from: those that can be played fairly, in an order of the seed.

A task whose gold leaves a choice open, or whose file is gone, would teach that right answers are
wrong; it is refused by its task set, with a reason, and left out here.
"""

from __future__ import annotations

from toolgym.errors import ConfigurationError
from toolgym.tasks import Task, TaskSet


def playable_tasks(tasks: TaskSet[Task], n: int | None, seed: int) -> TaskSet[Task]:
    """All playable tasks or `n` of them, in an order chosen by the seed.

    Raises:
        ConfigurationError: `n` is below 1, or none is playable.
    """
    if n is not None and n < 1:
        raise ConfigurationError(f"n must be at least 1, or None for all tasks; got {n}.")
    shuffled = tasks.shuffle(seed)
    chosen = shuffled.playable() if n is None else shuffled.first_playable(n)
    if not len(chosen):
        codes = sorted({refusal.code for refusal in tasks.refused.values()})
        raise ConfigurationError(
            f"no task of {tasks.name} is playable: {', '.join(codes) or 'none'}."
        )
    return chosen
