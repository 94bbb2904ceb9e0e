"""The settings of a training: one model for the command line, YAML files, Python and run folders.

`GrpoSettings` are those of reinforcement learning, which both trainers take. `TrainSettings` adds
the model, the environment, imitation and evaluations; `toolgym train` makes its options from the
fields, and `config.json` of a run folder holds all of them. The docstring of a field is the help
text of its option.

The defaults of the fields are conservative ones for pretrained chat models. `resolve` fills in
others for the tiny model, for adapters and for the number of steps. Those for the tiny model were
found by trial, for runs of minutes on two CPU cores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from adapters.training.guards.config import GuardConfig
from adapters.training.models.demonstrations import has_novice
from toolgym.commands import nearest
from toolgym.errors import ConfigurationError
from toolgym.unseen import PARTS, TASKS

TINY: Final = "tiny"
Settings = TypeVar("Settings", bound=BaseModel)
Separation = Literal["evaluation without training", "training without evaluation", "divided"]


class GrpoSettings(BaseModel):
    """The settings of reinforcement learning with GRPO.

    There is no `top_p` or `top_k`: tokens are sampled from the whole distribution, so that the
    recorded log-probabilities are those of the policy.

    Raises:
        ValidationError: A value is unknown or out of range, or two do not go together.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    steps: int = Field(60, ge=0, le=10**6)
    """Optimizer steps of GRPO, including those whose update is skipped. 0 trains on demonstrations
    only."""
    group_size: int = Field(8, ge=1)
    """Rollouts per task, which are compared with each other. In small groups all rollouts often
    have the same outcome, which gives no learning signal."""
    prompts: int = Field(4, ge=1)
    """Tasks per step."""
    max_draws: float | None = Field(3.0, ge=1)
    """Dynamic sampling: groups whose rollouts all had the same outcome are replaced; a step plays
    at most this many times `prompts` groups. null: no dynamic sampling."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature of rollouts."""
    max_completion_length: int = Field(2048, ge=2)
    """Maximum tokens of a rollout after its prompt, tool results included."""
    learn_from_unfinished: bool = False
    """Whether rollouts that ran out of tokens are in the loss. Their reward is that of a missing
    answer, although no tokens were left for one."""
    workers: int = Field(8, ge=1)
    """Threads that run the tools of different rollouts in parallel."""
    at_once: int | None = Field(None, ge=1)
    """Maximum rollouts in the KV cache at the same time, for the reference trainer. null: 64; on
    CUDA up to 256, as many as fit into two fifths of the free memory."""

    advantages: Literal[
        "group_normalized",
        "group_centered",
        "leave_one_out",
        "batch_scaled",
        "batch_normalized",
        "batch_normalized_baseline",
        "turn_normalized",
    ] = "batch_normalized_baseline"
    """Advantage estimator. TRL has group_centered (its default here), group_normalized and
    batch_scaled."""
    advantage_limit: float | None = Field(5.0, gt=0)
    """Advantages are clipped at plus and minus this by the reference trainer; null: no clipping.
    Without clipping, one right answer among many wrong ones dominates the update."""
    loss: Literal["grpo", "dapo", "dr_grpo", "gspo", "cispo"] = "dapo"
    """The policy loss."""
    beta: float = Field(0.01, ge=0)
    """KL coefficient. 0 needs no reference model. A run of the tiny model without a penalty wrote
    no valid calls after 30 steps."""
    epsilon_low: float | None = Field(None, ge=0, le=1)
    """Importance ratios are clipped below 1 - epsilon_low. null: the value of the loss's paper."""
    epsilon_high: float | None = Field(None, ge=0)
    """Importance ratios are clipped above 1 + epsilon_high. null: the value of the loss's paper."""
    entropy_bonus: float = Field(0.0, ge=0)
    """Entropy coefficient, multiplied by the mean token entropy in nats."""
    updates_per_batch: int = Field(1, ge=1)
    """Updates per batch of rollouts."""

    learning_rate: float = Field(1e-6, gt=0)
    """Peak learning rate of GRPO."""
    lr_warmup_steps: int = Field(0, ge=0)
    """Steps over which the learning rate rises linearly from 0 to its peak."""
    lr_decay: Literal["constant", "linear", "cosine"] = "constant"
    """Decay of the learning rate from its peak; `linear` and `cosine` reach 0 when the last step is
    made."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Betas of AdamW. The second is lower than usual, since runs are short."""
    weight_decay: float = Field(0.0, ge=0)
    """Weight decay of AdamW, applied to all weights."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Gradients are clipped to this global norm."""

    dtype: Literal["auto", "float32", "bfloat16"] = "float32"
    """Data type of the computation; the optimizer keeps float32 weights in either case, since
    bfloat16 rounds small updates away. `auto`, the default for pretrained models, is bfloat16 if
    the machine has instructions for it, and float32 with TRL without an adapter."""
    tokens_per_pass: int = Field(8192, ge=1)
    """Maximum tokens of a forward and backward pass of imitation and of the reference trainer,
    padding included. The gradients of the passes add up to that of the batch."""
    gradient_checkpointing: bool | None = None
    """Recompute activations instead of keeping them: less memory, a third more time. null: as TRL
    does by default (on a GPU, yes), and not with the reference trainer."""

    guards: GuardConfig = GuardConfig()
    """Settings of the guards, such as {"only_warn": true}. Guards warn, skip an update, lower the
    learning rate, roll back, or stop."""
    save_every: int = Field(20, ge=1)
    """Steps between checkpoints."""
    keep: int = Field(2, ge=1)
    """Latest checkpoints to keep. The latest one whose weights the guards found healthy is kept in
    any case."""
    control: Literal["shuffled-rewards"] | None = None
    """Control run: `shuffled-rewards` shuffles rewards among rollouts. Nothing can be learned from
    them, so an improvement has another cause."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Random seed of the run."""

    @model_validator(mode="before")
    @classmethod
    def _read_texts(cls, values: Any) -> Any:
        """Read null and JSON from the texts of a command line; pydantic reads numbers."""
        return {name: _read(value) for name, value in dict(values).items()}

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        if self.advantages == "turn_normalized" and self.control is not None:
            raise ValueError(
                f"control={self.control!r} shuffles the rewards of rollouts, which"
                " turn_normalized does not read: choose other advantages"
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


class TrainSettings(GrpoSettings):
    """The settings of `toolgym train`, with defaults filled in."""

    env_id: str
    """Id of the environment."""
    env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment except the split: data set, step limit, parsing, rewards."""
    split: str | None = "train"
    """Split of demonstrations and training tasks."""
    eval_split: str | None = "dev"
    """Split of the evaluations' tasks. Tasks that are trained on are left out."""
    eval_env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment in evaluations, which override those of `env_kwargs`, such as
    {"match": "spider"}. The rewards of the training do not change."""
    separation: Separation | None = None
    """How training and evaluation were separated if they shared tasks; null if they share none, or
    cannot be separated. See `adapters.training.runs.evaluations.separated`."""

    model: str = TINY
    """Chat model to train: a folder, a hub id, or the name of a published model (`toolgym models
    list`). `tiny` is built here, with half a million parameters."""
    chat_template: str | None = None
    """Chat template for a model whose own does not show tools: `hermes`, or a Jinja file, whose
    text is kept in the run folder."""
    trainer: Literal["trl", "reference"] = "trl"
    """The trainer of GRPO."""
    lora: bool = False
    """Train a LoRA adapter, and merge it at the end."""
    lora_rank: int = Field(16, ge=1)
    """Rank of the adapter."""
    lora_alpha: int = Field(32, ge=1)
    """Scale of the adapter: its output is multiplied by lora_alpha / lora_rank."""
    lora_targets: str | tuple[str, ...] = "all-linear"
    """Layers that get an adapter: all-linear, or names such as ["q_proj", "v_proj"]."""
    vllm: Literal["colocate", "server"] | None = None
    """Generate rollouts of TRL with vLLM, on the training GPU (colocate) or on a separate server
    (server)."""
    trl: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of TRL's `GRPOConfig`, such as {"loss_type": "bnpo"}."""

    demonstrations: int = Field(256, ge=1)
    """Number of demonstrations."""
    demonstrator: Literal["sloppy", "expert"] = "expert"
    """Policy that plays the demonstrations. `sloppy` shows good and bad habits, from which the tiny
    model learns to choose; `expert` is for pretrained models, which have habits already."""
    recoveries: float = Field(0.0, ge=0, le=1)
    """Share of the demonstrations' calls before which a call fails, and is mended by what the error
    and the schema say. The failing call is not learned."""
    sft_steps: int = Field(32, ge=0)
    """Supervised steps on demonstrations before GRPO; 0 skips them."""
    sft_batch: int = Field(4, ge=1)
    """Demonstrations per supervised step."""
    sft_learning_rate: float = Field(1e-5, gt=0)
    """Peak learning rate of the supervised steps."""
    sft_matrix_rate: float | None = Field(None, gt=0)
    """Peak learning rate of Muon for the weight matrices in supervised steps; null: AdamW updates
    all weights."""
    sft_lora: bool = True
    """With `lora`, train an adapter in the supervised steps, too. Without it they train all
    weights, which learns more from the same demonstrations and takes more memory."""
    sft_alike: int = Field(1, ge=1)
    """Number of demonstrations in a row whose prompts share a prefix, such as those about one
    database: on a CPU the prefix is computed once, but a batch has fewer databases."""
    copying: float = Field(0.0, ge=0)
    """Initial strength of copying from the context in the attention heads of the tiny model."""

    preflight: bool = True
    """Check after the supervised steps that the model can learn, and stop if it cannot."""
    eval_tasks: int = Field(192, ge=1)
    """Tasks of the evaluations before and after GRPO; an evaluation on unseen databases has a
    quarter of them."""
    eval_tries: int = Field(1, ge=0)
    """Tries per task in the evaluation that samples as training does; 0: greedy only."""
    max_new_tokens: int = Field(512, ge=1)
    """Maximum tokens of a turn in evaluations."""
    eval_every: int = Field(0, ge=0)
    """Steps of GRPO between evaluations on selection tasks, which are neither trained on nor part
    of the evaluations before and after; 0: none. Default: a quarter of the steps, but at least 5;
    none in runs of fewer than 10 steps or with too few tasks."""
    selection_tasks: int = Field(64, ge=1)
    """Selection tasks, played greedily; at most a third of those available are used."""
    patience: int | None = Field(None, ge=1)
    """Early stopping: evaluations on selection tasks in a row without a new best accuracy after
    which GRPO ends."""
    checkpoint: Literal["last", "best"] = "last"
    """The final weights: the last, or the best by evaluations on selection tasks."""
    report_to: tuple[str, ...] = ()
    """Dashboards: tensorboard, wandb, trackio."""

    @field_validator("report_to", mode="before")
    @classmethod
    def _read_names(cls, names: Any) -> Any:
        return (names,) if isinstance(names, str) else names

    @model_validator(mode="after")
    def _check(self) -> Self:
        for is_wrong, reason in self._refusals():
            if is_wrong:
                raise ValueError(reason)
        return self

    def _refusals(self) -> Iterator[tuple[bool, str]]:
        """Combinations of settings that are refused, each with what to do."""
        for name in ("at_once", "advantage_limit") if self.trainer == "trl" else ("vllm", "trl"):
            other = "reference" if self.trainer == "trl" else "trl"
            default = type(self).model_fields[name].get_default(call_default_factory=True)
            is_set = getattr(self, name) != default
            yield is_set, f"{name} is for --trainer {other}: leave it out"
        names = tuple(SCALE_REWARDS)
        yield (
            self.trainer == "trl" and self.advantages not in names,
            f"advantages of TRL are {', '.join(names)}; others need --trainer reference",
        )
        yield (
            self.is_tiny and self.chat_template is not None,
            "the tiny model has a chat template of its own; chat_template is for --model",
        )
        yield self.dtype == "bfloat16" and bool(self.needs_float32), self.needs_float32
        yield (
            not self.steps and not self.sft_steps,
            "nothing is learned in 0 supervised steps and 0 of GRPO: set steps",
        )
        yield bool(self.eval_every) and not self.steps, "eval_every needs steps of GRPO: set steps"
        for name, is_set in (
            ("patience", self.patience is not None),
            ("checkpoint=best", self.checkpoint == "best"),
        ):
            yield is_set and not self.eval_every, f"{name} needs evaluations: set eval_every"
        for name in ("split", "task_part", "env_id"):
            is_set = name in self.env_kwargs or name in self.eval_env_kwargs
            yield is_set, f"{name} is no argument of environments here: set split and eval_split"

    @property
    def needs_float32(self) -> str:
        """The reason why this training cannot compute in bfloat16, with advice; empty if it can."""
        if self.trainer == "trl" and not self.lora:
            return (
                "with --trainer trl bfloat16 rounds small updates away: add --lora, keep float32,"
                " or use --trainer reference"
            )
        if self.sft_matrix_rate is not None and not self.is_tiny:
            return "Muon updates matrices in float32: leave out sft_matrix_rate"
        return ""

    @property
    def has_adapter_from_start(self) -> bool:
        """Whether the supervised steps train an adapter too, which is merged at their end.

        They train all weights of the tiny model, which is not pretrained.
        """
        return self.lora and self.sft_lora and not self.is_tiny

    @property
    def is_tiny(self) -> bool:
        """Whether the model is the tiny one, which is built by toolgym."""
        return self.model == TINY

    @property
    def training_kwargs(self) -> dict[str, Any]:
        """Arguments of the training environment."""
        own = _split(self.split)
        if self.separation == "divided":
            own["task_part"] = PARTS[0]
        if self.separation == "training without evaluation":
            own["task_part"] = {"unseen_by": _split(self.eval_split), "kind": TASKS}
        return {**self.env_kwargs, **own}

    @property
    def evaluation_kwargs(self) -> dict[str, Any]:
        """Arguments of the evaluation environment."""
        own = _split(self.eval_split)
        if self.separation == "divided":
            own["task_part"] = PARTS[1]
        if self.separation == "evaluation without training":
            own["task_part"] = {"unseen_by": _split(self.split), "kind": TASKS}
        return {**self.env_kwargs, **self.eval_env_kwargs, **own}


SCALE_REWARDS: Final = {
    "group_centered": "none",
    "group_normalized": "group",
    "batch_scaled": "batch",
}
"""The advantage estimators that TRL has, with the value of its `scale_rewards`."""


def _read(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("{", "[", "null")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value  # refused where no text is allowed
    return value


def _split(name: str | None) -> dict[str, Any]:
    return {"split": name} if name else {}


TINY_DEFAULTS: Final[Mapping[str, Any]] = {
    # At the end of the supervised steps the model must be able to copy a name from the question
    # into a condition: sixty steps of reinforcement learning remove the sloppy habits, but no
    # errors of copying. With AdamW and a random initialization of the heads, success depended on
    # the seed.
    "copying": 0.5,
    "demonstrations": 4800,
    "demonstrator": "sloppy",
    # Without failing calls a model does not read errors: after a forced failure it went on in 12 %
    # to 40 % of the episodes, with a tenth of them in all.
    "recoveries": 0.1,
    "sft_steps": 1200,
    "sft_batch": 8,
    "sft_learning_rate": 8e-3,
    "sft_matrix_rate": 2e-2,
    # At twice this rate, the calls of the tiny model become invalid within forty steps.
    "learning_rate": 1.5e-4,
    "max_completion_length": 256,
    "max_new_tokens": 96,
    "eval_tries": 2,
}
_TINY_ELSEWHERE: Final[dict[str, Any]] = {
    # AdamW and a random initialization of the heads, with which these trainings were tuned.
    "copying": 0.0,
    "sft_steps": 600,
    "sft_batch": 16,
    "sft_matrix_rate": None,
    # Transcripts on a real database are three times as long as on "tiny", where the longest rollout
    # of an expert has 178 tokens; here one in a hundred has more than 400.
    "max_completion_length": 512,
    "max_new_tokens": 192,
}
_TINY_WITH_A_NOVICE: Final[dict[str, Any]] = {
    **_TINY_ELSEWHERE,
    "max_new_tokens": 96,
    # A novice tries twenty ways, not three, so good episodes are rare and take more rollouts to
    # find. Its calls copy nothing, so fewer supervised steps are enough, and calls stay valid at
    # twice the learning rate (not at four times). With one operator per turn rollouts are long: the
    # longest of 1,500 had 856 tokens.
    "demonstrations": 4000,
    "sft_steps": 250,
    "steps": 100,
    "prompts": 8,
    "learning_rate": 3e-4,
    "max_completion_length": 1024,
}
_RATES: Final = ("learning_rate", "sft_learning_rate")
_EVALUATIONS: Final = 4  # during reinforcement learning, besides the one before it
_MIN_EVAL_EVERY: Final = 5  # minimum steps between two of these evaluations
_ADAPTER_RATE: Final = 10.0  # factor on the learning rate for adapters, whose output begins at 0


def resolve(env_id: str, **given: Any) -> TrainSettings:
    """Make the settings of a training, with defaults for those that are not given.

    Args:
        env_id: Id of the environment.
        given: Fields of `TrainSettings`. Values may be texts, as on the command line: "null" is
            None, and structured values are JSON.

    Raises:
        ConfigurationError: A value is unknown or out of range; the message names its option.
    """
    for name, kind in {"steps": int, "lora": bool}.items():
        with suppress(KeyError, ValidationError):  # refused below
            given[name] = TypeAdapter[Any](kind).validate_python(given[name])
    values = dict(given)
    for _, defaults in defaults_for(env_id, given):
        values = {**defaults, **values}
    return checked(TrainSettings, {"env_id": env_id, **values})


def defaults_for(env_id: str, given: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The sets of defaults besides those of the fields, with their names; the first one counts.

    Args:
        given: The settings that are given, which decide on the sets.
    """
    sets: list[tuple[str, dict[str, Any]]] = []
    is_tiny, env_kwargs = given.get("model", TINY) == TINY, given.get("env_kwargs")
    if is_tiny:
        if has_novice(env_id):
            sets.append(("default of the tiny model with a novice", _TINY_WITH_A_NOVICE))
        elif isinstance(env_kwargs, dict) and env_kwargs.get("dataset", TINY) != TINY:
            sets.append(("default of the tiny model on other data", _TINY_ELSEWHERE))
        sets.append(("default of the tiny model", dict(TINY_DEFAULTS)))
    else:
        sets.append(("default of pretrained models", {"dtype": "auto"}))
    if given.get("trainer", "trl") == "trl":
        sets.append(("default with TRL", {"advantages": "group_centered"}))
    values = {name: field.default for name, field in TrainSettings.model_fields.items()}
    for _, defaults in reversed(sets):
        values |= defaults
    if given.get("lora") is True:
        has_sft = not is_tiny and given.get("sft_lora") is not False
        rates = {name: _ADAPTER_RATE * values[name] for name in _RATES[: 1 + has_sft]}
        sets.insert(0, ("default of adapters", rates))
    steps = given.get("steps", values["steps"])
    if isinstance(steps, int) and steps >= 2 * _MIN_EVAL_EVERY:
        every = max(_MIN_EVAL_EVERY, -(-steps // _EVALUATIONS))
        sets.append(("default for this number of steps", {"eval_every": every}))
    return sets


def read_settings(saved: Any) -> TrainSettings:
    """Read the settings of a run from the `settings` of its `config.json`.

    Raises:
        ConfigurationError: They are missing, or are those of another version.
    """
    if not isinstance(saved, dict):
        raise ConfigurationError(
            "config.json has no `settings`: only a run that `toolgym train` began can be resumed."
        )
    return checked(TrainSettings, saved)


def checked(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Make settings from plain values.

    Raises:
        ConfigurationError: A value is unknown or out of range, or two do not go together; the
            message names the option of each, and fields with a similar name.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as problem:
        problems = "; ".join(_problem(kind, error) for error in problem.errors())
        raise ConfigurationError(f"these settings are refused: {problems}.") from None


def _problem(kind: type[BaseModel], error: Any) -> str:
    if not error["loc"]:
        return str(error["msg"]).removeprefix("Value error, ")
    name, *inside = map(str, error["loc"])
    if error["type"] == "extra_forbidden" and not inside:
        near = nearest(name, kind.model_fields)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"there is no setting {name!r}{hint}"
    place = ".".join([option_of(name), *inside])
    return f"{place}: {error['msg'].removeprefix('Value error, ')}"


def option_of(name: str) -> str:
    """The option of `toolgym train` that sets a field."""
    return "--no-preflight" if name == "preflight" else f"--{name.replace('_', '-')}"
