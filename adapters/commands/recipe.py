"""`toolgym recipe`: a real model from its name to a report, in one command that can be interrupted.

    model       fetched and converted, unless it is there      (`toolgym models get`)
    tasks       those of a data set, and more for its databases  -> OUT/tasks
    budget      what each phase will take on this machine        -> OUT/budget.json
    training    warm-up, preflight, evaluation, GRPO, evaluation, report: `toolgym train`
                                                                 -> OUT/train, a run folder
    at the end  planned against actual                           -> OUT/seconds.json

Each leaves its result before the next begins, and the same command goes on where it was. What there
is to tune stands in `adapters.training.runs.recipes`; `--set` tries another value of a setting.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from adapters.commands.train import check_early, check_installed, check_resumable, tell_complete
from toolgym.commands import (
    AsJson,
    Quiet,
    check_folder,
    load_environments,
    print_json,
    print_table,
    say,
    settings_of,
)
from toolgym.commands.completion import models, offered
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from adapters.reference.time_budget import Phase, Speeds
    from adapters.training.runs.evaluations import Evaluation
    from adapters.training.runs.progress import ProgressListener
    from adapters.training.runs.recipes import Recipe
    from adapters.training.runs.settings import TrainSettings

TASKS: Final = "tasks"
RUN: Final = "train"
BUDGET: Final = "budget.json"
SECONDS: Final = "seconds.json"


def _named(incomplete: str) -> list[str]:
    from adapters.training.runs.recipes import RECIPES

    return offered(RECIPES, incomplete)


Name = Annotated[str, typer.Argument(help="Which, such as smollm2.", autocompletion=_named)]
Quick = Annotated[bool, typer.Option("--quick", help="All phases once, as small as makes sense.")]
Model = Annotated[
    str | None,
    typer.Option(help="In place of its own: a folder or a hub id.", autocompletion=models),
]
Out = Annotated[Path | None, typer.Option(help="Its folder; else runs/NAME or runs/NAME-quick.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Of all random choices; 0.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another setting of its training (see toolgym train --show-settings); may be "
        "repeated.",
    ),
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Print what it would take, and end.")]


def command(
    name: Name,
    quick: Quick = False,
    model: Model = None,
    out: Out = None,
    seed: Seed = None,
    settings: Settings = None,
    plan: PlanOnly = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a real model by settings that fit a small machine, and say what each phase takes.

    It gets the model, writes tasks, measures this machine for a minute, prints a plan, and then
    does what toolgym train does. The same command goes on where an interrupted one was.

    Example:
        toolgym recipe smollm2
        toolgym recipe smollm2 --quick
        toolgym recipe smollm2 --plan --json
        toolgym recipe smollm2 --set steps=80 --out runs/longer
    """
    from adapters.training.models.places import loading_pytorch
    from adapters.training.runs.recipe_tasks import make_databases_ready
    from adapters.training.runs.recipes import recipe_named
    from toolgym.commands.progress import Bars

    check_installed()
    recipe = recipe_named(name, quick=quick)
    folder = out or Path("runs") / (f"{name}-quick" if quick else name)
    check_folder(folder)
    load_environments()
    given = dict(settings_of(settings))
    if model is not None:
        given["model"] = model
    if seed is not None:
        given["seed"] = seed
    check_given(recipe, given)
    get_model(given.get("model", recipe.model))
    resolved, planned = _settings(recipe, folder, given)
    with loading_pytorch():
        from adapters.reference import time_budget
        from adapters.training.runs.preparation import for_this_machine
        from adapters.training.runs.progress import NoProgress, TimedProgress
    resolved = for_this_machine(resolved)
    watch = TimedProgress(NoProgress() if quiet else Bars(), folder / SECONDS)
    make_databases_ready(resolved, watch)
    budget = _budget(resolved, folder)
    phases = time_budget.plan(
        resolved, planned, budget, answer_tokens=recipe.answer_tokens, draws=recipe.draws
    )
    if not as_json:
        print_plan(recipe, phases, budget)
    if plan:
        return print_json(plan_object(recipe, phases, budget)) if as_json else None
    see_through(resolved, planned, folder / RUN, watch, quiet, as_json=as_json)
    if not as_json:
        print_times(phases, watch.seconds)


def check_given(recipe: Recipe, given: Mapping[str, Any]) -> None:
    """Find out what is wrong with settings before anything is fetched or written.

    Raises:
        ConfigurationError: One is unknown or out of range, or the model cannot be had.
    """
    from adapters.training.models.places import check_model
    from adapters.training.models.published.catalogue import is_published

    settings = recipe.resolved(recipe.tasks.dataset, **given)
    if settings.trainer != "reference":
        raise ConfigurationError("a recipe is for the reference trainer: leave out --set trainer.")
    if not is_published(settings.model):
        check_model(settings.model)


