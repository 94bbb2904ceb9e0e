"""`toolgym eval`: evaluate a policy on the tasks of an environment.

Progress goes to stderr. Results go to stdout, as a table or as one JSON object. Refused tasks are
listed with the reason.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.commands import (
    AsJson,
    Dataset,
    Quiet,
    Ray,
    Settings,
    StepLimit,
    Workers,
    arguments_for,
    environments,
    given_once,
    map_of,
    parameters_of,
    print_json,
    print_table,
    say,
)
from toolgym.commands.progress import progress_bar
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.policies import BUILT_IN
from toolgym.runs.checkpoints import named_environment, with_settings_of

if TYPE_CHECKING:
    from rich.table import Table

    from toolgym.rollout import Evaluation

MOST_REFUSED = 10
"""Maximum number of refused tasks in the printed list."""

EnvId = Annotated[
    str | None,
    typer.Argument(
        metavar="ENV_ID",
        help="Environment id, such as sqlgym/Explore-v0, or MODULE:ID (default: that of the"
        " checkpoint in --policy).",
        autocompletion=environments,
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        metavar="I/N", help="Run only part I of N of the tasks; `toolgym merge` merges the parts."
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        help="Policy: expert (the built-in solver), random, a model (folder or hub id), or"
        " openai:MODEL for a model on a server.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="URL of the server for openai:MODEL, such as http://127.0.0.1:8000/v1."),
]
Template = Annotated[
    str | None,
    typer.Option(
        help="Chat template that replaces the model's own template: hermes, which works with any"
        " model, or a Jinja file.",
    ),
]
PolicySettings = Annotated[
    list[str] | None,
    typer.Option(
        "--policy-set",
        metavar="NAME=VALUE",
        help="Option of the model, such as max_tokens=512; may be repeated.",
    ),
]
Tries = Annotated[
    int,
    typer.Option(min=1, help="Number of attempts per task; if above 1, pass@k is also printed."),
]
Tasks = Annotated[
    int | None, typer.Option("--n", "-n", min=1, help="Number of tasks (default: all).")
]
Split = Annotated[
    str | None,
    typer.Option(
        help="Split of the data set (default: dev).",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Random seed for the choice of tasks and for the episodes.")
]
Parsing = Annotated[
    str | None,
    typer.Option(
        help="Parsing of calls: lenient, which repairs malformed calls, or strict (default: the"
        " environment's).",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, help="Sampling temperature of a model (default: 0; 1 if --k is above 1)."),
]
Batch = Annotated[
    int, typer.Option(min=1, help="Number of episodes that each process runs at once.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder or .jsonl file for the episodes. `toolgym report` and `toolgym audit`"
        " require a folder."
    ),
]
ReportTo = Annotated[
    list[str] | None,
    typer.Option(
        help="Dashboard to log to: tensorboard, wandb or trackio; may be repeated. Requires a"
        " folder in --out.",
    ),
]
Transcripts = Annotated[int, typer.Option(min=0, help="Number of episodes to print.")]


def command(
    env_id: EnvId = None,
    policy: PolicyName = "expert",
    k: Tries = 1,
    n: Tasks = None,
    shard: Shard = None,
    dataset: Dataset = None,
    split: Split = None,
    seed: Seed = 0,
    step_limit: StepLimit = None,
    parsing: Parsing = None,
    settings: Settings = None,
    temperature: Temperature = None,
    batch: Batch = 64,
    workers: Workers = None,
    ray: Ray = None,
    as_json: AsJson = False,
    out: Out = None,
    transcripts: Transcripts = 0,
    base_url: BaseUrl = None,
    chat_template: Template = None,
    policy_settings: PolicySettings = None,
    report_to: ReportTo = None,
    quiet: Quiet = False,
) -> None:
    """Evaluate a policy on the tasks of an environment.

    Prints the accuracy and pass@k with 95 % confidence intervals. Tasks that cannot be scored
    reliably are listed with the reason and not counted. A checkpoint of `toolgym train` is
    evaluated with the data set, split and other settings of its training run, which options
    override.

    The results do not depend on --workers, --ray or --shard.

    Example:
        toolgym eval sqlgym/Explore-v0 --policy expert --n 20
        toolgym eval --policy runs/explore-001/checkpoints/final --n 20
        toolgym eval sqlgym/Explore-v0 --policy random --n 20 --out runs/random
        toolgym eval sqlgym/Explore-v0 --policy random --k 8 --workers 2
        toolgym eval sqlgym/Explore-v0 --policy random --shard 1/2 --out one.jsonl
    """
    from toolgym import registration, rollout
    from toolgym.commands.episode_output import Output
    from toolgym.policies import ByName, as_policy

    env_id = env_id or named_environment(policy)
    playing: dict[str, Any] = {"k": k, "n": n, "seed": seed}
    if shard is not None:
        playing["shard"] = shard_of(shard)
    env_options = {"dataset": dataset, "split": split, "step_limit": step_limit, "parsing": parsing}
    env_kwargs = arguments_for(env_id, settings, **env_options)
    if temperature is None and k > 1 and policy not in BUILT_IN:
        temperature = 1.0  # greedy attempts would be identical
    policy_options = {
        "base_url": base_url,
        "chat_template": chat_template,
        "temperature": temperature,
    }
    options = given_once(policy_options, policy_settings, "--policy-set")
    env_kwargs, options, taken = with_settings_of(policy, env_id, env_kwargs, options)
    say(taken, err=True, nl=bool(taken))
    if "split" not in env_kwargs and "split" in parameters_of(env_id)[0]:
        env_kwargs["split"] = "dev"
    # Errors in environment, output and dashboards are raised before the work.
    tasks = registration.make(env_id, **env_kwargs).tasks
    output = Output(out, report_to or ())
    named = ByName(policy, seed, options)
    about = {"dataset": registration.dataset_of(env_id, env_kwargs) or tasks.name, "split": None}
    setting = {"policy": policy, "env_id": env_id, **about, **playing, **env_kwargs}
    setting |= options
    if shard is not None:
        setting["shard"] = shard
    with map_of(ray, workers) as map_parts:
        # Worker processes load the policy; this process loads it before the folder is created.
        actor = named if map_parts is not map else as_policy(named)
        with output.writing(setting, env_kwargs) as on_episode:
            with progress_bar(f"{policy} plays", quiet=quiet) as progress:
                evaluation = rollout.evaluate(
                    env_id,
                    actor,
                    map=map_parts,
                    batch=batch,
                    progress=progress,
                    on_episode=on_episode,
                    **playing,
                    **env_kwargs,
                )
            output.finish(evaluation)
    del setting["n"]  # `episodes` has the number
    if evaluation.usage:
        setting["usage"] = dict(evaluation.usage)
    (print_object if as_json else print_results)(evaluation, setting, transcripts)
    if math.isnan(evaluation.accuracy):
        raise EnvironmentFault(
            "no episode could be scored, because the environment failed in all of them."
        )


def shard_of(text: str) -> tuple[int, int]:
    """Parse I/N and return the two numbers.

    Raises:
        ConfigurationError: The text has another form.
    """
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if found is None:
        raise ConfigurationError(
            f"--shard must be I/N, such as 1/2 for the first half, not {text}."
        )
    return int(found[1]), int(found[2])


def print_object(evaluation: Evaluation, setting: dict[str, Any], transcripts: int) -> None:
    """Print one JSON object with the settings, results, and the first `transcripts` episodes."""
    given = {name: value for name, value in setting.items() if value is not None}
    shown: dict[str, Any] = {**given, **evaluation.summary()}
    if "merged" in setting:
        del shown["refused"]  # refused tasks are reported by each shard, but not in its file
    if transcripts:
        shown["transcripts"] = [record.to_json() for record in evaluation.records[:transcripts]]
    print_json(shown)


def print_results(evaluation: Evaluation, setting: dict[str, Any], transcripts: int) -> None:
    """Print the first `transcripts` episodes, a table of the results, the infrastructure errors,
    and the refused tasks.
    """
    for record in evaluation.records[:transcripts]:
        say(transcript(record.to_json()) + "\n")
    print_table(_figures(evaluation, setting))
    for fault, count in evaluation.summary()["faults"].items():
        say(f"\nunscored: {count}, because of this fault: {fault}")
    if evaluation.refused:
        counted = Counter(refusal["code"] for refusal in evaluation.refused)
        reasons = ", ".join(f"{count} {code}" for code, count in counted.most_common())
        say(f"\nrefused: {len(evaluation.refused)} ({reasons})")
        for refusal in evaluation.refused[:MOST_REFUSED]:
            say(f"  {refusal['task_id']} [{refusal['code']}] {refusal['reason']}")
        if (more := len(evaluation.refused) - MOST_REFUSED) > 0:
            say(f"  ... and {more:,} more; --json lists all of them.")


def _figures(evaluation: Evaluation, setting: Mapping[str, Any]) -> Table:
    from rich.table import Table

    from toolgym.records import usage_text
    from toolgym.rewards import MISTAKES

    figures = evaluation.summary()
    low, high = figures["interval"]
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in setting.items():
        text = "none" if value is None else str(value)
        if isinstance(value, list):
            text = ", ".join(map(str, value))
        if value == "expert":
            text += " (the built-in solver; choose another with --policy)"
        table.add_row("data set" if name == "dataset" else name, text)
    table.add_row("episodes", f"{figures['episodes']} ({figures['unscored']} unscored)")
    table.add_row("accuracy", f"{_number(figures['accuracy'])}  [{low:.3f}, {high:.3f}]")
    for tries, found in evaluation.pass_at_k.items() if evaluation.k > 1 else ():
        ends = f"[{found.low:.3f}, {found.high:.3f}]"
        table.add_row(f"pass@{tries}", f"{_number(found.value)}  {ends}")
    shares = [name for name in MISTAKES if name in figures]
    for name in ("mean_score", "validity", "answered", *shares):
        table.add_row(name.replace("_", " "), _number(figures[name]))
    if text := usage_text(evaluation.env_usage):
        table.add_row("environment's models", text)
    return table


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def transcript(record: dict[str, Any]) -> str:
    """Return a recorded episode as readable text."""
    lines: Sequence[str] = [
        text
        for turn in record["turns"]
        for text in (
            f"> {turn['action']}",
            turn["observation"],
            *([f"(repaired: {', '.join(turn['repairs'])})"] if turn["repairs"] else ()),
        )
    ]
    verdict = "correct" if record["correct"] else "not correct"
    score = "unscored" if record["score"] is None else f"score {record['score']:.3f}"
    head = f"--- {record['task_id']}: {record['question']}"
    return "\n".join([head, *lines, f"--- {verdict}, {score}"])
