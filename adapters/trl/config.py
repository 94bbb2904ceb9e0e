"""`StableGRPOConfig`: TRL's `GRPOConfig` with defaults that are safe on tools, and what TRL lacks.

Every option of TRL's own is there under its own name. Those whose default differs stand below with
the reason; so do the options of `StableGRPOTrainer`. Two checks follow when a config is made.

* `check_values`: values that mean nothing. TRL finds an unknown loss when the first loss is due,
  and takes a negative penalty, no iteration at all, or the word "False" for a switch without a
  sound. So every plain field is held to its type, and those that decide what is trained to what
  they can be.
* `check_config`: settings that are known to fail, each with what was measured when it did. What can
  only fail is refused, with the setting that works; what fails often is warned about. The figures
  are of runs and checks that were made: of groups of two, of TRL 1.16's own loss, and of each
  estimator's gradient against the exact one.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import logging
import os
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Union

import torch
from accelerate.utils import parse_flag_from_env
from pydantic import ValidationError
from trl import GRPOConfig

from adapters.training.algorithms.advantages import ESTIMATORS
from adapters.training.guards.config import GuardConfig
from toolgym.errors import ConfigurationError, refused_fields

TRLS_OWN: Final = "trl"
_BY_SCALE: Final = {
    "none": "batch_normalized_baseline",
    "group": "group_normalized",
    "batch": "batch_scaled",
}
_logger = logging.getLogger(__name__)


@dataclass
class StableGRPOConfig(GRPOConfig):
    """Arguments of `StableGRPOTrainer`: TRL's, and those below.

    Raises:
        ConfigurationError: Settings contradict each other, or are known to fail.
    """

    num_generations: int = 8
    """At a success rate of 10 %, 57 % of the groups of 8 have right and wrong members, 18 % of the
    groups of 2; what has not teaches nothing."""
    scale_rewards: str = "none"
    """A group's own deviation erases how large a difference was, so none is divided by; advantages
    are divided by the deviation of the whole batch, by max(std, 0.1). Without that floor a solved
    batch turns a call more or less, worth 0.01, into an advantage of full size."""
    beta: float = 0.01
    """A run without an anchor lost the form of its calls within 30 steps and never found it again.
    The reference is the model as it is when training begins, warm-up included."""
    epsilon_high: float | None = 0.28
    """A higher upper bound lets rare tokens become likelier, which keeps entropy up (DAPO)."""
    mask_truncated_completions: bool = True
    """What a rollout would have earned that ran out of tokens or turns nobody knows. Here it holds
    for all three ways of running out, not only for a turn that was cut off."""
    per_device_train_batch_size: int = 8
    """One group at a time, ..."""
    gradient_accumulation_steps: int = 4
    """... four of them in a step: a deviation over the batch needs more than one group."""
    max_completion_length: int | None = 1024
    """All turns and all results of a rollout together; TRL's 512 cuts tool rollouts off."""
    bf16: bool | None = None
    """None: where the device has it. TRL takes it everywhere, on a CPU too."""
    gradient_checkpointing: bool | None = None
    """None: where there is an accelerator. On a CPU it saves memory that is not short."""
    logging_steps: float = 1
    """Guards look at each step, so each step is written down."""

    dynamic_sampling: bool = True
    """Groups whose members all had the same outcome are replaced by others (DAPO)."""
    max_draws: float = 3.0
    """Groups that a step may sample, as a multiple of those it learns from; what is missing then is
    masked."""
    advantage_estimator: str | None = None
    """A key of `adapters.training.algorithms.advantages.ESTIMATORS`, or "trl" for what TRL computes
    itself. None follows `scale_rewards`: `batch_normalized_baseline` for "none", `group_normalized`
    for "group", `batch_scaled` for "batch"."""
    advantage_clip: float | None = 5.0
    """Bound on the size of an advantage, TRL's own included; it spares the one right rollout among
    25, which lies 4.8 deviations above the mean, and holds a rollout down whose reward is out of
    all
    proportion."""
    guards: dict | str | None = field(default_factory=dict)  # type: ignore[type-arg]  # as TRL's
    """Fields of `adapters.training.guards.config.GuardConfig`, where each is explained."""
    snapshot_steps: int = 10
    """Steps between the snapshots that guards roll back to: at most so many are lost."""
    snapshot_keep: int = 2
    """How many of the latest stay on disk, beside the first. Each is as large as a checkpoint."""
    tool_workers: int = 16
    """Threads in which the tools of different rollouts run, where they take long enough."""

    def __post_init__(self) -> None:
        check_values(self)
        has_accelerator = torch.accelerator.is_available() and not self.use_cpu
        if self.bf16 is None and not self.fp16:
            self.bf16 = has_accelerator and _has_bf16()
        name = "activation_checkpointing"  # what newer versions of transformers call it
        name = name if hasattr(self, name) else "gradient_checkpointing"
        if self.gradient_checkpointing is None and getattr(self, name) is None:
            setattr(self, name, has_accelerator)
        super().__post_init__()
        self._check_own()
        for warning in check_config(self):
            _logger.warning("known to fail often: %s", warning)

    def _check_own(self) -> None:
        if self.estimator not in {*ESTIMATORS, TRLS_OWN}:
            raise ConfigurationError(
                f"there is no advantage estimator {self.estimator!r}; choose among"
                f" {', '.join([*ESTIMATORS, TRLS_OWN])}."
            )
        is_scaled_twice = self.advantage_estimator not in (None, TRLS_OWN)
        if is_scaled_twice and self.scale_rewards != "none":
            raise ConfigurationError(
                f"scale_rewards={self.scale_rewards!r} and advantage_estimator="
                f"{self.advantage_estimator!r} are two ways to scale: leave one out."
            )
        if self.multi_objective_aggregation != "sum_then_normalize" and self.estimator != TRLS_OWN:
            raise ConfigurationError(
                f"multi_objective_aggregation={self.multi_objective_aggregation!r} is TRL's own"
                " way to advantages: set advantage_estimator='trl' with it."
            )
        self.guard_config()

    @property
    def estimator(self) -> str:
        """The advantage estimator that these settings mean."""
        return self.advantage_estimator or _BY_SCALE[self.scale_rewards]

    @property
    def divides_by_std(self) -> bool:
        """Advantages are divided by the deviation of their own group."""
        own = self.estimator == TRLS_OWN and self.scale_rewards == "group"
        return own or self.estimator == "group_normalized"

    @property
    def only_warns(self) -> bool:
        """The guards report and never act."""
        return self.guard_config().only_warn

    def guard_config(self) -> GuardConfig:
        """The guards' thresholds and actions.

        Raises:
            ConfigurationError: A field is unknown or out of range.
        """
        try:
            if isinstance(self.guards, str):
                return GuardConfig.model_validate_json(self.guards)
            return GuardConfig.model_validate(self.guards or {})
        except ValidationError as problem:
            raise ConfigurationError(
                f"these guards are refused: {refused_fields(problem, 'guards')}. They are fields of"
                " GuardConfig, as in guards={'only_warn': true}."
            ) from None


