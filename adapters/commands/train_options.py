"""Options that are not `toolgym train`'s own: `--set NAME=VALUE` and `--config FILE`.

`--set` names an argument of the environment, a setting of the run that has no option, or any
argument of the trainer's own config. A YAML file holds the same, one a line, and the options of the
command by their names; the command line goes before it. The trainer's own name for an option of the
command is refused with that option's name, so that there are no two places to look for one number.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adapters.training.models.loading import loading_pytorch
from adapters.training.runs.settings import WITHOUT_OPTION, TrainSettings, defaults_for
from toolgym.commands import (
    parameters_of,
    print_json,
    print_table,
    settings_of,
)
from toolgym.errors import ConfigurationError

OWN_OPTIONS: Final = {
    "output_dir": "--out",
    "max_steps": "--steps",
    "steps": "--steps",
    "num_generations": "--group-size",
    "group_size": "--group-size",
    "prompts": "--prompts",
    "control": "--control",
    "learning_rate": "--learning-rate",
    "temperature": "--temperature",
    "max_completion_length": "--max-completion-length",
    "save_steps": "--save-every",
    "save_every": "--save-every",
    "seed": "--seed",
    "env_id": "the first argument",
    "model": "--model",
    "chat_template": "--chat-template",
    "trainer": "--trainer",
    "trainer_options": "--set",
    "env_kwargs": "--set",
    "split": "--split",
    "evaluation_split": "--split",
    "separation": "--split",
    "demonstrations": "--demos",
    "sft_steps": "--sft-steps",
    "lora": "--lora",
    "vllm": "--vllm",
    "preflight": "--no-preflight",
    "report_to": "--report-to",
    "eval_tasks": "--eval-tasks",
    "eval_tries": "--eval-tries",
    "eval_every": "--eval-every",
    "evaluation_env_kwargs": "--eval-set",
    "use_vllm": "--vllm",
    "vllm_mode": "--vllm",
}
"""Settings, and arguments of a trainer's config, that an option of the command sets."""

COMMAND_LINE_ONLY: Final = ("out", "resume", "config", "show_settings", "json", "quiet", "set")
"""Options of the command that a file cannot hold."""
TYPES_IN_FILE: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("env_id", "model", "chat_template", "dataset", "split"), (str,)),
    **dict.fromkeys(("parsing", "trainer", "control", "vllm"), (str,)),
    **dict.fromkeys(("lora", "no_preflight"), (bool,)),
    "eval_set": (dict,),
    "report_to": (str, list),
}
"""The types that options of the command must have in a file, where the command checks no other."""

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Divided:
    """What `--set` and `--config` were given, by whom it is for.

    Attributes:
        environment: Arguments of the environment, as `NAME=VALUE`.
        settings: Fields of `TrainSettings` that have no option of their own.
        trainer: Arguments of the trainer's own config.
        sources: The origin of each by name: `--set` or `--config`.
    """

    environment: list[str]
    settings: Arguments
    trainer: Arguments
    sources: dict[str, str]


