"""`toolgym train`: train a model to use the tools of an environment, and evaluate it.

Without `--model`, the command builds the tiny model and trains it on the data set "tiny", in a few
minutes on two CPU cores: first on demonstrations of a policy that makes mistakes, then with GRPO.
With `--model`, the command trains a pretrained chat model on the data set "bundled". Each run has a
folder with metrics, transcripts and checkpoints, and can be resumed after an interruption. The
function `train` does the same from Python.

The options are generated from the fields of `adapters.training.settings.TrainSettings`, whose
docstrings are the help texts.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin

import typer

from adapters.training.settings import (
    TINY,
    TINY_DEFAULTS,
    TrainSettings,
    defaults_for,
    option_of,
    read_settings,
    resolve,
)
from toolgym.commands import (
    AsJson,
    Quiet,
    StepLimit,
    check_folder,
    environments,
    parameters_of,
    print_json,
    print_table,
    say,
    settings_of,
    with_remark,
)
from toolgym.errors import ConfigurationError
from toolgym.runs.checkpoints import data_sets_of, origin_of

if TYPE_CHECKING:
    from adapters.training.runs.evaluations import Evaluation
    from toolgym.runs.run import Run

NEEDED: Final = ("torch", "transformers", "tokenizers", "datasets", "accelerate")
ENV_OPTIONS: Final = ("dataset", "step_limit")
"""Options that are arguments of the environment, in addition to `env_kwargs`."""
MAPPINGS: Final = {"env_kwargs": "--set", "eval_env_kwargs": "--eval-set", "trl": "--trl"}
"""Settings that are mappings, with the option that takes one NAME=VALUE."""
SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Environment": ("split", "eval_split"),
    "Model": (
        *("model", "chat_template", "lora", "lora_rank", "lora_alpha", "lora_targets", "dtype"),
        *("gradient_checkpointing", "tokens_per_pass"),
    ),
    "Supervised training": (
        *("sft_steps", "demonstrations", "demonstrator", "recoveries", "sft_batch"),
        *("sft_learning_rate", "sft_matrix_rate", "sft_lora", "sft_alike", "copying"),
    ),
    "Reinforcement learning": (
        *("trainer", "steps", "group_size", "prompts", "learning_rate", "lr_warmup_steps"),
        *("lr_decay", "temperature", "max_completion_length", "max_draws", "loss", "beta"),
        *("advantages", "advantage_limit", "epsilon_low", "epsilon_high", "entropy_bonus"),
        *("updates_per_batch", "learn_from_unfinished", "betas", "weight_decay"),
        *("max_grad_norm", "guards", "control", "workers", "at_once", "vllm"),
    ),
    "Evaluation": (
        *("eval_tasks", "eval_tries", "max_new_tokens", "eval_every", "selection_tasks"),
        *("patience", "checkpoint", "preflight"),
    ),
    "Run": ("seed", "save_every", "keep", "report_to"),
}
"""The settings in each section of the help text."""


EnvId = Annotated[
    str | None,
    typer.Argument(
        metavar="ENV_ID",
        help="Environment id, such as sqlgym/Explore-v0, or MODULE:ID.",
        autocompletion=environments,
    ),
]
DataSet = Annotated[
    str | None,
    typer.Option(
        help="Data set: a name, a folder, or a JSONL or SQLite file (default: tiny for the tiny"
        " model, the data set of the run for a checkpoint, otherwise bundled)."
    ),
]


def pairs_option(option: str, help_text: str) -> Any:
    """Return an option that accepts NAME=VALUE and can be repeated."""
    made = typer.Option(option, metavar="NAME=VALUE", help=f"{help_text}; may be repeated.")
    return Annotated[list[str] | None, made]


OWN_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Environment": {
        "dataset": DataSet,
        "step_limit": StepLimit,
        "env_kwargs": pairs_option("--set", "Option of the environment, such as match=spider"),
        "eval_env_kwargs": pairs_option(
            "--eval-set", "Option of the environment in evaluations only"
        ),
    },
    "Reinforcement learning": {"trl": pairs_option("--trl", "Argument of TRL's GRPOConfig")},
    "Run": {
        "out": Annotated[
            Path | None,
            typer.Option(help="Run folder (default: runs/NAME-001, runs/NAME-002, ...)."),
        ],
        "resume": Annotated[
            Path | None,
            typer.Option(help="Run folder to resume, with the settings of that run."),
        ],
        "config": Annotated[
            Path | None,
            typer.Option(help="YAML file of settings, such as `steps: 60`."),
        ],
        "show_settings": Annotated[
            bool, typer.Option("--show-settings", help="Print all settings and exit.")
        ],
        "as_json": AsJson,
        "quiet": Quiet,
    },
}
"""Options by section that are not fields of the settings, or have another form."""


_OTHER_DEFAULTS: Final = {
    "advantages": "TRL: group_centered",
    "dtype": "pretrained models: auto",
}
"""Defaults that depend on other settings, for help texts."""


def _option_for(name: str) -> Any:
    """Return the type of the option of a setting, with its help text."""
    field = TrainSettings.model_fields[name]
    is_list = get_origin(field.annotation) is tuple  # the option takes JSON
    kinds = [field.annotation, *(() if is_list else get_args(field.annotation))]
    choice = next((each for each in kinds if get_origin(each) is Literal), None)
    kind: Any = next((each for each in (bool, int, float) if each in kinds), str)
    metavar = None
    if choice is not None:
        metavar = "|".join(get_args(choice))
    elif kind is not bool and kind is not str and type(None) in kinds:
        kind, metavar = str, f"<{kind.__name__}|null>"
    elif name == "report_to":
        kind = list[str]
    text = " ".join(str(field.description).replace("`", "").split())
    default = field.get_default(call_default_factory=True)
    is_shown = isinstance(default, int | float | str) and name not in ("eval_every", "copying")
    shown = [f"default: {default}"] if is_shown else []
    if is_shown and name in TINY_DEFAULTS:
        shown.append(f"tiny model: {TINY_DEFAULTS[name]}")
    if name in _OTHER_DEFAULTS:
        shown.append(_OTHER_DEFAULTS[name])
    if shown and kind is not bool:
        text = with_remark(text, "; ".join(shown))
    optional: Any = kind | None
    return Annotated[optional, typer.Option(help=text, metavar=metavar)]


def with_options(
    sections: Mapping[str, tuple[str, ...]], own: Mapping[str, Mapping[str, Any]]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds options to a command.

    The command is a function with the parameters `context`, `env_id` and `options`.

    Args:
        sections: Names of settings, by section of the help text.
        own: Other options, by section and name. They precede the settings.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())[:2]
        for section in {**own, **sections}:
            options = {name: _option_for(name) for name in sections.get(section, ())}
            for name, option in {**own.get(section, {}), **options}.items():
                kind, made = get_args(option)
                made = copy.copy(made)
                made.rich_help_panel = section
                keyword, default = inspect.Parameter.KEYWORD_ONLY, False if kind is bool else None
                kind = Annotated[kind, made]
                parameters.append(
                    inspect.Parameter(name, keyword, default=default, annotation=kind)
                )
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        function.__annotations__ = {each.name: each.annotation for each in parameters}
        return function

    return decorate


@with_options(SECTIONS, OWN_OPTIONS)
def command(context: typer.Context, env_id: EnvId = None, **options: Any) -> None:
    """Train a model to use tools, and evaluate it before and after.

    A run has five phases: supervised training on demonstrations, a preflight check, an evaluation
    on held-out tasks, GRPO, and the same evaluation again. Without --model, the command trains a
    model of half a million parameters, in minutes on a CPU. The run folder contains metrics,
    transcripts, checkpoints and an HTML report.

    Command-line options override the file given by --config, which overrides the defaults. Some
    defaults depend on the model and the environment.

    Example:
        toolgym train sqlgym/Explore-v0
        toolgym train sqlgym/Explore-v0 --dataset my.db --out runs/first
        toolgym train sqlgym/Explore-v0 --model HuggingFaceTB/SmolLM2-135M --chat-template hermes
        toolgym train --config examples/recipes/smollm2.yaml --steps 20 --show-settings
        toolgym train --resume runs/explore-001
    """
    check_installed()
    if options["resume"] is not None:
        return _resume(context, options["resume"])
    file = options["config"]
    layers = [("--config", read_config(file))] if file is not None else []
    others = ("out", "resume", "config", "show_settings", "as_json", "quiet")
    given: dict[str, Any] = {"env_id": env_id}
    given |= {name: value for name, value in options.items() if name not in others}
    given = {name: value for name, value in given.items() if value is not None}
    given |= {name: settings_of(given[name]) for name in MAPPINGS.keys() & given.keys()}
    settings, sources = settings_from([*layers, ("", given)])
    if options["show_settings"]:
        return show_settings(settings, sources, as_json=options["as_json"])
    quiet, as_json = options["quiet"], options["as_json"]
    run, settings = _new_run(settings, options["out"])
    _train_run().see_through_on_terminal(run, settings, quiet=quiet, as_json=as_json)


def _train_run() -> Any:
    """Import PyTorch and return the module that runs the training."""
    from adapters.training.models.loading import loading_pytorch

    with loading_pytorch():
        from adapters.commands import train_run
    return train_run


def _new_run(settings: TrainSettings, out: Path | None) -> tuple[Run, TrainSettings]:
    """Create a run after all checks that do not need PyTorch."""
    settings, planned = check_early(settings, out)
    made: tuple[Run, TrainSettings] = _train_run().new_run(settings, out, planned)
    return made


def check_installed() -> None:
    """Check that the extra `train` is installed.

    Raises:
        ConfigurationError: A package of the extra `train` is not installed.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed; run:"
            " pip install 'toolgym[train]'"
        )
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # it warns of every fork otherwise


