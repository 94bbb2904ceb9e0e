"""The playable tasks of a data set, for exports of rows and demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from adapters.export.tables import LeftOut, json_text
from adapters.training.models.demonstrations import playable_tasks
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.registration import dataset_of
from toolgym.tasks import Task, TaskSet

Progress = Callable[[int, int], None]
WHOLE = "train"
"""Name of the only split of an environment without splits."""


@dataclass(frozen=True)
class Part:
    """The tasks of one split.

    Attributes:
        split: The name of the split in the exported folder.
        env: The environment that plays the tasks.
        env_kwargs: The arguments of the environment.
        tasks: The playable tasks, in an order that the seed determines.
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
    """Return the tasks of each split, and the refused tasks.

    Args:
        env_id: Id of a registered environment.
        wanted: Arguments of the environment for each split, including `split` if the environment
            has splits.
        n: Maximum number of tasks per split. None means all tasks, each of which is verified.
        seed: Seed of the order of the tasks and of the choice of `n` tasks.
        progress: Function that is called with the number of verified tasks and the total.

    Raises:
        ConfigurationError: If the environment cannot be made, a split has no playable task, or two
            splits have the same name.
    """
    parts: dict[str, Part] = {}
    left_out: list[LeftOut] = []
    for env_kwargs in wanted:
        # In `datasets` the name of a split may contain letters, digits and underscores.
        split = str(env_kwargs.get("split") or WHOLE)
        name = "".join(letter if letter.isalnum() else "_" for letter in split)
        if name in parts:
            raise ConfigurationError(f"two splits would have the name {name}. Export only one.")
        env = registration.make(env_id, **env_kwargs)
        if n is None:
            env.tasks.check(progress)
        parts[name] = Part(name, env, env_kwargs, playable_tasks(env.tasks, n, seed))
        refusals = env.tasks.refused.values()
        left_out += [LeftOut(name, each.task_id, each.code, each.reason) for each in refusals]
    return list(parts.values()), left_out


def origin_facts(env_id: str, dataset: Any) -> dict[str, str]:
    """Return the name, license and sources of a data set for the card."""
    origin = registration.family_of(env_id).origin(dataset)
    return {
        "data set": str(dataset) if isinstance(dataset, str | Path) else "the environment's own",
        "license": origin.license or "the data set names none",
        **({"sources": origin.sources} if origin.sources else {}),
    }


def facts_of(env_id: str, parts: Sequence[Part], seed: int) -> dict[str, str]:
    """Return facts about the environment, its data and its settings for the card."""
    first = parts[0].env_kwargs
    settings = {k: v for k, v in first.items() if k not in ("dataset", "split")}
    return {
        "environment": f"`{env_id}`",
        **origin_facts(env_id, dataset_of(env_id, first)),
        "arguments of the environment": f"`{json_text(settings)}`" if settings else "its own",
        "seed": str(seed),
        "toolgym": version("toolgym"),
    }