def _has_bf16() -> bool:
    return not torch.cuda.is_available() or torch.cuda.is_bf16_supported(including_emulation=False)


# Values that mean nothing -------------------------------------------------------------------------

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
    """Check the fields of a config against their types and ranges.

    Raises:
        ConfigurationError: The first that is something else, with what it can be.
    """
    hints = typing.get_type_hints(type(config))
    for each in dataclasses.fields(config):
        value, kinds = getattr(config, each.name), _plain_kinds(hints[each.name])
        if kinds and value is not None and not _is_one_of(value, kinds):
            expected = " or ".join(_PLAIN[kind] for kind in kinds)
            raise ConfigurationError(f"{each.name} must be {expected}, got {value!r}.")
    for name, (expected, holds) in _RANGES.items():
        value = getattr(config, name)
        if value is not None and not holds(value):
            raise ConfigurationError(f"{name} must be {expected}; got {value}.")
    for name, choices in _CHOICES.items():
        if getattr(config, name) not in choices:
            listed = ", ".join(repr(choice) for choice in choices if isinstance(choice, str))
            raise ConfigurationError(
                f"{name} must be one of {listed}; got {getattr(config, name)!r}."
            )


def _plain_kinds(hint: Any) -> list[type]:
    """The types that a field may have, where all of them are plain; else none."""
    is_union = typing.get_origin(hint) in (Union, types.UnionType)
    kinds = [each for each in typing.get_args(hint) if each is not type(None)]
    kinds = kinds if is_union else [hint]
    return kinds if all(kind in _PLAIN for kind in kinds) else []


def _is_one_of(value: Any, kinds: list[type]) -> bool:
    """Whether a value has one of the types; True is no number, and an int is a float, too."""
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)


# Settings that are known to fail ------------------------------------------------------------------

Refusal = Callable[[Any], str | None]


def _pairs_by_std(config: StableGRPOConfig) -> str | None:
    if config.num_generations != 2 or not config.divides_by_std:
        return None
    return (
        "groups of 2 divided by their standard deviation: every advantage is then +-.707, whatever"
        " the gap, and a run like that collapsed right after 37 of its 38 updates (97.4 %), though"
        " its learning rate had been cut to a tenth. Set num_generations=8, or"
        " scale_rewards='none'."
    )


def _cispo_bound(config: StableGRPOConfig) -> str | None:
    if config.loss_type != "cispo" or (config.epsilon_high or config.epsilon) >= 1:
        return None
    return (
        "loss_type='cispo' with epsilon_high below 1: TRL takes it for the largest ratio itself,"
        " not for what goes above 1, so every token's weight is cut to it (measured: a gradient"
        " norm of .043 instead of .216). Set epsilon_high=5.0."
    )


