"""`toolgym tasks`: look at a data set before an agent does, or make one.

* `check` verifies every task: how many can be played, which are refused and why;
* `stats` counts them by database, hardness and shape of the result;
* `show` shows one in full, its solution included;
* `synth` writes tasks for databases that have none;
* `invent` writes databases for `synth`.

The environment that plays the tasks loads them, so what is looked at is what is played, and no
command knows a file format. What is known of tasks beyond that, such as the splits of a data set,
the environment's family tells (`toolgym.family`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.commands import (
    AsJson,
    Quiet,
    Ray,
    Settings,
    Workers,
    arguments_for,
    facts_text,
    family_of,
    print_json,
    print_table,
    say,
    spread_of,
)
from toolgym.commands.completion import SPLITS, data_sets, environments, one_of
from toolgym.commands.progress import progress_bar
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.inspection import TaskReport, TaskStats
    from toolgym.tasks import TaskSet


DataSet = Annotated[
    str,
    typer.Argument(help="A folder, a file, or the name of a data set.", autocompletion=data_sets),
]
OneSplit = Annotated[
    str | None,
    typer.Option(
        "--split",
        help="A part of the data set; all parts without it.",
        autocompletion=one_of(*SPLITS),
    ),
]
Environment = Annotated[
    str,
    typer.Option(
        "--env", help="The environment that plays the tasks.", autocompletion=environments
    ),
]
Databases = Annotated[
    str | None, typer.Option(help="Where the databases lie, if not beside the questions.")
]
EXPLORE = "sqlgym/Explore-v0"


def task_sets(
    env_id: str,
    dataset: str,
    split: str | None,
    databases: str | None,
    settings: list[str] | None = None,
) -> dict[str, TaskSet[Any]]:
    """The tasks by split: of the one that is asked for, else of all that there are.

    Raises:
        ConfigurationError: The data set or the split is not there.
    """
    from toolgym import registration

    splits: Sequence[str | None] = [split] if split else family_of(env_id).splits(dataset) or [None]
    sets = {}
    for name in splits:
        options = arguments_for(env_id, settings, dataset=dataset, split=name, databases=databases)
        sets[name or "all"] = registration.make(env_id, **options).tasks
    if not sets:
        raise ConfigurationError(f"{dataset} has no split.")
    return sets


Split = Annotated[str, typer.Option(help="A part of the data set.", autocompletion=one_of(*SPLITS))]
Shown = Annotated[int, typer.Option(min=0, help="Lines of refusals, faults and duplicates, each.")]


def check(
    dataset: DataSet,
    split: Split = "dev",
    env_id: Environment = EXPLORE,
    databases: Databases = None,
    settings: Settings = None,
    show: Shown = 20,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Verify every task and report what can be played, what is refused, and why.

    Verdicts are kept in the cache folder, so a second check is quick. The exit status is 2 where
    nothing can be played.

    Example:
        toolgym tasks check bundled --split dev
        toolgym tasks check bundled --json
    """
    from toolgym import registration
    from toolgym.inspection import check_tasks

    options = arguments_for(env_id, settings, dataset=dataset, split=split, databases=databases)
    tasks = registration.make(env_id, **options).tasks
    with progress_bar("tasks checked", quiet=quiet) as progress:
        report = check_tasks(tasks, progress)
    if as_json:
        print_json(report.to_json())
    else:
        _print_report(report, show)
    if not report.playable:
        raise ConfigurationError(
            f"none of the {report.tasks:,} tasks of {report.name} is playable."
        )


def _print_report(report: TaskReport, show: int) -> None:
    say(f"{report.name}: {report.tasks:,} tasks on {report.items:,} items")
    say(f"playable: {report.playable:,}")
    reasons = ", ".join(f"{count:,} {code}" for code, count in report.codes.items())
    refused = [f"{r['task_id']} [{r['code']}] {r['reason']}" for r in report.refused]
    _print_list("refused", refused, show, f" ({reasons})" if reasons else "")
    faults = [f"{fault['task_id']} {fault['message']}" for fault in report.faults]
    _print_list("faults of the machine", faults, show)
    _print_list("questions asked twice", [", ".join(ids) for ids in report.duplicates], show)


def _print_list(what: str, lines: list[str], show: int, more: str = "") -> None:
    say(f"{what}: {len(lines):,}{more}")
    for line in lines[:show]:
        say(f"  {line}")
    if len(lines) > show > 0:
        say(f"  ... ({len(lines) - show:,} more; --show N, or --json for all)")


