"""`StableGRPOConfig`: TRL's `GRPOConfig` with defaults that are safe on tools, and what TRL lacks.

Every option of TRL's own is there under its own name. Those whose default differs stand below with
the reason; so do the options of `StableGRPOTrainer`. Settings that are known to fail are refused
when the config is made (`known_failures`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final

import torch
from pydantic import ValidationError
from trl import GRPOConfig

from adapters.training.advantages import ESTIMATORS
from adapters.training.guard_config import GuardConfig
from adapters.trl.known_failures import check_config
from adapters.trl.values import check_values
from toolgym.errors import ConfigurationError, refused_fields

TRLS_OWN: Final = "trl"
_BY_SCALE: Final = {
    "none": "batch_normalized_baseline",
    "group": "group_normalized",
    "batch": "batch_scaled",
}
_logger = logging.getLogger(__name__)


@dataclass
class StableGRPOConfig(GRPOConfig):  # type: ignore[misc]
    """Arguments of `StableGRPOTrainer`: TRL's, and those below.

    Raises:
        ConfigurationError: Settings contradict each other, or are known to fail.
    """

    num_generations: int = 8
    """At a success rate of 10 %, 57 % of the groups of 8 have right and wrong members, 18 % of the
    groups of 2; what has not teaches nothing."""
    scale_rewards: str = "none"
    """A group's own deviation erases how large a lead was, so none is divided by; the leads of the
    whole batch are, by max(std, 0.1). Without that floor a solved batch turns a call more or less,
    worth 0.01, into an advantage of full size."""
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
    """Groups that a step may draw, as a multiple of those it learns from; what is missing then is
    masked."""
    advantage_estimator: str | None = None
    """A key of `adapters.training.advantages.ESTIMATORS`, or "trl" for what TRL computes itself.
    None follows `scale_rewards`: `batch_normalized_baseline` for "none", `group_normalized` for
    "group", `batch_scaled` for "batch"."""
    advantage_clip: float | None = 5.0
    """Bound on the size of an advantage, TRL's own included; it spares the one right rollout among
    25, whose lead is 4.8 deviations, and holds a rollout down whose reward is out of all
    proportion."""
    guards: dict | str | None = field(default_factory=dict)  # type: ignore[type-arg]  # as TRL's
    """Fields of `adapters.training.guard_config.GuardConfig`, where each is explained."""
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
        for told in check_config(self):
            _logger.warning("known to fail often: %s", told)

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
