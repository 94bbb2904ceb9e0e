"""How the tasks of an evaluation are played: who asks for what, and the way that any model can go.

A trainer may bring a faster way (`adapters.reference.evaluation`). Both take a task's number of
try and seed for its record, so that evaluations can be paired and put together by task and number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.chat_policy import ChatModelPolicy
from adapters.training.runs.evaluations import Evaluation
from adapters.training.settings import TrainSettings
from toolgym import records, registration, rollout
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord

MEASURED_ON: Final = 0
"""Seed of the choice of tasks to evaluate on: the same for every run."""
AT_ONCE: Final = 192
"""Episodes of the tiny model that are played together."""
_FEW: Final = 16


@dataclass(frozen=True)
class Asked:
    """What is to be played.

    Attributes:
        env_kwargs: Of the environment.
        task_ids: Each once.
        temperature: 0 is greedy.
        tries: At each task.
    """

    env_kwargs: Mapping[str, Any]
    task_ids: Sequence[str]
    temperature: float = 0.0
    tries: int = 1
    refused: tuple[dict[str, str], ...] = field(default=())

    @property
    def repeated(self) -> list[str]:
        """The task of each episode; the tries at one stand together."""
        return [task_id for task_id in self.task_ids for _ in range(self.tries)]


Done = Callable[[int], None]
"""Called with the number of episodes that are over."""


class Play(Protocol):
    """A way to play tasks with a model."""

    def __call__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        settings: TrainSettings,
        asked: Asked,
        done: Done,
    ) -> Sequence[EpisodeRecord]:
        """One record for each of `asked.repeated`, in order."""
        ...


def play_turn_by_turn(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    settings: TrainSettings,
    asked: Asked,
    done: Done,
) -> list[EpisodeRecord]:
    """Play with `ChatModelPolicy`, which any model can: it reads the whole transcript each turn."""
    policy = ChatModelPolicy(
        model,
        tokenizer,
        name=settings.model,
        temperature=asked.temperature,
        max_new_tokens=settings.max_new_tokens,
        batch=AT_ONCE if settings.is_tiny else _FEW,
        seed=settings.seed,
    )
    played = rollout.evaluate(
        settings.env_id,
        policy,
        task_ids=asked.task_ids,
        k=asked.tries,
        batch=AT_ONCE,
        seed=MEASURED_ON,
        progress=lambda so_far, _: done(so_far),
        **asked.env_kwargs,
    )
    return list(played.records)


def asked_for(settings: TrainSettings, evaluation: Evaluation) -> Asked:
    """What an evaluation asks for: its tasks, or as many as it plays, which a seed chooses.

    Raises:
        ConfigurationError: No task is playable.
    """
    tasks = registration.make(settings.env_id, **evaluation.env_kwargs).tasks
    ids = list(evaluation.task_ids or ())
    ids = ids or tasks.shuffle(MEASURED_ON).first_playable(evaluation.played).ids
    if not ids:
        raise ConfigurationError(tasks.nothing_playable())
    refused = tuple(refusal.to_json() for refusal in tasks.refused.values())
    heat, tries = evaluation.temperature, evaluation.tries
    return Asked(evaluation.env_kwargs, ids, heat, tries, refused)


def evaluation_of(asked: Asked, played: Sequence[EpisodeRecord]) -> records.Evaluation:
    """The figures of what was played."""
    return records.Evaluation(tuple(played), asked.tries, asked.refused)
