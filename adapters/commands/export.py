"""`toolgym export`: data for other trainers, as a folder that `load_dataset` loads.

* `rows` writes tasks in the row format of a trainer: TRL, verl or SkyRL;
* `demonstrations` writes the expert's transcripts, for supervised training;
* `rollouts` writes what a run or an evaluation recorded, with rewards and outcomes;
* `openenv` (`export_openenv`) writes an environment itself, for OpenEnv;
* `verifiers` writes a package by which verifiers and its hub play one.

Options and the folder are checked before any work. Progress goes to stderr, the
summary to stdout: a few lines, or one JSON object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adapters.commands.export_openenv import Overwrite, openenv
from toolgym.commands import (
    AsJson,
    Dataset,
    EnvId,
    OneSplit,
    Phase,
    Quiet,
    RunsEnv,
    Settings,
    arguments_for,
    check_folder,
    family_of,
    parameters_of,
    print_json,
    say,
    settings_of,
)
from toolgym.commands.evaluate import MOST_REFUSED
from toolgym.commands.progress import progress_bar
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from adapters.export.folder import Format
    from adapters.export.tables import Export, LeftOut
    from adapters.export.tasks import Part

Out = Annotated[Path, typer.Option(help="Folder to write.")]
FormatName = Annotated[
    str,
    typer.Option(
        "--format",
        help="File format: parquet (needs the extra train) or jsonl.",
    ),
]
Splits = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        help="Split of the data set; may be repeated (default: all splits).",
    ),
]
TrainSplit = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        help="Split of the data set; may be repeated (default: train).",
    ),
]
Tasks = Annotated[
    int | None,
    typer.Option("--n", "-n", min=1, help="Maximum number of tasks per split (default: all)."),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Random seed that orders the tasks and selects those of --n.")
]
Trainer = Annotated[
    str,
    typer.Option(
        "--for",
        help="Row format: trl, verl or skyrl.",
    ),
]
Final = Annotated[
    str,
    typer.Option(help="Text of a last turn without a call, for TRL's own tool loop; may be empty."),
]
Recoveries = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Share of calls that fail first, with weight 0, and are then mended (default: 0).",
    ),
]
ArgumentsName = Annotated[
    str,
    typer.Option(
        "--arguments",
        help="Format of call arguments: text (exact JSON), or object for chat templates that would "
        "encode a text a second time.",
    ),
]
PackageName = Annotated[
    str | None, typer.Option(help="Name of the package (default: from the environment's id).")
]
RunPath = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="Run folder, or a folder or file of `toolgym eval --out`.",
    ),
]
Rollouts = Annotated[
    int | None,
    typer.Option(
        "--n", "-n", min=1, help="Maximum number of rollouts, from the first (default: all)."
    ),
]


def rows(
    env_id: EnvId,
    out: Out,
    trainer: Trainer = "trl",
    dataset: Dataset = None,
    split: Splits = None,
    n: Tasks = None,
    seed: Seed = 0,
    settings: Settings = None,
    format: FormatName = "parquet",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write tasks as rows for a trainer: TRL, verl or SkyRL.

    Each row holds the id of a task, which the trainer's environment plays. Tasks that cannot be
    played fairly are left out and listed with the reason.

    Example:
        toolgym export rows sqlgym/Explore-v0 --out rows
        toolgym export rows sqlgym/Explore-v0 --for verl --n 20 --out rows-verl
        toolgym export rows aflowgym/Compose-v0 --split train --format jsonl --out rows-jsonl
    """
    from adapters.export.rows import row_format, task_export

    row_format(trainer)
    checked = _checked(out, format, overwrite)
    wanted = _wanted(env_id, dataset, split, settings, everything=True)
    parts, left_out, facts = _parts(env_id, wanted, n, seed, quiet)
    export = task_export(env_id, parts, facts, left_out, trainer=trainer)
    counts = _write(export, out, checked, overwrite)
    _tell(export, out, checked, counts, as_json, {"for": trainer})


