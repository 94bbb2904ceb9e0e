"""`toolgym tasks`: check, count, show or generate tasks.

* `check` verifies every task and lists the refused tasks with reasons;
* `stats` counts tasks by database, hardness and shape of the result;
* `show` prints a task with its solution;
* `synth` writes tasks for databases;
* `invent` writes databases for `synth`;
* `rephrase` copies a folder of tasks and rephrases the questions with a chat model.

The environment loads the tasks. Other facts, such as the splits of a data set, come from the
family of the environment (`toolgym.family`).
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
    environments,
    facts_text,
    family_of,
    given_once,
    map_of,
    print_json,
    print_table,
    say,
    settings_of,
)
from toolgym.commands.evaluate import BaseUrl, PolicySettings
from toolgym.commands.progress import progress_bar
from toolgym.errors import ConfigurationError, NoTasks
from toolgym.policies.builtin import SERVED

if TYPE_CHECKING:
    from toolgym.tasks import TaskSet


DataSet = Annotated[
    str | None,
    typer.Argument(
        metavar="DATASET",
        help="Data set: a name, folder or file (default: the environment's).",
    ),
]
OneSplit = Annotated[
    str | None, typer.Option("--split", help="Split of the data set (default: all splits).")
]
Environment = Annotated[
    str,
    typer.Option(
        "--env",
        metavar="ENV_ID",
        help="Environment of the tasks: an id or MODULE:ID.",
        autocompletion=environments,
    ),
]
EXPLORE = "sqlgym/Explore-v0"


def task_sets(
    env_id: str,
    dataset: str | None,
    split: str | None,
    settings: list[str] | None = None,
) -> dict[str, TaskSet[Any]]:
    """Return the tasks of one split or of all splits, keyed by the name of the split.

    Raises:
        ConfigurationError: The data set or the split does not exist.
    """
    from toolgym import registration

    family = family_of(env_id)
    own = dataset if dataset is not None else registration.dataset_of(env_id, {})
    found = family.splits(own) if own is not None else ()
    splits: Sequence[str | None] = [split] if split else found or [None]
    sets, empty = {}, []
    for name in splits:
        options = arguments_for(env_id, settings, dataset=dataset, split=name)
        try:
            sets[name or "all"] = registration.make(env_id, **options).tasks
        except NoTasks as problem:
            empty.append(problem)
    if not sets:
        raise empty[0]
    for none in empty:
        say(f"toolgym: {none}", err=True)
    return sets


def check(
    dataset: DataSet = None,
    split: OneSplit = None,
    env_id: Environment = EXPLORE,
    settings: Settings = None,
    show: Annotated[int, typer.Option(min=0, help="Maximum number of lines per list.")] = 20,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Verify the tasks and list those that are refused.

    Each refused task is listed with the reason. Duplicate questions are also listed. The results
    are cached. The exit status is 2 if no task can be used.

    Example:
        toolgym tasks check bundled --split dev
        toolgym tasks check bundled --json
    """
    from toolgym.inspection import check_tasks

    sets = task_sets(env_id, dataset, split, settings)
    with progress_bar("tasks checked", quiet=quiet) as progress:
        report = check_tasks(dataset or env_id, sets, progress)
    if as_json:
        print_json(report.to_json())
    else:
        by_split, reasons = _counted(report.splits), _counted(report.codes)
        say(f"{report.name}: {report.tasks:,} tasks ({by_split}) on {report.items:,} items")
        say(f"playable: {report.playable:,}")
        lines = [f"{r['task_id']} [{r['code']}] {r['reason']}" for r in report.refused]
        _print_list("refused", lines, show, f" ({reasons})" if reasons else "")
        faults = [f"{fault['task_id']} {fault['message']}" for fault in report.faults]
        _print_list("environment faults", faults, show)
        _print_list("duplicate questions", [", ".join(ids) for ids in report.duplicates], show)
    if not report.playable:
        raise ConfigurationError(
            f"none of the {report.tasks:,} tasks of {report.name} is playable; fix the data."
        )


def _print_list(what: str, lines: list[str], show: int, more: str = "") -> None:
    say(f"{what}: {len(lines):,}{more}")
    for line in lines[:show]:
        say(f"  {line}")
    if len(lines) > show > 0:
        say(f"  ... {len(lines) - show:,} more; --show N prints N, and --json all of them")