def _settings(
    recipe: Recipe, folder: Path, given: Mapping[str, Any]
) -> tuple[TrainSettings, tuple[Evaluation, ...]]:
    """The settings of a run, new or begun, and its evaluations.

    Raises:
        ConfigurationError: One is out of range, or not what the run was begun with.
    """
    from adapters.training.runs.evaluations import evaluations
    from adapters.training.runs.recipe_tasks import make_tasks

    if (folder / RUN / "config.json").is_file():
        begun = _begun(recipe, folder, given)
        return begun, evaluations(begun)
    dataset = make_tasks(recipe, folder / TASKS)
    return check_early(recipe.resolved(dataset, **given), folder)


def _begun(recipe: Recipe, folder: Path, given: Mapping[str, Any]) -> TrainSettings:
    """The settings of a run that was begun; they are not to be changed.

    Raises:
        ConfigurationError: Others were asked for.
    """
    from adapters.training.runs.settings import read_settings

    begun = read_settings(check_resumable(folder / RUN).config.get("settings"))
    if given:
        dataset = str(begun.env_kwargs["dataset"])
        wanted = recipe.resolved(dataset, **given).model_dump()
        differing = [n for n in given if wanted[n] != begun.model_dump()[n]]
        if differing:
            raise ConfigurationError(
                f"{folder} was begun with another {', '.join(differing)}: name another --out, or"
                " leave the option out to go on."
            )
    return begun


def get_model(name: str) -> None:
    """Get a model that the catalogue has, unless it is there."""
    from adapters.training.models.published.catalogue import MODELS, is_published

    if is_published(name):
        from adapters.training.models.published.getting import get

        get(MODELS[name])


def _budget(settings: TrainSettings, folder: Path) -> Speeds:
    """The speeds of this machine, measured once for a folder."""
    from adapters.reference import time_budget
    from adapters.training.models.chat_policy import load_model
    from adapters.training.models.released_memory import release_memory
    from toolgym.long_work import telling
    from toolgym.runs.files import object_text, plain, read_object, replace_file

    file = folder / BUDGET
    if file.is_file():
        return time_budget.Speeds(**read_object(file))
    template = settings.chat_template
    model, tokenizer = load_model(
        settings.model, for_training=True, dtype=settings.dtype, chat_template=template
    )
    with telling("measuring this machine for a minute"):
        speeds = time_budget.measure(settings, model, tokenizer, folder)
    del model
    release_memory()
    record = time_budget.to_json(speeds)
    replace_file(file, [object_text(plain(record, BUDGET))])
    return speeds


def print_plan(recipe: Recipe, phases: Sequence[Phase], speeds: Speeds) -> None:
    """What each phase is expected to take, and all of them."""
    from rich.table import Table

    table = Table("phase", "planned", "for", box=None, pad_edge=False)
    for phase in phases:
        table.add_row(phase.title, minutes(phase.seconds), phase.because)
    total = sum(phase.seconds for phase in phases)
    table.add_row("all", minutes(total), f"at most {recipe.minutes} min are meant for it")
    say(
        f"This machine: {speeds.imitation:,.0f} tokens/s of warm-up, {speeds.update:,.0f} of"
        f" update, {speeds.writing:,.0f} written in rollouts;"
        f" {speeds.peak_memory:,.0f} MiB of memory at the most."
    )
    print_table(table)
    if total > 60 * recipe.minutes:
        say(
            "That is more than it is meant to take. Fewer steps take less: --set steps=N,"
            " --set warmup_steps=N, or --quick.",
            err=True,
        )


def plan_object(recipe: Recipe, phases: Sequence[Phase], speeds: Speeds) -> dict[str, Any]:
    """The plan as `--json` prints it."""
    return {
        "recipe": recipe.name,
        "speeds": dataclasses.asdict(speeds),
        "phases": [
            {"title": each.title, "seconds": each.seconds, "because": each.because}
            for each in phases
        ],
        "seconds": sum(each.seconds for each in phases),
        "most_seconds": 60 * recipe.minutes,
    }


def see_through(
    settings: TrainSettings,
    planned: Sequence[Evaluation],
    run: Path,
    watch: ProgressListener,
    quiet: bool,
    *,
    as_json: bool = False,
) -> None:
    """Begin the training, or go on with it; `as_json` prints its result."""
    from adapters.commands import train_run

    if not (run / "config.json").is_file():
        train_run.start(settings, run, quiet, planned, watch, as_json=as_json)
    elif (begun := check_resumable(run)).is_complete:
        tell_complete(begun, as_json=as_json)
    else:
        train_run.resume(run, quiet, watch=watch, as_json=as_json)


def print_times(phases: Sequence[Phase], seconds: Mapping[str, float]) -> None:
    """Planned against actual."""
    from rich.table import Table

    table = Table("phase", "planned", "took", box=None, pad_edge=False)
    for phase in phases:
        table.add_row(phase.title, minutes(phase.seconds), minutes(phase.took(seconds)))
    total = sum(seconds.values())
    others = total - sum(phase.took(seconds) for phase in phases)
    table.add_row("others", "", minutes(others))
    table.add_row("all", minutes(sum(phase.seconds for phase in phases)), minutes(total))
    print_table(table)


def minutes(seconds: float) -> str:
    """A time as people say it.

    >>> minutes(45), minutes(150)
    ('45 s', '2.5 min')
    """
    return f"{seconds / 60:.1f} min" if seconds >= 100 else f"{seconds:.0f} s"