def stats(
    dataset: DataSet,
    split: OneSplit = None,
    env_id: Environment = EXPLORE,
    databases: Databases = None,
    settings: Settings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Count the tasks of a data set, by database, hardness and shape of the result.

    Every gold is run once; what can not be played is counted as refused.

    Example:
        toolgym tasks stats bundled
        toolgym tasks stats tasks --json
    """
    from toolgym.inspection import count_tasks

    sets = task_sets(env_id, dataset, split, databases, settings)
    with progress_bar("tasks counted", quiet=quiet) as progress:
        counted = count_tasks(dataset, sets, family_of(env_id), progress)
    if as_json:
        print_json(counted.to_json())
        return
    _print_counts(counted)


def _print_counts(counted: TaskStats) -> None:
    say(f"{counted.name}: {counted.tasks:,} tasks, {counted.refused:,} of them refused\n")
    from rich.table import Table

    first, *others = counted.facts
    values = [value for fact in others for value in counted.values(fact)]
    table = Table("split", first, "tasks", *values, box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for row in counted.rows():
        numbers = [row.tasks, *(row.counts.get(value, 0) for value in values)]
        table.add_row(row.split, row.item, *(f"{number:,}" for number in numbers))
    print_table(table)


TaskId = Annotated[str, typer.Argument(metavar="ID", help="The id of the task.")]


def show(
    dataset: DataSet,
    task_id: TaskId,
    split: OneSplit = None,
    env_id: Environment = EXPLORE,
    databases: Databases = None,
    settings: Settings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show one task in full: the question, its solution, and why it is refused if it is.

    Example:
        toolgym tasks show bundled observatory-001
        toolgym tasks show bundled observatory-001 --json
    """
    sets = task_sets(env_id, dataset, split, databases, settings)
    where, tasks = _holder(sets, task_id, dataset)
    facts = {"id": task_id, "split": where}
    refusal = tasks.refused.get(task_id)
    if task_id not in _loaded(tasks, task_id):
        facts["refused"] = f"[{refusal.code}] {refusal.reason}" if refusal else ""
    else:
        task = tasks.get(task_id)
        facts |= family_of(env_id).shown(task)
        refusal = tasks.refusal_of(task)
        facts["refused"] = f"[{refusal.code}] {refusal.reason}" if refusal else "no"
    if as_json:
        print_json(facts)
        return
    say(facts_text(facts))


def _loaded(tasks: TaskSet[Any], task_id: str) -> list[str]:
    """The id, if it is that of a task and not of an entry that could not be loaded."""
    try:
        return [tasks.get(task_id).id]
    except ConfigurationError:
        return []


def _holder(sets: dict[str, TaskSet[Any]], task_id: str, dataset: str) -> tuple[str, TaskSet[Any]]:
    """The split that has the task.

    Raises:
        ConfigurationError: None has; the message names the nearest ids.
    """
    for split, tasks in sets.items():
        if task_id in tasks.refused or _loaded(tasks, task_id):
            return split, tasks
    ids = [id_ for tasks in sets.values() for id_ in tasks.ids]
    near = get_close_matches(task_id, ids, n=3) or ids[:3]
    raise ConfigurationError(
        f"there is no task {task_id!r} in {dataset} ({', '.join(sets)}); there is, for example,"
        f" {', '.join(near)}."
    )


Sources = Annotated[
    list[Path], typer.Argument(metavar="DATABASE", help="SQLite files, or folders of them.")
]
Out = Annotated[Path, typer.Option(help="The folder to write.")]
Number = Annotated[int, typer.Option("--n", "-n", min=1, help="Tasks of each database at most.")]
Seed = Annotated[int, typer.Option(min=0, help="Chooses among the tasks that can be written.")]
Shares = Annotated[
    str | None, typer.Option(help="Shares of the levels, such as easy=0.3,medium=0.4,hard=0.3.")
]
Tables = Annotated[
    str | None, typer.Option(help="Tables to ask about, such as singer,song; all without it.")
]
Variants = Annotated[int, typer.Option(min=1, help="Tasks that may differ in their values only.")]
Splits = Annotated[str, typer.Option(help="Splits and their shares, such as train=0.9,dev=0.1.")]
Link = Annotated[bool, typer.Option("--link", help="Link to the databases instead of copying.")]
Force = Annotated[
    bool, typer.Option("--overwrite", "--force", help="Replace a folder that synth has written.")
]


def synth(
    sources: Sources,
    out: Out,
    n: Number = 500,
    seed: Seed = 0,
    hardness: Shares = None,
    tables: Tables = None,
    variants: Variants = 4,
    splits: Splits = "dev=1",
    link: Link = False,
    force: Force = False,
    env_id: Environment = EXPLORE,
    workers: Workers = None,
    ray: Ray = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write tasks for databases that have none, as a folder in the Spider layout.

    Several splits divide three databases or more by database, fewer by what is asked: no question
    and no query, whatever its values, occurs in two. The same seed gives the same tasks.

    With --workers the databases are divided among processes of this machine, with --ray among
    those of a cluster (docs/ray.md); the tasks are the same.

    Example:
        toolgym tasks synth my.db --out tasks
        toolgym tasks synth my.db --out tasks --n 2000 --splits train=0.8,dev=0.2 --overwrite
        toolgym tasks synth databases --out tasks --workers 2
    """
    from toolgym.family import SynthesisOrder

    options: dict[str, Any] = {"n": n, "seed": seed, "variants": variants}
    if hardness is not None:
        options["hardness"] = shares_of("--hardness", hardness)
    if tables is not None:
        options["tables"] = [name.strip() for name in tables.split(",") if name.strip()]
    shares = shares_of("--splits", splits)
    family = family_of(env_id)
    with spread_of(ray, workers) as spread, progress_bar("tasks written", quiet=quiet) as progress:
        order = SynthesisOrder(tuple(sources), out, shares, options, link, force, spread)
        summary = family.synthesize(order, progress)
    if as_json:
        print_json(summary)
    else:
        _print_synthesis(summary)


def invent(
    out: Out,
    n: Annotated[int, typer.Option("--n", "-n", min=1, max=100_000, help="How many.")] = 100,
    first: Annotated[
        int, typer.Option(min=0, help="The number of the first; each is always the same one.")
    ] = 0,
    env_id: Environment = EXPLORE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Invent databases, small ones of many topics, for tasks to be written for.

    A model that learns from a few databases learns their tables by heart. Of hundreds it cannot: it
    has to read the schema.

    Example:
        toolgym tasks invent --out invented --n 200
        toolgym tasks synth invented --out tasks --n 16 --splits train=1
    """
    with progress_bar("databases invented", quiet=quiet) as progress:
        files = family_of(env_id).invent(out, n, first, progress)
    if as_json:
        print_json({"out": out, "databases": [file.name for file in files]})
        return
    say(f"{out}: {len(files):,} databases, from {files[0].name} to {files[-1].name}")


def shares_of(option: str, text: str) -> dict[str, float]:
    """The shares in a text such as `train=0.9,dev=0.1`.

    Raises:
        ConfigurationError: It is not of that form.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        try:
            share = shares[name.strip()] = float(number)
        except ValueError:
            raise ConfigurationError(
                f"{option} must be of the form NAME=SHARE,NAME=SHARE, got {text!r}."
            ) from None
        if not 0 <= share <= 1:
            raise ConfigurationError(
                f"{option} takes shares from 0 to 1, as in {name.strip()}=0.5, got {part.strip()};"
                " how many tasks there are is --n."
            )
    return shares


def _print_synthesis(summary: Mapping[str, Any]) -> None:
    from rich.table import Table

    sources = summary["sources"]
    levels = list(dict.fromkeys(level for one in sources.values() for level in one["by_hardness"]))
    table = Table("database", "candidates", "kept", *levels, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, source in sources.items():
        numbers = [source["candidates"], source["kept"]]
        numbers += [source["by_hardness"].get(level, 0) for level in levels]
        table.add_row(name, *(f"{number:,}" for number in numbers))
    print_table(table)
    for name, source in sources.items():
        _print_reasons(name, source)
    for name, why in summary["refused"].items():
        say(f"\n{name}: no tasks: {why}")
    counted = ", ".join(f"{count:,} {split}" for split, count in summary["splits"].items())
    dropped = (
        f" ({summary['dropped']:,} left out that two would share)" if summary["dropped"] else ""
    )
    say(f"\n{summary['out']}: {counted}{dropped}")


def _print_reasons(name: str, source: Mapping[str, Any]) -> None:
    """Why candidates became no tasks, and what is not asked about."""
    rejected = sorted(source["rejected"].items(), key=lambda pair: (-pair[1], pair[0]))
    reasons = ", ".join(f"{count:,} {code}" for code, count in rejected if count)
    say(f"\n{name}: rejected: {reasons or 'none'}")
    for level, why in source["missing"].items():
        say(f"  too few {level}: {why}")
    for left_out, why in source["left_out"].items():
        say(f"  left out: {left_out}: {why}")


command = typer.Typer(
    help="""Look at the tasks of a data set, or write some.

\b
Example:
    toolgym tasks check bundled --split dev
    toolgym tasks synth my.db --out tasks
    toolgym tasks stats tasks
"""
)

for function in (check, stats, show, synth, invent):
    command.command(function.__name__)(function)
