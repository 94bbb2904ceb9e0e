"""`toolgym audit`: judge a sample of a run's rollouts again, by a second rule.

The figures go to stdout, as a few lines or as one JSON object, and after them each rollout on which
the two rules differ, with the task and its solution, so that a person can tell who is right.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgym.commands import (
    AsJson,
    Phase,
    Quiet,
    RunsEnv,
    parameters_of,
    print_json,
    say,
)
from toolgym.commands.progress import progress_bar

if TYPE_CHECKING:
    from adapters.training.runs.audit import Audit, Disagreement

DISAGREES = 1

RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="Run folder, or a folder of `toolgym eval --out`.",
    ),
]
Sample = Annotated[
    int | None, typer.Option("--n", "-n", min=1, help="Maximum number of rollouts to judge.")
]
Everything = Annotated[bool, typer.Option("--all", help="Judge every rollout.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed that selects the sample.")]
Show = Annotated[int, typer.Option(min=0, help="Maximum number of disagreements to print.")]


def command(
    run: RunFolder,
    n: Sample = 500,
    everything: Everything = False,
    phase: Phase = None,
    env: RunsEnv = None,
    seed: Seed = 0,
    show: Show = 20,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Judge rollouts again by a second, independent rule.

    The share on which the two agree is printed with its 95 % Wilson interval, then each rollout on
    which they differ. The exit status is 1 if there is one.

    Example:
        toolgym audit runs/explore-001
        toolgym audit runs/explore-001 --phase grpo --n 2000 --json
    """
    from adapters.training.runs.audit import audit
    from toolgym.runs.run import ALL_PHASES, Run

    if env is not None:
        parameters_of(env)  # imports its module
    with progress_bar("rollouts judged", quiet=quiet) as progress:
        result = audit(
            Run.open(run),
            n=None if everything else n,
            phases=phase or ALL_PHASES,
            seed=seed,
            progress=progress,
        )
    if as_json:
        print_json(result.to_json())
    else:
        say(result_text(result, show))
    if result.disagreements:
        raise typer.Exit(DISAGREES)


def result_text(result: Audit, show: int) -> str:
    """The figures and the disagreements as a person reads them."""
    lines = [
        f"judged again   {result.sampled} of {result.rollouts} rollouts,"
        f" {result.right} of them right",
        f"undecided      {result.undecided}",
        _agreement(result),
    ]
    if result.data_changed:
        lines.append("The data are not what they were when the run began: a verdict may differ.")
    for each in result.disagreements[:show]:
        lines += ["", *_lines(each)]
    left = len(result.disagreements) - show
    return "\n".join([*lines, f"... and {left} more" if left > 0 else ""]).rstrip()


def _agreement(result: Audit) -> str:
    if result.agreement is None:
        return "agreement      -  (the second rule could tell of none)"
    low, high = result.interval
    return f"agreement      {result.agreement:.1%}  [{low:.1%}, {high:.1%}]"


def _lines(each: Disagreement) -> list[str]:
    words = {True: "right", False: "wrong"}
    step = f", step {each.step}" if each.step is not None else ""
    head = f"--- {each.task_id} ({each.phase}{step}): recorded as {words[each.recorded]},"
    lines = [f"{head} judged {words[each.rechecked]}"]
    lines += [f"{name}: {text}" for name, text in each.task.items()]
    return [*lines, f"> {each.said}"]
