"""The phases, the folder and the messages of a run of `toolgym train`.

Supervised training on demonstrations writes `checkpoints/sft`, and the preflight check writes
`preflight.json`. The results of the first evaluations are stored as `before` in `summary.json`.
GRPO with the chosen trainer writes the trainer's checkpoints and `checkpoints/final`. The results
of the last evaluations are stored as `after` in `summary.json`.

Each phase writes its result before the next begins. A resumed run skips the phases that have
results, and the trainer resumes from its last checkpoint, so an interrupted run ends with the same
numbers. Until a run is complete, the status in its summary is `interrupted`, since a killed process
cannot write a status. If an exception ends the run, the status becomes `refused`, `stopped` or
`failed`.

If a launcher starts several processes, the first process runs all phases, and the other processes
only train.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final

import typer
from rich.table import Table

from adapters.reference.checkpoint import Checkpoints
from adapters.reference.evaluation import Evaluator
from adapters.reference.preflight import REPORT, NoGo, before_training
from adapters.reference.processes import Processes
from adapters.reference.train import ReferenceTrainer
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.runs.evaluations import (
    Evaluation,
    choose_tasks,
    evaluations,
    gain_sentence,
    selection_source,
)
from adapters.training.runs.grpo import Grpo
from adapters.training.runs.preparation import (
    adapter_config,
    for_this_machine,
    load_prepared,
    note_origin,
    prepare,
    save,
    use_threads,
)
from adapters.training.runs.progress import NoProgress, ProgressListener
from adapters.training.runs.reproducibility import differences, reproducibility
from adapters.training.settings import TrainSettings, read_settings
from toolgym.commands import print_json, print_table, say
from toolgym.commands.progress import Bars
from toolgym.errors import ConfigurationError, ToolgymError
from toolgym.report import write_report
from toolgym.report.page import FILE
from toolgym.report.tables import results as report_rows
from toolgym.report.view import views
from toolgym.runs.dashboards import reported
from toolgym.runs.run import METRICS, ROLLOUTS, SUMMARY, Run

RUNS: Final = Path("runs")
FINAL: Final = "final"
ABOUT: Final = {"env_id", "model", "trainer", "control"}
"""Settings in the summary of a run, and at the top level of its config."""


# The phases.


def train(run: Run, settings: TrainSettings, watch: ProgressListener) -> None:
    """Run the remaining phases of a run.

    Args:
        run: A new run, or one that was interrupted at any point.
        settings: The settings of the run.
        watch: Listener for the progress.

    Raises:
        NoGo: The preflight check rejected the model.
        TrainingStopped: The guards stopped the run.
        ConfigurationError: The model, the data set or the environment cannot be used.
        EnvironmentFault: The environment fails repeatedly.
    """
    began, planned = time.monotonic(), evaluations(settings)
    tasks, selection = choose_tasks(settings, planned)
    summary: dict[str, Any] = {
        **settings.model_dump(include=ABOUT),
        "seconds": 0.0,
        "evaluations": [{**each.to_json(), "before": None, "after": None} for each in planned],
        "before": None,
        "after": None,
        "gain": None,
        **run.summary,
        "status": "interrupted",
    }
    summary.pop("diagnosis", None)
    began -= summary["seconds"]
    if [each["name"] for each in summary["evaluations"]] != [each.name for each in planned]:
        raise ConfigurationError(
            f"the data set has changed since {run.path / SUMMARY} was written. Restore the data, or"
            " remove the file to repeat all evaluations."
        )

    def note(**figures: Any) -> None:
        """Add results to the summary and write it."""
        summary.update(figures, seconds=round(time.monotonic() - began, 1))
        run.write_summary(summary)

    note()
    model, tokenizer = prepare(settings, run, watch)
    note()
    evaluator = Evaluator(model, tokenizer, settings, watch)

    def measure(when: str) -> None:
        """Run the evaluations `before` or `after` that are not in the summary."""
        for each, result in zip(planned, summary["evaluations"], strict=True):
            if result[when] is None:
                phase = f"{when}{each.suffix}"
                run.cut_rollouts(phase)
                found = evaluator.play(each, tasks[each.suffix], when)
                where = {"phase": phase, "step": None}
                run.log_rollouts({**where, **record.to_json()} for record in found)
                result[when] = found.summary()
                note()
        note(**{when: summary["evaluations"][0][when]})

    if settings.steps:
        if settings.preflight:
            report = before_training(run, settings, model, tokenizer, watch)
            for finding in report.findings if report is not None else ():
                say(
                    f"Preflight warning, {finding.check}: {finding.reason} {finding.advice}",
                    err=True,
                )
        measure("before")
        source, job = selection_source(planned), Grpo(model, tokenizer, settings, run)
        if selection:
            job.evaluate = lambda step: evaluator.play(source, selection, f"step {step}")
        with watch.phase("GRPO", settings.steps) as job.advance:
            trainer_named(settings.trainer)(job)
        if chosen := job.summary():
            count = len(selection)
            kept = (
                f"The {settings.checkpoint} weights were kept. The best of {chosen['evaluations']}"
                f" evaluations on {count} selection tasks ({source.name}) was after step"
                f" {chosen['best_step']} ({chosen['best_accuracy']:.1%}). The last was after step"
                f" {chosen['last_step']} of {settings.steps}."
            )
            note(selection={"name": source.name, "tasks": count, **chosen}, kept=kept)
    save(model, tokenizer, run.checkpoints / FINAL, settings)
    measure("after")
    note(gain=gain_sentence(summary["evaluations"], settings), status="complete")


def follow(run: Run, settings: TrainSettings) -> None:
    """Train as an additional process, without writing files.

    This process polls the run folder until the evaluations of the first process are finished, since
    a barrier times out after some minutes.
    """
    if not settings.steps:
        return
    while run.summary.get("before") is None:
        time.sleep(0.2)
    model, tokenizer = load_prepared(settings, run)
    trainer_named(settings.trainer)(Grpo(model, tokenizer, settings, run, is_main=False))


def trainer_named(name: str) -> Callable[[Grpo], None]:
    """Return the training function of a trainer. TRL is imported only if it is used."""
    if name == "reference":
        return train_with_reference
    from adapters.commands.train_with_trl import train_with_trl

    return train_with_trl


def train_with_reference(job: Grpo) -> None:
    """Train with the reference trainer, from its last checkpoint if there is one.

    Raises:
        ConfigurationError: The trainer does not support the settings.
        EnvironmentFault: The environment fails repeatedly.
        TrainingStopped: The guards stopped the run.
    """
    settings, run = job.settings, job.run
    job.cut_off_after(max(Checkpoints(run.checkpoints, settings.keep).steps(), default=0))
    trainer = ReferenceTrainer(
        job.model,
        job.tokenizer,
        settings.env_id,
        run.checkpoints,
        settings,
        env_kwargs=settings.training_kwargs,
        lora=adapter_config(settings),
        on_step=job.on_step,
        evaluate=job.evaluate_after,
        on_save=lambda folder: note_origin(folder, settings),
    )
    trainer.train()
    if trainer.adapter is None:
        return job.load_kept()
    if job.kept is not None:
        trainer.adapter.load(job.kept)
    trainer.adapter.merge()


# The run folder.


def new_run(
    settings: TrainSettings, folder: Path | None, planned: Sequence[Evaluation]
) -> tuple[Run, TrainSettings]:
    """Create the folder of a run, and print the model, the data and the evaluations.

    Args:
        settings: Settings of the run, as `check_early` returns them.
        folder: The folder; None means the next numbered folder in `runs`.
        planned: The evaluations, as `check_early` returns them.

    Raises:
        ConfigurationError: The trainer does not support the settings, or the folder cannot be
            created.
    """
    settings = for_this_machine(settings)
    check_trainer(settings)
    config = {
        **settings.model_dump(include=ABOUT),
        "model_title": model_title(settings),
        "dataset": settings.env_kwargs.get("dataset"),
        "settings": settings.model_dump(),
        "guards": settings.guards.model_dump(mode="json"),
        "reproducibility": reproducibility(settings, use_threads(settings)),
    }
    processes = Processes()
    if not processes.is_main:
        return Run.open(processes.gather(list[str]())[0]), settings
    say("\n".join(announcement(settings, planned)), err=True)
    run = Run.create(folder or next_folder(settings.env_id), config)
    say(f"Run folder: {run.path}", err=True)
    processes.gather([str(run.path)])
    return run, settings


def old_run(folder: Path, *, look_first: bool = True) -> tuple[Run, TrainSettings]:
    """Open an incomplete run, and print what is resumed.

    Args:
        folder: The run folder.
        look_first: Whether to run the preflight check if the run has not passed it yet.

    Raises:
        ConfigurationError: The folder is not a run of `toolgym train`.
    """
    run = Run.open(folder)
    settings = read_settings(run.config.get("settings"))
    if not look_first:
        settings = settings.model_copy(update={"preflight": False})
    planned = evaluations(settings)
    now = reproducibility(settings, use_threads(settings))
    if Processes().is_main:
        say("\n".join(announcement(settings, planned)), err=True)
        reached = f" ({run.progress})" if run.progress else ""
        say(f"Resuming {run.path}{reached} from its last checkpoint.", err=True)
        for line in differences(run.config.get("reproducibility") or {}, now):
            say(f"Changed since the run started: {line}", err=True)
    return run, settings


def next_folder(env_id: str, runs: Path = RUNS) -> Path:
    """Return the next numbered folder, such as `runs/explore-001` for `sqlgym/Explore-v0`."""
    name = re.sub(r"-v\d+$", "", env_id.rpartition("/")[2]).lower()
    folders = (runs / f"{name}-{number:03d}" for number in itertools.count(1))
    return next(folder for folder in folders if not folder.exists())


def check_trainer(settings: TrainSettings) -> None:
    """Check that the trainer supports the settings.

    Raises:
        ConfigurationError: The trainer does not support the settings, or a library is not
            installed.
    """
    if settings.trainer == "reference":
        adapter_config(settings)
        return
    if importlib.util.find_spec("trl") is None:
        raise ConfigurationError(
            "trl is not installed; run: pip install 'toolgym[train]', or use --trainer reference."
        )
    from adapters.commands.train_with_trl import check_settings

    check_settings(settings)


# The terminal.


def see_through(run: Run, settings: TrainSettings, *, quiet: bool) -> None:
    """Train a run and write its report, even if the training fails.

    Raises:
        NoGo: The preflight check rejected the model. The status is `refused`.
        TrainingStopped: The guards stopped the run. The status is `stopped`.
        ConfigurationError: The model, the data set or the environment cannot be used. The status of
            the run is `failed`, as for all other errors.
        EnvironmentFault: The environment fails repeatedly.
    """
    if not Processes().is_main:
        return follow(run, settings)
    is_new = not run.summary
    with ExitStack() as at_the_end, run.held():
        # After the lock is released: the report of a locked run says that it is running.
        at_the_end.callback(write_report, run)
        try:
            with reported(run, settings.report_to) as reporting:
                train(reporting, settings, NoProgress() if quiet else Bars())
        except Exception as problem:
            status = {NoGo: "refused", TrainingStopped: "stopped"}.get(type(problem), "failed")
            kind = "" if isinstance(problem, ToolgymError) else f"{type(problem).__name__}: "
            run.write_summary({**run.summary, "status": status, "diagnosis": f"{kind}{problem}"})
            files = (METRICS, ROLLOUTS, REPORT, run.checkpoints.name)
            if is_new and not any((run.path / name).exists() for name in files):
                at_the_end.pop_all()
                shutil.rmtree(run.path, ignore_errors=True)
                if run.path.parent == RUNS:
                    with suppress(OSError):  # it has other runs
                        RUNS.rmdir()
                say(f"Nothing was trained. The run folder {run.path} was removed.", err=True)
            raise


def see_through_on_terminal(
    run: Run, settings: TrainSettings, *, quiet: bool, as_json: bool
) -> None:
    """Call `see_through` and print the result.

    The exit status is 1 if the run was refused or stopped.

    Args:
        run: The run.
        settings: The settings of the run.
        quiet: Show no progress bars.
        as_json: Print the result as one JSON object.
    """
    is_main, is_stopped = Processes().is_main, False
    try:
        see_through(run, settings, quiet=quiet)
    except (TrainingStopped, NoGo) as problem:
        is_stopped = True
        if is_main:
            say(str(problem), err=True)
    finally:
        if is_main and run.path.is_dir() and run.state:
            say(f"\nReport: {run.path / FILE}\n{run.state}", err=True)
    if is_main and as_json:
        print_json({"run": run.path, **run.summary})
    elif is_main and not is_stopped:
        summary = run.summary
        print_table(results(run))
        say("\n".join(filter(None, [summary["gain"], summary.get("kept")])))
        say(f"Report: {run.path / FILE}")
        final, env_id = quote(str(run.checkpoints / FINAL)), quote(settings.env_id)
        command = f"toolgym eval {env_id} --policy {final} --n {settings.eval_tasks}"
        say(f"To evaluate the model again, run: {command}")
    if is_stopped:
        raise typer.Exit(1)


def model_title(settings: TrainSettings) -> str:
    """Return the name of the model for messages."""
    tiny = "the tiny model (half a million parameters, not pretrained)"
    return tiny if settings.is_tiny else settings.model


def announcement(settings: TrainSettings, planned: Sequence[Evaluation]) -> Iterator[str]:
    """Yield the first lines of the output: the model, the data, and the evaluations."""
    data = settings.env_kwargs.get("dataset")
    on = f' with the data set "{data}"' if data else ""
    control = "; control: shuffled rewards" if settings.control else ""
    yield f"Training {model_title(settings)} on {settings.env_id}{on}{control}."
    if not planned[0].is_held_out:
        yield (
            "Warning: no tasks are held out. Training and evaluation use the same tasks, which"
            " cannot be divided."
        )
        return
    sets = [f"{e.name} ({e.tasks:,} in {e.source})" for e in planned if not e.temperature]
    tries = sum(each.tries for each in planned if each.temperature)
    end = (
        f", greedily; {planned[0].name} also sampled, {_count(tries, 'attempt')} each"
        if tries
        else ""
    )
    yield f"Evaluations: {' and '.join(sets)}{end}."
    if selection := choose_tasks(settings, planned)[1]:
        name = selection_source(planned).name
        yield f"Evaluations during GRPO: {len(selection)} other tasks ({name}), greedily."
    elif settings.eval_every:
        yield f"No evaluations during GRPO, since {planned[0].source} has too few tasks."
    if settings.separation is not None:
        yield f"Training and evaluation had common tasks. Separation: {settings.separation}."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def results(run: Run) -> Table:
    """Return the table of the evaluations, with the numbers of the report."""
    heads = ("accuracy (95 % interval)", "answered", "valid turns", "mean score")
    table = Table("", "", *heads, box=None, pad_edge=False)
    for row in report_rows(views([run], 0)):
        cells = (f"{text} ({small})" if small else text for text, small in row.cells)
        table.add_row(row.head, row.small, *cells)
    return table
