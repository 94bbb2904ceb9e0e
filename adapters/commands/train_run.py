"""The run of `toolgym train` behind its options: the run folder, the phases, the terminal.

This is where a run meets the terminal. One line says first what will be trained on what; progress
bars go to stderr; at the end a table holds the accuracy before and after, and a sentence says what
kind of gain it is.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final

import typer
from rich.table import Table
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.checkpoint import Checkpoints
from adapters.reference.evaluation import BatchPlay
from adapters.reference.preflight import REPORT, NoGo, before_training
from adapters.reference.processes import Processes
from adapters.reference.train import ReferenceTrainer
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.models.low_rank import Adapter
from adapters.training.runs import phases
from adapters.training.runs.evaluations import Evaluation, evaluations, played_with
from adapters.training.runs.preparation import (
    adapter_config,
    for_this_machine,
    note_origin,
    use_threads,
)
from adapters.training.runs.progress import NoProgress, ProgressListener
from adapters.training.runs.reproducibility import differences, reproducibility
from adapters.training.runs.selection import Division, divide
from adapters.training.settings import TrainSettings, read_settings
from toolgym.commands import (
    print_json,
    print_table,
    say,
)
from toolgym.commands.progress import Bars
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.report import write_report
from toolgym.report.page import FILE
from toolgym.runs.dashboards import reported
from toolgym.runs.run import METRICS, ROLLOUTS, Run

RUNS: Final = Path("runs")
SHOWN: Final = 4
"""Episodes of a batch whose transcripts are kept."""


@contextmanager
def new_run(
    settings: TrainSettings,
    folder: Path | None,
    planned: Sequence[Evaluation],
    *,
    given: Collection[str] = (),
    err: bool = False,
) -> Iterator[tuple[Run, TrainSettings]]:
    """Announce a run and make its folder; the caller sees it through.

    Yields the run, and its settings: those that were given, without evaluations during the training
    where these are only the default and the data set has too few tasks.

    The folder is removed again if the run fails before it has written a step, an episode, a
    checkpoint or a preflight's report.

    Args:
        settings: As `check_early` returns them, with the evaluations.
        folder: None takes the next number in `runs`.
        given: Names of the settings that are not defaults.
        err: What is said goes to stderr, for a caller whose result goes to stdout.

    Raises:
        ConfigurationError: The trainer does not take the settings, or the folder cannot be made.
    """
    settings = for_this_machine(settings)
    is_wanted = settings.eval_every
    settings, division = divided_if_possible(settings, planned, given)
    check_trainer(settings)
    record = _record(settings, planned)
    config = {
        "env_id": settings.env_id,
        "model": settings.model,
        "model_title": model_title(settings),
        "dataset": settings.env_kwargs.get("dataset"),
        "control": settings.control,
        "trainer": settings.trainer,
        "settings": settings.model_dump(mode="json"),
        "guards": settings.guards.model_dump(mode="json"),
        "reproducibility": record,
    }
    processes = Processes()
    if not processes.is_main:
        yield Run.open(processes.gather(list[str]())[0]), settings
        return
    say(announcement(settings, planned), err=err)
    if division is not None:
        chosen, name = len(division.selection), division.source.name
        told = f"While it trains it is measured on {chosen} others ({name}), greedily."
        say(told, err=err)
    elif is_wanted:
        told = f"It is not measured while it trains: {planned[0].source} has too few tasks for it."
        say(told, err=err)
    wanted = folder or next_folder(settings.env_id)
    missing = [place for place in (wanted, *wanted.parents) if not place.exists()]
    run = Run.create(wanted, config)
    say(f"Run folder: {run.path}", err=err)
    processes.gather([str(run.path)])
    try:
        yield run, settings
    except Exception:
        if not has_begun(run):
            shutil.rmtree(run.path)
            for place in missing:
                if place.is_dir() and not any(place.iterdir()):
                    place.rmdir()
            if wanted not in missing and run.path == wanted:
                wanted.mkdir()  # it was there before, and empty
            say("Nothing was trained, and the run folder was removed.", err=True)
        raise


def divided_if_possible(
    settings: TrainSettings, planned: Sequence[Evaluation], given: Collection[str]
) -> tuple[TrainSettings, Division | None]:
    """The tasks of evaluations during the training, and the settings, without them if need be.

    Raises:
        ConfigurationError: They were asked for, and there are too few tasks.
    """
    if not settings.eval_every:
        return settings, None
    asked = {"eval_every", "patience", "checkpoint"} & set(given)
    try:
        return settings, divide(settings, planned)
    except ConfigurationError:
        if asked:
            raise
    return settings.model_copy(update={"eval_every": 0}), None


def has_begun(run: Run) -> bool:
    """Whether a run holds anything beyond its settings."""
    names = (METRICS, ROLLOUTS, REPORT, run.checkpoints.name)
    return any((run.path / name).exists() for name in names)


def old_run(
    folder: Path, *, look_first: bool = True, err: bool = False
) -> tuple[Run, TrainSettings]:
    """Open a run that has not come to its end, and say where it goes on.

    Args:
        look_first: False leaves out a preflight that the run has not passed yet.
        err: What is said goes to stderr.

    Returns:
        The run and its settings.

    Raises:
        ConfigurationError: It is no run folder of this command.
    """
    run = Run.open(folder)
    settings = read_settings(run.config.get("settings"))
    if not look_first:
        settings = settings.model_copy(update={"preflight": False})
    planned = evaluations(settings)
    now = _record(settings, planned)
    if Processes().is_main:
        say(announcement(settings, planned), err=err)
        say(f"Going on with {run.path}, {stands_at(run, settings)}.", err=err)
        for line in differences(run.config.get("reproducibility") or {}, now):
            say(f"Not as it was when the run began: {line}", err=True)
    return run, settings


def stands_at(run: Run, settings: TrainSettings) -> str:
    """The place where an interrupted run goes on, as `at step 41 of 60 of GRPO`.

    What came after the last checkpoint is done again, with the same numbers.
    """
    if (run.checkpoints / "final").is_dir():
        return "at the evaluation after the training"
    names = (path.name.partition("-")[2] for path in run.checkpoints.glob("checkpoint-*"))
    saved = max((int(name) for name in names if name.isdecimal()), default=0)
    done = max((line["step"] for line in run.metrics("grpo")), default=0)
    if saved or done:
        lost = done - saved
        again = f"; {lost} step{'s' * (lost != 1)} after the last checkpoint are done again"
        return f"at step {saved + 1} of {settings.steps} of GRPO" + (again if lost > 0 else "")
    if (run.checkpoints / "warmup").is_dir() or not settings.sft_steps:
        return "behind the warm-up"
    return "at the beginning of the warm-up"


def _record(settings: TrainSettings, planned: Sequence[Evaluation]) -> dict[str, Any]:
    splits = played_with(settings, planned)
    return reproducibility(settings.env_id, use_threads(settings), *splits)


def model_title(settings: TrainSettings) -> str:
    """The name of the model in sentences."""
    tiny = "the tiny model (built here, half a million parameters)"
    return tiny if settings.is_tiny else settings.model


def announcement(settings: TrainSettings, planned: Sequence[Evaluation]) -> str:
    """The first lines: which model, on which data; and what it is measured on."""
    model = model_title(settings)
    data = settings.env_kwargs.get("dataset")
    on = f' with the data set "{data}"' if data else ""
    control = "; control: shuffled rewards" if settings.control else ""
    first = f"Training {model} on {settings.env_id}{on}{control}."
    return "\n".join([first, *measured_on(settings, planned)])


_APART: Final[dict[str | None, str]] = {
    "evaluation without training": "What is trained on was left out of the evaluation.",
    "training without evaluation": "What is evaluated was left out of the training.",
    "divided": "There was one set of tasks for training and evaluation; it was divided.",
}


def measured_on(settings: TrainSettings, planned: Sequence[Evaluation]) -> Iterator[str]:
    """The tasks of the evaluations, and how they were separated from the training's."""
    if not planned[0].is_held_out:
        yield (
            "Nothing is held out: the tasks for training and evaluation are the same, and cannot be"
            " divided. The evaluations play what is trained on."
        )
        return
    greedy = [each for each in planned if not each.temperature]
    parts = [f"{each.name} ({each.tasks:,} in {each.source})" for each in greedy]
    tries = sum(each.tries for each in planned if each.temperature)
    end = f", greedily; the {planned[0].name} also sampled, {tries} tries each" if tries else ""
    yield f"Measured on {' and on '.join(parts)}{end}."
    if settings.separation is not None:
        yield _APART[settings.separation]


