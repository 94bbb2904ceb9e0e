"""The settings of a training run, with their meanings and the reasons for their defaults.

One pydantic model has all settings, so that `config.json` of a run folder is complete and
`--resume` needs nothing else. The defaults for the tiny model were found by trial for a run of
minutes on two CPU cores; others apply if rollouts are longer or a novice plays the demonstrations.
Those for pretrained chat models are conservative. `resolve` fills in the defaults, so the saved
settings are those of the run. Names that begin with `sft_` are settings of the supervised steps on
demonstrations, the warm-up before reinforcement learning.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from adapters.training.models.demonstrations import has_novice
from toolgym.errors import ConfigurationError
from toolgym.unseen import PARTS, TASKS

TINY: Final = "tiny"
Control = Literal["shuffled-rewards"]
Kept = Literal["last", "best"]
Separation = Literal["evaluation without training", "training without evaluation", "divided"]


WITHOUT_OPTION: Final = (
    *("copying", "demonstrator", "dtype", "lora_alpha", "lora_rank", "lora_targets", "sft_lora"),
    *("max_new_tokens", "sft_batch", "sft_learning_rate", "sft_matrix_rate"),
    *("sft_stop_loss", "sft_tokens_per_pass", "sft_alike", "sft_eval_every"),
    *("sft_patience", "sft_checkpoint", "selection_tasks", "patience", "checkpoint"),
)
"""Settings that `toolgym train` has no option for; `--set NAME=VALUE` reaches them."""


class TrainSettings(BaseModel):
    """The settings of `toolgym train`, with defaults filled in."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    env_id: str
    """Id of the environment."""
    model: str = TINY
    """`tiny`, or the path or hub id of a chat model."""
    chat_template: str | None = None
    """Chat template instead of the model's own: `hermes`, `chatml`, or the path of a Jinja file,
    whose text is kept in the run folder. See `adapters.training.models.chat_templates`."""
    trainer: str = "trl"
    """The trainer of the reinforcement learning: `trl` or `reference`."""
    trainer_options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the trainer's config; they override those derived from these settings."""
    lora: bool = False
    """Whether reinforcement learning trains a LoRA adapter, which is merged at the end."""
    lora_rank: int = Field(16, ge=1)
    """Rank of the adapter."""
    lora_alpha: int = Field(32, ge=1)
    """Scale of the adapter: its output is multiplied by `lora_alpha / lora_rank`."""
    lora_targets: str | tuple[str, ...] = "all-linear"
    """The layers that get an adapter: `all-linear`, or names such as `["q_proj", "v_proj"]`."""
    sft_lora: bool = True
    """Whether with `lora` the supervised steps train an adapter too, which the reference trainer
    supports for pretrained models. False trains all weights in these steps, which learns more from
    the same transcripts and takes more memory; reinforcement learning still trains an adapter."""
    dtype: Literal["auto", "float32", "bfloat16"] = "float32"
    """Data type of the computation; for the tiny model, after its supervised steps only. Since
    bfloat16 rounds small updates away, the supervised steps and the reference trainer keep float32
    master weights; TRL supports bfloat16 with adapters only, whose weights stay in float32. `auto`
    is bfloat16 if the machine has instructions for it, else float32; the choice is saved."""
    vllm: Literal["colocate", "server"] | None = None
    """Generate rollouts with vLLM, on the training GPU (`colocate`) or on a separate server
    (`server`); null: without vLLM."""
    env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment except the split: data set, step limit, parsing, rewards."""
    evaluation_env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment in evaluations, which override those of `env_kwargs`, such as
    the rule of judging `{"match": "spider"}`. The rewards of the training do not change."""
    split: str | None = "train"
    """Split of demonstrations and training tasks; null for an environment without splits."""
    evaluation_split: str | None = "dev"
    """Split of the evaluations' tasks; null for an environment without splits."""
    separation: Separation | None = None
    """How training and evaluation were separated if they shared tasks; null if they share none, or
    cannot be separated. See `adapters.training.runs.evaluations.separated`."""
    seed: int = Field(0, ge=0)
    """Random seed of the run."""

    copying: float = Field(0.0, ge=0)
    """Initial strength of copying from the context in the attention heads of the tiny model."""
    demonstrations: int = Field(ge=1)
    """Number of demonstrations for the supervised steps."""
    demonstrator: Literal["sloppy", "expert"]
    """Policy that plays the demonstrations. `sloppy` shows good and bad habits, from which the tiny
    model learns to choose; `expert` is for pretrained models, which have habits already."""
    sft_steps: int = Field(ge=0)
    """Supervised optimizer steps on demonstrations; 0 skips them."""
    sft_batch: int = Field(ge=1)
    """Demonstrations per supervised step."""
    sft_learning_rate: float = Field(gt=0)
    """Peak learning rate of the supervised steps."""
    sft_matrix_rate: float | None = Field(None, gt=0)
    """Peak learning rate of Muon for the weight matrices; null: AdamW updates all weights."""

    sft_stop_loss: float | None = Field(None, gt=0)
    """The supervised steps end early when the mean loss of twenty steps is below this; null: all
    steps are made."""
    sft_tokens_per_pass: int | None = Field(None, ge=1)
    """Maximum tokens of a forward and backward pass of a supervised step, padding included; null:
    8,192."""
    sft_alike: int = Field(1, ge=1)
    """Number of demonstrations in a row whose prompts share a prefix, such as those about one
    database: on a CPU the prefix is computed once, but a batch has fewer databases."""

    steps: int = Field(ge=0)
    """Steps of reinforcement learning; 0: supervised steps only, with one evaluation at the end."""
    group_size: int = Field(ge=1)
    """Rollouts per task, which are compared with each other. In small groups all rollouts often
    have the same outcome, which gives no learning signal. 1 is for the reference trainer with an
    estimator that compares tasks."""
    prompts: int = Field(ge=1)
    """Tasks per step."""
    learning_rate: float = Field(gt=0)
    """Learning rate of reinforcement learning, constant. At twice the default, the calls of the
    tiny model become invalid within forty steps."""
    temperature: float = Field(gt=0)
    """Sampling temperature of rollouts."""
    max_completion_length: int = Field(ge=16)
    """Maximum tokens of a rollout, including tool results."""
    save_every: int = Field(ge=1)
    """Steps between checkpoints."""
    control: Control | None = None
    """Control run: `shuffled-rewards` shuffles rewards among rollouts. Nothing can be learned from
    them, so an improvement has another cause."""

    preflight: bool = True
    """Whether to check after the supervised steps that the model can learn, and to train only if it
    can."""
    report_to: tuple[str, ...] = ()
    """Dashboards: `tensorboard`, `wandb`, `trackio`."""
    eval_tasks: int = Field(192, ge=1)
    """Tasks per evaluation; an evaluation on unseen items has a quarter of them."""
    eval_tries: int = Field(1, ge=0)
    """Tries per task in the evaluation that samples as training does; 0: no such evaluation."""
    max_new_tokens: int = Field(ge=1)
    """Maximum tokens of a turn in evaluations."""
    eval_every: int = Field(0, ge=0)
    """Steps of reinforcement learning between evaluations on selection tasks, which are neither
    trained on nor part of the evaluations before and after; 0: none. Default: a quarter of the
    steps, but at least 5; none in runs of fewer than 10 steps or with too few tasks. The guards
    compare the results with the best of the run. See `adapters.training.runs.selection`."""
    sft_eval_every: int = Field(0, ge=0)
    """Supervised steps between such evaluations; 0: none."""
    selection_tasks: int = Field(64, ge=1)
    """Tasks per evaluation on selection tasks, played greedily; at most a third of those available
    are used."""
    patience: int | None = Field(None, ge=1)
    """Early stopping: the number of evaluations in a row without a new best accuracy after which
    reinforcement learning ends; null: no early stopping."""
    sft_patience: int | None = Field(None, ge=1)
    """The same for the supervised steps."""
    checkpoint: Kept = "last"
    """The final weights: the `last`, or the `best` by evaluations on selection tasks."""
    sft_checkpoint: Kept = "last"
    """The same for the supervised steps: the weights with which reinforcement learning begins."""

    @field_validator("chat_template")
    @classmethod
    def _check_chat_template(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is not None and info.data.get("model") == TINY:
            raise ValueError("the tiny model has a template of its own; this is for --model")
        return name

    @field_validator("group_size")
    @classmethod
    def _check_group_size(cls, size: int, info: ValidationInfo) -> int:
        if size < 2 and info.data.get("trainer") != "reference":
            raise ValueError("must be at least 2; groups of one are for --trainer reference")
        return size

    @model_validator(mode="after")
    def _check_dtype(self) -> TrainSettings:
        if self.dtype == "bfloat16" and (reason := self.needs_float32):
            raise ValueError(reason)
        return self

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

    @model_validator(mode="after")
    def _check_evaluations(self) -> TrainSettings:
        if not self.steps and not self.sft_steps:
            raise ValueError("nothing is learned in 0 supervised steps and 0 of GRPO: set steps")
        if not self.steps and self.eval_every:
            raise ValueError("eval_every counts steps of GRPO, and there are none: set steps")
        for every, patience, kept in (
            ("eval_every", "patience", "checkpoint"),
            ("sft_eval_every", "sft_patience", "sft_checkpoint"),
        ):
            if getattr(self, every):
                continue
            if getattr(self, patience) is not None or getattr(self, kept) == "best":
                option = patience if getattr(self, patience) is not None else f"{kept}=best"
                raise ValueError(f"{option} needs evaluations, and {every} is 0: set {every}")
        if reserved := self.evaluation_env_kwargs.keys() & {"split", "task_part"}:
            raise ValueError(f"{min(reserved)} of evaluations is set by --split, not --eval-set")
        return self

    @property
    def selects(self) -> bool:
        """Whether there are evaluations during the training."""
        return bool(self.eval_every or self.sft_eval_every)

    @property
    def has_adapter_from_start(self) -> bool:
        """Whether the warm-up trains an adapter too, which is merged at its end.

        The warm-up trains all weights with TRL, and of the tiny model, which is not pretrained.
        """
        chosen = self.lora and self.sft_lora
        return chosen and self.trainer == "reference" and not self.is_tiny

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
            unseen_by = _split(self.evaluation_split)
            own["task_part"] = {"unseen_by": unseen_by, "kind": TASKS}
        return {**self.env_kwargs, **own}

    @property
    def evaluation_kwargs(self) -> dict[str, Any]:
        """Arguments of the evaluation environment."""
        own = _split(self.evaluation_split)
        if self.separation == "divided":
            own["task_part"] = PARTS[1]
        if self.separation == "evaluation without training":
            own["task_part"] = {"unseen_by": _split(self.split), "kind": TASKS}
        return {**self.env_kwargs, **self.evaluation_env_kwargs, **own}


def _split(name: str | None) -> dict[str, Any]:
    return {"split": name} if name else {}


_TINY_DEFAULTS: Final[dict[str, Any]] = {
    # At the end of the warm-up the model must be able to copy a name from the question into a
    # condition: sixty steps of reinforcement learning remove the sloppy habits, but no errors of
    # copying. With AdamW and a random initialization of the heads, success depended on the seed.
    "copying": 0.5,
    "demonstrations": 4800,
    "demonstrator": "sloppy",
    "sft_steps": 1200,
    "sft_batch": 8,
    "sft_learning_rate": 8e-3,
    "sft_matrix_rate": 2e-2,
    "steps": 60,
    "group_size": 8,
    "prompts": 4,
    "learning_rate": 1.5e-4,
    "temperature": 1.0,
    "max_completion_length": 256,
    "max_new_tokens": 96,
    "eval_tries": 2,
    "save_every": 20,
}
_ADAMW_WARM_UP: Final[dict[str, Any]] = {
    # AdamW and a random initialization of the heads, with which these trainings were tuned.
    "copying": 0.0,
    "sft_steps": 600,
    "sft_batch": 16,
    "sft_matrix_rate": None,
}
_TINY_ON_OTHER_DATA: Final[dict[str, Any]] = {
    **_ADAMW_WARM_UP,
    # Transcripts on a real database are three times as long as on "tiny", where the longest rollout
    # of an expert has 178 tokens; here one in a hundred has more than 400.
    "max_completion_length": 512,
    "max_new_tokens": 192,
}
_TINY_WITH_A_NOVICE: Final[dict[str, Any]] = {
    **_ADAMW_WARM_UP,
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
_PRETRAINED_DEFAULTS: Final[dict[str, Any]] = {
    "demonstrations": 256,
    "demonstrator": "expert",
    "sft_steps": 32,
    "sft_batch": 4,
    "sft_learning_rate": 1e-5,
    "steps": 60,
    "group_size": 8,
    "prompts": 4,
    "learning_rate": 1e-6,
    "temperature": 1.0,
    "max_completion_length": 2048,
    "max_new_tokens": 512,
    "save_every": 20,
}
_PRETRAINED_BY_REFERENCE: Final[dict[str, Any]] = {
    # Such models are pretrained in half precision, which halves the memory of activations. On
    # processors without instructions for it, PyTorch multiplies fifty times as slowly.
    "dtype": "auto",
    "sft_tokens_per_pass": 8192,
}
_EVALUATIONS: Final = 4  # during reinforcement learning, besides the one before it
_MIN_EVAL_EVERY: Final = 5  # minimum steps between two of these evaluations
_ADAPTER_RATE: Final = 10.0  # factor on the learning rate for adapters, whose output begins at 0


def resolve(env_id: str, *, model: str | None = None, **given: Any) -> TrainSettings:
    """Fill in the defaults of settings that are not given.

    Args:
        env_id: Id of the environment.
        model: A path or hub id; None: the tiny model.
        given: Fields of `TrainSettings`; None: not given.

    Raises:
        ConfigurationError: A value is out of range; the message names option and range.
    """
    defaults = {
        name: value
        for _, values in defaults_for(env_id, model=model, **given)
        for name, value in values.items()
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    return _validate({**defaults, "env_id": env_id, "model": model or TINY, **chosen})


def defaults_for(
    env_id: str, *, model: str | None = None, **given: Any
) -> list[tuple[str, dict[str, Any]]]:
    """The sets of defaults that apply to a run, with their names; later ones override earlier."""
    if model is not None:
        sets = [("default for pretrained models", _PRETRAINED_DEFAULTS)]
        if given.get("trainer") == "reference":
            sets.append(("default of the reference trainer", _PRETRAINED_BY_REFERENCE))
    else:
        sets = [("default for the tiny model", _TINY_DEFAULTS)]
        if (given.get("env_kwargs") or {}).get("dataset", TINY) != TINY:
            sets.append(("default for the tiny model on other data", _TINY_ON_OTHER_DATA))
        if has_novice(env_id):
            sets.append(("default where a novice demonstrates", _TINY_WITH_A_NOVICE))
    if given.get("lora"):
        names = ["learning_rate"]
        warms_up_an_adapter = given.get("sft_lora") is not False
        if given.get("trainer") == "reference" and model is not None and warms_up_an_adapter:
            names.append("sft_learning_rate")
        merged = {name: value for _, values in sets for name, value in values.items()}
        rates = {name: _ADAPTER_RATE * merged[name] for name in names}
        sets.append(("default for adapters", rates))
    merged = {name: value for _, values in sets for name, value in values.items()}
    steps = merged["steps"] if given.get("steps") is None else given["steps"]
    if isinstance(steps, int) and steps >= 2 * _MIN_EVAL_EVERY:
        every = max(_MIN_EVAL_EVERY, math.ceil(steps / _EVALUATIONS))
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
    return _validate(saved)


def _validate(values: dict[str, Any]) -> TrainSettings:
    try:
        return TrainSettings.model_validate(values)
    except ValidationError as problem:
        problems = "; ".join(
            f"{_option(error['loc'])}: {error['msg'].removeprefix('Value error, ')}"
            for error in problem.errors()
        )
        raise ConfigurationError(f"these settings are refused: {problems}.") from None


def _option(location: tuple[int | str, ...]) -> str:
    """The option of `toolgym train` for the location of a validation error."""
    if not location:
        return "together"
    name = str(location[0])
    if name in WITHOUT_OPTION:
        return f"--set {name}"
    return "--demos" if name == "demonstrations" else f"--{name.replace('_', '-')}"
