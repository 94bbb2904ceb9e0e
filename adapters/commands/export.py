"""`toolgym export`: write data sets and environments for other frameworks.

`rows`, `demonstrations` and `rollouts` write data sets; `openenv` and `verifiers` write
environments. Options and the folder are checked first. Progress is printed to stderr, and the
summary to stdout.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from adapters.commands.serving import Idle, MaxSessions
from toolgym.commands import (
    AsJson,
    Dataset,
    EnvId,
    OneSplit,
    Phase,
    Quiet,
    RunsEnv,
    Settings,
    StepLimit,
    arguments_for,
    check_folder,
    environments,
    family_of,
    parameters_of,
    print_json,
    say,
    settings_of,
)
from toolgym.commands.evaluate import MOST_REFUSED
from toolgym.commands.progress import progress_bar
from toolgym.registration import dataset_of

if TYPE_CHECKING:
    from adapters.export.tables import Export, LeftOut
    from adapters.export.tasks import Part

Out = Annotated[Path, typer.Option(help="New or empty folder to write.")]
FormatName = Annotated[
    Literal["parquet", "jsonl"],
    typer.Option("--format", help="File format; parquet requires the `train` extra."),
]
Splits = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        help="Split of the data set; may be repeated (default: all).",
    ),
]
DemonstrationSplits = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        help="Split of the data set; may be repeated (default: the environment's).",
    ),
]
Number = Annotated[
    int | None,
    typer.Option("--n", "-n", min=1, help="Maximum number of tasks per split (default: all)."),
]
RolloutNumber = Annotated[
    int | None,
    typer.Option("--n", "-n", min=1, help="Maximum number of rollouts (default: all)."),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed that selects and orders the tasks.")]
Trainer = Annotated[
    Literal["trl", "verl", "skyrl"], typer.Option("--for", help="Trainer that reads the rows.")
]
Final = Annotated[
    str,
    typer.Option(
        help="Text of a final turn without a call, which ends TRL's tool loop; may be empty."
    ),
]
Recoveries = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Fraction of calls that are preceded by a failed call and its error message. Failed"
        " calls have a loss weight of 0.",
    ),
]
ArgumentsName = Annotated[
    Literal["text", "object"],
    typer.Option(
        "--arguments",
        help="Type of the call arguments: text (encoded as JSON), or object for chat templates"
        " that encode it.",
    ),
]
PackageName = Annotated[
    str | None, typer.Option(help="Name of the package (default: derived from the environment id).")
]
RunPath = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="Run folder, or output of `toolgym eval --out`."),
]


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="New or empty folder to write.")]
Served = Annotated[
    str,
    typer.Option("--env", help="Environment to serve.", autocompletion=environments),
]


def rows(
    env_id: EnvId,
    out: Out,
    trainer: Trainer = "trl",
    dataset: Dataset = None,
    split: Splits = None,
    n: Number = None,
    seed: Seed = 0,
    settings: Settings = None,
    format: FormatName = "parquet",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write tasks as rows for TRL, verl or SkyRL.

    Each row contains the id of a task, which the environment loads during training. Tasks that
    cannot be scored reliably are left out and listed with the reason.

    Example:
        toolgym export rows sqlgym/Explore-v0 --out rows
        toolgym export rows sqlgym/Explore-v0 --for verl --n 20 --out rows-verl
        toolgym export rows aflowgym/Compose-v0 --split train --format jsonl --out rows-jsonl
    """
    from adapters.export.rows import task_export

    _check(out, format)
    if not split:
        given = arguments_for(env_id, settings, dataset=dataset)
        named = dataset_of(env_id, given)
        has_splits = "split" in parameters_of(env_id)[0] and "split" not in given
        if has_splits and isinstance(named, str | Path):
            split = list(family_of(env_id).splits(named))
    parts, left_out, facts = _parts(env_id, dataset, split, n, seed, settings, quiet)
    _write(task_export(env_id, parts, facts, left_out, trainer=trainer), out, format, as_json)