def next_folder(env_id: str, runs: Path = RUNS) -> Path:
    """The first free numbered folder: `sqlgym/Explore-v0` gives `runs/explore-001`, and so on."""
    name = re.sub(r"-v\d+$", "", env_id.rpartition("/")[2]).lower()
    name = re.sub(r"[^a-z0-9]+", "-", name).strip("-") or "run"
    pattern = re.compile(rf"{re.escape(name)}-(\d+)(-\d+)?")
    taken = [pattern.fullmatch(path.name) for path in runs.glob(f"{name}-*")]
    numbers = [int(match.group(1)) for match in taken if match]
    return runs / f"{name}-{max(numbers, default=0) + 1:03d}"


def trainer_named(name: str) -> phases.Trainer:
    """The function behind `--trainer`; imported only now, since it brings its library along."""
    if name == "trl":
        from adapters.commands.train_with_trl import train_with_trl

        return train_with_trl
    if name == "reference":
        return train_with_reference
    raise ConfigurationError(f"there is no trainer {name!r}; take trl or reference.")


def check_trainer(settings: TrainSettings) -> None:
    """Make sure that the trainer takes these settings, before a run is begun.

    Returns:
        The settings of the guards that will watch.

    Raises:
        ConfigurationError: It does not, or what it needs is not installed.
    """
    if settings.trainer == "trl":
        if importlib.util.find_spec("trl") is None:
            raise ConfigurationError(
                "--trainer trl needs trl, not installed here; run: pip install 'toolgym[train]', or"
                " take --trainer reference."
            )
        from adapters.commands.train_with_trl import check_settings

        check_settings(settings)
    adapter_config(settings)


