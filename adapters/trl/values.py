"""Values that mean nothing: told when a config is made, not after an hour of rollouts.

TRL finds an unknown loss when the first loss is due, and takes a negative penalty, no iteration at
all, or the word "False" for a switch without a sound. So every plain field is held to its type, and
those that decide what is trained to what they can be.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any, Final, Union

from toolgym.errors import ConfigurationError

LOSSES: Final = ("dapo", "grpo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo")
"""The losses of TRL 1.16."""
_PLAIN: Final = {bool: "true or false", int: "a whole number", float: "a number"}
_POSITIVE: Final = "above 0"
_RANGES: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "temperature": (_POSITIVE, lambda value: value > 0),
    "beta": ("at least 0; a negative penalty pushes away from the reference", lambda v: v >= 0),
    "epsilon": ("above 0 and below 1", lambda value: 0 < value < 1),
    "epsilon_high": (_POSITIVE, lambda value: value > 0),
    "num_iterations": ("at least 1, or no step is made", lambda value: value >= 1),
    "max_tool_calling_iterations": ("at least 1, or no tool is run", lambda value: value >= 1),
    "advantage_clip": ("above 0, or null for none", lambda value: value > 0),
    "max_draws": ("at least 1", lambda value: value >= 1),
    "snapshot_steps": ("at least 1", lambda value: value >= 1),
    "snapshot_keep": ("at least 1", lambda value: value >= 1),
    "tool_workers": ("at least 1", lambda value: value >= 1),
}
_CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "loss_type": LOSSES,
    "scale_rewards": ("none", "group", "batch", True, False),
    "importance_sampling_level": ("token", "sequence"),
    "vllm_mode": ("colocate", "server"),
}


def check_values(config: Any) -> None:
    """Hold the fields of a config to their types and ranges.

    Raises:
        ConfigurationError: The first that is something else, with what it can be.
    """
    hints = typing.get_type_hints(type(config))
    for each in dataclasses.fields(config):
        value, kinds = getattr(config, each.name), _plain_kinds(hints[each.name])
        if kinds and value is not None and not _is_one_of(value, kinds):
            wanted = " or ".join(_PLAIN[kind] for kind in kinds)
            raise ConfigurationError(f"{each.name} must be {wanted}, got {value!r}.")
    for name, (wanted, holds) in _RANGES.items():
        value = getattr(config, name)
        if value is not None and not holds(value):
            raise ConfigurationError(f"{name} must be {wanted}; got {value}.")
    for name, choices in _CHOICES.items():
        if getattr(config, name) not in choices:
            known = ", ".join(repr(choice) for choice in choices if isinstance(choice, str))
            raise ConfigurationError(
                f"{name} must be one of {known}; got {getattr(config, name)!r}."
            )


def _plain_kinds(hint: Any) -> list[type]:
    """The types that a field may have, where all of them are plain; else none."""
    is_union = typing.get_origin(hint) in (Union, types.UnionType)
    kinds = [each for each in typing.get_args(hint) if each is not type(None)]
    kinds = kinds if is_union else [hint]
    return kinds if all(kind in _PLAIN for kind in kinds) else []


def _is_one_of(value: Any, kinds: list[type]) -> bool:
    """As Python's types are, but that True is no number and a whole number is one."""
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)
