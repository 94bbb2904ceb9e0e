"""The settings of a training run, for the command line, YAML files, Python and run folders.

`GrpoSettings` contains the settings of reinforcement learning, which both trainers use.
`TrainSettings` adds the model, the environment, supervised training and evaluations. `toolgym
train` derives its options from the fields: the docstring of a field is the help text of its option.
`config.json` of a run folder holds all settings.

The field defaults are for pretrained chat models. `resolve` fills in other defaults for the tiny
model, for adapters and for the number of steps. The defaults of the tiny model were determined by
experiment, for runs that take minutes on two CPU cores.
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
from toolgym.errors import ConfigurationError, field_problem
from toolgym.unseen import PARTS, TASKS

TINY: Final = "tiny"
Settings = TypeVar("Settings", bound=BaseModel)
Separation = Literal["evaluation without training", "training without evaluation", "divided"]


class GrpoSettings(BaseModel):
    """The settings of reinforcement learning with GRPO.

    There is no `top_p` or `top_k`: tokens are sampled from the full distribution, so the recorded
    log-probabilities are those of the policy.

    Raises:
        ValidationError: If a setting is unknown or out of range, or two settings contradict each
            other.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    steps: int = Field(60, ge=0, le=10**6)
    """Optimizer steps of GRPO, including skipped updates. 0 trains on demonstrations only."""
    group_size: int = Field(8, ge=1)
    """Rollouts per task. A group whose rollouts all have the same outcome gives no learning signal;
    this is frequent in small groups."""
    prompts: int = Field(4, ge=1)
    """Tasks per step."""
    max_draws: float | None = Field(3.0, ge=1)
    """Dynamic sampling: replace groups whose rollouts all have the same outcome, and generate at
    most `max_draws` * `prompts` groups per step. null: no dynamic sampling."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature of rollouts."""
    max_completion_length: int = Field(2048, ge=2)
    """Maximum number of tokens of a rollout after the prompt, including tool results."""
    learn_from_unfinished: bool = False
    """Include rollouts that reached the token limit in the loss, with the reward of an episode
    without an answer."""
    workers: int = Field(8, ge=1)
    """Threads that run the tools of rollouts in parallel."""
    at_once: int | None = Field(None, ge=1)
    """Maximum number of rollouts that the reference trainer generates at once. null: 64 on a CPU;
    on CUDA, as many as fit into 40 % of the free memory, up to 256."""

    advantages: Literal[
        "group_normalized",
        "group_centered",
        "leave_one_out",
        "batch_scaled",
        "batch_normalized",
        "batch_normalized_baseline",
        "turn_normalized",
    ] = "batch_normalized_baseline"
    """Advantage estimator. TRL supports group_centered, group_normalized and batch_scaled."""
    advantage_limit: float | None = Field(5.0, gt=0)
    """Limit of the absolute advantage in the reference trainer. null: no clipping."""
    loss: Literal["grpo", "dapo", "dr_grpo", "gspo", "cispo"] = "dapo"
    """Policy loss."""
    beta: float = Field(0.01, ge=0)
    """KL coefficient. 0: no KL penalty and no reference model."""
    epsilon_low: float | None = Field(None, ge=0, le=1)
    """Clip importance ratios below 1 - epsilon_low. null: the value in the paper that introduced
    the chosen loss."""
    epsilon_high: float | None = Field(None, ge=0)
    """Clip importance ratios above 1 + epsilon_high. null: the value in the paper that introduced
    the chosen loss."""
    entropy_bonus: float = Field(0.0, ge=0)
    """Coefficient of the mean token entropy, in nats."""
    updates_per_batch: int = Field(1, ge=1)
    """Updates per batch of rollouts."""

    learning_rate: float = Field(1e-6, gt=0)
    """Peak learning rate of GRPO."""
    lr_warmup_steps: int = Field(0, ge=0)
    """Number of warm-up steps, in which the learning rate rises linearly from 0 to its peak."""
    lr_decay: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate schedule after the warm-up. `linear` and `cosine` decay to 0."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Betas of AdamW (default: "[0.9, 0.98]")."""
    weight_decay: float = Field(0.0, ge=0)
    """Weight decay of AdamW, for all weights."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Maximum global norm of the gradient."""

    dtype: Literal["auto", "float32", "bfloat16"] = "float32"
    """Data type of the computation; the optimizer keeps float32 weights. `auto` is
    bfloat16 if the machine supports it, but float32 with TRL without LoRA."""
    tokens_per_pass: int = Field(8192, ge=1)
    """Maximum number of tokens in a forward and backward pass, including padding, in supervised
    steps and in the reference trainer. Gradients are accumulated."""
    gradient_checkpointing: bool | None = None
    """Recompute activations in the backward pass, which takes less memory and about a third more
    time. Default: on with TRL on a GPU, otherwise off."""

    guards: GuardConfig = GuardConfig()
    """Settings of the guards, such as {"only_warn": true}."""
    save_every: int = Field(20, ge=1)
    """Steps between checkpoints."""
    keep: int = Field(2, ge=1)
    """Number of latest checkpoints to keep. The latest healthy checkpoint is always kept."""
    control: Literal["shuffled-rewards"] | None = None
    """Control run: shuffle the rewards among rollouts, so that they carry no learning signal."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Random seed of the run."""

    @model_validator(mode="before")
    @classmethod
    def _read_texts(cls, values: Any) -> Any:
        """Read null and JSON from the strings of a command line; pydantic reads numbers."""
        return {name: _read(value) for name, value in dict(values).items()}

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        if self.advantages == "turn_normalized" and self.control is not None:
            raise ValueError(
                f"control={self.control!r} shuffles the rewards of rollouts, but turn_normalized"
                " uses rewards of turns; set other advantages"
            )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be at least 0 and below 1, got {self.betas}")
        if self.group_size == 1 and (
            self.advantages != "batch_normalized" or self.max_draws is not None or self.prompts < 2
        ):
            raise ValueError(
                "group_size=1 needs advantages=batch_normalized, max_draws=null and prompts of at"
                " least 2, since a group of one has no variance; otherwise set group_size=8"
            )
        return self


