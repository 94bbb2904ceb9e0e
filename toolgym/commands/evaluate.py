"""`toolgym eval`: play the tasks of an environment with a policy and report the figures.

Bulk work shows its progress on stderr; results go to stdout, as a table or as exactly one JSON
object, so that a pipe reads results only. Refused tasks are listed with their reasons, never left
out in silence.

Several machines can share one measurement. Each plays a shard, some of the tasks (`--shard`) or
some of the tries (`--start`), and writes its episodes with `--out`; `--merge` reads these files and
reports on all of them as on one run, and plays nothing.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from toolgym import policies, registration, rollout
from toolgym.commands import (
    AsJson,
    Dataset,
    EnvId,
    Settings,
    StepLimit,
    arguments_for,
    check_folder,
    console,
    environment_creator,
    parameters_of,
    settings_of,
)
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.policies import Metered
from toolgym.runs.episodes import finish_evaluation, log_episode
from toolgym.runs.files import read_lines
from toolgym.tries import Shard

if TYPE_CHECKING:
    from toolgym.policies import Policy
    from toolgym.rollout import Evaluation, Progress
    from toolgym.runs.run import Run


Start = Annotated[
    int | None,
    typer.Option(min=0, help="Number of the first try at each task, for a shard by tries."),
]
ShardOf = Annotated[
    str | None, typer.Option(metavar="I/N", help="Play only the I-th of N parts of the tasks.")
]
Merge = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Play nothing, but report on the episodes that shards wrote with --out; may be "
        "repeated. Only --out, --json and --transcripts go with it.",
    ),
]


def part_of(start: int | None, shard: str | None) -> dict[str, Any]:
    """The arguments `start` and `shard` of `rollout.evaluate`, as far as they were given.

    Raises:
        ConfigurationError: There is no such shard.
    """
    options: dict[str, Any] = {} if start is None else {"start": start}
    return options if shard is None else {**options, "shard": Shard.parse(shard)}


def merged_files(
    env_id: str, files: Iterable[Path], out: Path | None
) -> tuple[Evaluation, dict[str, Any]]:
    """The episodes of several files as one evaluation, and what it is an evaluation of.

    Args:
        env_id: The environment that all of them are of.
        files: As `--out` wrote them.
        out: Where they are to be written together.

    Raises:
        ConfigurationError: A file is missing or damaged, or they cannot be put together, or `out`
            cannot be written.
    """
    from toolgym.records import Evaluation

    check_out(out)
    paths = list(files)
    merged = Evaluation.merged(_evaluation(path, env_id) for path in paths)
    setting = {"env_id": env_id, "merged": [str(path) for path in paths], "k": merged.k}
    return merged, setting


def _evaluation(path: Path, env_id: str) -> Evaluation:
    from toolgym.records import Evaluation
    from toolgym.runs.episodes import episode_of, read_episodes
    from toolgym.runs.run import Run

    if not path.exists():
        raise ConfigurationError(f"--merge {path}: there is no such file or folder.")
    if path.is_dir() and not Run.open(path).is_complete:
        _cut(path)
    records = (
        tuple(read_episodes(path))
        if path.is_dir()
        else tuple(read_lines(path, episode_of, lambda: _cut(path)))
    )
    for record in records:
        if record.env_id != env_id:
            raise ConfigurationError(f"{path} has episodes of {record.env_id}, not of {env_id}.")
    return Evaluation(records)


def _cut(path: Path) -> None:
    raise ConfigurationError(
        f"{path} was not written to its end, so its shard is not whole; play it again."
    )


FILES = (".jsonl", ".json", ".ndjson")
"""Endings by which `--out` names a file of episodes; any other name is that of a folder."""


def check_out(out: Path | None) -> None:
    """Refuse a file or folder that cannot be written.

    Raises:
        ConfigurationError: There is a folder where a file is to be, or a file where a folder is to
            be, or the folder around it is not there.
    """
    if out is None:
        return
    if out.suffix in FILES and out.is_dir():
        raise ConfigurationError(f"--out {out} is a folder; name a file in it.")
    if out.suffix not in FILES and out.is_file():
        raise ConfigurationError(f"--out {out} is a file; name a folder, or a file like one.jsonl.")
    if out.is_dir() and any(out.iterdir()) and not (out / "config.json").is_file():
        raise ConfigurationError(
            f"--out {out} is a folder with other things in it; name a new one, or a file in it such"
            f" as {out / 'one.jsonl'}."
        )
    if out.suffix not in FILES:
        return check_folder(out)
    if not out.absolute().parent.is_dir():
        raise ConfigurationError(f"--out {out}: there is no folder {out.parent}; make it first.")
    if not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        raise ConfigurationError(f"--out {out} cannot be written: you may not write there.")


def folder_for(out: Path | None, setting: dict[str, Any], env_kwargs: dict[str, Any]) -> Run | None:
    """The new folder that `--out` asks for; None where it names a file, or nothing.

    Args:
        setting: What is played and how.
        env_kwargs: Of the environment, so that its episodes can be judged again.

    Raises:
        ConfigurationError: It cannot be made.
    """
    from toolgym.runs.episodes import create_evaluation

    is_device = out is not None and out.exists() and not out.is_dir()
    if out is None or out.suffix in FILES or is_device:
        return None
    how = {name: value for name, value in setting.items() if name not in env_kwargs}
    about = {"env_id": setting["env_id"], "policy": setting.get("policy")}
    about["dataset"] = env_kwargs.get("dataset")
    return create_evaluation(out, {**about, "settings": {**how, "env_kwargs": env_kwargs}})


BUILT_IN = ("expert", "random")
MOST_REFUSED = 10
"""Refused tasks that are listed on the terminal."""

PolicyName = Annotated[
    str,
    typer.Option(
        help="expert, random, a model (a folder, or the id of one on the hub), or openai:MODEL, "
        "which asks a server."
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Of the server that openai:MODEL asks, such as http://127.0.0.1:8000/v1."),
]
PolicySettings = Annotated[
    list[str] | None,
    typer.Option(
        "--policy-set",
        metavar="NAME=VALUE",
        help="An option of the model, such as max_tokens=512; may be repeated.",
    ),
]
Tries = Annotated[int, typer.Option(min=1, help="Tries per task; above 1, pass@k is told.")]
Tasks = Annotated[int | None, typer.Option(min=1, help="Tasks; all of them without it.")]
Split = Annotated[
    str | None, typer.Option(help="A part of the data set; dev, if the environment has parts.")
]
Seed = Annotated[int, typer.Option(min=0, help="Chooses the tasks and seeds the episodes.")]
Parsing = Annotated[str | None, typer.Option(help="lenient (mends what it can) or strict.")]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, help="Of a model; 0 takes the likeliest token, the default for one try."),
]
Batch = Annotated[int, typer.Option(min=1, help="Episodes that are played side by side.")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Keep every episode: in a folder, which report, stats and audit take, or in a file "
        "that ends in .jsonl, one a line."
    ),
]
Transcripts = Annotated[int, typer.Option(min=0, help="Show the first N episodes.")]


def command(
    env_id: EnvId,
    policy: PolicyName = "expert",
    k: Tries = 1,
    n: Tasks = None,
    start: Start = None,
    shard: ShardOf = None,
    merge: Merge = None,
    dataset: Dataset = None,
    split: Split = None,
    seed: Seed = 0,
    step_limit: StepLimit = None,
    parsing: Parsing = None,
    settings: Settings = None,
    temperature: Temperature = None,
    batch: Batch = 64,
    as_json: AsJson = False,
    out: Out = None,
    transcripts: Transcripts = 0,
    base_url: BaseUrl = None,
    policy_settings: PolicySettings = None,
) -> None:
    """Play tasks with a policy and report how well it did.

    Accuracy comes with its 95 % Wilson interval. Tasks that cannot be played fairly are listed with
    the reason and counted nowhere else.

    A try at a task draws by the seed, the task and the number of the try, so several machines can
    play shards of one measurement; --merge puts together what they wrote.

    Example:
        toolgym eval sqlgym/Explore-v0 --policy expert --n 20
        toolgym eval sqlgym/Explore-v0 --n 20 --out runs/expert
        toolgym eval sqlgym/Explore-v0 --policy random --k 4 --out one.jsonl
        toolgym eval sqlgym/Explore-v0 --policy random --k 4 --start 4 --out two.jsonl
        toolgym eval sqlgym/Explore-v0 --merge one.jsonl --merge two.jsonl
    """
    show = print_object if as_json else print_results
    if merge:
        evaluation, setting = merged_files(env_id, merge, out)
        folder = folder_for(out, setting, {})
        if folder is not None:
            for record in evaluation:
                log_episode(folder, record)
        keep(evaluation, folder, out, setting)
        return show(evaluation, setting, transcripts)
    how = {"k": k, "n": n, "seed": seed, **part_of(start, shard)}
    env_options = {"dataset": dataset, "step_limit": step_limit, "parsing": parsing}
    env_kwargs = arguments_for(env_id, settings, split=_part(env_id, split), **env_options)
    check_early(env_id, out, env_kwargs)
    options = options_of(policy, base_url, policy_settings)
    tries = k if start is None else start + k + 1  # whoever says where to start has others, too
    actor = load_policy(policy, seed=seed, temperature=temperature, tries=tries, **options)
    setting = {"env_id": env_id, "policy": policy, **how, **env_kwargs, **options}
    folder = folder_for(out, setting, env_kwargs)
    on_episode = partial(log_episode, folder) if folder else None
    holding = folder.held() if folder else nullcontext()
    with holding, progress_bar(f"{policy} plays") as progress:
        evaluation = rollout.evaluate(
            env_id,
            actor,
            **how,
            batch=batch,
            progress=progress,
            on_episode=on_episode,
            **env_kwargs,
        )
    keep(evaluation, folder, out, setting)
    del setting["n"]  # the episodes tell
    if isinstance(actor, Metered):
        setting["usage"] = actor.usage()
    show(evaluation, setting, transcripts)
    if math.isnan(evaluation.accuracy):
        raise EnvironmentFault("no episode could be scored: the environment failed in every one.")


def _part(env_id: str, split: str | None) -> str | None:
    """The split that was asked for, else dev, where the environment has splits."""
    splits = "split" in parameters_of(environment_creator(env_id))[0]
    return "dev" if split is None and splits else split


def options_of(name: str, base_url: str | None, pairs: list[str] | None) -> dict[str, Any]:
    """The options of a policy that were given on the command line.

    Raises:
        ConfigurationError: It has none of these.
    """
    options = settings_of(pairs)
    if base_url is not None:
        if not name.startswith(policies.SERVED):
            raise ConfigurationError(
                f"--base-url is for --policy openai:MODEL; {name} asks no server, leave it out."
            )
        options["base_url"] = base_url
    if options and name in BUILT_IN:
        raise ConfigurationError(
            f"--policy-set is for models; {name} has no options, leave it out."
        )
    return options


def load_policy(
    name: str, *, seed: int, temperature: float | None, tries: int = 1, **options: Any
) -> Policy:
    """The policy that was asked for; without a temperature it draws if there are several tries.

    Raises:
        ConfigurationError: There is no such policy, or what it needs is not installed.
    """
    if name in BUILT_IN and temperature is not None:
        raise ConfigurationError(f"--temperature is for models; {name} has none, leave it out.")
    if temperature is None and tries > 1 and name not in BUILT_IN:
        temperature = 1.0  # greedy tries would all be the same
    if temperature is not None:
        options.setdefault("temperature", temperature)
    if name not in BUILT_IN and not name.startswith(policies.SERVED) and not Path(name).exists():
        _refuse_misspelt(name)
    return policies.load(name, seed=seed, **options)


def _refuse_misspelt(name: str) -> None:
    """Say no to what is neither a path nor a hub id, before a loader spends seconds on it."""
    from difflib import get_close_matches

    near = get_close_matches(name, BUILT_IN, n=1)
    if near:
        raise ConfigurationError(f"there is no policy {name!r}; did you mean {near[0]!r}?")
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ConfigurationError(
            f"there is no folder {name!r} with a model; --policy takes {', '.join(BUILT_IN)},"
            " such a folder, or the id of a model on the hub."
        )


def check_early(env_id: str, out: Path | None, env_kwargs: dict[str, Any]) -> None:
    """Refuse what cannot be made or written before the work, and not after it.

    Raises:
        ConfigurationError: The environment does not take these arguments, or `--out` is a folder or
            lies in one that is not there.
    """
    registration.make(env_id, **env_kwargs)
    check_out(out)


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """A bar on stderr; yields the function that moves it: how many are done, how many there are."""
    from rich import progress

    columns = (progress.TextColumn("{task.description}"), progress.BarColumn())
    numbers = (progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
    with progress.Progress(*columns, *numbers, console=console(stderr=True)) as bar:
        task = bar.add_task(what, total=None)
        try:
            yield lambda done, total: bar.update(task, completed=done, total=total)
        except BaseException:
            bar.update(task, visible=False)  # what went wrong is told alone
            raise


def keep(
    evaluation: Evaluation, folder: Run | None, out: Path | None, setting: dict[str, Any]
) -> None:
    """Write the episodes into a file, or finish the folder that has them already."""
    if folder is None:
        return write_records(evaluation, out)
    played = " ".join(str(setting[key]) for key in ("dataset", "split") if key in setting)
    finish_evaluation(
        folder, evaluation, {"name": played, "temperature": setting.get("temperature", 0.0)}
    )
    typer.echo(f"Evaluation: {folder.path}", err=True)


def write_records(evaluation: Evaluation, out: Path | None) -> None:
    """Write every episode as one line of JSON; None writes nothing.

    Raises:
        EnvironmentFault: The file cannot be written.
    """
    if out is None:
        return
    lines = (json.dumps(record.to_json()) + "\n" for record in evaluation.records)
    try:
        with out.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as problem:
        raise EnvironmentFault(f"{out} cannot be written: {problem.strerror}.") from problem


def print_object(evaluation: Evaluation, setting: dict[str, Any], transcripts: int) -> None:
    """One JSON object: the setting, the figures, and the first transcripts if any are wanted."""
    shown: dict[str, Any] = {**setting, **evaluation.summary()}
    if "merged" in setting:
        del shown["refused"]  # which each shard has told, and no file holds
    if transcripts:
        shown["transcripts"] = [record.to_json() for record in evaluation.records[:transcripts]]
    typer.echo(json.dumps(shown, indent=2))


def print_results(evaluation: Evaluation, setting: dict[str, Any], transcripts: int) -> None:
    """The transcripts, the figures as a table, and what was refused."""
    for record in evaluation.records[:transcripts]:
        typer.echo(transcript(record.to_json()) + "\n")
    console().print(_figures(evaluation, setting))
    for fault, count in evaluation.summary()["faults"].items():
        typer.echo(f"\nunscored: {count} by this fault: {fault}")
    if evaluation.refused:
        counted = Counter(refusal["code"] for refusal in evaluation.refused)
        reasons = ", ".join(f"{count} {code}" for code, count in counted.most_common())
        typer.echo(f"\nrefused: {len(evaluation.refused)} ({reasons})")
        for refusal in evaluation.refused[:MOST_REFUSED]:
            typer.echo(f"  {refusal['task_id']} [{refusal['code']}] {refusal['reason']}")
        if (more := len(evaluation.refused) - MOST_REFUSED) > 0:
            typer.echo(f"  ... and {more:,} more; --json lists all of them.")


def _figures(evaluation: Evaluation, setting: dict[str, Any]) -> Table:
    figures = evaluation.summary()
    low, high = figures["interval"]
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in setting.items():
        table.add_row(name, str(value))
    table.add_row("episodes", f"{figures['episodes']} ({figures['unscored']} unscored)")
    table.add_row("accuracy", f"{_number(figures['accuracy'])}  [{low:.3f}, {high:.3f}]")
    for tries, value in figures.get("pass_at_k", {}).items():
        table.add_row(f"pass@{tries}", _number(value))
    for name in ("mean_score", "validity", "answered"):
        table.add_row(name.replace("_", " "), _number(figures[name]))
    return table


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def transcript(record: dict[str, Any]) -> str:
    """One recorded episode as a person reads it."""
    lines: Sequence[str] = [
        text
        for turn in record["turns"]
        for text in (f"> {turn['action']}", turn["observation"], *_remarks(turn))
    ]
    verdict = "correct" if record["correct"] else "not correct"
    score = "unscored" if record["score"] is None else f"score {record['score']:.3f}"
    head = f"--- {record['task_id']}: {record['question']}"
    return "\n".join([head, *lines, f"--- {verdict}, {score}"])


def _remarks(turn: dict[str, Any]) -> list[str]:
    return [f"(repaired: {', '.join(turn['repairs'])})"] if turn["repairs"] else []
