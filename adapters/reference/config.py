"""The settings of the reference trainer, each with its meaning and the reason for its default.

They are for any model; the defaults are careful ones for a pretrained chat model. What is not here
is fixed for a reason: tokens are sampled from the whole distribution (`top_p` and `top_k` would
make the recorded log-probabilities those of another policy), and the model is trained without
dropout (with it, the policy that learns is not the one that generated).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from adapters.reference.losses import LOSSES, LossConfig, loss_config
from adapters.training.algorithms.advantages import ESTIMATORS, TURN_ESTIMATORS
from adapters.training.algorithms.dynamic_sampling import SamplingConfig
from adapters.training.guards.config import GuardConfig
from adapters.training.runs.settings import TrainSettings
from toolgym.errors import ConfigurationError, refused_fields


class ReferenceConfig(BaseModel):
    """The settings of `ReferenceTrainer`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    steps: int = Field(60, ge=1)
    """Updates of the weights."""
    seed: int = Field(0, ge=0)
    """Seed for task order and sampling."""

    group_size: int = Field(8, ge=1)
    """Rollouts of one task that are compared with each other. 1 is for `batch_normalized`, which
    compares tasks, and goes without dynamic sampling: a group of one has no variance."""
    prompts: int = Field(4, ge=1)
    """Tasks from which one batch learns."""
    temperature: float = Field(1.0, gt=0)
    """Of the rollouts; the loss takes log-probabilities at the same one."""
    max_completion_length: int = Field(1024, ge=2)
    """Tokens of one rollout, results of the tools included."""
    at_once: int = Field(64, ge=1)
    """Rollouts that are played together. What they keep in memory grows with it."""
    workers: int = Field(8, ge=1)
    """Threads in which the tools of different rollouts run."""
    sampling: SamplingConfig | None = SamplingConfig()
    """Dynamic sampling: groups whose members all had the same outcome are replaced by others, since
    they teach nothing but thrift. None learns from the groups as they are sampled."""

    advantages: str = "batch_normalized_baseline"
    """An estimator of `adapters.training.algorithms.advantages`. The default keeps a small
    difference small, which division by a group's own deviation does not."""
    advantage_limit: float | None = Field(5.0, gt=0)
    """Advantages are cut off at plus and minus this; None cuts nothing. A single right answer among
    many wrong ones otherwise makes the whole step."""
    turn_discount: float = Field(1.0, gt=0, le=1)
    """Of later turns, for the estimators that tell turns apart."""
    learn_from_unfinished: bool = False
    """Whether a rollout that ran out of tokens takes part in the loss. Its reward says that it did
    not answer, when it was not allowed to."""

    loss: LossConfig = Field(default_factory=lambda: loss_config("dapo", beta=0.01))
    """What is minimised: the fields of a `LossConfig`, or the name of a loss, or both, as in
    `{"name": "gspo", "beta": 0.01}`; a loss by its name that divides by a constant takes
    `max_completion_length` unless another one is given. By default with a light anchor to the model
    as it is when training begins: a run without one lost the form of its calls within 30 steps."""
    updates_per_batch: int = Field(1, ge=1)
    """Updates from one batch of rollouts."""
    tokens_per_pass: int = Field(8192, ge=1)
    """Tokens in one forward and backward pass, padding included; a rollout that alone has more
    makes a pass of its own. The gradients of the passes add up to those of the batch."""
    share_prompts_from: int | None = Field(128, ge=1)
    """Tokens from which on what prompts have in common is read once in a pass: a group's prompt,
    and the tools of all (`adapters.training.models.shared_prefix`). The loss and its gradient are
    the same up to rounding. The default leaves out the tiny model, whose prompts are below a
    hundred tokens, so that its runs come out as they did to the last digit; 16 makes its updates
    1.4 times as fast. None: every rollout is read with its own prompt, as it is where a model's
    attention cannot be called for parts of a row."""
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them: less memory, a third more time."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """What the model computes in. The optimizer keeps float32 weights either way, since in half
    precision small updates are rounded away."""

    learning_rate: float = Field(1e-6, gt=0)
    """At its highest."""
    ramp: int = Field(0, ge=0)
    """Steps in which it rises to that."""
    decay: Literal["constant", "linear", "cosine"] = "constant"
    """How it falls to 0 afterwards, at the last step; `constant` does not."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Of AdamW. The second is lower than usual: runs are short, and gradients change."""
    weight_decay: float = Field(0.0, ge=0)
    """Of AdamW, on every weight, norms and biases among them."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Longer gradients are shortened to this."""

    guards: GuardConfig = GuardConfig()
    """When to warn, skip an update, lower the learning rate, roll back, or stop."""
    save_every: int = Field(20, ge=1)
    """Steps between checkpoints, which are made between batches only."""
    keep: int = Field(2, ge=1)
    """Checkpoints that are kept, beside the latest one whose weights the guards found sound."""
    control: Literal["shuffled-rewards"] | None = None
    """`shuffled-rewards` hands each rollout the reward of another: nothing is left to learn."""

    @field_validator("loss", mode="before")
    @classmethod
    def _named(cls, loss: Any, info: ValidationInfo) -> Any:
        """A loss by its name, with changes."""
        if isinstance(loss, str):
            loss = {"name": loss}
        if not isinstance(loss, Mapping) or "name" not in loss:
            return loss
        options = {str(key): value for key, value in loss.items()}
        whole = {**LOSSES.get(str(options["name"]), {}), **options}
        if whole.get("aggregation") == "constant" and "max_completion_length" in info.data:
            options.setdefault("constant_length", info.data["max_completion_length"])
        return loss_config(**options)

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        estimators = [*ESTIMATORS, *TURN_ESTIMATORS]
        if self.advantages not in estimators:
            raise ValueError(
                f"there is no advantage estimator {self.advantages!r}; choose among"
                f" {', '.join(estimators)}."
            )
        if self.loss.kl_in_reward and self.advantages in TURN_ESTIMATORS:
            raise ValueError(
                f"kl_in_reward changes the reward of whole rollouts, and {self.advantages!r} does"
                " not read it: charge the divergence in the loss."
            )
        if self.control is not None and self.advantages in TURN_ESTIMATORS:
            raise ValueError(
                f"control={self.control!r} shuffles the rewards of whole rollouts, and"
                f" {self.advantages!r} does not read them: choose another estimator."
            )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be at least 0 and below 1, got {self.betas}.")
        return self

    @model_validator(mode="after")
    def _somebody_to_compare_with(self) -> Self:
        if self.group_size > 1:
            return self
        if self.advantages != "batch_normalized":
            raise ValueError(
                f"group_size=1 leaves {self.advantages!r} nobody to compare a rollout with: set"
                " advantages='batch_normalized', which compares the tasks of a batch, or"
                " group_size=8."
            )
        if self.sampling is not None:
            raise ValueError(
                "group_size=1 with dynamic sampling would replace every group, because a"
                " group of one has no variance: set sampling=None."
            )
        if self.prompts < 2:
            raise ValueError("group_size=1 with prompts=1 is a batch of one rollout: set prompts.")
        return self

    @property
    def rollouts(self) -> int:
        """Rollouts that one batch learns from."""
        return self.group_size * self.prompts


def reference_config(values: Mapping[str, Any]) -> ReferenceConfig:
    """The config from plain values, as a file or a run's `config.json` holds them.

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


def reference_options(settings: TrainSettings) -> ReferenceConfig:
    """The config that the settings of a run mean.

    Raises:
        ConfigurationError: A value is unknown or out of range.
    """
    options: dict[str, Any] = {
        "steps": max(1, settings.steps),  # with none of them it is not asked for
        "seed": settings.seed,
        "group_size": settings.group_size,
        "prompts": settings.prompts,
        "temperature": settings.temperature,
        "max_completion_length": settings.max_completion_length,
        "learning_rate": settings.learning_rate,
        "save_every": settings.save_every,
        "control": settings.control,
        "dtype": settings.dtype,
    }
    return reference_config(options | settings.trainer_options)
