"""Drawing tasks by weight, decided by a text and nothing else.

Every step has a random stream of its own, so what is drawn at a step does not depend on whether
the steps before it were drawn in this process: a run that is taken up again draws the same.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Mapping
from typing import TypeVar

from toolgym.errors import ConfigurationError
from toolgym.tasks import Task, TaskSet

T = TypeVar("T", bound=Task)


def drawn(tasks: TaskSet[T], weights: Mapping[str, float], n: int, stream: str) -> list[str]:
    """Draw by weight, without repeating a task until all were drawn (Efraimidis, Spirakis 2006).

    Each task gets the key u^(1/w) with its own uniform u; the largest keys are drawn.

    Args:
        tasks: What is drawn from; a task is verified when it is drawn.
        weights: By task id; a task without weight is never drawn.
        n: How many.
        stream: Names the random stream.

    Raises:
        ConfigurationError: `n` is below 1, or no task that has a weight is playable.
    """
    if n < 1:
        raise ConfigurationError(f"n must be at least 1, got {n}.")
    draw = random.Random(stream)
    keys = [
        (math.log(draw.random() or 5e-324) / weight, task_id)
        for task_id, weight in weights.items()
        if weight > 0
    ]
    chosen: list[str] = []
    for _, task_id in heapq.nlargest(len(keys), keys):
        if len(chosen) == n:
            break
        if tasks.refusal_of(tasks.get(task_id)) is None:
            chosen.append(task_id)
    if not chosen:
        raise ConfigurationError(f"no task of {tasks.name} that has a weight is playable.")
    return [chosen[i % len(chosen)] for i in range(n)]
