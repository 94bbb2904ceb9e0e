"""A sample of rollouts as training would play them: the same tasks, temperature and room.

Every task is tried several times, since what matters is not how good the model is but whether its
tries at one task differ. A rollout may use as many tokens as in training, results of tools
included, and is cut off where they end. As many are played side by side as a step has, so that the
time of a batch is the time of a step's rollouts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.playable import playable_tasks
from adapters.training.policy import ChatModelPolicy
from adapters.training.settings import TrainSettings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.episode import Outcome
from toolgym.errors import EnvironmentFault
from toolgym.messages import Message, episode_messages
from toolgym.policies import Situation
from toolgym.records import EpisodeRecord
from toolgym.tasks import seed_of
from toolgym.tries import Try, seed_of_try, tries_of

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Played:
    """One rollout.

    Attributes:
        record: The episode.
        messages: The whole transcript, a turn that was cut off included.
        written: Tokens that the model wrote.
        cut_off: The tokens ran out inside a turn.
        unfinished: They ran out before the episode was over, inside a turn or between two.
    """

    record: EpisodeRecord
    messages: list[Message]
    written: int
    cut_off: bool
    unfinished: bool

    @property
    def outcome(self) -> Outcome | None:
        """What tells it apart from other tries; None where a fault left it unscored."""
        return self.record.outcome


@dataclass
class _Open:
    """A rollout that is being played."""

    situation: Situation
    room: int
    written: int = 0
    last_words: str | None = None
    unfinished: bool = False

    @property
    def over(self) -> bool:
        return self.situation.env.episode.over


@dataclass(frozen=True)
class SamplePlayed:
    """The sample.

    Attributes:
        rollouts: Tries of one task stand together.
        tries: Of each task.
        batch_seconds: The time of each batch of a step's size.
        batch: Rollouts of a full batch.
    """

    rollouts: tuple[Played, ...]
    tries: int
    batch_seconds: tuple[float, ...]
    batch: int

    @property
    def groups(self) -> list[int]:
        """For each rollout the number of its task."""
        return [place // self.tries for place in range(len(self.rollouts))]


def play_sample(
    settings: TrainSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tasks: int,
    tries: int,
    progress: Progress,
) -> SamplePlayed:
    """Play several tries of each of some training tasks.

    Args:
        settings: Of the training that is to come.
        model: The policy.
        tokenizer: Its tokenizer.
        tasks: How many; fewer where there are fewer.
        tries: Of each.
        progress: Called with how many rollouts are done.

    Raises:
        ConfigurationError: No task is playable.
        EnvironmentFault: What an episode needs is not there.
    """
    env = registration.make(settings.env_id, **settings.training_kwargs)
    chosen = playable_tasks(env.tasks, tasks, settings.seed).ids
    named = tries_of(task_id for task_id in chosen for _ in range(tries))
    batch = min(settings.group_size * settings.prompts, len(named))
    policy = ChatModelPolicy(
        model,
        tokenizer,
        temperature=settings.temperature,
        max_new_tokens=settings.max_completion_length,
        batch=batch,
        seed=settings.seed,
    )
    played, seconds = list[Played](), list[float]()
    table = _Table(settings, policy)
    for start in range(0, len(named), batch):
        began = time.monotonic()
        played += table.play(named[start : start + batch], start)
        seconds.append(time.monotonic() - began)
        progress(len(played))
    return SamplePlayed(tuple(played), tries, tuple(seconds), batch)


class _Table:
    """The environments of a batch, used again for the next."""

    def __init__(self, settings: TrainSettings, policy: ChatModelPolicy) -> None:
        self._settings, self._policy = settings, policy
        self._envs: list[ToolEnv[Any]] = []

    def play(self, tries: Sequence[Try], first: int) -> Iterator[Played]:
        """One episode for each try, in lock step; `first` were played before."""
        opened = [self._begin(place, one, first) for place, one in enumerate(tries)]
        while playing := [each for each in opened if not each.over]:
            actions = self._policy.act([each.situation for each in playing])
            for each, action in zip(playing, actions, strict=True):
                self._advance(each, action)
        for each, one in zip(opened, tries, strict=True):
            env, own = each.situation.env, each.situation.seed
            messages = episode_messages(env, final=each.last_words)
            record = EpisodeRecord.of(env.episode, self._settings.env_id, own, one.number)
            was_cut_off = each.last_words is not None
            yield Played(record, messages, each.written, was_cut_off, each.unfinished)

    def _begin(self, place: int, one: Try, first: int) -> _Open:
        if place == len(self._envs):
            made = registration.make(self._settings.env_id, **self._settings.training_kwargs)
            self._envs.append(made)
        env = self._envs[place]
        observation, _ = env.reset(seed=seed_of(one.task_id), options={"task_id": one.task_id})
        own = seed_of_try(self._settings.seed, one.task_id, one.number)
        situation = Situation(first + place, env, observation, own)
        return _Open(situation, self._settings.max_completion_length)

    def _advance(self, each: _Open, action: str) -> None:
        """One turn; what does not fit is not done, and ends the episode."""
        env = each.situation.env
        spoken = self._length(action)
        each.written += spoken
        each.room -= spoken
        if each.room <= 0:
            each.last_words = action
        else:
            try:
                each.room -= self._length(env.step(action)[0])
            except EnvironmentFault:
                return  # the episode is over and unscored
        if each.room <= 0 and not env.episode.over:
            each.unfinished = True
            env.finish()

    def _length(self, text: str) -> int:
        """Tokens of a text, and one for the end of its message."""
        ids = self._policy.tokenizer(text, add_special_tokens=False)["input_ids"]
        return len(ids) + 1
