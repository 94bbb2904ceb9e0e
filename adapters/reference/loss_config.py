"""Loss settings: ratio, surrogate, aggregation and KL, and the losses of papers by name.

A paper's loss is one choice of each: which ratio, how it is kept in bounds, what the sum over
tokens is divided by. `loss_config("gspo")` gives the choices of a paper, any of which can be
changed; what does not go together is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from adapters.reference.divergence import Estimate
from toolgym.errors import ConfigurationError, refused_fields


class LossConfig(BaseModel):
    """One loss. rho is the ratio of a token's probabilities under the policy and under the one that
    sampled it, A its advantage."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    surrogate: Literal["clip", "cispo"] = "clip"
    """`clip`: a token whose ratio has left the bounds gets no gradient any more. `cispo`: every
    token keeps its gradient, weighted by its ratio cut off at the bounds."""
    ratio: Literal["token", "sequence"] = "token"
    """`sequence`: one ratio for a rollout, the geometric mean of its tokens' (GSPO)."""
    old_log_probs: Literal["recorded", "computed"] = "recorded"
    """What ratios are taken to. `recorded`: the log-probabilities that tokens were drawn with; the
    ratio then also corrects what rounding makes different between playing and learning. `computed`:
    those that the learner finds before the first update of a batch, for bounds that are narrower
    than this rounding: GSPO's, outside of which bfloat16 puts half of the rollouts."""
    epsilon_low: float = Field(0.2, ge=0, le=1)
    """Ratios are bounded below by 1 - epsilon_low; 1 leaves no lower bound."""
    epsilon_high: float = Field(0.28, ge=0)
    """Ratios are bounded above by 1 + epsilon_high. More room above than below keeps rare tokens
    alive (clip-higher of DAPO)."""
    dual_clip: float | None = Field(None, gt=1)
    """Where A < 0, a ratio above this gets no gradient: a token that became likelier though it was
    bad is otherwise pushed down without bound. None: no such bound."""
    aggregation: Literal["sample", "token", "constant"] = "token"
    """What counts the same: `sample` every rollout, which makes the tokens of long ones count less;
    `token` every token; `constant` every token too, divided by a fixed length, so that a step with
    fewer tokens is a smaller step."""
    constant_length: int | None = Field(None, ge=1)
    """For `constant`: tokens of a rollout at most."""
    beta: float = Field(0.0, ge=0)
    """Price of a nat of divergence from the reference; 0 needs no reference."""
    kl: Estimate = "k3"
    """How the divergence in the loss is estimated; the expected gradient is exact for each."""
    kl_ratio: Literal["token", "policy"] = "token"
    """The ratio that k1 and k3 are multiplied by: the token's own, which makes the gradient exact,
    or the one of the policy term, as in TRL. They differ under a sequence ratio only."""
    kl_in_reward: bool = False
    """Leave the divergence out of the loss, because it was taken off the rewards
    (`divergence.penalized_rewards`). For comparison."""
    entropy_bonus: float = Field(0.0, ge=0)
    """Subtracted from the loss per nat of mean entropy of the sampled tokens' distributions."""
    log_ratio_limit: float = Field(20.0, gt=0, le=80)
    """Log-ratios are clamped to this many nats on both sides; beyond it there is no gradient.
    exp(89) is infinite in float32, and one infinite token makes every weight nan."""
    kl_limit: float = Field(10.0, gt=0, le=20)
    """The divergence of a token is clamped to this many nats on both sides; a token further away is
    pulled back as one at the limit."""

    @property
    def beta_in_loss(self) -> float:
        """The price of divergence that the loss charges."""
        return 0.0 if self.kl_in_reward else self.beta

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if (self.aggregation == "constant") != (self.constant_length is not None):
            raise ValueError(
                f"aggregation={self.aggregation!r} with constant_length={self.constant_length}:"
                " give a length with 'constant', and only there."
            )
        if self.dual_clip is not None and self.surrogate == "cispo":
            raise ValueError(
                "dual_clip has no meaning for 'cispo', which cuts no gradient: drop it."
            )
        if self.dual_clip is not None and self.dual_clip <= 1 + self.epsilon_high:
            raise ValueError(
                f"dual_clip > 1 + epsilon_high does not hold: {self.dual_clip:g} <="
                f" {1 + self.epsilon_high:g}; raise dual_clip, 3 is usual."
            )
        if self.kl_in_reward and not self.beta:
            raise ValueError("kl_in_reward without beta takes nothing off: set beta, or drop it.")
        return self


LOSSES: Final[Mapping[str, Mapping[str, Any]]] = {
    # arXiv:2402.03300: per-rollout means.
    "grpo": {"epsilon_high": 0.2, "aggregation": "sample"},
    # arXiv:2503.14476: clip-higher, all tokens of the step count the same.
    "dapo": {"epsilon_high": 0.28, "aggregation": "token"},
    # arXiv:2503.20783: a constant divisor; the length has to be said.
    "dr_grpo": {"epsilon_high": 0.2, "aggregation": "constant"},
    # arXiv:2507.18071: sequence ratios stay very close to 1, hence the narrow bounds.
    "gspo": {
        "ratio": "sequence",
        "old_log_probs": "computed",
        "epsilon_low": 3e-4,
        "epsilon_high": 4e-4,
        "aggregation": "sample",
    },
    # arXiv:2506.13585, which has no lower bound; weights up to 5 as in arXiv:2510.13786.
    "cispo": {"surrogate": "cispo", "epsilon_low": 1.0, "epsilon_high": 4.0},
}
"""By name: what a paper's loss sets. Where TRL writes `epsilon_high=5` for CISPO, meaning the bound
itself, it is 4 here: the bound is 1 + epsilon_high throughout. TRL's `bnpo` is "dapo" with each
micro-batch divided by its own tokens."""


def loss_config(name: str, **changes: Any) -> LossConfig:
    """The loss of that name, with changes.

    Args:
        name: A key of `LOSSES`.
        changes: Fields of `LossConfig`.

    Raises:
        ConfigurationError: There is no such loss, or the changes do not fit.
    """
    if name not in LOSSES:
        raise ConfigurationError(f"there is no loss {name!r}; choose among {', '.join(LOSSES)}.")
    try:
        return LossConfig.model_validate({**LOSSES[name], **changes})
    except ValidationError as problem:
        raise ConfigurationError(
            f"this loss is refused: {refused_fields(problem, name)}."
        ) from None