def _resume(context: typer.Context, folder: Path) -> None:
    """Resume an interrupted run, after all checks that do not need PyTorch.

    Raises:
        ConfigurationError: The folder is not a run of `toolgym train`, another process is writing
            it, the module of its environment is not imported, or a setting is given.
    """
    from toolgym.registration import recorded
    from toolgym.runs.episodes import is_evaluation
    from toolgym.runs.run import Run

    allowed = ("--resume", "--preflight", "--quiet", "--json", "env_id")
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.opts[0] not in allowed and source is not None and source.name == "COMMANDLINE":
            raise ConfigurationError(
                f"--resume takes all settings from the run; leave out {parameter.opts[0]}."
            )
    options = context.params
    quiet, as_json = options["quiet"], options["as_json"]
    if options["env_id"] is not None:
        parameters_of(options["env_id"])  # imports its module
    run = Run.open(folder)
    if is_evaluation(run.config):
        raise ConfigurationError(
            f"{folder} is an evaluation and cannot be resumed. Choose a folder of `toolgym train`."
        )
    recorded(read_settings(run.config.get("settings")).env_id)
    if run.is_held:
        raise ConfigurationError(
            f"another process is writing {folder}; wait until it ends, or stop it."
        )
    if run.is_complete:
        say(f"{run.path} is complete; nothing was changed.", err=as_json)
        return print_json({"run": run.path, **run.summary}) if as_json else None
    train_run = _train_run()
    look_first = options["preflight"] is not False
    run, settings = train_run.old_run(folder, look_first=look_first)
    train_run.see_through_on_terminal(run, settings, quiet=quiet, as_json=as_json)


