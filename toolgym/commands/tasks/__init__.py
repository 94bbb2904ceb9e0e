"""`toolgym tasks`: look at a data set before an agent does, or make one.

* `check` verifies every task;
* `stats` counts them by database, hardness and shape of the result;
* `show` shows one in full, its solution included;
* `synth` writes tasks for databases that have none.

The data set is loaded by the environment that plays it, so what is looked at is what is played.
What a family knows of its tasks beyond that, it tells by `toolgym.family`.
"""

import typer

from toolgym.commands.tasks.check import check
from toolgym.commands.tasks.show import show
from toolgym.commands.tasks.stats import stats
from toolgym.commands.tasks.synth import synth

command = typer.Typer(
    help="""Look at the tasks of a data set, or write some.

\b
Example:
    toolgym tasks check bundled --split dev
    toolgym tasks synth my.db --out tasks
    toolgym tasks stats tasks
"""
)

for function in (check, stats, show, synth):
    command.command(function.__name__)(function)
