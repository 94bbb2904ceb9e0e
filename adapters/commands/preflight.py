"""`toolgym preflight`: check whether a model can learn in an environment, before training it.

The results and the verdict go to stdout, as a table or as one JSON object. `toolgym train` runs the
same check before GRPO.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from adapters.commands.train import (
    DataSet,
    check_installed,
    pairs_option,
    settings_from,
    with_options,
)
from toolgym.commands import (
    AsJson,
    EnvId,
    Quiet,
    StepLimit,
    print_json,
    print_table,
    say,
    settings_of,
)

if TYPE_CHECKING:
    from adapters.reference.preflight import Report
    from adapters.training.settings import TrainSettings

SETTINGS: Final = (
    *("model", "chat_template", "split", "group_size", "max_completion_length", "temperature"),
    *("trainer", "sft_steps", "demonstrations", "seed"),
)
"""The settings that are options."""
OPTIONS: Final[Mapping[str, Any]] = {
    "dataset": DataSet,
    "step_limit": StepLimit,
    "env_kwargs": pairs_option("--set", "Option of the environment, such as match=spider"),
    "tasks": Annotated[
        int | None, typer.Option(help="Number of training tasks (default: 16).", min=1)
    ],
    "tries": Annotated[int | None, typer.Option(help="Rollouts per task (default: 8).", min=2)],
    "as_json": AsJson,
    "quiet": Quiet,
}


@with_options({"Options": SETTINGS}, {"Options": OPTIONS})
def command(context: typer.Context, env_id: EnvId, **options: Any) -> None:
    """Check whether a model can learn a task before training it.

    The check covers the tools and the chat template, generates rollouts on training tasks, and runs
    one update with a learning rate of 0. For a checkpoint, settings that are not given default to
    those of its run. The exit status is 1 if the verdict advises against training.

    Example:
        toolgym preflight sqlgym/Explore-v0
        toolgym preflight sqlgym/Explore-v0 --model runs/explore-001/checkpoints/sft
        toolgym preflight sqlgym/Explore-v0 --model Qwen/Qwen3-1.7B --json
        toolgym preflight sqlgym/Explore-v0 --model ./base-model --chat-template hermes
    """
    from adapters.training.models.chat_templates import ChatTemplate
    from adapters.training.models.loading import loading_pytorch
    from adapters.training.models.published import check_model
    from adapters.training.runs.evaluations import separated
    from toolgym.commands.progress import Bars

    check_installed()
    own = ("tasks", "tries", "as_json", "quiet")
    given = {name: v for name, v in options.items() if v is not None and name not in own}
    given["env_kwargs"] = settings_of(given.get("env_kwargs"))
    settings = separated(training_settings(env_id, given))  # as training and evaluation will be
    if not settings.is_tiny:
        check_model(settings.model)
    if settings.chat_template is not None:
        ChatTemplate.named(settings.chat_template)
    with loading_pytorch():
        from adapters.reference.preflight import preflight
        from adapters.training.runs.preparation import for_this_machine, prepare, use_threads
        from adapters.training.runs.progress import NoProgress
        from toolgym.runs.run import Run

    watch = NoProgress() if options["quiet"] else Bars()
    use_threads(settings)
    settings = for_this_machine(settings)
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", {"settings": settings.model_dump(mode="json")})
        prepared = prepare(settings, run, watch)
    tasks, tries = options["tasks"] or 16, options["tries"] or 8
    report = preflight(settings, *prepared, watch, tasks=tasks, tries=tries)
    if options["as_json"]:
        about = settings.model_dump(include={"env_id", "model", "chat_template"}, exclude_none=True)
        print_json({**report.to_json(), **about, "env_kwargs": settings.training_kwargs})
    else:
        _print_report(report)
    if not report.go:
        raise typer.Exit(1)


def training_settings(env_id: str, given: Mapping[str, Any]) -> TrainSettings:
    """Return the settings of the planned training run.

    Args:
        env_id: Environment id.
        given: Settings by name. If `model` is a checkpoint in a run folder of this environment, the
            other settings are those of the run.

    Raises:
        ConfigurationError: A setting is unknown or out of range.
    """
    from toolgym.runs.run import Run

    model, inherited = given.get("model"), dict[str, Any]()
    folder = Path(model or "").expanduser().resolve().parent
    if model and folder.name == "checkpoints" and (folder.parent / "config.json").is_file():
        saved = Run.open(folder.parent).config.get("settings") or {}
        if saved.get("env_id") == env_id:
            own = ("model", "chat_template", "steps", "eval_every")  # of the finished training
            inherited = {k: v for k, v in saved.items() if k not in own and k[:4] != "sft_"}
    if model:
        inherited["sft_steps"] = 0
    layers = [("the run", inherited), ("", {**given, "env_id": env_id})]
    return settings_from(layers)[0]


_ROWS: Final = {
    "rollouts": "{rollouts:.0f} ({tries} for each of {tasks} tasks)",
    "validity": "{validity:.1%} of the turns",
    "tool failures": "{tool_failures:.1%} of the calls",
    "null arguments": "{null_arguments:.1%} of the calls",
    "repairs": "{repairs_per_call:.2f} per call",
    "unfinished": "{unfinished:.1%}",
    "answered": "{answered:.1%}",
    "accuracy": "{accuracy:.1%}",
    "held-out accuracy": "{held_out_accuracy:.1%}",
    "reward": "{reward:.3f} (best {reward_max:.3f}; standard deviation {reward_std:.3f} within a"
    " task)",
    "groups in training": "{signal:.0%} have different outcomes, {live_groups:.0%} have correct and"
    " incorrect rollouts",
    "group size": "{group_size_advice}",
    "entropy": "{entropy:.3f} nats per token",
    "seconds per step": "{seconds_per_step:.2f} ({rollout_seconds:.2f} for rollouts)",
    "peak memory": "{peak_memory:.0f} MiB",
}


def _print_report(report: Report) -> None:
    """Print the results as a table, the findings, and the verdict."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for title, text in _ROWS.items() if report.figures else ():
        table.add_row(title, text.format_map(report.figures))
    print_table(table)
    for each in report.findings:
        say(f"\n{each.level}: {each.check}. {each.reason}\n  {each.advice}")
    say(f"\n{report.verdict.upper()}")