def train(
    env_id: str, *, out: Path | str | None = None, quiet: bool = False, **settings: Any
) -> Run:
    """Train a model as `toolgym train` does, from Python.

    Args:
        env_id: Environment id, such as `sqlgym/Explore-v0`.
        out: The run folder; the default is the next numbered folder in `runs`.
        quiet: Show no progress bars. Messages and progress bars go to stderr.
        settings: Fields of `adapters.training.settings.TrainSettings`, such as `model`, `steps` or
            `learning_rate`; and `dataset` and `step_limit`, which are arguments of the environment.

    Returns:
        The run. `run.summary` contains the results, `run.metrics("grpo")` returns the metrics of
        each step, and `run.checkpoints / "final"` is the folder of the model.

    Raises:
        ConfigurationError: A setting is unknown or out of range, or a file, model or data set does
            not exist. In this case, no run folder is left behind.
        NoGo: The preflight check rejected the model.
        TrainingStopped: The guards stopped the run.
        EnvironmentFault: The environment fails repeatedly.
    """
    check_installed()
    given = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in settings.items()}
    chosen, _ = settings_from([("train()", {"env_id": env_id, **given})])
    run, chosen = _new_run(chosen, None if out is None else Path(out))
    _train_run().see_through(run, chosen, quiet=quiet)
    return run


def settings_from(
    layers: Iterable[tuple[str, Mapping[str, Any]]],
) -> tuple[TrainSettings, dict[str, str]]:
    """Return the settings of a run.

    Args:
        layers: Sources of settings, each with its name, such as `--config` ("" for the command
            line), and settings by name, including `ENV_OPTIONS`. Later layers override earlier
            ones, and mappings such as `env_kwargs` are merged.

    Returns:
        The settings, and the source of each setting that was given.

    Raises:
        ConfigurationError: A setting is unknown or out of range, or the environment is unknown.
    """
    values: dict[str, Any] = {name: {} for name in MAPPINGS}
    sources: dict[str, str] = {}
    for source, layer in layers:
        for name, value in layer.items():
            if name in ENV_OPTIONS:
                if name in layer.get("env_kwargs", ()):
                    raise ConfigurationError(
                        f"{name} is given twice, also by --set; leave out one."
                    )
                values["env_kwargs"] = {**values["env_kwargs"], name: value}
            elif name in MAPPINGS:
                if not isinstance(value, Mapping):
                    raise ConfigurationError(
                        f"{name} must be a mapping, such as {{a: 1}}; got {value!r}."
                    )
                values[name] = {**values[name], **value}
            else:
                values[name] = value
            field = "env_kwargs" if name in ENV_OPTIONS else name
            sources[field] = source or MAPPINGS.get(field) or option_of(field)
    env_id = values.pop("env_id", None)
    if not isinstance(env_id, str):
        raise ConfigurationError("name an environment, as in: toolgym train sqlgym/Explore-v0")
    sources.pop("env_id")
    _add_places(env_id, values)
    settings = resolve(env_id, **values)
    if not settings.split or "split" not in values:
        settings = settings.model_copy(update={"split": None, "eval_split": None})
    return settings, sources


