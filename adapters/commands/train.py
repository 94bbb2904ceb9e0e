"""`toolgym train`: train a model to use an environment's tools, and measure what it learned.

Without `--model` it needs two CPU cores and a few minutes: the tiny model is built, imitates a
careless demonstrator, and is improved by GRPO on the data set "tiny". With `--model` the same is
done with a pretrained chat model on the data set "bundled". Every run leaves a folder with its
numbers, transcripts and checkpoints, and can be resumed after an interruption. `train` does the
same from Python.

Options are named after the fields of `adapters.training.runs.settings.TrainSettings`, which
documents them.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgym.commands import (
    AsJson,
    Quiet,
    arguments_for,
    check_folder,
    environments,
    parameters_of,
    print_json,
    say,
    settings_of,
)
from toolgym.errors import ConfigurationError
from toolgym.runs.checkpoints import origin_of

if TYPE_CHECKING:
    from adapters.training.runs.evaluations import Evaluation
    from adapters.training.runs.settings import TrainSettings
    from toolgym.runs.run import Run

NEEDED: Final = ("torch", "transformers", "tokenizers", "datasets", "accelerate")
TRAINERS: Final = ("trl", "reference")
CONTROLS: Final = ("shuffled-rewards",)
VLLM_MODES: Final = ("colocate", "server")
SETTINGS: Final = {
    "demos": "demonstrations",
    "no_preflight": "preflight",
    "eval_set": "evaluation_env_kwargs",
}
"""The setting that an option sets, where the two have different names."""

Number = int | None
Real = float | None
Text = str | None


def _option(help_text: str, **more: Any) -> Any:
    return typer.Option(help=help_text, **more)


EnvId = Annotated[
    Text,
    typer.Argument(
        metavar="ENV_ID",
        help="Environment id, such as sqlgym/Explore-v0; MODULE:ID for one in a module of yours.",
        autocompletion=environments,
    ),
]
Model = Annotated[
    Text,
    _option(
        "Chat model to train: a folder or a hub id (default: the tiny model, built here).",
    ),
]
Template = Annotated[
    Text,
    _option(
        "Chat template for a model whose own does not show tools: hermes, chatml, or a Jinja file.",
    ),
]
Dataset = Annotated[
    Text,
    _option(
        'Data set: a name, a folder, or a JSONL or SQLite file (default: "tiny"; with --model that'
        ' of the checkpoint, or "bundled").',
    ),
]
Split = Annotated[
    Text,
    _option(
        "Split to train on (default: train); evaluation uses the tasks of dev that are not in it.",
    ),
]
Steps = Annotated[
    Number,
    _option(
        "GRPO steps (default: 60; 100 for the tiny model where a novice gives the demonstrations);"
        " 0 trains on demonstrations only."
    ),
]
SftSteps = Annotated[
    Number, _option("Supervised steps on demonstrations before GRPO; 0 skips them.")
]
Demos = Annotated[Number, _option("Number of demonstrations for the supervised steps.")]
GroupSize = Annotated[Number, _option("Rollouts per task (default: 8).")]
Prompts = Annotated[
    Number, _option("Tasks per step (default: 4; 8 where --steps defaults to 100).")
]
Rate = Annotated[
    Real,
    typer.Option(
        "--learning-rate",
        "--lr",
        help="GRPO learning rate (default: 1e-6; 1.5e-4 for the tiny model, or 3e-4 where --steps"
        " defaults to 100).",
    ),
]
Temperature = Annotated[Real, _option("Sampling temperature of rollouts (default: 1.0).")]
MaxCompletion = Annotated[Number, _option("Maximum tokens per rollout, including tool results.")]
StepLimit = Annotated[Number, _option("Maximum calls per episode (default: the environment's).")]
Parsing = Annotated[
    Text,
    _option("lenient (repairs malformed calls) or strict."),
]
Rewards = Annotated[Text, _option('Reward weights as JSON, such as {"partial": 0.3}.')]
Control = Annotated[
    Text,
    _option(
        "Control run: shuffled-rewards gives each rollout the reward of another.",
    ),
]
Trainer = Annotated[str, _option(f"Trainer: {' or '.join(TRAINERS)}.")]
EvalTasks = Annotated[
    Number, _option("Number of evaluation tasks, none of them trained on (default: 192).")
]
EvalTries = Annotated[
    Number,
    _option(
        "Sampled tries per evaluation task (default: 1; 2 for the tiny model); 0: greedy only."
    ),
]
EvalEvery = Annotated[
    Number,
    _option("GRPO steps between evaluations on held-out tasks (default a quarter); 0: none."),
]
EvalSet = Annotated[
    list[str] | None,
    typer.Option(
        "--eval-set",
        metavar="NAME=VALUE",
        help="Environment argument for evaluations only, such as match=spider; may be repeated.",
    ),
]
SaveEvery = Annotated[Number, _option("Steps between checkpoints (default: 20).")]
Seed = Annotated[int, _option("Random seed.", min=0)]
Out = Annotated[Path | None, _option("Run folder (default: runs/NAME-001, and so on).")]
Resume = Annotated[
    Path | None,
    _option("Run folder to resume; all settings come from it. Give MODULE:ID again."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Environment argument, setting of the run (see --show-settings), or argument of the "
        "trainer's config; may be repeated.",
    ),
]
Config = Annotated[
    Path | None,
    _option("YAML file with options and names that --set takes, as `name: value` lines."),
]
Lora = Annotated[
    bool, typer.Option("--lora", help="Train a LoRA adapter, and merge it at the end.")
]
Vllm = Annotated[
    Text,
    _option(
        "Generate with vLLM: colocate (on the training GPU) or server.",
    ),
]
NoPreflight = Annotated[
    bool, typer.Option("--no-preflight", help="Skip the check that the model can learn.")
]
ReportTo = Annotated[
    list[str] | None,
    _option(
        "Dashboard: tensorboard, wandb or trackio; may be repeated.",
    ),
]
Show = Annotated[
    bool,
    typer.Option("--show-settings", help="Print every setting with its source, and exit."),
]


def command(
    context: typer.Context,
    env_id: EnvId = None,
    model: Model = None,
    chat_template: Template = None,
    dataset: Dataset = None,
    split: Split = None,
    steps: Steps = None,
    sft_steps: SftSteps = None,
    demos: Demos = None,
    group_size: GroupSize = None,
    prompts: Prompts = None,
    learning_rate: Rate = None,
    temperature: Temperature = None,
    max_completion_length: MaxCompletion = None,
    step_limit: StepLimit = None,
    parsing: Parsing = None,
    rewards: Rewards = None,
    settings: Settings = None,
    config: Config = None,
    lora: Lora = False,
    vllm: Vllm = None,
    control: Control = None,
    trainer: Trainer = "trl",
    eval_tasks: EvalTasks = None,
    eval_tries: EvalTries = None,
    eval_every: EvalEvery = None,
    eval_set: EvalSet = None,
    save_every: SaveEvery = None,
    seed: Seed = 0,
    out: Out = None,
    resume: Resume = None,
    no_preflight: NoPreflight = False,
    report_to: ReportTo = None,
    show_settings: Show = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a model to use tools, and measure what it learned.

    A run has five parts: supervised training on demonstrations, a preflight check, an evaluation on
    tasks and databases that are not trained on, GRPO, and the same evaluation again. Without
    --model it trains a model of half a million parameters, in minutes on a CPU. The run folder
    holds metrics, transcripts, checkpoints and a report as one HTML page.

    In Python, call adapters.commands.train.train.

    Example:
        toolgym train sqlgym/Explore-v0
        toolgym train sqlgym/Explore-v0 --dataset my.db
        toolgym train sqlgym/Explore-v0 --model HuggingFaceTB/SmolLM2-135M --chat-template hermes
        toolgym train aflowgym/Compose-v0 --trainer reference
        toolgym train sqlgym/Explore-v0 --control shuffled-rewards
        toolgym train sqlgym/Explore-v0 --set max_draws=2 --set beta=0.02
        toolgym train sqlgym/Explore-v0 --set sft_learning_rate=0.004 --show-settings
        toolgym train sqlgym/TextToSQL-v0 --eval-every 10 --set patience=3 --eval-set match=spider
        toolgym train sqlgym/Explore-v0 --out runs/first --json --report-to tensorboard
        toolgym train --config examples/recipes/smollm2.yaml --steps 20
        toolgym train --resume runs/explore-001
    """
    check_installed()
    if resume is not None:
        return take_up(context, resume)
    begin(dict(context.params), _given(context))