def demonstrations(
    env_id: EnvId,
    out: Out,
    dataset: Dataset = None,
    split: DemonstrationSplits = None,
    n: Number = None,
    seed: Seed = 0,
    settings: Settings = None,
    final: Final = "done",
    recoveries: Recoveries = 0.0,
    arguments: ArgumentsName = "text",
    format: FormatName = "parquet",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write demonstrations for supervised training.

    Each row is an episode in which the expert answers correctly, as chat messages with tool calls.
    Loading the rows with `datasets` does not add null arguments to the calls.

    Example:
        toolgym export demonstrations sqlgym/Explore-v0 --n 20 --out demonstrations
        toolgym export demonstrations sqlgym/Explore-v0 --n 20 --recoveries 0.3 --out recoveries
    """
    from adapters.export.demonstrations import demonstration_export

    _check(out, format)
    parts, left_out, facts = _parts(env_id, dataset, split, n, seed, settings, quiet)
    with progress_bar("expert plays", quiet=quiet) as progress:
        export = demonstration_export(
            *(env_id, parts, facts, left_out),
            seed=seed,
            recoveries=recoveries,
            arguments=arguments,
            final=final,
            progress=progress,
        )
        _write(export, out, format, as_json)


def rollouts(
    run: RunPath,
    out: Out,
    phase: Phase = None,
    n: RolloutNumber = None,
    env: RunsEnv = None,
    settings: Settings = None,
    arguments: ArgumentsName = "text",
    format: FormatName = "parquet",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the rollouts and rewards of a run or an evaluation.

    The prompts are rebuilt with the environment options that the run recorded. A .jsonl file does
    not record the options; pass those that differ from the defaults with --set.

    Example:
        toolgym export rollouts runs/explore-001 --phase grpo --out rollouts
        toolgym export rollouts runs/expert --format jsonl --out rollouts-jsonl
    """
    from adapters.export.rollouts import rollout_export

    _check(out, format)
    given = settings_of(settings)
    if env is not None:
        parameters_of(env)  # imports its module
    with progress_bar("rollouts read", quiet=quiet) as progress:
        export = rollout_export(
            run, phases=phase, n=n, settings=given, arguments=arguments, progress=progress
        )
        _write(export, out, format, as_json)


def openenv(
    out: Folder,
    env_id: Served = "sqlgym/Explore-v0",
    dataset: Dataset = None,
    split: OneSplit = None,
    step_limit: StepLimit = None,
    settings: Settings = None,
    max_sessions: MaxSessions = 64,
    idle: Idle = 900.0,
    as_json: AsJson = False,
) -> None:
    """Write an environment as a folder for OpenEnv.

    The folder contains a client for trainers, and a server with its Dockerfile. The environment and
    its options are set in server/app.py.

    Example:
        toolgym export openenv toolgym_env
        toolgym export openenv compose_env --env aflowgym/Compose-v0 --split train
    """
    from adapters.export.openenv_folder import write_folder

    _check(out)
    env_kwargs = arguments_for(
        env_id, settings, dataset=dataset, split=split, step_limit=step_limit
    )
    files = write_folder(out, env_id, env_kwargs, max_sessions=max_sessions, idle=idle)
    if as_json:
        print_json({"out": out, "env_id": env_id, "env_kwargs": env_kwargs, "files": files})
    else:
        say(f"{out}: {env_id} for OpenEnv ({', '.join(files)})")


def verifiers(
    env_id: EnvId,
    out: Out,
    name: PackageName = None,
    dataset: Dataset = None,
    split: OneSplit = None,
    n: Number = None,
    seed: Seed = 0,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Write a package for verifiers, in the layout of its hub.

    The package depends on toolgym. It contains the id and the options of the environment, but no
    tasks. Install the package with pip, and evaluate a model with vf-eval NAME.

    Example:
        toolgym export verifiers sqlgym/Explore-v0 --split train --out explore
        toolgym export verifiers aflowgym/Compose-v0 --n 50 --name my-workflows --out workflows
    """
    from adapters.export.verifiers_package import write_package

    _check(out)
    env_kwargs = arguments_for(env_id, settings, dataset=dataset, split=split)
    name = write_package(out, env_id, env_kwargs, name=name, n=n, seed=seed)
    if as_json:
        print_json({"out": out, "name": name, "env_id": env_id, "env_kwargs": env_kwargs})
    else:
        say(f"{out}: {env_id} for verifiers. Next: pip install -e {out} && vf-eval {name}")


def _check(out: Path, format: Literal["parquet", "jsonl"] = "jsonl") -> None:
    from adapters.export.folder import check_place

    check_place(out, format)
    check_folder(out)


def _parts(
    env_id: str,
    dataset: str | None,
    splits: list[str] | None,
    n: int | None,
    seed: int,
    settings: list[str] | None,
    quiet: bool,
) -> tuple[list[Part], list[LeftOut], dict[str, str]]:
    """Return the tasks of each split, the refused tasks, and the facts for the card."""
    from adapters.export.tasks import facts_of, open_parts

    given = arguments_for(env_id, settings, dataset=dataset)
    own = None if "split" in given else parameters_of(env_id)[0].get("split")
    wanted = [
        arguments_for(env_id, settings, dataset=dataset, split=name) for name in splits or (own,)
    ]
    with progress_bar("tasks checked", quiet=quiet) as progress:
        parts, left_out = open_parts(env_id, wanted, n=n, seed=seed, progress=progress)
    return parts, left_out, facts_of(env_id, parts, seed)


def _write(export: Export, out: Path, format: Literal["parquet", "jsonl"], as_json: bool) -> None:
    """Write the folder, and print the number of rows and the tasks that were left out."""
    from adapters.export.folder import write_export

    counts = write_export(export, out, format=format)
    if as_json:
        summary: dict[str, Any] = {
            "out": out,
            "format": format,
            "facts": dict(export.facts),
            "rows": counts,
            "columns": [each.name for each in export.columns],
            "left_out": [asdict(each) for each in export.left_out],
        }
        print_json(summary)
        return
    written = ", ".join(f"{count:,} {split}" for split, count in counts.items())
    say(f"{out}: {export.title}: {written} ({format})")
    if export.left_out:
        counted = Counter(each.code for each in export.left_out)
        reasons = ", ".join(f"{count:,} {code}" for code, count in counted.most_common())
        say(f"left out: {len(export.left_out):,} ({reasons}); --json lists all of them")
    for each in export.left_out[:MOST_REFUSED]:
        say(f"  {each.split}: {each.task_id} [{each.code}] {each.reason}")


command = typer.Typer(help="Export data or an environment to another framework.")

for function in (rows, demonstrations, rollouts, openenv, verifiers):
    command.command(function.__name__)(function)