def demonstrations(
    env_id: EnvId,
    out: Out,
    dataset: Dataset = None,
    split: TrainSplit = None,
    n: Tasks = None,
    seed: Seed = 0,
    settings: Settings = None,
    final: Final = "done",
    recoveries: Recoveries = 0.0,
    arguments: ArgumentsName = "text",
    format: FormatName = "parquet",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write demonstrations for supervised training.

    A row is an episode of the expert as chat messages with tool calls. Only episodes with a right
    answer are kept. Arguments are not padded: `datasets` returns a call with exactly the keys that
    the expert wrote.

    Example:
        toolgym export demonstrations sqlgym/Explore-v0 --n 20 --out demonstrations
        toolgym export demonstrations sqlgym/Explore-v0 --n 20 --recoveries 0.3 --out recoveries
        toolgym export demonstrations aflowgym/Operate-v0 --n 20 --arguments object --out objects
    """
    from adapters.export.demonstrations import checked_arguments, demonstration_export

    how = checked_arguments(arguments)
    checked = _checked(out, format, overwrite)
    wanted = _wanted(env_id, dataset, split, settings, everything=False)
    parts, left_out, facts = _parts(env_id, wanted, n, seed, quiet)
    with progress_bar("expert plays", quiet=quiet) as progress:
        export = demonstration_export(
            *(env_id, parts, facts, left_out),
            seed=seed,
            recoveries=recoveries,
            arguments=how,
            final=final,
            progress=progress,
        )
        counts = _write(export, out, checked, overwrite)
    _tell(export, out, checked, counts, as_json, {"arguments": how})


def rollouts(
    run: RunPath,
    out: Out,
    phase: Phase = None,
    n: Rollouts = None,
    env: RunsEnv = None,
    settings: Settings = None,
    arguments: ArgumentsName = "text",
    format: FormatName = "parquet",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the rollouts of a run or evaluation with rewards.

    The prompt is the environment's, made with the arguments that the run recorded. A file of
    `toolgym eval --out FILE.jsonl` records none: pass those that were not the default with --set.

    Example:
        toolgym export rollouts runs/explore-001 --phase grpo --out rollouts
        toolgym export rollouts runs/expert --format jsonl --out rollouts-jsonl
    """
    from adapters.export.demonstrations import checked_arguments
    from adapters.export.rollouts import rollout_export

    how = checked_arguments(arguments)
    checked = _checked(out, format, overwrite)
    given = settings_of(settings)
    if env is not None:
        parameters_of(env)  # imports its module
    with progress_bar("rollouts read", quiet=quiet) as progress:
        export = rollout_export(
            run, phases=phase, n=n, settings=given, arguments=how, progress=progress
        )
        counts = _write(export, out, checked, overwrite)
    _tell(export, out, checked, counts, as_json, {"arguments": how})


def verifiers(
    env_id: EnvId,
    out: Out,
    name: PackageName = None,
    dataset: Dataset = None,
    split: OneSplit = None,
    n: Tasks = None,
    seed: Seed = 0,
    settings: Settings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a package for verifiers, in the layout of its hub.

    The package holds the id and the arguments of the environment, and no tasks; it needs toolgym
    where it runs. Install it with pip, and run it with vf-eval NAME.

    Example:
        toolgym export verifiers sqlgym/Explore-v0 --split train --out explore
        toolgym export verifiers aflowgym/Compose-v0 --n 50 --name my-workflows --out workflows
    """
    from adapters.verifiers.package import (
        Package,
        check_empty,
        checked_name,
        default_name,
        write_package,
    )
    from toolgym import registration

    named = checked_name(name or default_name(env_id))
    check_empty(out)
    check_folder(out)
    env_kwargs = arguments_for(env_id, settings, dataset=dataset, split=split)
    tasks = registration.make(env_id, **env_kwargs).tasks
    if not len(tasks.first_playable(1)):
        raise ConfigurationError(tasks.nothing_playable())
    write_package(Package(named, env_id, env_kwargs, n, seed), out)
    if as_json:
        print_json({"out": out, "name": named, "env_id": env_id, "env_kwargs": env_kwargs})
        return
    say(f"{out}: {named}, {env_id} for verifiers; pip install -e {out}, vf-eval {named}")


def _checked(out: Path, format: str, overwrite: bool) -> Format:
    """Refuse a format or a place before any work."""
    from adapters.export.folder import check_format, check_place

    checked = check_format(format)
    check_place(out, overwrite)
    check_folder(out)
    return checked


def _wanted(
    env_id: str,
    dataset: str | None,
    splits: list[str] | None,
    settings: list[str] | None,
    *,
    everything: bool,
) -> list[dict[str, Any]]:
    """The arguments of the environment for each split that is to be exported.

    Args:
        everything: Without `--split` all splits of the data set, else the environment's own.
    """
    from toolgym.registration import dataset_of

    given = arguments_for(env_id, settings, dataset=dataset)
    own = parameters_of(env_id)[0].get("split")
    if not splits and everything and "split" not in given and own is not None:
        named = dataset_of(env_id, given)
        splits = list(family_of(env_id).splits(named)) if isinstance(named, str | Path) else []
    names: list[str | None] = [*splits] if splits else [None if "split" in given else own]
    return [arguments_for(env_id, settings, dataset=dataset, split=name) for name in names]


def _parts(
    env_id: str, wanted: list[dict[str, Any]], n: int | None, seed: int, quiet: bool
) -> tuple[list[Part], list[LeftOut], dict[str, str]]:
    """The tasks of each split, what is refused, and what the card tells of their origin."""
    from adapters.export.tasks import facts_of, open_parts

    with progress_bar("tasks checked", quiet=quiet) as progress:
        parts, left_out = open_parts(env_id, wanted, n=n, seed=seed, progress=progress)
    return parts, left_out, facts_of(env_id, parts, seed)


def _write(export: Export, out: Path, format: Format, overwrite: bool) -> dict[str, int]:
    """The rows of each split."""
    from adapters.export.folder import write_export

    return write_export(export, out, format=format, overwrite=overwrite)


def _tell(
    export: Export,
    out: Path,
    format: Format,
    counts: Mapping[str, int],
    as_json: bool,
    more: Mapping[str, Any],
) -> None:
    """The summary: what was written, and what was left out and why."""
    if as_json:
        summary = {
            "out": str(out),
            "format": format,
            **more,
            "facts": dict(export.facts),
            "rows": dict(counts),
            "columns": [each.name for each in export.columns],
            "left_out": [asdict(each) for each in export.left_out],
        }
        print_json(summary)
        return
    told = ", ".join(f"{count:,} {split}" for split, count in counts.items())
    say(f"{out}: {export.title}: {told} ({format})")
    if export.left_out:
        counted = Counter(each.code for each in export.left_out)
        reasons = ", ".join(f"{count:,} {code}" for code, count in counted.most_common())
        say(f"left out: {len(export.left_out):,} ({reasons})")
    for each in export.left_out[:MOST_REFUSED]:
        say(f"  {each.split}: {each.task_id} [{each.code}] {each.reason}")
    if (more_left := len(export.left_out) - MOST_REFUSED) > 0:
        say(f"  ... and {more_left:,} more; --json lists all of them.")


command = typer.Typer(
    help="""Export data or an environment to another framework.

Example:
    toolgym export rows sqlgym/Explore-v0 --for verl --out rows
    toolgym export demonstrations sqlgym/Explore-v0 --n 100 --out demonstrations
    toolgym export rollouts runs/explore-001 --out rollouts
    toolgym export openenv toolgym_env
    toolgym export verifiers sqlgym/Explore-v0 --out explore
"""
)

for function in (rows, demonstrations, rollouts, openenv, verifiers):
    command.command(function.__name__)(function)