def divide_options(
    env_id: str, trainer: str, pairs: list[str] | None, config: Mapping[str, Any]
) -> Divided:
    """Divide options into those of the environment, of the run, and of the trainer's config.

    The trainer's library is imported only where a name is neither of the first two.

    Args:
        pairs: What `--set` was given.
        config: What the file of `--config` holds besides options of the command.

    Raises:
        ConfigurationError: A name is unknown, or the command has an option for it.
    """
    accepted, open_ended = parameters_of(env_id)
    by_set = settings_of(pairs)
    options = {**config, **by_set}
    sources = {name: "--set" if name in by_set else "--config" for name in options}
    environment, ours, rest = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for name, value in options.items():
        is_free = open_ended and name not in (*WITHOUT_OPTION, *OWN_OPTIONS)
        if name in accepted or (is_free and name not in arguments_of(trainer)):
            environment[name] = value
        elif name in WITHOUT_OPTION:
            ours[name] = value
        else:
            rest[name] = value
    for name in rest:
        if name in OWN_OPTIONS:
            raise ConfigurationError(f"{name} is set by {OWN_OPTIONS[name]}; use that option.")
        if name not in arguments_of(trainer):
            choices = [*accepted, *WITHOUT_OPTION, *arguments_of(trainer)]
            near = difflib.get_close_matches(name, choices, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ConfigurationError(
                f"{env_id} has no argument {name!r}, and neither have the settings of the run"
                f" (`toolgym train {env_id} --show-settings`) nor the trainer's config.{hint}"
            )
    return Divided(as_pairs(environment), ours, rest, sources)


def as_pairs(arguments: Mapping[str, Any]) -> list[str]:
    """Arguments as `--set` takes them."""
    return [f"{name}={json.dumps(value, default=str)}" for name, value in arguments.items()]


@functools.cache
def arguments_of(trainer: str) -> list[str]:
    """The arguments of a trainer's config.

    Raises:
        ConfigurationError: There is no such trainer.
    """
    if trainer not in ("trl", "reference"):
        raise ConfigurationError(f"there is no trainer {trainer!r}; take trl or reference.")
    if trainer == "reference":
        with loading_pytorch():
            from adapters.reference.config import ReferenceConfig

        return list(ReferenceConfig.model_fields)
    with loading_pytorch():
        from trl import GRPOConfig

        from adapters.commands.train_with_trl import ROLLOUT_OPTIONS

    return [each.name for each in dataclasses.fields(GRPOConfig) if each.init] + [*ROLLOUT_OPTIONS]


def read_config(file: Path) -> Arguments:
    """Read the file of `--config`.

    Raises:
        ConfigurationError: It cannot be read, is no mapping, holds a key twice, an option that only
            the command line has, or a value of the wrong type.
    """
    import yaml

    class UniqueKeys(yaml.SafeLoader):
        """Refuses a mapping that holds a key twice."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
            seen = set[str]()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        raise ConfigurationError(
                            f"--config {file} holds {key.value} twice: keep one."
                        )
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

    try:
        arguments = yaml.load(file.read_text(encoding="utf-8"), UniqueKeys)
        json.dumps(arguments)  # neither dates nor aliases of what is around them
    except ConfigurationError:
        raise
    except (OSError, TypeError, ValueError, RecursionError, yaml.YAMLError) as problem:
        raise ConfigurationError(f"--config {file} cannot be read: {problem}") from None
    if not isinstance(arguments, dict) or not all(isinstance(name, str) for name in arguments):
        raise ConfigurationError(
            f"--config {file} must hold options and arguments, one a line, as in steps: 60"
        )
    return checked(arguments, f"--config {file}")


def checked(arguments: Mapping[str, Any], where: str) -> Arguments:
    """Options by their names, and what `--set` takes, from a file or from Python.

    Args:
        where: What error messages call the place.

    Raises:
        ConfigurationError: An option can only be given on the command line, or is of a wrong type.
    """
    for name, value in arguments.items():
        if name in COMMAND_LINE_ONLY:
            raise ConfigurationError(
                f"{where}: {name} can only be given on the command line; leave it out."
            )
        wanted = TYPES_IN_FILE.get(name)
        if wanted is not None and not isinstance(value, wanted):
            names = " or ".join(each.__name__ for each in wanted)
            raise ConfigurationError(f"{where}: {name} must be a {names}, got {value!r}.")
    taken = {name: _number(value) for name, value in arguments.items()}
    if isinstance(taken.get("report_to"), str):
        taken["report_to"] = [taken["report_to"]]
    return taken


def _number(value: Any) -> Any:
    """The number that YAML reads as a text because it has no point, as in 1e-6."""
    is_number = isinstance(value, str) and re.fullmatch(r"[-+]?\d{1,9}[eE][-+]?\d{1,3}", value)
    return float(value) if is_number else value


def show_settings(
    settings: TrainSettings, given: Mapping[str, str], model: str | None, *, as_json: bool = False
) -> None:
    """Print what a run would use, and where each value comes from.

    Args:
        given: By name of a setting, the option that set it.
        model: What `--model` was given.
    """
    from rich.table import Table

    values = settings.model_dump()
    sources = dict.fromkeys(values, "default")
    about = {name: values[name] for name in ("env_kwargs", "lora", "trainer")}
    sets = defaults_for(settings.env_id, model=model, **about)
    sources |= {name: title for title, names in sets for name in names}
    sources |= {name: option for name, option in given.items() if name in values}
    if as_json:
        shown = {name: {"value": value, "from": sources[name]} for name, value in values.items()}
        return print_json(shown)
    table = Table("setting", "value", "from", box=None, pad_edge=False)
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value)
        table.add_row(name, text, sources[name])
    print_table(table)