def _add_places(env_id: str, values: dict[str, Any]) -> None:
    """Add the default data set and split, if the environment takes them."""
    accepted, open_ended = parameters_of(env_id)
    env_kwargs = values["env_kwargs"]
    if "dataset" in accepted and "dataset" not in env_kwargs:
        dataset = default_data_set(env_id, values.get("model"))
        env_kwargs = values["env_kwargs"] = {"dataset": dataset, **env_kwargs}
    takes_splits = "split" in accepted
    if not takes_splits and open_ended:
        takes_splits = "split" in values or _takes_splits(env_id, env_kwargs)
    if takes_splits:
        values.setdefault("split", "train")
    elif values.get("split") is not None:
        raise ConfigurationError(f"{env_id} has no splits; leave out --split.")


def read_config(file: Path) -> dict[str, Any]:
    """Read the settings of a YAML file.

    Raises:
        ConfigurationError: The file cannot be read, is not a mapping, or has a duplicate key.
    """
    import yaml

    class UniqueKeys(yaml.SafeLoader):
        """A loader that rejects duplicate keys and also aliases, whose expansion is unlimited."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("YAML aliases are not allowed")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if twice := Counter(keys) - Counter({*keys}):
                raise ValueError(f"{min(twice)} is set twice")
            return super().construct_mapping(node, deep)

    try:
        values = yaml.load(file.read_text(encoding="utf-8"), UniqueKeys)
        json.dumps(values)  # no dates
    except (OSError, TypeError, ValueError, RecursionError, yaml.YAMLError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise ConfigurationError(f"--config {file} cannot be read: {reason}.") from None
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise ConfigurationError(
            f"--config {file} must contain one setting per line, such as steps: 60"
        )
    return values


def show_settings(
    settings: TrainSettings, given: Mapping[str, str], *, as_json: bool = False
) -> None:
    """Print all settings with the source of each value.

    Args:
        settings: The settings.
        given: The option that set the value of a setting, by name of the setting.
        as_json: Print one JSON object.
    """
    from rich.table import Table

    values = settings.model_dump()
    sources = dict.fromkeys(values, "default")
    named = {name: values[name] for name in {*given, "env_kwargs"}}
    for title, names in reversed(defaults_for(settings.env_id, named)):
        sources |= dict.fromkeys(names, title)
    sources |= given
    if as_json:
        shown = {name: {"value": value, "from": sources[name]} for name, value in values.items()}
        return print_json(shown)
    table = Table("setting", "value", "from", box=None, pad_edge=False)
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value)
        table.add_row(name, text, sources[name])
    print_table(table)


def check_early(
    settings: TrainSettings, folder: Path | None
) -> tuple[TrainSettings, tuple[Evaluation, ...]]:
    """Run all checks that do not need PyTorch.

    Returns:
        The settings, with separate tasks for training and evaluation, and the evaluations.

    Raises:
        ConfigurationError: The environment, model, chat template, dashboard or run folder cannot be
            used, or no task can be played in training or in an evaluation.
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
                f"a step needs {settings.prompts} different tasks, but {sets[0].name} has {found}."
                f" Add tasks, set --prompts {found}, or use --trainer reference."
            )
    return settings, planned


def default_data_set(env_id: str, model: str | None) -> str:
    """Return the default data set: the data set of a checkpoint's run, "bundled", or "tiny".

    Raises:
        ConfigurationError: The file `toolgym.json` of the checkpoint is corrupt, or contains the
            URL of a server.
    """
    if not isinstance(model, str) or model == TINY:
        return TINY if TINY in data_sets_of(env_id) else "bundled"
    origin = origin_of(model)
    dataset = origin.complete({}).get("dataset") if origin and origin.env_id == env_id else None
    return dataset if isinstance(dataset, str) else "bundled"


def _takes_splits(env_id: str, env_kwargs: dict[str, Any]) -> bool:
    """Return whether an environment with a `**kwargs` parameter takes a split."""
    from toolgym import registration

    try:
        registration.make(env_id, **{**env_kwargs, "split": "train"})
    except ConfigurationError:
        return False
    return True