def see_through(run: Run, settings: TrainSettings, *, quiet: bool) -> None:
    """Do what is left to do of a run, and write its report.

    Raises:
        NoGo: The preflight refused the model; `summary.json` says `refused`.
        TrainingStopped: The guards stopped the run; `summary.json` says `stopped`.
        ConfigurationError: Model, data set or environment cannot be had.
        EnvironmentFault: The environment keeps failing.
    """
    if not Processes().is_main:
        return phases.follow(run, settings, trainer_named(settings.trainer))
    watch = NoProgress() if quiet else Bars()
    check = partial(look, settings, watch) if settings.preflight else None
    try:
        with run.held(), reported(run, settings.report_to) as reporting:
            phases.train(
                reporting, settings, trainer_named(settings.trainer), watch, check, BatchPlay()
            )
    except KeyboardInterrupt:
        say(f"\nIt goes on {stands_at(run, settings)}.", err=True)
        say(f"Go on with it: toolgym train --resume {quote(str(run.path))}", err=True)
        raise
    except (TrainingStopped, NoGo) as stop:
        status = "refused" if isinstance(stop, NoGo) else "stopped"
        run.write_summary({**run.summary, "status": status, "diagnosis": str(stop)})
        write_report(run)
        raise
    write_report(run)


def see_through_on_terminal(
    run: Run, settings: TrainSettings, *, quiet: bool, as_json: bool
) -> None:
    """The same for the command line: the result is printed, and a run that ended early exits 1.

    Args:
        as_json: The result goes to stdout as one JSON object, and all else to stderr.
    """
    is_main, folder = Processes().is_main, quote(str(run.path))
    try:
        see_through(run, settings, quiet=quiet)
    except (TrainingStopped, NoGo) as stop:
        if is_main:
            say(f"{stop}\nReport: {run.path / FILE}", err=True)
            if isinstance(stop, NoGo):
                again = f"toolgym train --resume {folder} --no-preflight"
                say(f"Train all the same: {again}", err=True)
            if as_json:
                print_json({"run": run.path, **run.summary})
        raise typer.Exit(1) from None
    if not is_main:
        return
    summary = run.summary
    if as_json:
        return print_json({"run": run.path, **summary})
    print_table(results(summary))
    told = "\n".join(part for part in (summary["gain"], summary.get("kept")) if part)
    say(f"{told}\nReport: {run.path / FILE}")
    say(f"Evaluate the model again: {next_command(run, settings)}")


