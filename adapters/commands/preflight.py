"""`toolgym preflight`: can this model learn in this environment, before any GPU hour is spent?

The figures go to stdout, as a table or as one JSON object, then the findings with what to change,
and last the verdict. `toolgym train` makes the same check before GRPO.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from adapters.commands.train import (
    TRAINERS,
    check_installed,
    default_data_set,
    refuse_unknown,
    weights_of,
)
from toolgym.commands import (
    AsJson,
    EnvId,
    Quiet,
    Settings,
    StepLimit,
    arguments_for,
    parameters_of,
    print_json,
    print_table,
    say,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from adapters.training.preflight.judge import Report
    from adapters.training.runs.progress import ProgressListener
    from adapters.training.runs.settings import TrainSettings
    from toolgym.runs.run import Run

NO_GO: Final = 1

Number = int | None
Text = str | None


def _option(help_text: str, **more: Any) -> Any:
    return typer.Option(help=help_text, **more)


Model = Annotated[
    Text,
    _option(
        "Chat model: a folder or a hub id (default: the tiny model after its supervised steps).",
    ),
]
Template = Annotated[
    Text,
    _option(
        "Chat template instead of the model's: hermes, chatml, or a Jinja file.",
    ),
]
Dataset = Annotated[
    Text,
    _option(
        'Data set: a name, a folder, or a JSONL or SQLite file (default: "tiny"; with --model that'
        ' of the checkpoint, or "bundled").',
    ),
]
Split = Annotated[Text, _option("Split of the training tasks (default: train).")]
Parsing = Annotated[
    Text,
    _option("lenient (repairs malformed calls) or strict."),
]
Rewards = Annotated[Text, _option('Reward weights as JSON, such as {"partial": 0.3}.')]
Tasks = Annotated[int, _option("Number of training tasks to play.", min=1)]
Tries = Annotated[int, _option("Rollouts per task.", min=2)]
GroupSize = Annotated[Number, _option("Rollouts per task in training (default: 8).")]
Prompts = Annotated[Number, _option("Tasks per training step (default: 4).")]
Temperature = Annotated[float | None, _option("Sampling temperature of rollouts (default: 1.0).")]
MaxCompletion = Annotated[Number, _option("Maximum tokens per rollout, including tool results.")]
SftSteps = Annotated[
    Number, _option("Supervised steps of the tiny model before the check (default: 1200).")
]
Demos = Annotated[
    Number, _option("Number of demonstrations for the supervised steps (default: 4800).")
]
Trainer = Annotated[
    Text,
    _option(
        f"Trainer: {' or '.join(TRAINERS)} (default: {TRAINERS[0]}).",
    ),
]
Seed = Annotated[Number, _option("Random seed (default: 0).", min=0)]


def command(
    context: typer.Context,
    env_id: EnvId,
    model: Model = None,
    chat_template: Template = None,
    dataset: Dataset = None,
    split: Split = None,
    step_limit: StepLimit = None,
    parsing: Parsing = None,
    rewards: Rewards = None,
    settings: Settings = None,
    tasks: Tasks = 16,
    tries: Tries = 8,
    group_size: GroupSize = None,
    prompts: Prompts = None,
    temperature: Temperature = None,
    max_completion_length: MaxCompletion = None,
    sft_steps: SftSteps = None,
    demos: Demos = None,
    trainer: Trainer = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check whether a model can learn before training it.

    Transcripts of the expert show whether chat template and parser fit together. A sample of
    rollouts shows whether the model's calls can be read, whether rollouts of one task differ, and
    what a training step costs. Settings that are not given come from the run of the checkpoint, or
    are the defaults of `toolgym train`. The exit status is 0 for go and 1 for no-go.

    Example:
        toolgym preflight sqlgym/Explore-v0
        toolgym preflight sqlgym/Explore-v0 --model runs/explore-001/checkpoints/warmup
        toolgym preflight sqlgym/Explore-v0 --model Qwen/Qwen3-1.7B --json
        toolgym preflight sqlgym/Explore-v0 --model ./base-model --chat-template hermes
    """
    check_installed()
    options = {k: v for k, v in context.params.items() if k not in _OF_THE_LOOK}
    chosen = training_settings(**_settings_arguments(options))
    report = look(chosen, tasks, tries, quiet)
    (print_object if as_json else print_results)(report, chosen)
    if not report.go:
        raise typer.Exit(NO_GO)