class TrainSettings(GrpoSettings):
    """The settings of `toolgym train`, with defaults filled in."""

    env_id: str
    """Environment id."""
    env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment except the split, such as data set, step limit and rewards."""
    split: str | None = "train"
    """Split to train on."""
    eval_split: str | None = "dev"
    """Split for the evaluations. Tasks that are also used for training are left out."""
    eval_env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment in evaluations only, such as {"match": "spider"}. They override
    those of `env_kwargs`."""
    separation: Separation | None = None
    """How training and evaluation tasks were separated. null: they have no tasks in common, or
    cannot be separated. See `adapters.training.runs.evaluations.separated`."""

    model: str = TINY
    """Chat model to train: a folder, a hub id, a name in `toolgym models list`, or `tiny`, a new
    model with half a million parameters."""
    chat_template: str | None = None
    """Chat template that replaces the model's own template: `hermes`, which works with any model,
    or a Jinja file. Needed if the model has no template, or one without tools."""
    trainer: Literal["trl", "reference"] = "trl"
    """Trainer to use for GRPO."""
    lora: bool = False
    """Train a LoRA adapter and merge it into the model at the end."""
    lora_rank: int = Field(16, ge=1)
    """Rank of the LoRA adapter."""
    lora_alpha: int = Field(32, ge=1)
    """Scale of the LoRA adapter, whose output is multiplied by lora_alpha / lora_rank."""
    lora_targets: str | tuple[str, ...] = "all-linear"
    """Layers with a LoRA adapter: all-linear, or names such as ["q_proj", "v_proj"]."""
    vllm: Literal["colocate", "server"] | None = None
    """With TRL, generate rollouts with vLLM, on the training GPU (colocate) or on a server."""
    trl: dict[str, Any] = Field(default_factory=dict)
    """Other arguments of TRL's `GRPOConfig`, such as {"loss_type": "bnpo"}."""

    demonstrations: int = Field(256, ge=1)
    """Number of demonstrations."""
    demonstrator: Literal["sloppy", "expert"] = "expert"
    """Policy of the demonstrations: `expert`, or `sloppy`, which also makes mistakes."""
    recoveries: float = Field(0.0, ge=0, le=1)
    """Fraction of demonstrated calls that are preceded by a failed call and its error message.
    Failed calls are excluded from the loss."""
    sft_steps: int = Field(32, ge=0)
    """Supervised steps on demonstrations before GRPO; 0 skips them."""
    sft_batch: int = Field(4, ge=1)
    """Demonstrations per supervised step."""
    sft_learning_rate: float = Field(1e-5, gt=0)
    """Peak learning rate of the supervised steps."""
    sft_matrix_rate: float | None = Field(None, gt=0)
    """Peak learning rate of Muon for weight matrices in supervised steps. null: AdamW updates all
    weights."""
    sft_lora: bool = True
    """With `lora`, also train an adapter in the supervised steps (default). With --no-sft-lora, the
    supervised steps train all weights, which takes more memory."""
    sft_alike: int = Field(1, ge=1)
    """Number of consecutive demonstrations with the same prompt prefix, for example because they
    use the same database. Larger values save time on a CPU, but make batches less diverse."""
    copying: float = Field(0.0, ge=0)
    """Initial strength of the tiny model's attention heads that copy tokens from the context."""

    preflight: bool = True
    """After the supervised steps, check whether the model can learn with GRPO, and stop if it
    cannot (default)."""
    eval_tasks: int = Field(192, ge=1)
    """Number of tasks in the evaluations before and after GRPO. The evaluation on unseen databases
    uses a quarter of this number."""
    eval_tries: int = Field(1, ge=0)
    """Sampled attempts per task in evaluations. 0: greedy decoding only."""
    max_new_tokens: int = Field(512, ge=1)
    """Maximum number of tokens per turn in evaluations."""
    eval_every: int = Field(0, ge=0)
    """Number of GRPO steps between evaluations on selection tasks, which are used neither for
    training nor in other evaluations. 0: no such evaluations. Default: a quarter of the steps, at
    least 5; 0 for fewer than 10 steps."""
    selection_tasks: int = Field(64, ge=1)
    """Number of selection tasks, at most a third of the available tasks. They are evaluated with
    greedy decoding."""
    patience: int | None = Field(None, ge=1)
    """Stop early after this number of consecutive evaluations on selection tasks without an
    improvement. null: no early stopping."""
    checkpoint: Literal["last", "best"] = "last"
    """Weights of the final checkpoint: those of the last step, or those with the best accuracy on
    selection tasks."""
    report_to: tuple[str, ...] = ()
    """Dashboard to log to: tensorboard, wandb or trackio; may be repeated."""

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
        """Yield whether each refused combination of settings is present, and what to do."""
        for name in ("at_once", "advantage_limit") if self.trainer == "trl" else ("vllm", "trl"):
            other = "reference" if self.trainer == "trl" else "trl"
            default = type(self).model_fields[name].get_default(call_default_factory=True)
            is_set = getattr(self, name) != default
            yield is_set, f"{option_of(name)} needs --trainer {other}"
        names = tuple(SCALE_REWARDS)
        yield (
            self.trainer == "trl" and self.advantages not in names,
            f"--trainer trl supports the advantages {', '.join(names)}; others need --trainer"
            " reference",
        )
        yield (
            self.is_tiny and self.chat_template is not None,
            "the tiny model has its own chat template; leave out --chat-template, or set --model",
        )
        yield self.dtype == "bfloat16" and bool(self.needs_float32), self.needs_float32
        yield (
            not self.steps and not self.sft_steps,
            "there is nothing to train with --sft-steps 0 and --steps 0; set one of them",
        )
        yield (
            bool(self.eval_every) and not self.steps,
            "--eval-every needs GRPO steps; set --steps",
        )
        for name, is_set in (
            ("--patience", self.patience is not None),
            ("--checkpoint best", self.checkpoint == "best"),
        ):
            yield (
                is_set and not self.eval_every,
                f"{name} needs evaluations during GRPO; set --eval-every",
            )
        for name in ("split", "task_part", "env_id"):
            is_set = name in self.env_kwargs or name in self.eval_env_kwargs
            yield (
                is_set,
                f"{name} cannot be set by --set or --eval-set; use --split and --eval-split",
            )

    @property
    def needs_float32(self) -> str:
        """The reason why training cannot use bfloat16, with advice; empty if it can."""
        if self.trainer == "trl" and not self.lora:
            return (
                "with --trainer trl and without --lora, weights in bfloat16 lose small updates; add"
                " --lora, or set --dtype float32 or --trainer reference"
            )
        if self.sft_matrix_rate is not None and not self.is_tiny:
            return "Muon needs float32; leave out --sft-matrix-rate, or set --dtype float32"
        return ""

    @property
    def has_adapter_from_start(self) -> bool:
        """Whether the supervised steps also train an adapter, which is merged afterwards.

        With the tiny model, the supervised steps train all weights, since the model is not
        pretrained.
        """
        return self.lora and self.sft_lora and not self.is_tiny

    @property
    def is_tiny(self) -> bool:
        """Whether the model is the tiny model, which toolgym builds."""
        return self.model == TINY

    @property
    def training_kwargs(self) -> dict[str, Any]:
        """Arguments of the environment in training."""
        own = _split(self.split)
        if self.separation == "divided":
            own["task_part"] = PARTS[0]
        if self.separation == "training without evaluation":
            own["task_part"] = {"unseen_by": _split(self.eval_split), "kind": TASKS}
        return {**self.env_kwargs, **own}

    @property
    def evaluation_kwargs(self) -> dict[str, Any]:
        """Arguments of the environment in evaluations."""
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
"""The advantage estimators of TRL, with the value of its `scale_rewards`."""


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
    # After the supervised steps the model must be able to copy a name from the question into a
    # condition. Sixty steps of GRPO remove bad habits, but not copying errors. With AdamW and
    # randomly initialized heads, success depended on the seed.
    "copying": 0.5,
    "demonstrations": 4800,
    "demonstrator": "sloppy",
    # Without failed calls in the demonstrations, the model continued after a forced failure in
    # 12 % to 40 % of the episodes; with 10 % of failed calls, in all of them.
    "recoveries": 0.1,
    "sft_steps": 1200,
    "sft_batch": 8,
    "sft_learning_rate": 8e-3,
    "sft_matrix_rate": 2e-2,
    # At twice this rate, calls of the tiny model become invalid within forty steps.
    "learning_rate": 1.5e-4,
    "max_completion_length": 256,
    "max_new_tokens": 96,
    "eval_tries": 2,
}
_TINY_ELSEWHERE: Final[dict[str, Any]] = {
    # These trainings were tuned with AdamW and randomly initialized heads.
    "copying": 0.0,
    "sft_steps": 600,
    "sft_batch": 16,
    "sft_matrix_rate": None,
    # Rollouts on a real database are three times as long as on "tiny": 1 % have more than 400
    # tokens. On "tiny" the longest rollout of the expert has 178 tokens.
    "max_completion_length": 512,
    "max_new_tokens": 192,
}
_TINY_WITH_A_NOVICE: Final[dict[str, Any]] = {
    **_TINY_ELSEWHERE,
    "max_new_tokens": 96,
    # A novice has twenty variants, not three: good episodes are rare, so more rollouts are needed.
    # Calls copy nothing, so fewer supervised steps are enough, and calls stay valid at twice the
    # learning rate, but not at four times. With one operator per turn rollouts are long: the
    # longest of 1,500 had 856 tokens.
    "demonstrations": 4000,
    "sft_steps": 250,
    "steps": 100,
    "prompts": 8,
    "learning_rate": 3e-4,
    "max_completion_length": 1024,
}
_RATES: Final = ("learning_rate", "sft_learning_rate")
_EVALUATIONS: Final = 4  # during GRPO, without the one before it
_MIN_EVAL_EVERY: Final = 5  # minimum steps between two of these evaluations
_ADAPTER_RATE: Final = 10.0  # factor of the learning rate for adapters


