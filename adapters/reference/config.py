"""The settings of the reference trainer.

The defaults are conservative ones for a pretrained chat model. There is no `top_p` or `top_k`:
tokens are sampled from the whole distribution, so that the recorded log-probabilities are those of
the policy. There is no dropout either, so that the trained policy is the one that sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from adapters.reference.losses import LossConfig
from adapters.training.algorithms.advantages import ESTIMATORS, TURN_ESTIMATORS
from adapters.training.guards.config import GuardConfig
from toolgym.errors import ConfigurationError, refused_fields


class ReferenceConfig(BaseModel):
    """The settings of `adapters.reference.train`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )

    steps: int = Field(60, ge=1)
    """Optimizer steps, including those whose update is skipped."""
    seed: int = Field(0, ge=0)
    """Seed for the order of tasks and for sampling."""

    prompts: int = Field(4, ge=1)
    """Tasks per batch."""
    group_size: int = Field(8, ge=1)
    """Rollouts per task, which are compared with each other. 1 requires the estimator
    `batch_normalized`, which compares tasks, and no dynamic sampling (max_draws null)."""
    max_draws: float | None = Field(3.0, ge=1)
    """Dynamic sampling: groups whose rollouts all had the same outcome are replaced; a batch plays
    at most this many times `prompts` groups. null: no dynamic sampling."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature of rollouts; the loss uses the same one."""
    max_completion_length: int = Field(1024, ge=2)
    """Maximum tokens of a rollout after its prompt, tool results included."""
    learn_from_unfinished: bool = False
    """Whether rollouts that ran out of tokens are in the loss. Their reward is that of a missing
    answer, although no tokens were left for one."""
    at_once: int | None = Field(None, ge=1)
    """Maximum rollouts in the KV cache at the same time. null: 64; on CUDA up to 256, as many as
    fit into two fifths of the free memory."""
    workers: int = Field(8, ge=1)
    """Threads that run the tools of different rollouts in parallel."""

    advantages: str = "batch_normalized_baseline"
    """Advantage estimator: `group_normalized`, `group_centered`, `leave_one_out`, `batch_scaled`,
    `batch_normalized`, `batch_normalized_baseline` or `turn_normalized`. See
    `adapters.training.algorithms.advantages`."""
    advantage_limit: float | None = Field(5.0, gt=0)
    """Advantages are clipped at plus and minus this; null: no clipping. Without clipping, one right
    answer among many wrong ones dominates the update."""
    loss: LossConfig = Field(default_factory=lambda: LossConfig.model_validate({}))
    """The loss: a name (`grpo`, `dapo`, `dr_grpo`, `gspo`, `cispo`) or fields of `LossConfig`, such
    as {"name": "gspo", "beta": 0.01}."""
    updates_per_batch: int = Field(1, ge=1)
    """Updates per batch of rollouts."""

    tokens_per_pass: int = Field(8192, ge=1)
    """Maximum tokens of a forward and backward pass, padding included. The gradients of the passes
    add up to the gradient of the batch."""
    gradient_checkpointing: bool = False
    """Recompute activations instead of keeping them: less memory, a third more time."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Data type of the model's computation. The optimizer keeps float32 weights either way, since
    bfloat16 rounds small updates away."""

    learning_rate: float = Field(1e-6, gt=0)
    """Peak learning rate."""
    lr_warmup_steps: int = Field(0, ge=0)
    """Updates over which the learning rate rises linearly to its peak."""
    lr_decay: Literal["constant", "linear", "cosine"] = "constant"
    """Decay of the learning rate from its peak to 0 at the end of the run; `constant`: none."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Betas of AdamW. The second is lower than usual, since runs are short."""
    weight_decay: float = Field(0.0, ge=0)
    """Weight decay of AdamW, applied to all weights."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Gradients are clipped to this global norm."""

    guards: GuardConfig = GuardConfig()
    """Settings of the guards, such as {"only_warn": true}. Guards warn, skip an update, lower the
    learning rate, roll back, or stop."""
    save_every: int = Field(20, ge=1)
    """Steps between checkpoints."""
    keep: int = Field(2, ge=1)
    """Latest checkpoints to keep. The latest one whose weights the guards found healthy is kept in
    any case."""
    control: Literal["shuffled-rewards"] | None = None
    """Control run: `shuffled-rewards` shuffles rewards among the rollouts of a batch, so that
    nothing can be learned."""

    @field_validator("loss", mode="before")
    @classmethod
    def _from_name(cls, loss: Any) -> Any:
        return {"name": loss} if isinstance(loss, str) else loss

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.advantages not in {*ESTIMATORS, *TURN_ESTIMATORS}:
            names = ", ".join([*ESTIMATORS, *TURN_ESTIMATORS])
            raise ValueError(
                f"there is no advantage estimator {self.advantages!r}; choose among {names}"
            )
        if self.control is not None and self.advantages in TURN_ESTIMATORS:
            raise ValueError(
                f"control={self.control!r} shuffles the rewards of rollouts, which"
                f" {self.advantages!r} does not read: choose another estimator"
            )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be at least 0 and below 1, got {self.betas}")
        if self.group_size == 1 and (
            self.advantages != "batch_normalized" or self.max_draws is not None or self.prompts < 2
        ):
            raise ValueError(
                "group_size=1 leaves no other rollout of the task to compare with: set"
                " advantages=batch_normalized, which compares the tasks of a batch, max_draws=null"
                " and prompts of at least 2; or group_size=8"
            )
        return self


def reference_config(values: Mapping[str, Any]) -> ReferenceConfig:
    """Make the config from plain values, such as those of a JSON file.

    Raises:
        ConfigurationError: A value is unknown or out of range, or two do not go together; the
            message names each.
    """
    try:
        return ReferenceConfig.model_validate(dict(values))
    except ValidationError as problem:
        raise ConfigurationError(
            f"these settings are refused: {refused_fields(problem)}."
        ) from None
