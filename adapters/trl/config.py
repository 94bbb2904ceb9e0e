"""`grpo_config`: TRL's `GRPOConfig` with defaults for tools, and the settings that are refused.

What can only fail is refused, with the setting that works; what fails often is warned about. The
figures are of runs and checks that were made: of groups of two, and of TRL 1.16's own loss.
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
    # At a success rate of 10 %, 57 % of the groups of 8 have both outcomes, 18 % of those of 2.
    "num_generations": 8,
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 4,
    # Dividing by a group's own deviation erases how large a difference was.
    "scale_rewards": "none",
    # Without a penalty the tiny model lost the form of its calls within 30 steps.
    "beta": 0.01,
    # A higher upper bound lets rare tokens become likelier, which keeps entropy up (DAPO).
    "epsilon_high": 0.28,
    # The score of a rollout that ran out of tokens is unknown.
    "mask_truncated_completions": True,
    "max_completion_length": 1024,
    # `Rollouts.dataset` is shuffled already, and a resumed run goes on in the same order.
    "shuffle_dataset": False,
    # The guards read the log of each step, with nan as nan.
    "logging_steps": 1,
    "logging_nan_inf_filter": False,
    "report_to": "none",
}
"""Defaults of `grpo_config` that differ from TRL's."""


def grpo_config(**options: Any) -> GRPOConfig:
    """Make a `GRPOConfig` with `DEFAULTS`, on a CPU without bf16 and gradient checkpointing.

    Args:
        options: Arguments of TRL's `GRPOConfig`, which override the defaults.

    Raises:
        ConfigurationError: An option is unknown or has no meaning, or the settings are known to
            fail.
    """
    fields = {field.name for field in dataclasses.fields(GRPOConfig) if field.init}
    # The second is the name in older versions of transformers.
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
        raise ConfigurationError(f"these settings make no GRPOConfig: {problem}") from problem
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
    """Make the settings of the guards, or check those that are made.

    Raises:
        ConfigurationError: A field is unknown or out of range.
    """
    try:
        return GuardConfig.model_validate(dict(fields))
    except ValidationError as problem:
        raise ConfigurationError(
            f"these guards are refused: {refused_fields(problem, 'guards')}. They are fields of"
            " GuardConfig, as in guards={'only_warn': True}."
        ) from None


def check_guards(config: Any, *, acts: bool) -> None:
    """Check that guards can act on a trainer with this config.

    Raises:
        ConfigurationError: They act, and the weights are sharded or move inside backward.
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
            " process before the optimizer moves. Pass guards={'only_warn': True}, or train with"
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
"""Settings of TRL's own generation, and the values that have no effect."""


def check_sampling(config: GRPOConfig) -> None:
    """Check that settings of TRL's generation are not expected to have an effect.

    Raises:
        ConfigurationError: One would change how rollouts are sampled.
    """
    if config.max_tool_calling_iterations is not None:
        raise ConfigurationError(
            "max_tool_calling_iterations has no effect, since the environment ends its episodes:"
            " set its step_limit."
        )
    if config.use_vllm:
        return
    for name, kept in _UNUSED.items():
        if (value := getattr(config, name)) not in kept:
            raise ConfigurationError(
                f"{name}={value!r} has no effect without vLLM: rollouts are sampled from the"
                " distribution that the loss takes. Leave it out; `temperature` counts."
            )


_LEAST: Final = (
    ("temperature", 0, False),
    ("beta", 0, True),
    ("epsilon", 0, False),
    ("epsilon_high", 0, False),
    ("num_iterations", 1, True),
    ("max_completion_length", 1, True),
)
"""Lower bounds of settings, which TRL does not check: a negative penalty pushes away from the
reference, and no iteration makes no step."""
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "loss_type": ("dapo", "grpo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "scale_rewards": ("none", "group", "batch"),
    "importance_sampling_level": ("token", "sequence"),
    "vllm_mode": ("colocate", "server"),
}
"""Settings whose value TRL first looks at after the rollouts."""


def split_groups(own: int, size: int) -> str:
    """The sentence on groups that are split over processes.

    Args:
        own: Number of rollouts of a generation batch in each process.
        size: Size of the groups.
    """
    return (
        f"groups are split over processes: each has {own} rollouts of a generation batch, in groups"
        f" of {size}. Make per_device_train_batch_size * steps_per_generation a multiple of"
        " num_generations, so that groups can be replaced as a whole."
    )


def _refusals(config: GRPOConfig) -> list[tuple[bool, str]]:
    """Settings that can only fail, each with its reason and cure."""
    own = config.per_device_train_batch_size * config.steps_per_generation
    has_vllm = importlib.util.find_spec("vllm") is not None
    server = " and start `trl vllm-serve --model MODEL`" if config.vllm_mode == "server" else ""
    return [
        (
            config.num_generations == 2 and config.scale_rewards == "group",
            "groups of 2 divided by their standard deviation: every advantage is then +-.707,"
            " whatever the gap, and a run like that collapsed right after 37 of its 38 updates"
            " (97.4 %), though its learning rate had been cut to a tenth. Set num_generations=8, or"
            " scale_rewards='none'.",
        ),
        (
            config.loss_type == "cispo" and (config.epsilon_high or config.epsilon) < 1,
            "loss_type='cispo' with epsilon_high below 1: TRL takes it for the largest ratio, not"
            " for what goes above 1, so every token's weight is cut to it (measured: a gradient"
            " norm of .043 instead of .216). Set epsilon_high=5.0.",
        ),
        (
            own % config.num_generations != 0,
            split_groups(own, config.num_generations),
        ),
        (
            config.use_vllm and not has_vllm,
            f"vLLM is to generate (vllm_mode={config.vllm_mode!r}), and it is not installed here."
            f" On a machine with a GPU run pip install 'trl[vllm]'{server}; or leave it out:"
            " toolgym then generates with the policy's own weights.",
        ),
    ]


def _doubts(config: GRPOConfig) -> list[tuple[bool, str]]:
    """Settings that fail often, each with its reason."""
    return [
        (
            config.num_generations < 4,
            f"groups of {config.num_generations}: at a success rate of 20 % the members of a group"
            " of 2 are all alike in 68 % of the cases, of 8 in 17 %, and such a group teaches"
            " nothing.",
        ),
        (
            bool(config.beta) and not config.use_bias_correction_kl,
            "use_bias_correction_kl=False: the gradient of that KL term is off by 79 % of the exact"
            " one (measured on a categorical); with the correction it is exact.",
        ),
        (
            not config.max_grad_norm,
            "max_grad_norm=0: one batch with a large gradient moves the weights without a bound.",
        ),
    ]
