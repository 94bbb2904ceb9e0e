"""Updates of the reference trainer on a tiny model, for every experiment on SQL.

Guards are off, but for weights that are no numbers: what is to be seen is a failure and not its
cure. All rollouts of a batch are looked at for the nulls in their calls; a step that learns from
rollouts that were learnt from before has no numbers of its own about them.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from adapters.lab.sql.tiny_start import ENVIRONMENT, TRAINING, Pair
from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.generation import Player, PlaySettings
from adapters.reference.rollout import Request
from adapters.reference.trainer import ReferenceTrainer
from adapters.training.guards.config import GUARD_NAMES
from adapters.training.models.chat_policy import ChatModelPolicy
from adapters.training.models.demonstrations import playable_tasks
from toolgym import rollout

GROUP_SIZE: Final = 8
PROMPTS: Final = 4
ROOM: Final = 256
"""Tokens of a rollout, as in `toolgym train`."""
RATE: Final = 4e-4
"""Of the reinforcement learning; smaller than the model of `toolgym train`, this one bears more."""
NO_COSTS: Final[Mapping[str, float]] = {
    "step": 0.0,
    "repeat": 0.0,
    "failed_call": 0.0,
    "repaired_call": 0.0,
}
"""Rewards that look at the outcome only, as the claim's did."""
KEPT: Final = (
    *("reward", "accuracy", "validity", "tool_failures", "repairs_per_call", "nulls"),
    *("dead_groups", "zero_variance_groups", "unfinished", "completion_length"),
    *("grad_norm", "entropy", "clip_low", "clip_high", "drawn_groups"),
)
"""Numbers of a step that a history keeps; none of them is a time."""
_BROKEN: Final = ("non_finite", "broken_weights")
_NULL: Final = re.compile(r":\s*null\b")

History = list[dict[str, float]]


@dataclass(frozen=True)
class TinyGrpo:
    """A training.

    Attributes:
        steps: Updates.
        env: For the environment, beside data set and split.
        trainer: Settings of the reference trainer, over those that the lab has for all.
    """

    steps: int = 20
    env: Mapping[str, Any] = field(default_factory=dict)
    trainer: Mapping[str, Any] = field(default_factory=dict)


def settings_of(grpo: TinyGrpo, seed: int) -> ReferenceConfig:
    """GRPO as its paper has it, without a reference model, unless told otherwise."""
    off = {name: () for name in GUARD_NAMES if name not in _BROKEN}
    return reference_config(
        {
            "steps": grpo.steps,
            "seed": seed,
            "group_size": GROUP_SIZE,
            "prompts": PROMPTS,
            "max_completion_length": ROOM,
            "sampling": None,
            "advantages": "group_normalized",
            "learn_from_unfinished": True,
            "loss": "grpo",
            "learning_rate": RATE,
            "guards": {"actions": off},
            "save_every": grpo.steps,
            **grpo.trainer,
        }
    )


def train(pair: Pair, grpo: TinyGrpo, seed: int) -> History:
    """Train the model in place; returns the metrics of each step that has metrics of rollouts.

    Raises:
        TrainingStopped: The weights are no numbers any more.
        EnvironmentFault: The environment keeps failing.
    """
    config, history, nulls = settings_of(grpo, seed), History(), dict[int, float]()

    def on_rollouts(step: int, records: Sequence[Mapping[str, Any]]) -> None:
        nulls[step] = null_share(records)

    def on_metrics(step: int, numbers: Mapping[str, float]) -> None:
        told = {**numbers, "nulls": nulls.get(step, math.nan)}
        history.append({k: float(told[k]) for k in KEPT if math.isfinite(told.get(k, math.nan))})

    with tempfile.TemporaryDirectory() as checkpoints:
        ReferenceTrainer(
            *pair,
            ENVIRONMENT,
            Path(checkpoints),
            config,
            env_kwargs={**TRAINING, **grpo.env},
            on_metrics=on_metrics,
            on_rollouts=on_rollouts,
            transcripts=config.rollouts,
        ).train()
    return history


def null_share(records: Sequence[Mapping[str, Any]]) -> float:
    """The share of turns with calls that write a null; nan without any."""
    turns = [turn for record in records for turn in record["turns"] if turn["calls"]]
    found = [_NULL.search(turn["action"]) is not None for turn in turns]
    return sum(found) / len(found) if found else math.nan


def mean(history: History, key: str, first: int | None = None, last: int | None = None) -> float:
    """The mean of a number over the first or the last steps that have it; nan where none has.

    >>> mean([{"reward": 0.0}, {}, {"reward": 1.0}], "reward", last=1)
    1.0
    """
    values = [step[key] for step in history if key in step]
    chosen = values[:first] if first is not None else values[-last:] if last else values
    return math.fsum(chosen) / len(chosen) if chosen else math.nan


def told(value: float) -> float | None:
    """A number as a record can hold it."""
    return value if math.isfinite(value) else None


def lines(history: History, *keys: str) -> dict[str, list[float | None]]:
    """Numbers step by step, for figures."""
    return {key: [step.get(key) for step in history] for key in keys}


def sampled_score(pair: Pair, env: Mapping[str, Any], tasks: int, tries: int, seed: int) -> float:
    """The mean score on training tasks, drawn as in training, but the same tasks at every call.

    The names of the draws are the same, too, so that of two calls only the weights differ.
    """
    playing = PlaySettings(max_tokens=ROOM)
    player = Player(*pair, ENVIRONMENT, {**TRAINING, **env}, playing)
    ids = playable_tasks(player.env.tasks, tasks, seed).ids
    rollouts = player.play(
        [
            Request(task_id, group, f"lab-{seed}-{group}-{member}")
            for group, task_id in enumerate(ids)
            for member in range(tries)
        ]
    )
    rewards = [each.reward for each in rollouts if each.scored]
    return math.fsum(rewards) / len(rewards) if rewards else math.nan


def measured(pair: Pair, tasks: int, seed: int) -> dict[str, float]:
    """Greedy on unseen tasks, the same for every seed: score and share of right answers."""
    model, tokenizer = pair
    policy = ChatModelPolicy(model, tokenizer, max_new_tokens=96, batch=tasks, seed=seed)
    unseen: dict[str, Any] = {**TRAINING, "split": "dev"}
    found = rollout.evaluate(ENVIRONMENT, policy, n=tasks, batch=tasks, seed=0, **unseen)
    right = [record.correct for record in found.records]
    scores = [record.score for record in found.records]
    return {"score": math.fsum(scores) / tasks, "accuracy": sum(map(bool, right)) / tasks}
