"""What the commands on data sets share: their options, and how they load the tasks of a set.

The environment that plays the tasks loads them, so no command knows a file format; which splits a
data set has, the environment's family says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.commands import arguments_for, family_of
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.tasks import TaskSet

DataSet = Annotated[str, typer.Argument(help="A folder, a file, or the name of a data set.")]
OneSplit = Annotated[
    str | None, typer.Option("--split", help="A part of the data set; all parts without it.")
]
Environment = Annotated[str, typer.Option("--env", help="The environment that plays the tasks.")]
Databases = Annotated[
    str | None, typer.Option(help="Where the databases lie, if not beside the questions.")
]
EXPLORE = "sqlgym/Explore-v0"


def task_sets(
    env_id: str, dataset: str, split: str | None, databases: str | None
) -> dict[str, TaskSet[Any]]:
    """The tasks by split: of the one that is asked for, else of all that there are.

    Raises:
        ConfigurationError: The data set or the split is not there.
    """
    from toolgym import registration

    splits: Sequence[str | None] = [split] if split else family_of(env_id).splits(dataset) or [None]
    found = {}
    for name in splits:
        options = arguments_for(env_id, dataset=dataset, split=name, databases=databases)
        found[name or "all"] = registration.make(env_id, **options).tasks
    if not found:
        raise ConfigurationError(f"{dataset} has no split.")
    return found
