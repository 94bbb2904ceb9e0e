"""The run of `toolgym train` behind its options: the run folder, the phases, the terminal.

This is where a run meets the terminal. One line says first what will be trained on what; progress
bars go to stderr; at the end a table holds the accuracy before and after, and a sentence says what
kind of gain it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import typer
from rich.table import Table
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.chat import check_template
from adapters.reference.checkpoint import Checkpoints
from adapters.reference.config import reference_options
from adapters.reference.decoder import check_model
from adapters.reference.distributed import Processes
from adapters.reference.evaluation import BatchPlay
from adapters.reference.trainer import ReferenceTrainer
from adapters.training.guards.config import GuardConfig
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.models.low_rank import Adapter
from adapters.training.models.published import place_of
from adapters.training.preflight.chat_format import Needs
from adapters.training.preflight.memory import check_dtype, check_memory, memory_needs
from adapters.training.preflight.run import NoGo, before_training
from adapters.training.runs import phases
from adapters.training.runs.evaluations import Evaluation, evaluations, played_with, separated
from adapters.training.runs.preparation import adapter_config, for_this_machine, use_threads
from adapters.training.runs.progress import NoProgress, ProgressListener
from adapters.training.runs.reproducibility import differences, reproducibility
from adapters.training.runs.selection import divide
from adapters.training.runs.settings import TrainSettings, read_settings
from toolgym.commands import (
    print_json,
    print_table,
    say,
)
from toolgym.commands.progress import Bars
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.report import write_report
from toolgym.runs.dashboards import reported
from toolgym.runs.run import Run

RUNS: Final = Path("runs")


def start(
    settings: TrainSettings,
    folder: Path | None,
    quiet: bool,
    planned: Sequence[Evaluation] | None = None,
    as_json: bool = False,
) -> None:
    """Begin a run in a folder of its own and see it through.

    Args:
        planned: The evaluations of settings that are `separated`; None: they are not yet.
        as_json: The result goes to stdout as one JSON object, and all else to stderr.

    Raises:
        ConfigurationError: The environment, its data or the model cannot be had; no folder is left.
    """
    settings = for_this_machine(settings)
    if planned is None:
        settings = separated(settings)
        planned = evaluations(settings)
    division = divide(settings, planned) if settings.selects else None
    guards = check_trainer(settings)
    needed = tell_memory(settings)
    record = _record(settings, planned)
    config = {
        "env_id": settings.env_id,
        "model": settings.model,
        "model_title": model_title(settings),
        "dataset": settings.env_kwargs.get("dataset"),
        "control": settings.control,
        "trainer": settings.trainer,
        "settings": settings.model_dump(),
        "guards": guards.model_dump(mode="json"),
        "reproducibility": record,
    }
    processes = Processes()
    if processes.is_main:
        say(announcement(settings, planned), err=as_json)
        if division is not None:
            chosen, name = len(division.selection), division.source.name
            told = f"While it trains it is measured on {chosen} others ({name}), greedily."
            say(told, err=as_json)
        say(needed, nl=bool(needed), err=as_json)
        for finding in check_dtype(settings.dtype):
            say(f"{finding.reason} {finding.advice}", err=as_json)
        run = Run.create(folder or next_folder(settings.env_id), config)
        say(f"Run folder: {run.path}", err=as_json)
        processes.gather([str(run.path)])
    else:
        run = Run.open(processes.gather(list[str]())[0])
    _see_through(run, settings, quiet, is_main=processes.is_main, as_json=as_json)


def tell_memory(settings: TrainSettings) -> str:
    """What the training needs in memory, by arithmetic; empty where that cannot be told.

    Raises:
        ConfigurationError: The machine has less than the weights and their optimizer take; without
            the preflight that is only told.
    """
    if settings.is_tiny or settings.trainer != "reference":
        return ""
    place = place_of(settings.model)
    try:
        config = AutoConfig.from_pretrained(str(Path(place).expanduser()))
    except (OSError, ValueError):
        return ""  # whoever loads the model says it better
    needed = memory_needs(settings, config)
    if needed is None:
        return ""
    for finding in check_memory(needed):
        told = f"{finding.reason} {finding.advice}"
        if finding.level == "no-go" and settings.preflight:
            raise ConfigurationError(f"{told} (--no-preflight tries it all the same.)")
        return told
    return needed.sentence()


def resume(
    folder: Path,
    quiet: bool,
    *,
    look_first: bool = True,
    as_json: bool = False,
) -> None:
    """Go on with a run that has not come to its end.

    Args:
        look_first: False leaves out a preflight that the run has not passed yet.
        as_json: The result goes to stdout as one JSON object, and all else to stderr.

    Raises:
        ConfigurationError: It is no run folder of this command.
    """
    run = Run.open(folder)
    settings = read_settings(run.config.get("settings"))
    if not look_first:
        settings = settings.model_copy(update={"preflight": False})
    is_main = Processes().is_main
    planned = evaluations(settings)
    now = _record(settings, planned)
    if is_main:
        say(announcement(settings, planned), err=as_json)
        say(f"Going on with {run.path}, {stands_at(run, settings)}.", err=as_json)
        for line in differences(run.config.get("reproducibility") or {}, now):
            say(f"Not as it was when the run began: {line}", err=True)
    _see_through(run, settings, quiet, is_main=is_main, as_json=as_json)


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
    if (run.checkpoints / "warmup").is_dir() or not settings.warmup_steps:
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


def check_trainer(settings: TrainSettings) -> GuardConfig:
    """Make sure that the trainer takes these settings, before a run is begun.

    Returns:
        The settings of the guards that will watch.

    Raises:
        ConfigurationError: It does not, or what it needs is not installed.
    """
    if settings.trainer == "trl":
        from adapters.commands.train_with_trl import check_settings

        return check_settings(settings)
    adapter_config(settings)
    return reference_options(settings).guards


def _see_through(
    run: Run,
    settings: TrainSettings,
    quiet: bool,
    *,
    is_main: bool,
    as_json: bool = False,
) -> None:
    if not is_main:
        return _train_along(run, settings)
    watch = NoProgress() if quiet else Bars()
    check = partial(look, settings, watch) if settings.preflight else None
    try:
        with run.held(), reported(run, settings.report_to) as reporting:
            summary = phases.train(
                reporting, settings, trainer_named(settings.trainer), watch, check, BatchPlay()
            )
    except KeyboardInterrupt:
        say(f"\nIt goes on {stands_at(run, settings)}.", err=True)
        say(f"Go on with it: toolgym train --resume {run.path}", err=True)
        raise
    except (TrainingStopped, NoGo) as stop:
        run.write_summary({**run.summary, "status": "stopped", "diagnosis": str(stop)})
        say(f"{stop}\nReport: {write_report(run)}", err=True)
        if isinstance(stop, NoGo):
            again = f"toolgym train --resume {run.path} --no-preflight"
            say(f"Train all the same: {again}", err=True)
        if as_json:
            print_json({"run": run.path, **run.summary})
        raise typer.Exit(1) from None
    report = write_report(run)
    if as_json:
        return print_json({"run": run.path, **run.summary})
    print_table(results(summary))
    told = "\n".join(part for part in (summary["gain"], summary.get("kept")) if part)
    say(f"{told}\nReport: {report}")


def _train_along(run: Run, settings: TrainSettings) -> None:
    """The run of every process but the first, which alone writes to the terminal."""
    try:
        phases.follow(run, settings, trainer_named(settings.trainer))
    except TrainingStopped:
        raise typer.Exit(1) from None


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
    needs = needs_of(settings.trainer)
    report = before_training(run, settings, model, tokenizer, watch, needs=needs)
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
    for name, cell in rows.items():
        table.add_row(name, *(cell(each[when]) for each in made for when in whens))
    table.add_row("seconds", *[""] * (len(whens) - 1), f"{summary['seconds']:.0f}")
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def needs_of(trainer: str) -> Needs:
    """The needs of a trainer: `needs(model, tokenizer, env)` raises where they are not met.

    Both want a tool turn to be a clean difference of two renderings; the reference trainer keeps a
    cache over all turns, and tries the model as well.
    """
    return _of_the_reference if trainer == "reference" else check_template


def _of_the_reference(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, env: ToolEnv[Any]
) -> None:
    check_model(model)
    check_template(model, tokenizer, env)


def train_with_reference(job: phases.Grpo) -> None:
    """Train the job's model in place, up to the last step of its settings.

    The trainer goes on from its own last checkpoint; metrics and transcripts of steps after that
    checkpoint are cut off first, since those steps are done again.

    Raises:
        ConfigurationError: The trainer cannot train with these settings.
        EnvironmentFault: The environment keeps failing.
        TrainingStopped: The guards ended the run.
    """
    settings, run = job.settings, job.run
    config = reference_options(settings)
    done = max(Checkpoints(run.checkpoints, config.keep).steps(), default=0)
    job.cut_off_after(done)
    processes = Processes()

    def is_enough(step: int, trained: Adapter | None) -> bool:
        return bool(settings.eval_every) and any(processes.gather([job.is_enough(step, trained)]))

    ReferenceTrainer(
        job.model,
        job.tokenizer,
        settings.env_id,
        run.checkpoints,
        config,
        env_kwargs=settings.training_kwargs,
        on_metrics=job.tell_metrics,
        on_rollouts=job.tell_rollouts,
        is_enough=is_enough,
        kept=lambda: job.kept,
        adapter=adapter_config(settings),
    ).train()