def _given(context: typer.Context) -> dict[str, str]:
    """The options on the command line, by the name of what they set."""
    return {
        SETTINGS.get(str(parameter.name), str(parameter.name)): parameter.opts[0]
        for parameter in context.command.params
        if getattr(context.get_parameter_source(str(parameter.name)), "name", "") == "COMMANDLINE"
    }


def check_installed() -> None:
    """Make sure that the extra `train` is installed, before anything is imported that needs it.

    Raises:
        ConfigurationError: A package of the extra `train` is not installed.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"toolgym train needs {', '.join(missing)}, not installed here; run:"
            " pip install 'toolgym[train]'"
        )
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # it warns of every fork otherwise


def take_up(context: typer.Context, folder: Path) -> None:
    """Go on with an interrupted run.

    Raises:
        ConfigurationError: It is no run folder, or an option was given that the run knows already.
    """
    allowed = ("--resume", "--no-preflight", "--quiet", "--json", "env_id")
    extra = [option for option in _given(context).values() if option not in allowed]
    if extra:
        raise ConfigurationError(f"--resume takes all settings from the run: leave out {extra[0]}.")

    from adapters.training.models.loading import loading_pytorch

    options = context.params
    quiet, as_json = options["quiet"], options["as_json"]
    if options["env_id"] is not None:
        parameters_of(options["env_id"])  # imports its module
    run = check_resumable(folder)
    if run.is_complete:
        return tell_complete(run, as_json=as_json)
    with loading_pytorch():
        from adapters.commands import train_run
    look_first = not options["no_preflight"]
    run, settings = train_run.old_run(folder, look_first=look_first, err=as_json)
    train_run.see_through_on_terminal(run, settings, quiet=quiet, as_json=as_json)


def tell_complete(run: Run, *, as_json: bool) -> None:
    """Say that a run has nothing left to do; `as_json` prints its result."""
    say(f"{run.path} is complete; there is nothing left to do.", err=as_json)
    if as_json:
        print_json({"run": run.path, **run.summary})


def check_resumable(folder: Path) -> Run:
    """The run in a folder, which can be taken up; found out before PyTorch is loaded.

    Raises:
        ConfigurationError: It is no run of `toolgym train`, or a process is writing it, or its
            environment is in a module that is not imported yet.
    """
    from adapters.training.runs.settings import read_settings
    from toolgym.registration import recorded
    from toolgym.runs.episodes import is_evaluation
    from toolgym.runs.run import Run

    run = Run.open(folder)
    if is_evaluation(run.config):
        raise ConfigurationError(f"{folder} is an evaluation: there is nothing in it to train.")
    recorded(read_settings(run.config.get("settings")).env_id)
    if run.is_held:
        raise ConfigurationError(f"{folder} is being written by another process: wait for its end.")
    return run


def begin(options: dict[str, Any], given: Mapping[str, str] = MappingProxyType({})) -> None:
    """Start a new run, or show what it would use.

    Args:
        options: All of the command.
        given: Those on the command line, by the name of what they set.

    Raises:
        ConfigurationError: An option is out of range, or names something that is not there.
    """
    from adapters.commands.train_options import read_config, show_settings
    from adapters.training.models.loading import loading_pytorch

    quiet, folder = options.pop("quiet"), options.pop("out")
    as_json = options.pop("as_json", False)
    only_show = options.pop("show_settings", False)
    file = options.pop("config")
    config = read_config(file) if file is not None else {}
    model = options["model"] or config.get("model")
    settings, sources = settings_from(options, config, given)
    if only_show:
        return show_settings(settings, sources, model, as_json=as_json)
    settings, planned = check_early(settings, folder)
    with loading_pytorch():
        from adapters.commands import train_run
    new = train_run.new_run(settings, folder, planned, given=sources, err=as_json)
    with new as (run, settings):
        train_run.see_through_on_terminal(run, settings, quiet=quiet, as_json=as_json)


def train(
    env_id: str, *, out: Path | str | None = None, quiet: bool = False, **options: Any
) -> Run:
    """Train a model as `toolgym train` does, from Python.

    Args:
        env_id: The environment, such as `sqlgym/Explore-v0`.
        out: The run folder; None takes the next number in `runs`.
        quiet: Show no progress. What is said, and the progress, go to stderr.
        options: The options of `toolgym train` with underscores, such as `dataset`, `model`,
            `steps` or `no_preflight`; and whatever `--set` takes: arguments of the environment,
            settings of the run, and arguments of the trainer's own config.

    Returns:
        The run: `run.summary` holds its figures, `run.metrics("grpo")` the numbers of each step,
        and `run.checkpoints / "final"` the model.

    Raises:
        ConfigurationError: An option is unknown or out of range, or names something that is not
            there; nothing is left behind. Or the preflight refused the model (`NoGo`).
        TrainingStopped: The guards stopped the run.
        EnvironmentFault: The environment keeps failing.
    """
    from adapters.commands.train_options import checked
    from adapters.training.models.loading import loading_pytorch

    check_installed()
    written = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in options.items()}
    parameters = inspect.signature(command).parameters
    defaults = {name: each.default for name, each in parameters.items() if name != "context"}
    for name in ("out", "quiet", "as_json", "show_settings", "config"):
        del defaults[name]
    config = checked(written, "train()")
    settings, given = settings_from({**defaults, "env_id": env_id}, config)
    folder = None if out is None else Path(out)
    settings, planned = check_early(settings, folder)
    with loading_pytorch():
        from adapters.commands import train_run
    new = train_run.new_run(settings, folder, planned, given=given, err=True)
    with new as (run, settings):
        train_run.see_through(run, settings, quiet=quiet)
    return run


def settings_from(
    options: dict[str, Any],
    config: dict[str, Any],
    given: Mapping[str, str] = MappingProxyType({}),
) -> tuple[TrainSettings, dict[str, str]]:
    """The settings of a run from the options of the command and from what a file holds.

    Args:
        options: Of the command, by their names; what is None or the default was not given.
        config: Options by their names, and what `--set` takes; options on the command line replace
            them.
        given: The options on the command line, by the name of what they set.

    Returns:
        The settings, and the source of each that was given.

    Raises:
        ConfigurationError: An option is out of range, or names something that is not there.
    """
    from adapters.commands.train_options import as_pairs, divide_options
    from adapters.training.runs.settings import resolve

    options, config = dict(options), dict(config)
    options.pop("resume", None)
    pairs = options.pop("settings")
    judged_by = {**config.pop("eval_set", {}), **settings_of(options.pop("eval_set", None))}
    if judged_by:
        given = {"evaluation_env_kwargs": "--config", **given}
    for name in options.keys() & config.keys():
        value, setting = config.pop(name), SETTINGS.get(name, name)
        if setting not in given:
            options[name], given = value, {**given, setting: "--config"}
    options["preflight"] = not options.pop("no_preflight")
    env_id = options.pop("env_id")
    if env_id is None:
        raise ConfigurationError("say which environment, as in: toolgym train sqlgym/Explore-v0")
    refuse_unknown("--trainer", options["trainer"], TRAINERS)
    refuse_unknown("--control", options["control"], CONTROLS)
    refuse_unknown("--vllm", options["vllm"], VLLM_MODES)
    divided = divide_options(env_id, options["trainer"], pairs, config)
    options["settings"] = divided.environment
    options["evaluation_env_kwargs"] = arguments_for(env_id, as_pairs(judged_by)) or None
    places = _places(env_id, options)
    options["trainer_options"] = divided.trainer
    options["demonstrations"] = options.pop("demos")
    settings = resolve(env_id, **places, **options, **divided.settings)
    if "split" not in places:
        settings = settings.model_copy(update={"split": None, "evaluation_split": None})
    return settings, {**given, **divided.sources}


def check_early(
    settings: TrainSettings, folder: Path | None
) -> tuple[TrainSettings, tuple[Evaluation, ...]]:
    """Check everything that can be checked before PyTorch is loaded.

    Returns:
        The settings with training and evaluation kept apart, and the evaluations.

    Raises:
        ConfigurationError: Environment, model, chat template, dashboard or run folder cannot be
            had, or no task of the training or of an evaluation is playable.
    """
    from adapters.training.models.chat_templates import ChatTemplate
    from adapters.training.models.published import check_model
    from adapters.training.runs.evaluations import evaluations, played_with, separated
    from toolgym import registration
    from toolgym.runs.dashboards import check_services

    if not settings.is_tiny:
        check_model(settings.model)
    if settings.chat_template is not None:
        ChatTemplate.named(settings.chat_template)
    if settings.trainer == "reference" and settings.vllm is not None:
        raise ConfigurationError("--vllm is for --trainer trl; the reference trainer has none.")
    check_services(settings.report_to)
    check_folder(folder or Path("runs"))
    settings = separated(settings)
    planned = evaluations(settings)
    sets = [
        registration.make(settings.env_id, **env_kwargs).tasks
        for env_kwargs in played_with(settings, planned)
    ]
    for tasks in sets:
        if not len(tasks.first_playable(1)):
            raise ConfigurationError(tasks.nothing_playable())
    if settings.steps and settings.trainer == "trl":
        found = len(sets[0].first_playable(settings.prompts))
        if found < settings.prompts:
            raise ConfigurationError(
                f"a step plays {settings.prompts} different tasks, and the training has {found}"
                f" ({sets[0].name}): add tasks, or set --prompts {found}, or take --trainer"
                " reference."
            )
    return settings, planned


def _places(env_id: str, options: dict[str, Any]) -> dict[str, Any]:
    """Take what is for the environment out of the options: its arguments, and the two splits."""
    names = ("dataset", "step_limit", "parsing", "rewards")
    env_options = {name: options.pop(name) for name in names}
    settings = options.pop("settings")
    env_options["rewards"] = weights_of(env_options["rewards"])
    accepted, open_ended = parameters_of(env_id)
    if "dataset" in accepted and env_options["dataset"] is None:
        env_options["dataset"] = default_data_set(env_id, options["model"])
    split = options.pop("split")
    arguments_for(env_id, split=split)  # refuses one that was given to what takes none
    env_kwargs = arguments_for(env_id, settings, **env_options)
    takes_any = open_ended and (split is not None or _takes_splits(env_id, env_kwargs))
    if "split" in accepted or takes_any:
        return {"env_kwargs": env_kwargs, "split": split or "train", "evaluation_split": "dev"}
    return {"env_kwargs": env_kwargs}


def default_data_set(env_id: str, model: str | None) -> str:
    """The data set where none is named: the one that a checkpoint was trained on, if it says so.

    Raises:
        ConfigurationError: The checkpoint's `toolgym.json` is damaged, or names a server.
    """
    if model is None:
        return "tiny"
    origin = origin_of(model)
    dataset = origin.complete({}).get("dataset") if origin and origin.env_id == env_id else None
    return dataset if isinstance(dataset, str) else "bundled"


def _takes_splits(env_id: str, env_kwargs: dict[str, Any]) -> bool:
    """Whether an environment that hands on all its arguments has splits at the end of the way."""
    from toolgym import registration

    try:
        registration.make(env_id, **env_kwargs, split="train")
    except ConfigurationError:
        return False
    return True


def weights_of(text: str | dict[str, Any] | None) -> dict[str, Any] | None:
    """The reward weights from JSON; whether they are lawful, the environment says."""
    if not isinstance(text, str):
        return text
    try:
        weights = json.loads(text)
    except json.JSONDecodeError as problem:
        raise ConfigurationError(f"--rewards is not JSON: {problem}.") from None
    if not isinstance(weights, dict):
        raise ConfigurationError('--rewards must be a JSON object, such as {"partial": 0.3}.')
    return weights


def refuse_unknown(option: str, value: str | None, allowed: tuple[str, ...]) -> None:
    """Make sure that an option, if it was given, has a value that is known.

    Raises:
        ConfigurationError: It has another; the message names those that are.
    """
    if value is not None and value not in allowed:
        raise ConfigurationError(f"{option} must be {' or '.join(allowed)}, got {value!r}.")
