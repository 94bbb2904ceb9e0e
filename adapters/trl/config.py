"""`grpo_config`: TRL's `GRPOConfig` with defaults for tool use, and checks of its settings.

Settings that cannot work raise an error that suggests working settings. For settings that often
fail, a warning is logged. The numbers in the messages were measured in runs with groups of two and
TRL 1.16.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import logging
from collections.abc import Mapping
from typing import Any, Final

import torch
from pydantic import ValidationError
from trl import GRPOConfig

from adapters.training.guards.config import GuardConfig
from toolgym.commands import nearest
from toolgym.errors import ConfigurationError, refused_fields

_logger = logging.getLogger(__name__)

DEFAULTS: Final[Mapping[str, Any]] = {
    # At a success rate of 10 %, 57 % of the groups of 8 have both outcomes, but 18 % of those of 2.
    "num_generations": 8,
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 4,
    # Dividing by the standard deviation of a group discards the scale of its reward differences.
    "scale_rewards": "none",
    # Without a penalty the tiny model lost the format of its calls within 30 steps.
    "beta": 0.01,
    # A higher upper bound lets rare tokens become more likely, which keeps entropy up (DAPO).
    "epsilon_high": 0.28,
    # The score of a rollout that ran out of tokens is unknown.
    "mask_truncated_completions": True,
    "max_completion_length": 1024,
    # `Rollouts.dataset` is already shuffled, and a resumed run continues in the same order.
    "shuffle_dataset": False,
    # The guards read the log of each step, including nan values.
    "logging_steps": 1,
    "logging_nan_inf_filter": False,
    "report_to": "none",
}
"""Defaults of `grpo_config` that differ from those of TRL."""


def grpo_config(**options: Any) -> GRPOConfig:
    """Make a `GRPOConfig` with the defaults in `DEFAULTS`.

    On a CPU, bf16 and gradient checkpointing are disabled.

    Args:
        options: Arguments of TRL's `GRPOConfig`, which override the defaults.

    Raises:
        ConfigurationError: If an option is unknown or has no effect, or the settings are known to
            fail.
    """
    fields = {field.name for field in dataclasses.fields(GRPOConfig) if field.init}
    # The second name is that of older versions of transformers.
    names = ("activation_checkpointing", "gradient_checkpointing")
    machine: dict[str, Any] = {}
    if options.get("use_cpu") or not torch.accelerator.is_available():
        machine = {"use_cpu": True, "bf16": False}
        if options.keys().isdisjoint(names):
            machine[next(name for name in names if name in fields)] = False
    elif torch.cuda.is_available() and not torch.cuda.is_bf16_supported(including_emulation=False):
        machine = {"bf16": False}
    for name in options.keys() - fields:
        near = nearest(name, fields)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ConfigurationError(f"TRL's GRPOConfig has no argument {name!r}.{hint}")
    values = {**DEFAULTS, **machine, **options}
    try:
        config = GRPOConfig(**values)
    except (TypeError, ValueError) as problem:
        raise ConfigurationError(f"invalid settings of GRPOConfig: {problem}") from problem
    for name, least, is_included in _LEAST:
        value = getattr(config, name)
        if value is not None and not (value > least or (is_included and value == least)):
            bound = "at least" if is_included else "above"
            raise ConfigurationError(f"{name} must be {bound} {least}; got {value}.")
    for name, choices in _CHOICES.items():
        if (value := getattr(config, name)) not in choices:
            raise ConfigurationError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
    check_sampling(config)
    for is_refused, reason in _refusals(config):
        if is_refused:
            raise ConfigurationError(f"these settings are known to fail: {reason}")
    for is_doubtful, reason in _doubts(config):
        if is_doubtful:
            _logger.warning("known to fail often: %s", reason)
    return config


def guard_config(fields: GuardConfig | Mapping[str, Any]) -> GuardConfig:
    """Build the settings of the guards, or validate existing ones.

    Args:
        fields: A `GuardConfig`, or a mapping of its fields.

    Raises:
        ConfigurationError: If a field is unknown or out of range.
    """
    try:
        return GuardConfig.model_validate(dict(fields))
    except ValidationError as problem:
        raise ConfigurationError(
            f"invalid settings of the guards: {refused_fields(problem, 'guards')}. They are fields"
            " of GuardConfig, as in guards={'only_warn': True}."
        ) from None


def check_guards(config: Any, *, acts: bool) -> None:
    """Check that guards can act on a trainer with this config.

    Raises:
        ConfigurationError: If the guards do more than warn, but the weights are sharded or change
            during the backward pass.
    """
    optimizer = str(getattr(config.optim, "value", config.optim))
    moves_in_backward = "layerwise" in optimizer or "lomo" in optimizer
    distributed = str(getattr(config.distributed_state, "distributed_type", ""))
    is_sharded = bool(config.fsdp or config.deepspeed) or distributed.endswith(
        ("FSDP", "DEEPSPEED")
    )
    if acts and (is_sharded or moves_in_backward):
        cause = f"optim={optimizer!r}" if moves_in_backward else "FSDP or DeepSpeed"
        raise ConfigurationError(
            f"guards cannot act with {cause}: they need whole weights and gradients in each"
            " process before the optimizer step. Pass guards={'only_warn': True}, or train with"
            " DDP or LoRA and optim='adamw_torch'."
        )


_UNUSED: Final[Mapping[str, tuple[Any, ...]]] = {
    "top_p": (1.0,),
    "top_k": (0, None),
    "min_p": (None, 0.0),
    "repetition_penalty": (1.0,),
    "generation_kwargs": (None, {}),
    "use_transformers_continuous_batching": (False,),
    "cache_implementation": (None,),
}
"""Settings of TRL's own generation, with the values that have no effect."""