def _split_groups(config: StableGRPOConfig) -> str | None:
    own = config.per_device_train_batch_size * config.steps_per_generation
    if own % config.num_generations == 0:
        return None
    return (
        f"groups split over processes: each has {own} rollouts of a generation batch, in groups of"
        f" {config.num_generations}. Make per_device_train_batch_size * steps_per_generation a"
        " multiple of num_generations, so that groups can be kept or replaced as a whole."
    )


_FSDP2: Final = (
    "Shard with FSDP2 (fsdp=True with fsdp_config={'version': 2}, or fsdp_version: 2 in the config"
    " of accelerate), or set guards={'only_warn': true}."
)


def _deepspeed(config: StableGRPOConfig) -> str | None:
    is_used = config.deepspeed or parse_flag_from_env("ACCELERATE_USE_DEEPSPEED")
    if config.only_warns or not is_used:
        return None
    return (
        "guards that act, with DeepSpeed: its engine moves the weights inside backward, where no"
        f" update can be left out any more. {_FSDP2}"
    )


def _fsdp1(config: StableGRPOConfig) -> str | None:
    if config.only_warns or _fsdp_version(config) in (None, 2):
        return None
    return (
        "guards that act, with FSDP1: it makes one flat tensor of many weights, whose gradient is"
        f" not measured and of which no snapshot is taken. {_FSDP2}"
    )


def _fsdp_version(config: StableGRPOConfig) -> int | None:
    """The version of FSDP that config or launcher ask for; None without FSDP."""
    if config.fsdp:  # its own default is 2, that of a launcher 1
        own = config.fsdp_config if isinstance(config.fsdp_config, dict) else {}
        return 1 if own.get("xla") else int(own.get("version", 2))
    if parse_flag_from_env("ACCELERATE_USE_FSDP"):
        return int(os.environ.get("FSDP_VERSION", "1"))
    return None


def _steps_in_backward(config: StableGRPOConfig) -> str | None:
    name = str(getattr(config.optim, "value", config.optim))
    if config.only_warns or not ("layerwise" in name or "lomo" in name):
        return None
    return (
        f"guards that act, with optim={name!r}: it moves the weights inside backward, where no"
        " update can be left out any more. Take another one, such as adamw_torch."
    )


def _no_vllm(config: StableGRPOConfig) -> str | None:
    if not config.use_vllm or importlib.util.find_spec("vllm") is not None:
        return None
    start = " and start `trl vllm-serve --model MODEL`" if config.vllm_mode == "server" else ""
    return (
        f"vLLM is to generate (vllm_mode={config.vllm_mode!r}), and it is not installed here. On a"
        f" machine with a GPU run pip install 'trl[vllm]'{start}; or leave it out: TRL then"
        " generates with transformers."
    )


_REFUSED: Final[tuple[Refusal, ...]] = (
    _pairs_by_std,
    _cispo_bound,
    _split_groups,
    _deepspeed,
    _fsdp1,
    _steps_in_backward,
    _no_vllm,
)


def _pairs(config: StableGRPOConfig) -> str | None:
    if config.num_generations > 3:
        return None
    return (
        f"groups of {config.num_generations}: at a success rate of 20 % the members of a group of 2"
        " are all alike in 68 % of the cases, of 8 in 17 %, and such a group teaches nothing."
    )


def _biased_kl(config: StableGRPOConfig) -> str | None:
    if not config.beta or config.use_bias_correction_kl:
        return None
    return (
        "use_bias_correction_kl=False: the gradient of that KL term is off by 79 % of the exact"
        " one (measured on a categorical); with the correction it is exact."
    )


def _sampled_otherwise(config: StableGRPOConfig) -> str | None:
    cuts = {
        "top_p": (config.top_p, 1.0),
        "top_k": (config.top_k or 0, 0),
        "min_p": (config.min_p or 0.0, 0.0),
        "repetition_penalty": (config.repetition_penalty, 1.0),
    }
    cutting = [f"{name}={value}" for name, (value, neutral) in cuts.items() if value != neutral]
    if not cutting or (config.use_vllm and config.vllm_importance_sampling_correction):
        return None
    return (
        f"{', '.join(cutting)}: rollouts are then sampled from another distribution than the one"
        " whose log-probabilities the loss takes, and without vLLM no ratio corrects for it. Leave"
        " it out; temperature is taken into account."
    )


def _no_clipping(config: StableGRPOConfig) -> str | None:
    if config.max_grad_norm > 0:
        return None
    return "max_grad_norm=0: one batch with a large gradient moves the weights without a bound."


_WARNED: Final[tuple[Refusal, ...]] = (_pairs, _biased_kl, _sampled_otherwise, _no_clipping)


def check_config(config: StableGRPOConfig) -> list[str]:
    """Refuse what can only fail.

    Returns:
        What fails often, one sentence each, for a warning.

    Raises:
        ConfigurationError: The first setting that is refused, with what was measured and the cure.
    """
    for refusal in _REFUSED:
        reason = refusal(config)
        if reason is not None:
            raise ConfigurationError(f"these settings are known to fail: {reason}")
    return [text for warning in _WARNED if (text := warning(config)) is not None]
