"""`toolgym audit`: check recorded verdicts with a second, independent rule.

Prints the agreement, and each rollout on which the two rules disagree, with the task and its
solution, so that a person can decide which rule is correct.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolgym.commands import AsJson, Phase, Quiet, RunsEnv, parameters_of, print_json, say
from toolgym.commands.progress import progress_bar

RunFolder = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="Run folder, or folder of `toolgym eval --out`.",
    ),
]
Sample = Annotated[
    int | None, typer.Option("--n", "-n", min=1, help="Number of rollouts to check.")
]
Everything = Annotated[bool, typer.Option("--all", help="Check all rollouts.")]
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
    """Check the verdicts of rollouts with a second, independent rule.

    Prints the agreement with its 95 % Wilson interval, and the disagreements. The exit status is 1
    if the rules disagree.

    Example:
        toolgym audit runs/explore-001
        toolgym audit runs/explore-001 --phase grpo --n 2000 --json
    """
    from adapters.training.runs.audit import audit
    from toolgym.runs.run import ALL_PHASES, Run

    if env is not None:
        parameters_of(env)  # imports its module
    with progress_bar("rollouts checked", quiet=quiet) as progress:
        found = audit(
            Run.open(run),
            n=None if everything else n,
            phases=phase or ALL_PHASES,
            seed=seed,
            progress=progress,
        )
    if as_json:
        print_json(found.to_json())
    else:
        say(f"checked        {found.sampled} of {found.rollouts} rollouts, {found.right} correct")
        say(f"undecided      {found.undecided}")
        low, high = found.interval
        figure = "-  (the second rule decided none of them)"
        if found.agreement is not None:
            figure = f"{found.agreement:.1%}  [{low:.1%}, {high:.1%}]"
        say(f"agreement      {figure}")
        if found.data_changed:
            say("The data set has changed since the run started, so verdicts may differ.")
        words = {True: "correct", False: "incorrect"}
        for each in found.disagreements[:show]:
            where = f"{each['task_id']} ({each['phase']}"
            where += ")" if each["step"] is None else f", step {each['step']})"
            recorded, rechecked = words[each["recorded"]], words[each["rechecked"]]
            say(f"\n--- {where}: recorded as {recorded}, checked as {rechecked}")
            for name, text in each["task"].items():
                say(f"{name}: {text}")
            say(f"> {each['said']}")
        if (left := len(found.disagreements) - show) > 0:
            say(f"... and {left} more; --show N prints N of them")
    if found.disagreements:
        raise typer.Exit(1)