_OF_THE_LOOK: Final = ("tasks", "tries", "as_json", "quiet")


def _settings_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The options as arguments of `training_settings`."""
    env_id, model = options.pop("env_id"), options.pop("model")
    refuse_unknown("--trainer", options["trainer"], TRAINERS)
    env_options = {name: options.pop(name) for name in ("dataset", "step_limit", "parsing")}
    env_options["rewards"] = weights_of(options.pop("rewards"))
    env_kwargs = arguments_for(env_id, options.pop("settings"), **env_options)
    options["demonstrations"] = options.pop("demos")
    chosen = {name: value for name, value in options.items() if value is not None}
    return {"env_id": env_id, "model": model, "given": chosen, "env_kwargs": env_kwargs}


def training_settings(
    env_id: str, model: str | None, given: dict[str, Any], env_kwargs: dict[str, Any]
) -> TrainSettings:
    """The settings of the training that is to come.

    Args:
        model: A path or hub id; None is the tiny model.
        given: Fields that were asked for.
        env_kwargs: Arguments of the environment that were asked for.

    Raises:
        ConfigurationError: A value is out of range.
    """
    from adapters.training.runs.settings import resolve

    run = run_of(model, env_id)
    before = run.config["settings"] if run is not None else {}
    inherited = {key: before[key] for key in _INHERITED if key in before}
    accepted, _ = parameters_of(env_id)
    arguments_for(env_id, split=given.get("split"))  # refuses one that it does not take
    kwargs = {**inherited.pop("env_kwargs", {}), **env_kwargs}
    if "dataset" in accepted and "dataset" not in kwargs:
        kwargs["dataset"] = default_data_set(env_id, model)
    settings = resolve(env_id, model=model, **{**inherited, **given}, env_kwargs=kwargs)
    if "split" in accepted or "split" in given:
        return settings
    return settings.model_copy(update={"split": None, "evaluation_split": None})


_INHERITED: Final = (
    *("env_kwargs", "split", "evaluation_split", "separation", "group_size", "prompts"),
    *("temperature", "max_completion_length", "seed", "trainer", "trainer_options"),
    *("dtype", "lora", "lora_rank", "lora_alpha", "lora_targets"),
)


def run_of(model: str | None, env_id: str) -> Run | None:
    """The run of this environment in whose `checkpoints` the model lies; None if there is none."""
    from toolgym.runs.run import Run

    folder = Path(model).expanduser() if model is not None else Path()
    place = folder.resolve().parent
    if place.name != "checkpoints" or not (place.parent / "config.json").is_file():
        return None
    run = Run.open(place.parent)
    settings = run.config.get("settings")
    return run if isinstance(settings, dict) and settings.get("env_id") == env_id else None


def look(settings: TrainSettings, tasks: int, tries: int, quiet: bool) -> Report:
    """Load or build the model, and look at it.

    Raises:
        ConfigurationError: Model, chat template or environment cannot be had, which is found out
            before PyTorch is loaded.
    """
    from adapters.training.models.chat_templates import ChatTemplate
    from adapters.training.models.loading import loading_pytorch
    from adapters.training.models.published import check_model
    from toolgym import registration
    from toolgym.commands.progress import Bars

    if not settings.is_tiny:
        check_model(settings.model)
    if settings.chat_template is not None:
        ChatTemplate.named(settings.chat_template)
    registration.make(settings.env_id, **settings.training_kwargs)
    with loading_pytorch():
        from adapters.commands.train_run import needs_of
        from adapters.training.preflight.run import Scope, preflight
        from adapters.training.runs.preparation import for_this_machine, use_threads
        from adapters.training.runs.progress import NoProgress

    watch: ProgressListener = NoProgress() if quiet else Bars()
    use_threads(settings)
    settings = for_this_machine(settings)
    model, tokenizer = _model(settings, watch)
    scope = Scope(tasks=tasks, tries=tries)
    return preflight(
        settings, model, tokenizer, watch, scope=scope, needs=needs_of(settings.trainer)
    )


def _model(
    settings: TrainSettings, watch: ProgressListener
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    from adapters.training.models.chat_policy import load_model
    from adapters.training.runs.preparation import prepare
    from toolgym.runs.run import Run

    if not settings.is_tiny:
        template = settings.chat_template
        how: dict[str, Any] = {"for_training": True, "dtype": settings.dtype}
        return load_model(settings.model, **how, chat_template=template)
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", {"settings": settings.model_dump()})
        return prepare(settings, run, watch)


def print_object(report: Report, settings: TrainSettings) -> None:
    """One JSON object: verdict, findings, figures, and of what."""
    about: dict[str, Any] = {"env_id": settings.env_id, "model": settings.model}
    if settings.chat_template is not None:
        about["chat_template"] = settings.chat_template
    about["env_kwargs"] = settings.training_kwargs
    print_json({**report.to_json(), **about})


def print_results(report: Report, settings: TrainSettings) -> None:
    """The figures as a table, what is wrong, and the verdict."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in _rows(report.figures, settings):
        table.add_row(name, text)
    if report.figures.get("rollouts"):
        print_table(table)
    for finding in report.findings:
        say(f"\n{finding.level}: {finding.check}. {finding.reason}\n  {finding.advice}")
    warnings = sum(finding.level == "warn" for finding in report.findings)
    stops = len(report.findings) - warnings
    counted = f"{stops} reason{'s' * (stops != 1)}, " if stops else ""
    say(f"\n{report.verdict.upper()}  ({counted}{warnings} warning{'s' * (warnings != 1)})")


