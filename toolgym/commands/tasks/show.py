"""`toolgym tasks show`: one task in full, its solution included.

What there is to show, the family of the environment says; why a task is refused, the task set does.
The task is looked for in every split, and an id that is nowhere is answered with the nearest ones.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.commands import AsJson, family_of
from toolgym.commands.tasks.options import (
    EXPLORE,
    Databases,
    DataSet,
    Environment,
    OneSplit,
    task_sets,
)
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.tasks import TaskSet

TaskId = Annotated[str, typer.Argument(metavar="ID", help="The id of the task.")]


def show(
    dataset: DataSet,
    task_id: TaskId,
    split: OneSplit = None,
    env_id: Environment = EXPLORE,
    databases: Databases = None,
    as_json: AsJson = False,
) -> None:
    """Show one task in full: the question, its solution, and why it is refused if it is.

    Example:
        toolgym tasks show bundled observatory-001
    """
    found = task_sets(env_id, dataset, split, databases)
    where, tasks = _holder(found, task_id, dataset)
    told = {"id": task_id, "split": where}
    refusal = tasks.refused.get(task_id)
    if task_id not in _loaded(tasks, task_id):
        told["refused"] = f"[{refusal.code}] {refusal.reason}" if refusal else ""
    else:
        task = tasks.get(task_id)
        told |= family_of(env_id).shown(task)
        refusal = tasks.refusal_of(task)
        told["refused"] = f"[{refusal.code}] {refusal.reason}" if refusal else "no"
    if as_json:
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    for name, text in told.items():
        typer.echo(f"{name}:\n{_indented(text)}" if "\n" in text else f"{name}: {text}")


def _loaded(tasks: TaskSet[Any], task_id: str) -> list[str]:
    """The id, if it is that of a task and not of an entry that could not be loaded."""
    try:
        return [tasks.get(task_id).id]
    except ConfigurationError:
        return []


def _holder(found: dict[str, TaskSet[Any]], task_id: str, dataset: str) -> tuple[str, TaskSet[Any]]:
    """The split that has the task.

    Raises:
        ConfigurationError: None has; the message names the nearest ids.
    """
    for split, tasks in found.items():
        if task_id in tasks.refused or _loaded(tasks, task_id):
            return split, tasks
    ids = [known for tasks in found.values() for known in tasks.ids]
    near = get_close_matches(task_id, ids, n=3) or ids[:3]
    raise ConfigurationError(
        f"there is no task {task_id!r} in {dataset} ({', '.join(found)}); there is, for example,"
        f" {', '.join(near)}."
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
