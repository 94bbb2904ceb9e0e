"""`toolgym preflight`: check whether a model can learn in an environment before training it.

The figures and the verdict go to stdout, as a table or as one JSON object. `toolgym train` makes
the same check before GRPO.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
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
    Dataset,
    EnvId,
    OneSplit,
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
    from adapters.reference.preflight import Report
    from adapters.training.runs.settings import TrainSettings

Text = str | None
Number = int | None


def _option(help_text: str, **more: Any) -> Any:
    return typer.Option(help=help_text, **more)


def command(
    context: typer.Context,
    env_id: EnvId,
    model: Annotated[
        Text,
        _option(
            "Chat model: a folder or a hub id (default: the tiny model after its supervised steps)."
        ),
    ] = None,
    chat_template: Annotated[
        Text,
        _option("Chat template instead of the model's: hermes, chatml, or a Jinja file."),
    ] = None,
    dataset: Dataset = None,
    split: OneSplit = None,
    step_limit: StepLimit = None,
    parsing: Annotated[Text, _option("lenient (repairs malformed calls) or strict.")] = None,
    rewards: Annotated[Text, _option('Reward weights as JSON, such as {"partial": 0.3}.')] = None,
    settings: Settings = None,
    tasks: Annotated[int, _option("Number of training tasks to play.", min=1)] = 16,
    tries: Annotated[int, _option("Rollouts per task.", min=2)] = 8,
    group_size: Annotated[Number, _option("Rollouts per task in training (default: 8).")] = None,
    max_completion_length: Annotated[
        Number, _option("Maximum tokens per rollout, including tool results.")
    ] = None,
    temperature: Annotated[
        float | None, _option("Sampling temperature of rollouts (default: 1.0).")
    ] = None,
    sft_steps: Annotated[
        Number, _option("Supervised steps before the check (with --model: 0).")
    ] = None,
    demonstrations: Annotated[
        Number, _option("Number of demonstrations for the supervised steps.")
    ] = None,
    trainer: Annotated[Text, _option("Trainer: trl or reference (default: trl).")] = None,
    seed: Annotated[Number, _option("Random seed (default: 0).", min=0)] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check whether a model can learn before training it.

    The command checks tools and chat template, plays rollouts of training tasks, and makes an
    update with a learning rate of 0. Settings that are not given come from the run of the
    checkpoint, or are the defaults of `toolgym train`. The exit status is 0 for go and 1 for no-go.

    Example:
        toolgym preflight sqlgym/Explore-v0
        toolgym preflight sqlgym/Explore-v0 --model runs/explore-001/checkpoints/warmup
        toolgym preflight sqlgym/Explore-v0 --model Qwen/Qwen3-1.7B --json
        toolgym preflight sqlgym/Explore-v0 --model ./base-model --chat-template hermes
    """
    from adapters.training.models.chat_templates import ChatTemplate
    from adapters.training.models.places import check_model, loading_pytorch
    from adapters.training.runs.evaluations import separated
    from adapters.training.runs.settings import TrainSettings
    from toolgym.commands.progress import Bars

    check_installed()
    refuse_unknown("--trainer", trainer, TRAINERS)
    own = {"dataset": dataset, "step_limit": step_limit, "parsing": parsing}
    env_kwargs = arguments_for(env_id, settings, **own, rewards=weights_of(rewards))
    fields = TrainSettings.model_fields.keys() & context.params
    chosen = training_settings({name: context.params[name] for name in fields}, env_kwargs)
    chosen = separated(chosen)  # as training and evaluation will be
    if model is not None:
        check_model(model)
    if chat_template is not None:
        ChatTemplate.named(chat_template)
    with loading_pytorch():
        from adapters.reference.preflight import preflight
        from adapters.training.runs.preparation import for_this_machine, prepare, use_threads
        from adapters.training.runs.progress import NoProgress
        from toolgym.runs.run import Run

    watch = NoProgress() if quiet else Bars()
    use_threads(chosen)
    chosen = for_this_machine(chosen)
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", {"settings": chosen.model_dump()})
        prepared = prepare(chosen, run, watch)
    report = preflight(chosen, *prepared, watch, tasks=tasks, tries=tries)
    if as_json:
        about = chosen.model_dump(include={"env_id", "model", "chat_template"}, exclude_none=True)
        print_json({**report.to_json(), **about, "env_kwargs": chosen.training_kwargs})
    else:
        _print_report(report)
    if not report.go:
        raise typer.Exit(1)


def training_settings(given: Mapping[str, Any], env_kwargs: Mapping[str, Any]) -> TrainSettings:
    """The settings of the training to come.

    Args:
        given: Settings, of which `env_id` is needed; None: not given. If `model` is a checkpoint in
            a run folder of this environment, the others are those of the run.
        env_kwargs: Arguments of the environment; they override those of the run.

    Raises:
        ConfigurationError: A value is out of range.
    """
    from adapters.training.runs.settings import resolve
    from toolgym.runs.run import Run

    env_id, model, inherited = given["env_id"], given.get("model"), dict[str, Any]()
    folder = Path(model or "").expanduser().resolve().parent
    if model and folder.name == "checkpoints" and (folder.parent / "config.json").is_file():
        saved = Run.open(folder.parent).config.get("settings") or {}
        if saved.get("env_id") == env_id:
            own = ("model", "chat_template", "steps", "eval_every")  # of the finished training
            inherited = {k: v for k, v in saved.items() if k not in own and k[:4] != "sft_"}
    accepted, _ = parameters_of(env_id)
    kwargs = {**inherited.pop("env_kwargs", {}), **env_kwargs}
    if "dataset" in accepted:
        kwargs.setdefault("dataset", default_data_set(env_id, model))
    if model:
        inherited["sft_steps"] = 0
    given = {**inherited, **{name: value for name, value in given.items() if value is not None}}
    settings = resolve(**given, env_kwargs=kwargs)
    if "split" in accepted or given.get("split"):
        return settings
    return settings.model_copy(update={"split": None, "evaluation_split": None})


_ROWS: Final = {
    "rollouts": "{rollouts:.0f}: {tries} of {tasks} tasks",
    "validity": "{validity:.1%} of the turns",
    "tool failures": "{tool_failures:.1%} of the calls",
    "null arguments": "{null_arguments:.1%} of the calls",
    "repairs": "{repairs_per_call:.2f} per call",
    "unfinished": "{unfinished:.1%}",
    "answered": "{answered:.1%}",
    "accuracy": "{accuracy:.1%}",
    "held-out accuracy": "{held_out_accuracy:.1%}",
    "reward": "{reward:.3f} (best {reward_max:.3f}; deviation {reward_std:.3f} within a task)",
    "groups in training": "{signal:.0%} differ in outcome, {live_groups:.0%} have right and wrong"
    " members",
    "group size": "{group_size_advice}",
    "entropy": "{entropy:.3f} nats per token",
    "seconds per step": "{seconds_per_step:.2f} ({rollout_seconds:.2f} for rollouts)",
    "memory": "{peak_memory:.0f} MiB at the peak",
}


def _print_report(report: Report) -> None:
    """Print the figures as a table, the findings, and the verdict."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for title, text in _ROWS.items() if report.figures else ():
        table.add_row(title, text.format_map(report.figures))
    print_table(table)
    for each in report.findings:
        say(f"\n{each.level}: {each.check}. {each.reason}\n  {each.advice}")
    say(f"\n{report.verdict.upper()}")
