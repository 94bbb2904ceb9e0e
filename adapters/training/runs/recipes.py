"""Recipes: which model learns what, on which tasks, by which settings, in how much time.

A recipe is no second way to train. It names the tasks, and gives `toolgym train` settings that were
found to fit a machine and a time; whatever it does not name has the default of `TrainSettings`. All
that there is to tune of one stands in this module, each number with its reason.

The tasks are those of a bundled data set and, for its training databases, more that are written for
them. Nothing is written for the databases that it is evaluated on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final

from adapters.training.runs.settings import TrainSettings, resolve
from toolgym.errors import ConfigurationError


@dataclass(frozen=True)
class TaskPlan:
    """The tasks of a recipe.

    Attributes:
        dataset: The data set that gives training and evaluation, by its splits `train` and `dev`.
        more: Tasks that are written for each database of `train`, besides its own; 0: none.
        invented: Databases that are invented for training.
        of_each: Tasks that are written for each of those.
        seed: Chooses among those that can be written.
    """

    dataset: str
    more: int = 0
    invented: int = 0
    of_each: int = 16
    seed: int = 0


@dataclass(frozen=True)
class Recipe:
    """A training from a model's name to a report.

    Attributes:
        name: What it is called.
        model: A model's name, path or hub id.
        env_id: The environment.
        tasks: What is learnt from and measured on.
        minutes: What all of it may take on two cores.
        env_kwargs: For the environment, without the data set.
        settings: Fields of `TrainSettings`, over their defaults.
        answer_tokens: What an answer is assumed to take, until a run has shown it.
        draws: Groups that a step is assumed to draw for each that it learns from.
    """

    name: str
    model: str
    env_id: str
    tasks: TaskPlan
    minutes: int
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    answer_tokens: int = 64
    draws: float = 1.5

    def resolved(self, dataset: str, *, model: str | None = None, **given: Any) -> TrainSettings:
        """The settings of its training.

        Args:
            dataset: The data set, or the folder that holds what was made of it.
            model: In place of its own.
            given: Fields of `TrainSettings` over those of the recipe.

        Raises:
            ConfigurationError: A value is out of range, or there is no such field.
        """
        unknown = next((name for name in given if name not in TrainSettings.model_fields), None)
        if unknown is not None:
            near = get_close_matches(unknown, TrainSettings.model_fields, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"a training has no setting {unknown!r}.{hint}")
        own = {"env_kwargs": {**self.env_kwargs, "dataset": dataset}, **self.settings, **given}
        return resolve(self.env_id, model=model or self.model, **own)


SMOLLM2: Final = Recipe(
    name="smollm2",
    model="smollm2",
    env_id="sqlgym/TextToSQL-v0",
    # 1,698 questions on 11 databases, and 3,840 on invented ones; evaluated on 6 others. Of eleven
    # it learns the tables by heart: with them alone 9 % of held-out tasks were right after 1,280
    # transcripts, with invented ones too 18 % after 880 and 30 % after 2,640.
    tasks=TaskPlan("bundled", invented=240, of_each=16),
    minutes=150,
    # The schema stands in the prompt and the query is written in one go, so an episode is one turn
    # of some 60 tokens behind 550. Judged on several instances of each database: a query that is
    # right by chance on one is not learnt. A turn without a call may be mended twice; with the
    # environment's 15 calls a model that makes none is read and written 15 times in an evaluation.
    # What is told of a database comes first: questions on one begin alike, and are read once.
    env_kwargs={"tools": ["answer"], "schema_first": True, "match": "suite", "step_limit": 3},
    settings={
        "trainer": "reference",
        # Imitation: transcripts about one database come by fours, and what they have in common is
        # read once. At a thirtieth of this rate, the default for pretrained models, so few steps
        # teach the form of a call and little SQL. A pass keeps about 1 MB a token.
        "demonstrations": 2640,
        "warmup_steps": 165,
        "warmup_batch": 16,
        "warmup_alike": 4,
        "warmup_tokens_per_pass": 4096,
        "warmup_learning_rate": 3e-4,
        "warmup_eval_every": 55,
        "warmup_checkpoint": "best",
        "selection_tasks": 96,
        # AdamW in float32: rounding by chance takes six times as long, and 2.4 GB are there.
        "memory": "exact",
        # Reinforcement by an adapter, with nothing that holds it to the warm-up. With all weights,
        # sixteen steps at 1.2e-4 cost two to five points of accuracy, and 28 steps at 4e-5 added
        # none: 32 rollouts are few, and so many weights follow what they tell by chance.
        "lora": True,
        "warmup_lora": False,
        "steps": 48,
        "group_size": 8,
        "prompts": 4,
        "learning_rate": 6e-4,
        # The longest answer of 200 demonstrations had 143 tokens with its closing turn, and one of
        # those that the guards look at 152.
        "max_completion_length": 176,
        "max_new_tokens": 160,
        "save_every": 10,
        "eval_tasks": 192,
        "eval_tries": 1,
        "trainer_options": {
            # What an update keeps for its backward pass is about 1 MB a token.
            "tokens_per_pass": 2048,
            "at_once": 48,
            "decay": "linear",
            "loss": {"name": "dapo", "beta": 0.0},
        },
    },
)
"""SmolLM2-135M-Instruct learns to write SQL, on two cores in at most 150 minutes."""

SMOLLM2_QUICK: Final = replace(
    SMOLLM2,
    tasks=replace(SMOLLM2.tasks, invented=60),
    minutes=40,
    settings={
        **SMOLLM2.settings,
        "demonstrations": 640,
        "warmup_steps": 40,
        "warmup_eval_every": 0,
        "warmup_checkpoint": "last",
        "steps": 4,
        "prompts": 2,
        "save_every": 2,
        "eval_tasks": 24,
        # A sample of 128 rollouts would take as long as four of its steps.
        "preflight": False,
    },
)
"""All phases of it once, in at most 40 minutes; too little to say how much is learnt."""

RECIPES: Final[Mapping[str, Mapping[bool, Recipe]]] = {
    SMOLLM2.name: {False: SMOLLM2, True: SMOLLM2_QUICK},
}
"""By name, and then whether it is the quick one."""


def recipe_named(name: str, *, quick: bool) -> Recipe:
    """The recipe of a name.

    Raises:
        ConfigurationError: There is none; the message lists those that there are.
    """
    if name not in RECIPES:
        raise ConfigurationError(f"there is no recipe {name!r}: take {' or '.join(RECIPES)}.")
    return RECIPES[name][quick]
