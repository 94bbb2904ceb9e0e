"""Options that are not `toolgym train`'s own: `--set NAME=VALUE` and `--config FILE`.

What `--set` names is an argument of the environment, or else of the trainer's own config, all of
whose arguments can be reached so. A YAML file holds arguments of the trainer, one a line; `--set`
goes before it. An argument that is an option of the command already is refused with that option's
name, so that there are no two places to look for one number.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from pathlib import Path
from typing import Any, Final

from toolgym.commands import environment_creator, parameters_of, settings_of
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
    "use_vllm": "--vllm",
    "vllm_mode": "--vllm",
}
"""Arguments of a trainer's config that an option of the command sets."""

Arguments = dict[str, Any]


def divide_options(
    env_id: str, trainer: str, pairs: list[str] | None, file: Path | None
) -> tuple[list[str], Arguments]:
    """Divide options into those of the environment, still `NAME=VALUE`, and those of the trainer.

    Args:
        pairs: What `--set` was given.
        file: What `--config` was given.

    Raises:
        ConfigurationError: A name is nobody's, or the command's own; or the file cannot be read.
    """
    accepted, open_ended = parameters_of(environment_creator(env_id))
    for_environment, options = list[str](), _read(file) if file is not None else {}
    settings = settings_of(pairs)
    if not settings and not options:
        return [], {}
    accepted_names = arguments_of(trainer)
    for pair, (name, value) in zip(pairs or (), settings.items(), strict=True):
        if name in accepted or (open_ended and name not in accepted_names):
            for_environment.append(pair)
        else:
            options[name] = value
    for name in options:
        _check(
            name,
            accepted_names,
            [*accepted, *accepted_names],
            f"{env_id} has no argument {name!r}, and",
        )
    return for_environment, options


def arguments_of(trainer: str) -> list[str]:
    """The arguments of a trainer's config.

    Raises:
        ConfigurationError: There is no such trainer.
    """
    if trainer == "reference":
        from adapters.reference.config import ReferenceConfig

        return list(ReferenceConfig.model_fields)
    if trainer != "trl":
        raise ConfigurationError(f"there is no trainer {trainer!r}; take trl or reference.")
    from adapters.trl import StableGRPOConfig

    return [each.name for each in dataclasses.fields(StableGRPOConfig) if each.init]


def _check(name: str, accepted: list[str], choices: list[str], first: str) -> None:
    if name in OWN_OPTIONS:
        raise ConfigurationError(f"{name} is set by {OWN_OPTIONS[name]}; use that option.")
    if name not in accepted:
        near = difflib.get_close_matches(name, choices, n=2)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ConfigurationError(f"{first} the trainer's config has none.{hint}")


def _read(file: Path) -> Arguments:
    import yaml

    try:
        arguments = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise ConfigurationError(f"--config {file} cannot be read: {problem}") from None
    if not isinstance(arguments, dict) or not all(isinstance(name, str) for name in arguments):
        raise ConfigurationError(
            f"--config {file} must hold arguments of the trainer, one a line, as in beta: 0.02"
        )
    return {name: _number(value) for name, value in arguments.items()}


def _number(value: Any) -> Any:
    """YAML takes 1e-6 for a text, since there is no point in it."""
    try:
        number = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
    return number if isinstance(number, int | float) else value