def _rows(figures: Mapping[str, Any], settings: TrainSettings) -> Iterator[tuple[str, str]]:
    """The figures as a person reads them."""
    if not figures.get("rollouts"):
        return
    size = settings.group_size
    yield "rollouts", f"{figures['rollouts']:.0f}: {figures['tries']} at {figures['tasks']} tasks"
    for name in ("validity", "tool_failures", "null_arguments", "answered", "unfinished"):
        yield name.replace("_", " "), _share(figures[name])
    written = ", ".join(f"{count} {name}" for name, count in figures["call_formats"].items())
    yield "call format", f"{figures['template_format']} in the template; turns: {written or 'none'}"
    yield "repairs per call", f"{figures['repairs_per_call']:.2f}"
    yield "accuracy", _share(figures["accuracy"])
    low, high = figures["reward_min"], figures["reward_max"]
    spread = f"{figures['reward_std']:.3f} within a task"
    yield "reward", f"{figures['reward']:.3f} ({low:.3f} to {high:.3f}; {spread})"
    yield "entropy", f"{figures['entropy']:.3f} nats per token"
    for title, key in (("groups with signal", "signal"), ("right and wrong", "live_groups")):
        shares = (f"{_share(share)} of {k}" for k, share in figures[key].items())
        yield title, ", ".join(shares)
    yield "group size", f"{size} is set. {figures['group_size_advice']}"
    parts = f"{figures['rollout_seconds']:.2f} playing, {figures['update_seconds']:.2f} learning"
    yield "seconds per step", f"{figures['seconds_per_step']:.2f} ({parts})"
    if "memory_needed" in figures:
        yield "memory", f"{figures['memory_needed'] / 1e9:.1f} GB by arithmetic"


def _share(value: float) -> str:
    return f"{value:.1%}"