def check_sampling(config: GRPOConfig) -> None:
    """Check that settings of TRL's own generation, which toolgym ignores, are not in use.

    Raises:
        ConfigurationError: If one of these settings has a value that would change how rollouts are
            sampled.
    """
    if config.max_tool_calling_iterations is not None:
        raise ConfigurationError(
            "max_tool_calling_iterations has no effect, since the environment ends its episodes."
            " Set step_limit of the environment."
        )
    if config.use_vllm:
        return
    for name, kept in _UNUSED.items():
        if (value := getattr(config, name)) not in kept:
            raise ConfigurationError(
                f"{name}={value!r} has no effect without vLLM, because rollouts are sampled from"
                " the distribution that the loss uses. Remove it. Only `temperature` applies."
            )


_LEAST: Final = (
    ("temperature", 0, False),
    ("beta", 0, True),
    ("epsilon", 0, False),
    ("epsilon_high", 0, False),
    ("num_iterations", 1, True),
    ("max_completion_length", 1, True),
)
"""Lower bounds of settings, which TRL does not check.

A negative penalty would push the policy away from the reference, and with zero iterations no step
would be made.
"""
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "loss_type": ("dapo", "grpo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "scale_rewards": ("none", "group", "batch"),
    "importance_sampling_level": ("token", "sequence"),
    "vllm_mode": ("colocate", "server"),
}
"""Allowed values of settings that TRL only checks after the rollouts."""


def split_groups(own: int, size: int) -> str:
    """Return the message about groups that are split across processes.

    Args:
        own: Number of rollouts of a generation batch in each process.
        size: Size of the groups.
    """
    return (
        f"groups are split over processes: each process has {own} rollouts of a generation batch,"
        f" in groups of {size}. Set per_device_train_batch_size * steps_per_generation to a"
        " multiple of num_generations, so that groups can be replaced as a whole."
    )


def _refusals(config: GRPOConfig) -> list[tuple[bool, str]]:
    """Return settings that cannot work, each with its reason and solution."""
    own = config.per_device_train_batch_size * config.steps_per_generation
    has_vllm = importlib.util.find_spec("vllm") is not None
    server = " and start `trl vllm-serve --model MODEL`" if config.vllm_mode == "server" else ""
    return [
        (
            config.num_generations == 2 and config.scale_rewards == "group",
            "groups of 2 divided by their standard deviation. Every nonzero advantage is then"
            " +-.707, whatever the difference of the rewards, and such a run collapsed even at a"
            " tenth of its learning rate. Set num_generations=8 or scale_rewards='none'.",
        ),
        (
            config.loss_type == "cispo" and (config.epsilon_high or config.epsilon) < 1,
            "loss_type='cispo' with epsilon_high below 1. TRL uses epsilon_high as the largest"
            " ratio itself, not as the distance above 1, so the weight of every token is reduced"
            " to it. Set epsilon_high=5.0.",
        ),
        (
            own % config.num_generations != 0,
            split_groups(own, config.num_generations),
        ),
        (
            config.use_vllm and not has_vllm,
            f"use_vllm=True (vllm_mode={config.vllm_mode!r}), but vLLM is not installed. On a"
            f" machine with a GPU run pip install 'trl[vllm]'{server}. Without use_vllm, toolgym"
            " generates with the policy's own weights.",
        ),
    ]


def _doubts(config: GRPOConfig) -> list[tuple[bool, str]]:
    """Return settings that often fail, each with its reason."""
    return [
        (
            config.num_generations < 4,
            f"groups of {config.num_generations}. At a success rate of 20 %, all members have the"
            " same outcome in 68 % of the groups of 2 and in 17 % of the groups of 8. Such groups"
            " have no learning signal.",
        ),
        (
            bool(config.beta) and not config.use_bias_correction_kl,
            "use_bias_correction_kl=False. The gradient of this KL term is biased: by 79 % of the"
            " exact gradient on a categorical distribution. With the correction it is exact.",
        ),
        (
            not config.max_grad_norm,
            "max_grad_norm=0. One batch with a large gradient can then change the weights without"
            " bound.",
        ),
    ]
