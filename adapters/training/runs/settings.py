"""The settings of a training run, each with what it means and why its default is what it is.

One model holds them all, so that a run folder's `config.json` says everything and `--resume` needs
nothing else. Two sets of defaults exist: the tiny model's, found by trial for a run of minutes on
two CPU cores (others where rollouts are longer, or where a novice shows many ways), and a
pretrained chat model's, which are careful. What was not given is filled in by `resolve`, so that
what is saved is what was run.
"""

from __future__ import annotations

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
    *("copying", "demonstrator", "dtype", "lora_alpha", "lora_rank", "lora_targets", "warmup_lora"),
    *("max_new_tokens", "warmup_batch", "warmup_learning_rate", "warmup_matrix_rate"),
    *("warmup_stop_loss", "warmup_tokens_per_pass", "warmup_alike", "warmup_eval_every"),
    *("warmup_patience", "warmup_checkpoint", "selection_tasks", "patience", "checkpoint"),
)
"""Settings that `toolgym train` has no option for; `--set NAME=VALUE` reaches them."""


class TrainSettings(BaseModel):
    """The settings of `toolgym train`, defaults filled in."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    env_id: str
    """The environment."""
    model: str = TINY
    """`tiny`, or the path or hub id of a chat model."""
    chat_template: str | None = None
    """In place of that of `model`: `hermes`, `chatml`, or the path of a Jinja file, whose text is
    kept in the run folder. See `adapters.training.models.chat_templates`."""
    trainer: str = "trl"
    """The trainer of the reinforcement learning: `trl` or `reference`."""
    trainer_options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the trainer's own config, over those that these settings mean."""
    lora: bool = False
    """Reinforcement learning trains an adapter, which is merged into the model at its end."""
    lora_rank: int = Field(16, ge=1)
    """Of the adapter."""
    lora_alpha: int = Field(32, ge=1)
    """What the adapter adds is scaled by this over its rank."""
    lora_targets: str | tuple[str, ...] = "all-linear"
    """The layers that get an adapter: `all-linear`, or names such as `["q_proj", "v_proj"]`."""
    warmup_lora: bool = True
    """Whether with `lora` the imitation before it trains an adapter too, as the reference trainer
    does with pretrained models. False: it trains all weights, which learns more from as many
    transcripts, and takes the memory of that; reinforcement learning alone has an adapter then."""
    dtype: Literal["auto", "float32", "bfloat16"] = "float32"
    """What a pretrained model computes in; the tiny one too, after its warm-up. In half precision
    small updates are rounded away, so with `bfloat16` warm-up and reference trainer keep beside
    each weight what it has beyond that. TRL does not, so there it is for adapters, whose own
    weights stay in float32. `auto` is bfloat16 where the machine has instructions for it, else
    float32; a run keeps which of them that was."""
    vllm: Literal["colocate", "server"] | None = None
    """The generator of rollouts: vLLM on the training GPU, or a server of its own; null: the
    trainer itself."""
    env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """For the environment: data set, step limit, parsing, rewards; without the split."""
    evaluation_env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """For the environment of evaluations only, over `env_kwargs`: another way of judging, such as
    `{"match": "spider"}`; rewards stay as they are."""
    split: str | None = "train"
    """Where demonstrations and training tasks come from; null for an environment without splits."""
    evaluation_split: str | None = "dev"
    """Where the evaluations' tasks come from; null where the environment has no splits."""
    separation: Separation | None = None
    """What was done so that no task of the evaluations is trained on; null where nothing need be
    done, or nothing can be. See `adapters.training.runs.evaluations.separated`."""
    seed: int = Field(0, ge=0)
    """Of all random choices."""

    copying: float = Field(0.0, ge=0)
    """How strongly the heads of the tiny model write back what they read, to begin with."""
    demonstrations: int = Field(ge=1)
    """Transcripts that the warm-up imitates."""
    demonstrator: Literal["sloppy", "expert"]
    """Their player: the tiny model needs habits to choose from, a pretrained one brings them."""
    warmup_steps: int = Field(ge=0)
    """Optimizer steps of imitation; 0 skips it."""
    warmup_batch: int = Field(ge=1)
    """Transcripts per step."""
    warmup_learning_rate: float = Field(gt=0)
    """At its highest."""
    warmup_matrix_rate: float | None = Field(None, gt=0)
    """Of the weight matrices where Muon moves them in imitation, at its highest; null: AdamW moves
    all weights."""

    warmup_stop_loss: float | None = Field(None, gt=0)
    """Imitation ends early once the mean loss of twenty steps is below this; null: after its last
    step."""
    warmup_tokens_per_pass: int | None = Field(None, ge=1)
    """Tokens of one forward and backward pass of imitation, padding included; null: as is
    fastest."""
    warmup_alike: int = Field(1, ge=1)
    """Transcripts of a batch whose prompts begin alike, such as those about one database: what they
    have in common is read once, and fewer databases share a batch."""

    steps: int = Field(ge=0)
    """Steps of reinforcement learning; 0: imitation alone, measured once, at its end."""
    group_size: int = Field(ge=1)
    """Rollouts of one task that are compared with each other. With few of them a group often has
    one outcome only, and teaches nothing. 1 is for the reference trainer, with an estimator that
    compares tasks."""
    prompts: int = Field(ge=1)
    """Tasks per step."""
    learning_rate: float = Field(gt=0)
    """Of the reinforcement learning, constant. Twice the tiny model's default wears down the form
    of its calls within forty steps."""
    temperature: float = Field(gt=0)
    """Of the rollouts."""
    max_completion_length: int = Field(ge=16)
    """Tokens of one rollout, results of the tools included."""
    save_every: int = Field(ge=1)
    """Steps between checkpoints."""
    control: Control | None = None
    """`shuffled-rewards` hands each rollout the reward of another one: that teaches nothing, so
    whatever still improves has another cause."""

    preflight: bool = True
    """After the warm-up look whether the model can learn, and train nothing if it cannot."""
    report_to: tuple[str, ...] = ()
    """Dashboards that show the numbers too: `tensorboard`, `wandb`, `trackio`."""
    eval_tasks: int = Field(192, ge=1)
    """Tasks of an evaluation; of one on unseen items a quarter."""
    eval_tries: int = Field(1, ge=0)
    """Tries at each task in the evaluation that is sampled as in training; 0 leaves it out."""
    max_new_tokens: int = Field(ge=1)
    """Tokens of one turn in evaluations."""
    eval_every: int = Field(0, ge=0)
    """Steps of reinforcement learning between evaluations on selection tasks, which are not trained
    on, and not among those of the evaluations before and after; 0: none. See
    `adapters.training.runs.selection`."""
    warmup_eval_every: int = Field(0, ge=0)
    """The same in steps of imitation."""
    selection_tasks: int = Field(64, ge=1)
    """Tasks of these evaluations, played greedily; a third of those that there are, at most."""
    patience: int | None = Field(None, ge=1)
    """Reinforcement learning ends after so many of these evaluations in a row without a new best
    accuracy; null: after its last step."""
    warmup_patience: int | None = Field(None, ge=1)
    """The same for imitation."""
    checkpoint: Kept = "last"
    """What the training results in: its `last` weights, or the `best` of these evaluations."""
    warmup_checkpoint: Kept = "last"
    """The same for imitation, and what reinforcement learning begins with."""

    @field_validator("chat_template")
    @classmethod
    def _has_a_model_to_speak_for(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is not None and info.data.get("model") == TINY:
            raise ValueError("the tiny model has a template of its own; this is for --model")
        return name

    @field_validator("group_size")
    @classmethod
    def _has_somebody_to_compare_with(cls, size: int, info: ValidationInfo) -> int:
        if size < 2 and info.data.get("trainer") != "reference":
            raise ValueError("2 at least; groups of one are for --trainer reference")
        return size

    @model_validator(mode="after")
    def _loses_no_small_updates(self) -> TrainSettings:
        if self.dtype == "bfloat16" and (reason := self.needs_float32):
            raise ValueError(reason)
        return self

    @property
    def needs_float32(self) -> str:
        """Why this training cannot compute in bfloat16, and what to change; empty if it can."""
        if self.trainer == "trl" and not self.lora:
            return (
                "with --trainer trl bfloat16 rounds small updates away: add --lora, keep float32,"
                " or take --trainer reference"
            )
        if self.warmup_matrix_rate is not None and not self.is_tiny:
            return "Muon moves matrices in float32: leave out warmup_matrix_rate"
        return ""

    @model_validator(mode="after")
    def _has_evaluations_to_go_by(self) -> TrainSettings:
        if not self.steps and not self.warmup_steps:
            raise ValueError("nothing is learnt in 0 steps of imitation and 0 of GRPO: set steps")
        if not self.steps and self.eval_every:
            raise ValueError("eval_every counts steps of GRPO, and there are none: set steps")
        for every, patience, kept in (
            ("eval_every", "patience", "checkpoint"),
            ("warmup_eval_every", "warmup_patience", "warmup_checkpoint"),
        ):
            if getattr(self, every):
                continue
            if getattr(self, patience) is not None or getattr(self, kept) == "best":
                option = patience if getattr(self, patience) is not None else f"{kept}=best"
                raise ValueError(f"{option} goes by evaluations, and {every} is 0: set {every}")
        if reserved := self.evaluation_env_kwargs.keys() & {"split", "task_part"}:
            raise ValueError(f"{min(reserved)} of evaluations is set by --split, not --eval-set")
        return self

    @property
    def selects(self) -> bool:
        """Whether it is measured while it is trained."""
        return bool(self.eval_every or self.warmup_eval_every)

    @property
    def has_adapter_from_start(self) -> bool:
        """Whether the warm-up trains an adapter too, which is merged at its end.

        With TRL it trains all weights, whatever comes after it, as it does of the tiny model, which
        knows nothing before.
        """
        chosen = self.lora and self.warmup_lora
        return chosen and self.trainer == "reference" and not self.is_tiny

    @property
    def is_tiny(self) -> bool:
        """Whether the model is built here."""
        return self.model == TINY

    @property
    def training_kwargs(self) -> dict[str, Any]:
        """For the environment that is trained in."""
        own = _split(self.split)
        if self.separation == "divided":
            own["task_part"] = PARTS[0]
        if self.separation == "training without evaluation":
            unseen_by = _split(self.evaluation_split)
            own["task_part"] = {"unseen_by": unseen_by, "kind": TASKS}
        return {**self.env_kwargs, **own}

    @property
    def evaluation_kwargs(self) -> dict[str, Any]:
        """For the environment that the model is measured in."""
        own = _split(self.evaluation_split)
        if self.separation == "divided":
            own["task_part"] = PARTS[1]
        if self.separation == "evaluation without training":
            own["task_part"] = {"unseen_by": _split(self.split), "kind": TASKS}
        return {**self.env_kwargs, **self.evaluation_env_kwargs, **own}


def _split(name: str | None) -> dict[str, Any]:
    return {"split": name} if name else {}


_TINY_DEFAULTS: Final[dict[str, Any]] = {
    # When the warm-up ends, the model must be able to copy what a question names into a condition:
    # sixty steps of reinforcement learning lose the sloppy habits, and mend no slip of copying.
    # With AdamW and heads at random it could or could not, as the seed would have it.
    "copying": 0.5,
    "demonstrations": 4800,
    "demonstrator": "sloppy",
    "warmup_steps": 1200,
    "warmup_batch": 8,
    "warmup_learning_rate": 8e-3,
    "warmup_matrix_rate": 2e-2,
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
_PLAIN_WARM_UP: Final[dict[str, Any]] = {
    # By AdamW from heads at random, as those trainings were tuned.
    "copying": 0.0,
    "warmup_steps": 600,
    "warmup_batch": 16,
    "warmup_matrix_rate": None,
}
_TINY_ON_OTHER_DATA: Final[dict[str, Any]] = {
    **_PLAIN_WARM_UP,
    # Transcripts on a real database are three times as long as on "tiny", where 178 tokens are the
    # longest rollout of an expert; here one in a hundred has more than 400.
    "max_completion_length": 512,
    "max_new_tokens": 192,
}
_TINY_WITH_A_NOVICE: Final[dict[str, Any]] = {
    **_PLAIN_WARM_UP,
    # A novice tries twenty ways, not three, so what is good is rare and takes more rollouts to
    # find. Its calls copy nothing, so fewer steps of imitation do, and twice the learning rate
    # costs no form (at four times it a model lost that). One operator a turn makes long rollouts:
    # 856 tokens was the longest of 1,500.
    "demonstrations": 4000,
    "warmup_steps": 250,
    "steps": 100,
    "prompts": 8,
    "learning_rate": 3e-4,
    "max_completion_length": 1024,
}
_PRETRAINED_DEFAULTS: Final[dict[str, Any]] = {
    "demonstrations": 256,
    "demonstrator": "expert",
    "warmup_steps": 32,
    "warmup_batch": 4,
    "warmup_learning_rate": 1e-5,
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
    # Half precision is what such models are made in, and takes half of the memory for activations.
    # Where a processor has no instructions for it, PyTorch multiplies it fifty times as slowly.
    "dtype": "auto",
    "warmup_tokens_per_pass": 8192,
}
_ADAPTER_RATE: Final = 10.0  # an adapter that begins at 0 learns at ten times the rate


def resolve(env_id: str, *, model: str | None = None, **given: Any) -> TrainSettings:
    """The settings with defaults for what was not given.

    Args:
        env_id: The environment.
        model: A path or hub id; None means the tiny model.
        given: Fields of `TrainSettings`; None stands for "not given".

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
    """The sets of defaults that hold for a run, each with its name; a later one goes before."""
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
        warms_up_an_adapter = given.get("warmup_lora") is not False
        if given.get("trainer") == "reference" and model is not None and warms_up_an_adapter:
            names.append("warmup_learning_rate")
        merged = {name: value for _, values in sets for name, value in values.items()}
        rates = {name: _ADAPTER_RATE * merged[name] for name in names}
        sets.append(("default for adapters", rates))
    return sets


def read_settings(saved: Any) -> TrainSettings:
    """The settings of a run from its `config.json`.

    Raises:
        ConfigurationError: They are not there, or another version wrote them.
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


def _option(place: tuple[int | str, ...]) -> str:
    """The option of `toolgym train` behind a field."""
    if not place:
        return "together"
    name = str(place[0])
    if name in WITHOUT_OPTION:
        return f"--set {name}"
    return "--demos" if name == "demonstrations" else f"--{name.replace('_', '-')}"