def next_command(run: Run, settings: TrainSettings) -> str:
    """The command that plays as many of the same tasks with what was trained."""
    final = quote(str(run.checkpoints / phases.FINAL))
    env_id, n = quote(settings.env_id), settings.eval_tasks
    return f"toolgym eval {env_id} --policy {final} --n {n}"


def look(
    settings: TrainSettings,
    watch: ProgressListener,
    run: Run,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    """Ask before training whether it can work, and say what may spoil it.

    Raises:
        NoGo: It cannot.
    """
    report = before_training(run, settings, model, tokenizer, watch)
    for finding in report.findings if report is not None else ():
        say(f"Preflight, {finding.check}: {finding.reason} {finding.advice}", err=True)


def results(summary: dict[str, Any]) -> Table:
    """Each evaluation before and after, side by side; after alone where there was no GRPO."""
    whens = ("before", "after") if summary["before"] else ("after",)
    made = [each for each in summary["evaluations"] if all(each[when] for when in whens)]
    heads = [
        f"{each['name'] if when == whens[0] else ''}\n{when}" for each in made for when in whens
    ]
    table = Table("", *heads, box=None, pad_edge=False)
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "accuracy": lambda figures: _number(figures["accuracy"]),
        "95 % interval": lambda figures: " to ".join(map(_number, figures["interval"])),
        "validity": lambda figures: _number(figures["validity"]),
        "answered": lambda figures: _number(figures["answered"]),
        "mean score": lambda figures: _number(figures["mean_score"]),
        "episodes": lambda figures: str(figures["episodes"]),
    }
    gap = [""] * (len(whens) - 1)
    table.add_row("data set (split)", *(cell for each in made for cell in (each["source"], *gap)))
    for name, cell in rows.items():
        table.add_row(name, *(cell(each[when]) for each in made for when in whens))
    table.add_row("seconds", *gap, f"{summary['seconds']:.0f}")
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def train_with_reference(job: phases.Grpo) -> None:
    """Train the job's model in place, up to the last step of its settings.

    The trainer resumes from its own last checkpoint; metrics and transcripts of steps after that
    checkpoint are cut off first, since those steps are made again.

    Raises:
        ConfigurationError: The trainer cannot train with these settings.
        EnvironmentFault: The environment keeps failing.
        TrainingStopped: The guards ended the run.
    """
    settings, run = job.settings, job.run
    job.cut_off_after(max(Checkpoints(run.checkpoints, settings.keep).steps(), default=0))

    def on_step(step: int, metrics: dict[str, float], episodes: list[EpisodeRecord]) -> None:
        job.tell_metrics(step, metrics)
        job.tell_rollouts(step, [episode.to_json() for episode in episodes[:SHOWN]])

    def evaluate(step: int, adapter: Adapter | None) -> dict[str, float] | None:
        return None if job.is_enough(step, adapter) else job.held_out_at(step)

    trainer = ReferenceTrainer(
        job.model,
        job.tokenizer,
        settings.env_id,
        run.checkpoints,
        settings,
        env_kwargs=settings.training_kwargs,
        lora=adapter_config(settings),
        on_step=on_step,
        evaluate=evaluate,
        on_save=lambda folder: note_origin(folder, settings),
    )
    trainer.train()
    if trainer.adapter is not None:
        if job.kept is not None:
            trainer.adapter.load(job.kept)
        trainer.adapter.merge()
    else:
        job.load_kept()