def resolve(env_id: str, **given: Any) -> TrainSettings:
    """Return the settings of a training run, with defaults for those that are not given.

    Args:
        env_id: Environment id.
        given: Fields of `TrainSettings`. Values may be strings, as on the command line: "null" is
            None, and structured values are JSON.

    Raises:
        ConfigurationError: If a setting is unknown or out of range. The message names the option
            concerned.
    """
    for name, kind in {"steps": int, "lora": bool}.items():
        with suppress(KeyError, ValidationError):  # refused below
            given[name] = TypeAdapter[Any](kind).validate_python(given[name])
    values = dict(given)
    for _, defaults in defaults_for(env_id, given):
        values = {**defaults, **values}
    return checked(TrainSettings, {"env_id": env_id, **values})


def defaults_for(env_id: str, given: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the sets of defaults that override the field defaults, highest priority first.

    Args:
        env_id: Environment id.
        given: Settings that are given explicitly, on which the sets depend.

    Returns:
        The name and the values of each set.
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
        ConfigurationError: If the settings are missing or belong to another version.
    """
    if not isinstance(saved, dict):
        raise ConfigurationError(
            "config.json has no `settings`; only runs of `toolgym train` can be resumed."
        )
    return checked(TrainSettings, saved)


def checked(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Build the settings from plain values.

    Raises:
        ConfigurationError: If a setting is unknown or out of range, or two settings contradict each
            other. The message contains the options concerned and settings with similar names.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as problem:
        problems = "; ".join(_problem(kind, error) for error in problem.errors())
        end = "" if problems.endswith("?") else "."
        raise ConfigurationError(f"invalid settings: {problems}{end}") from None


def _problem(kind: type[BaseModel], error: Any) -> str:
    if not error["loc"]:
        return field_problem("", error["msg"])
    name, *inside = map(str, error["loc"])
    if error["type"] == "extra_forbidden" and not inside:
        near = nearest(name, kind.model_fields)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"unknown setting {name!r}{hint}"
    return field_problem(".".join([option_of(name), *inside]), error["msg"])


def option_of(name: str) -> str:
    """Return the option of `toolgym train` that sets a field."""
    return "--no-preflight" if name == "preflight" else f"--{name.replace('_', '-')}"