def stats(
    dataset: DataSet = None,
    split: OneSplit = None,
    env_id: Environment = EXPLORE,
    settings: Settings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Count the tasks by database, hardness and result shape.

    The gold answer of each task is computed. Tasks without a reliable gold answer are counted as
    refused.

    Example:
        toolgym tasks stats bundled
        toolgym tasks stats tasks --json
    """
    from rich.table import Table

    from toolgym.inspection import check_tasks

    sets = task_sets(env_id, dataset, split, settings)
    with progress_bar("tasks counted", quiet=quiet) as progress:
        report = check_tasks(dataset or env_id, sets, progress, family_of(env_id))
    if as_json:
        print_json(report.to_json())
    else:
        say(f"{report.name}: {report.tasks:,} tasks, {report.playable:,} of them playable")
    if not report.playable:
        raise ConfigurationError(report.nothing_playable())
    if as_json:
        return
    table = Table(*report.rows[0], box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for row in report.rows:
        table.add_row(*(f"{each:,}" if isinstance(each, int) else each for each in row.values()))
    print_table(table)


def show(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="Data set: a name, folder or file. If only ID is given, the data set of --env is"
            " used.",
        ),
    ],
    task_id: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the task.")] = None,
    split: OneSplit = None,
    env_id: Environment = EXPLORE,
    settings: Settings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print a task with its solution.

    If the task is refused, the reason is printed.

    Example:
        toolgym tasks show bundled observatory-001
        toolgym tasks show bundled observatory-001 --json
    """
    place, wanted = (None, dataset) if task_id is None else (dataset, task_id)
    sets = task_sets(env_id, place, split, settings)
    for name, tasks in sets.items():
        try:
            task = tasks.get(wanted)
        except ConfigurationError:
            task = None
        refusal = tasks.refused.get(wanted)
        if task is None and refusal is None:
            continue
        facts = {"id": wanted, "split": name}
        if task is not None:
            facts |= family_of(env_id).shown(task)
            refusal = tasks.refusal_of(task)
        facts["refused"] = f"[{refusal.code}] {refusal.reason}" if refusal else "no"
        return print_json(facts) if as_json else say(facts_text(facts))
    ids = [each for tasks in sets.values() for each in tasks.ids]
    near = get_close_matches(wanted, ids) or ids[:3]
    raise ConfigurationError(
        f"there is no task {wanted!r} in {place or env_id} ({', '.join(sets)}); some task ids are"
        f" {', '.join(near)}."
    )


def synth(
    sources: Annotated[
        list[Path], typer.Argument(metavar="DATABASE", help="SQLite files, or folders of them.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    n: Annotated[
        int, typer.Option("--n", "-n", min=1, help="Maximum number of tasks per database.")
    ] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Random seed that selects the tasks.")] = 0,
    splits: Annotated[
        str | None,
        typer.Option(
            help="Fraction of the tasks in each split (default: train=0.8,dev=0.1,test=0.1)."
        ),
    ] = None,
    link: Annotated[
        bool, typer.Option("--link", help="Link to the databases instead of copying them.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Option of the synthesis, as JSON or text, such as variants=2; may be repeated.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace an existing folder that `toolgym tasks synth` has written."
        ),
    ] = False,
    env_id: Environment = EXPLORE,
    workers: Workers = None,
    ray: Ray = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Generate tasks for SQLite databases, in the Spider layout.

    A task is a question and the SQL query that answers it. With three or more databases, tasks are
    split by database; with fewer, by query. Queries that differ only in their values belong to the
    same split. The tasks depend on the seed, but not on --workers or --ray.

    Example:
        toolgym tasks synth my.db --out tasks
        toolgym tasks synth my.db --out tasks --n 2000 --splits train=0.8,dev=0.2 --overwrite
        toolgym tasks synth databases --out tasks --workers 2
    """
    from toolgym.family import SynthesisOrder

    options = {"n": n, "seed": seed, **settings_of(settings)}
    shares: dict[str, float] = {}
    for part in splits.split(",") if splits is not None else ():
        name, _, share = part.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            raise ConfigurationError(
                f"--splits must be NAME=SHARE,NAME=SHARE, as in train=0.9,dev=0.1; got {splits!r}."
            ) from None
    family = family_of(env_id)
    with map_of(ray, workers) as map_parts, progress_bar("tasks written", quiet=quiet) as progress:
        order = SynthesisOrder(tuple(sources), out, shares, options, link, overwrite, map_parts)
        summary = family.synthesize(order, progress)
    if as_json:
        print_json(summary)
    else:
        _print_synthesis(summary)


def invent(
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    n: Annotated[
        int, typer.Option("--n", "-n", min=1, max=100_000, help="Number of databases.")
    ] = 100,
    first: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of the first database. The same number always produces the same database.",
        ),
    ] = 0,
    env_id: Environment = EXPLORE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Generate small synthetic databases for `toolgym tasks synth`.

    A model that is trained on a few databases memorizes their tables; with hundreds of databases,
    it must learn to read the schema.

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


def rephrase(
    tasks: Annotated[Path, typer.Argument(metavar="TASKS", help="Folder of tasks.")],
    policy: Annotated[str, typer.Option(metavar="openai:MODEL", help="Chat model on a server.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    base_url: BaseUrl = None,
    policy_settings: PolicySettings = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace an existing folder that `toolgym tasks rephrase` has written.",
        ),
    ] = False,
    env_id: Environment = EXPLORE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Rephrase the questions of tasks with a chat model.

    The tasks are copied to a new folder. A rephrased question is accepted if it keeps the names,
    numbers and dates that the SQL query uses, contains neither SQL nor the answer, and is not the
    question of another task. Otherwise the question is left unchanged. The original question is
    stored under the key "original".

    Replies are cached. If the server fails, nothing is written; run the command again to request
    the missing replies.

    Example:
        toolgym tasks rephrase tasks --out lively --policy openai:gpt-4o-mini
        toolgym tasks rephrase tasks --out lively --policy openai:M --base-url http://127.0.0.1:8000
    """
    from toolgym.chat import Chat, ChatFault, Reply
    from toolgym.policies import load
    from toolgym.policies.chat import ChatPolicy

    options = given_once({"base_url": base_url}, policy_settings, "--policy-set")
    model = load(policy, **{"cache": True, **options}) if policy.startswith(SERVED) else None
    if not isinstance(model, ChatPolicy):
        raise ConfigurationError(
            f"--policy must be a chat model on a server, such as openai:gpt-4o-mini, not {policy}."
        )

    def ask(requests: Sequence[tuple[str, str]]) -> list[str]:
        roles = ("system", "user")
        chats = [
            Chat([{"role": r, "content": t} for r, t in zip(roles, texts, strict=True)])
            for texts in requests
        ]
        replies = model.client.complete_all(chats)
        for reply in replies:
            if isinstance(reply, ChatFault) and reply.code != "content_filter":
                raise reply
        return [
            reply.text if isinstance(reply, Reply) and reply.finish != "length" else ""
            for reply in replies
        ]

    with progress_bar("questions rephrased", quiet=quiet) as progress:
        result = family_of(env_id).rephrase(tasks, out, ask, overwrite, progress)
    if as_json:
        print_json(result)
        return
    refused, unusable = result["refused"], result["unusable"]
    say(f"{out}: {result['rephrased']:,} of {result['questions']:,} questions rephrased")
    say(f"refused: {sum(refused.values()):,}{f' ({_counted(refused)})' if refused else ''}")
    if unusable:
        say(f"copied without change: {unusable:,} entries that are not valid tasks")


def _print_synthesis(summary: Mapping[str, Any]) -> None:
    for name, source in summary["sources"].items():
        rejected = dict(sorted(source["rejected"].items(), key=lambda pair: (-pair[1], pair[0])))
        kept, reasons = _counted(source["by_hardness"]), _counted(rejected)
        say(f"{name}: {source['kept']:,} tasks ({kept}) of {source['candidates']:,} candidates")
        say(f"  rejected: {reasons or 'none'}")
        for level, why in source["missing"].items():
            say(f"  too few {level}: {why}")
        for left_out, why in source["left_out"].items():
            say(f"  left out: {left_out}: {why}")
    for name, why in summary["refused"].items():
        say(f"{name}: no tasks: {why}")
    dropped = f" ({summary['dropped']:,} duplicates dropped)" if summary["dropped"] else ""
    say(f"{summary['out']}: {_counted(summary['splits'])}{dropped}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


command = typer.Typer(help="Check, count, show or generate tasks.")

for function in (check, stats, show, synth, invent, rephrase):
    command.command(function.__name__)(function)
