"""The tasks that are exported: those of a data set's splits that can be played, with the reasons.

Rows of tasks and demonstrations begin with the same question: which tasks of which splits. The
environment that plays them loads them, so what is exported is what is played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from adapters.export.card import LICENCE
from adapters.export.tables import LeftOut, json_text
from adapters.training.models.demonstrations import playable_tasks
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.registration import dataset_of
from toolgym.tasks import Task, TaskSet

Progress = Callable[[int, int], None]
WHOLE = "train"
"""What the one split of an environment without splits is called: the usual name of a first one."""


@dataclass(frozen=True)
class Part:
    """The tasks of one split that become rows.

    Attributes:
        split: Its name in the folder.
        env: That plays them.
        env_kwargs: By which it was made.
        tasks: Playable ones, in the order of the seed.
    """

    split: str
    env: ToolEnv[Any]
    env_kwargs: Mapping[str, Any]
    tasks: TaskSet[Task]


def open_parts(
    env_id: str,
    wanted: Sequence[Mapping[str, Any]],
    *,
    n: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[list[Part], list[LeftOut]]:
    """The tasks of each split, and those that are refused.

    Args:
        env_id: A registered environment.
        wanted: For each split the arguments of the environment, `split` included if it has one.
        n: Tasks of each split at most; None takes all, and verifies every one of them first.
        seed: Their order, and which `n` are taken.
        progress: Called while tasks are verified.

    Raises:
        ConfigurationError: The environment cannot be made, or a split has no playable task, or two
            would have one name.
    """
    parts: list[Part] = []
    left_out: list[LeftOut] = []
    for env_kwargs in wanted:
        name = split_name(env_kwargs.get("split"))
        if name in (part.split for part in parts):
            raise ConfigurationError(f"two splits would be called {name}: leave one out.")
        env = registration.make(env_id, **env_kwargs)
        if n is None:
            env.tasks.check(progress)
        parts.append(Part(name, env, env_kwargs, playable_tasks(env.tasks, n, seed)))
        refusals = env.tasks.refused.values()
        left_out += [LeftOut(name, each.task_id, each.code, each.reason) for each in refusals]
    return parts, left_out


def split_name(split: Any) -> str:
    """The name of a split in the folder: `datasets` takes letters, digits and underscores.

    >>> split_name("train-2"), split_name(None)
    ('train_2', 'train')
    """
    if split is None:
        return WHOLE
    return "".join(letter if letter.isalnum() else "_" for letter in str(split))


def origin_facts(env_id: str, dataset: Any) -> dict[str, str]:
    """What a card tells of a data set: its name, its licence and its sources."""
    origin = registration.family_of(env_id).origin(dataset)
    return {
        "data set": str(dataset) if isinstance(dataset, str | Path) else "the environment's own",
        LICENCE: origin.license or "the data set names none",
        "sources": origin.sources or "the data set names none",
    }


def facts_of(env_id: str, parts: Sequence[Part], seed: int) -> dict[str, str]:
    """What a card tells of where the rows come from."""
    first = parts[0].env_kwargs
    settings = {k: v for k, v in first.items() if k not in ("dataset", "split")}
    return {
        "environment": f"`{env_id}`",
        **origin_facts(env_id, dataset_of(env_id, first)),
        "arguments of the environment": f"`{json_text(settings)}`" if settings else "its own",
        "splits": ", ".join(part.split for part in parts),
        "seed": str(seed),
        "toolgym": version("toolgym"),
    }
