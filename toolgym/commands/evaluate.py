"""`toolgym eval`: play the tasks of an environment with a policy and report the figures.

Bulk work shows its progress on stderr; results go to stdout, as a table or as exactly one JSON
object, so that a pipe reads results only. Refused tasks are listed with their reasons, never left
out in silence. What is kept of it, and put together of several, is in `episode_output`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
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
    environment_creator,
    environments,
    parameters_of,
    print_json,
    print_table,
    say,
    settings_of,
    spread_of,
)
from toolgym.commands.progress import progress_bar
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.runs.checkpoints import named_environment, with_settings_of

if TYPE_CHECKING:
    from rich.table import Table

    from toolgym.policies import ByName, Policy
    from toolgym.rollout import Evaluation

EnvId = Annotated[
    str | None,
    typer.Argument(
        help="The environment, such as sqlgym/Explore-v0; a checkpoint of `toolgym train` knows"
        " its own.",
        autocompletion=environments,
    ),
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


Compare = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        metavar="FIRST SECOND",
        help="Play nothing, but compare two evaluations task by task: what --out kept, or the run "
        "folders of two trainings; of one folder given twice, before with after.",
    ),
]
BUILT_IN = ("expert", "random")
"""Policies that need no model."""
MOST_REFUSED = 10
"""Refused tasks that are listed on the terminal."""

PolicyName = Annotated[
    str,
    typer.Option(
        help="expert, random, a model (a folder, or the id of one on the hub), or openai:MODEL, "
        "which asks a server.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Of the server that openai:MODEL asks, such as http://127.0.0.1:8000/v1."),
]
Template = Annotated[
    str | None,
    typer.Option(
        help="For a model, in place of its own: hermes or chatml, which show the tools to any "
        "model, or a Jinja file.",
    ),
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
Tasks = Annotated[
    int | None, typer.Option("--n", "-n", min=1, help="Tasks; all of them without it.")
]
Split = Annotated[
    str | None,
    typer.Option(
        help="A part of the data set; dev, if the environment has parts.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Chooses the tasks and seeds the episodes.")]
Parsing = Annotated[
    str | None,
    typer.Option(help="lenient (mends what it can) or strict."),
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, help="Of a model; 0 takes the likeliest token, the default for one try."),
]
Batch = Annotated[
    int, typer.Option(min=1, help="Episodes that are played side by side, by one process.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Keep every episode: in a folder, which report, stats and audit take, or in a file "
        "that ends in .jsonl, one a line."
    ),
]
ReportTo = Annotated[
    list[str] | None,
    typer.Option(
        help="tensorboard, wandb or trackio: show the figures there too; needs a folder as --out; "
        "may be repeated.",
    ),
]
Transcripts = Annotated[int, typer.Option(min=0, help="Show the first N episodes.")]


def command(
    env_id: EnvId = None,
    policy: PolicyName = "expert",
    k: Tries = 1,
    n: Tasks = None,
    shard: ShardOf = None,
    merge: Merge = None,
    compare: Compare = None,
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
    """Play tasks with a policy and report how well it did.

    Accuracy and pass@k come with their 95 % intervals for other tasks like these. Tasks that cannot
    be played fairly are listed with the reason and counted nowhere else.

    A checkpoint of `toolgym train` is played with the data set, the split and the other settings
    that its run was evaluated with; the first line lists them, and options replace them.

    Several machines can play parts of the tasks (--shard); --merge puts together what they wrote.
    With --workers processes of this machine play, with --ray those of a cluster (docs/ray.md); the
    records are the same.

    Example:
        toolgym eval sqlgym/Explore-v0 --policy expert --n 20
        toolgym eval --policy runs/explore-001/checkpoints/final --n 20
        toolgym eval sqlgym/Explore-v0 --n 20 --out runs/expert
        toolgym eval sqlgym/Explore-v0 --policy random --shard 1/2 --out one.jsonl
        toolgym eval sqlgym/Explore-v0 --policy random --shard 2/2 --out two.jsonl
        toolgym eval sqlgym/Explore-v0 --merge one.jsonl --merge two.jsonl
        toolgym eval sqlgym/Explore-v0 --policy random --n 20 --out runs/random
        toolgym eval sqlgym/Explore-v0 --compare runs/expert runs/random
        toolgym eval sqlgym/Explore-v0 --n 20 --out runs/shown --report-to tensorboard
        toolgym eval sqlgym/Explore-v0 --policy random --k 8 --workers 2
    """
    from toolgym import rollout
    from toolgym.commands.comparison import print_comparison
    from toolgym.commands.episode_output import Output, merged_files

    show = print_object if as_json else print_results
    env_id = env_id or named_environment(policy)
    if compare is not None:
        return print_comparison(env_id, *compare, as_json=as_json)
    if merge:
        return show(*merged_files(env_id, merge, out, report_to or ()), transcripts)
    how: dict[str, Any] = {"k": k, "n": n, "seed": seed}
    if shard is not None:
        how["shard"] = _shard_of(shard)
    env_options = {"dataset": dataset, "step_limit": step_limit, "parsing": parsing}
    env_kwargs = arguments_for(env_id, settings, split=split, **env_options)
    options = options_of(policy, base_url, policy_settings, chat_template)
    env_kwargs, options, taken = with_settings_of(policy, env_id, env_kwargs, options)
    say(taken, err=True, nl=bool(taken))
    if "split" not in env_kwargs and "split" in parameters_of(environment_creator(env_id))[0]:
        env_kwargs["split"] = "dev"
    check_early(env_id, out, env_kwargs, report_to or ())
    drawing: dict[str, Any] = {"seed": seed, "temperature": temperature, "tries": k}
    with spread_of(ray, workers) as spread:
        named = policy_by_name if spread.sends else load_policy
        actor = named(policy, **drawing, **options)
        options |= {} if temperature is None else {"temperature": temperature}
        setting = {"env_id": env_id, "policy": policy, **how, **env_kwargs, **options}
        output = Output(out, setting, env_kwargs, report_to or ())
        with output.writing() as on_episode:
            with progress_bar(f"{policy} plays", quiet=quiet) as progress:
                how |= {"batch": batch, "progress": progress, "on_episode": on_episode}
                evaluation = rollout.evaluate(env_id, actor, spread=spread, **how, **env_kwargs)
            output.finish(evaluation)
    del setting["n"]  # the episodes tell
    show(evaluation, setting | _usage_of(actor), transcripts)
    refuse_unscored(evaluation)


def _shard_of(text: str) -> tuple[int, int]:
    """The two numbers of I/N; whether there is such a part is seen when it is played.

    Raises:
        ConfigurationError: It is not of this form.
    """
    if re.fullmatch(r"[0-9]{1,9}/[0-9]{1,9}", text) is None:
        raise ConfigurationError(f"a shard is I/N, such as 1/2 for the first half, not {text}.")
    number, of = text.split("/")
    return int(number), int(of)


def _usage_of(actor: Policy | ByName) -> dict[str, Any]:
    """What a policy on a server has used, as a part of a setting."""
    from toolgym.policies import Metered

    usage = actor.usage() if isinstance(actor, Metered) else None
    return {"usage": usage} if usage else {}


def refuse_unscored(evaluation: Evaluation) -> None:
    """Fail if no episode could be scored.

    Raises:
        EnvironmentFault: None could.
    """
    if math.isnan(evaluation.accuracy):
        raise EnvironmentFault("no episode could be scored: the environment failed in every one.")


def options_of(
    name: str, base_url: str | None, pairs: list[str] | None, chat_template: str | None = None
) -> dict[str, Any]:
    """The options of a policy that were given on the command line.

    Raises:
        ConfigurationError: It has none of these.
    """
    from toolgym.policies import SERVED

    options = settings_of(pairs)
    if base_url is not None:
        if not name.startswith(SERVED):
            raise ConfigurationError(
                f"--base-url is for --policy openai:MODEL; {name} asks no server, leave it out."
            )
        options["base_url"] = base_url
    if chat_template is not None:
        if name in BUILT_IN or name.startswith(SERVED):
            raise ConfigurationError(
                f"--chat-template is for a model that is loaded here; {name} takes none, leave it"
                " out."
            )
        if "chat_template" in options:
            raise ConfigurationError(
                "chat_template is given twice, by --chat-template and by --policy-set; leave one"
                " out."
            )
        options["chat_template"] = chat_template
    if options and name in BUILT_IN:
        raise ConfigurationError(
            f"--policy-set is for models; {name} has no options, leave it out."
        )
    return options


def load_policy(name: str, **options: Any) -> Policy:
    """The policy that was asked for, as `policy_by_name` finds it.

    Raises:
        ConfigurationError: There is no such policy, or what it needs is not installed.
    """
    return policy_by_name(name, **options).load()


def policy_by_name(
    name: str, *, seed: int, temperature: float | None, tries: int = 1, **options: Any
) -> ByName:
    """The policy that was asked for; without a temperature it draws if there are several tries.

    Raises:
        ConfigurationError: It is misspelt, or has no temperature.
    """
    from toolgym.policies import SERVED, ByName

    if name in BUILT_IN and temperature is not None:
        raise ConfigurationError(f"--temperature is for models; {name} has none, leave it out.")
    if temperature is None and tries > 1 and name not in BUILT_IN:
        temperature = 1.0  # greedy tries would all be the same
    if temperature is not None:
        options.setdefault("temperature", temperature)
    if name not in BUILT_IN and not name.startswith(SERVED) and not Path(name).exists():
        _refuse_misspelt(name)
    return ByName(name, seed, options)


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


def check_early(
    env_id: str, out: Path | None, env_kwargs: dict[str, Any], report_to: Sequence[str] = ()
) -> None:
    """Refuse what cannot be made, written or shown before the work, and not after it.

    Raises:
        ConfigurationError: The environment does not take these arguments, or `--out` is a folder or
            lies in one that is not there, or there is no such dashboard.
    """
    from toolgym import registration
    from toolgym.commands.episode_output import check_out, check_report_to

    check_report_to(out, report_to)
    registration.make(env_id, **env_kwargs)
    check_out(out)


def print_object(evaluation: Evaluation, setting: dict[str, Any], transcripts: int) -> None:
    """One JSON object: the setting, the figures, and the first transcripts if any are wanted."""
    shown: dict[str, Any] = {**setting, **evaluation.summary()}
    if "merged" in setting:
        del shown["refused"]  # which each shard has told, and no file holds
    if transcripts:
        shown["transcripts"] = [record.to_json() for record in evaluation.records[:transcripts]]
    print_json(shown)


def print_results(evaluation: Evaluation, setting: dict[str, Any], transcripts: int) -> None:
    """The transcripts, the figures as a table, and what was refused."""
    for record in evaluation.records[:transcripts]:
        say(transcript(record.to_json()) + "\n")
    print_table(_figures(evaluation, setting))
    for fault, count in evaluation.summary()["faults"].items():
        say(f"\nunscored: {count} by this fault: {fault}")
    if evaluation.refused:
        counted = Counter(refusal["code"] for refusal in evaluation.refused)
        reasons = ", ".join(f"{count} {code}" for code, count in counted.most_common())
        say(f"\nrefused: {len(evaluation.refused)} ({reasons})")
        for refusal in evaluation.refused[:MOST_REFUSED]:
            say(f"  {refusal['task_id']} [{refusal['code']}] {refusal['reason']}")
        if (more := len(evaluation.refused) - MOST_REFUSED) > 0:
            say(f"  ... and {more:,} more; --json lists all of them.")


def _figures(evaluation: Evaluation, setting: dict[str, Any]) -> Table:
    from rich.table import Table

    from toolgym.rewards import MISTAKES

    figures = evaluation.summary()
    low, high = figures["interval"]
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in setting.items():
        table.add_row(name, str(value))
    table.add_row("episodes", f"{figures['episodes']} ({figures['unscored']} unscored)")
    table.add_row("accuracy", f"{_number(figures['accuracy'])}  [{low:.3f}, {high:.3f}]")
    for tries, found in evaluation.pass_at_k.items() if evaluation.k > 1 else ():
        ends = f"[{found.low:.3f}, {found.high:.3f}]"
        table.add_row(f"pass@{tries}", f"{_number(found.value)}  {ends}")
    shares = [name for name in MISTAKES if name in figures]
    for name in ("mean_score", "validity", "answered", *shares):
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
