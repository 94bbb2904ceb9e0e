"""Playing episodes with a model: requests in, rollouts out.

All episodes of a batch go in lock step (`table`), each with its own place in one KV cache. Our own
parser decides what a call is: a turn goes to `ToolEnv.step` as it was written, broken JSON and all,
and what comes back is read on. Only the environment ends an episode, or the tokens do; and then it
is closed at once, so that nothing is written that cannot matter.

A fault of the environment leaves its rollout unscored, with what was sampled until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.chat import ChatFormat
from adapters.reference.decoder import Decoder
from adapters.reference.draw import Draw
from adapters.reference.record import Ending, Request, Rollout
from adapters.reference.table import Speaker, Table
from adapters.training.special_tokens import context_length
from adapters.training.workers import Workers
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import EnvironmentFault
from toolgym.rollout import EpisodeRecord
from toolgym.tasks import seed_of


@dataclass(frozen=True)
class PlaySettings:
    """How episodes are played.

    Attributes:
        temperature: Of the distribution that tokens are drawn from; above 0.
        max_tokens: Of one completion, results of tools included.
        at_once: Rollouts that are open together.
        workers: Threads in which the tools of different rollouts run, if they take long enough; the
            results do not depend on it.
        patience: Share of the open rollouts that may wait for their results before the environments
            are listened to, though others still speak.
    """

    temperature: float = 1.0
    max_tokens: int = 1024
    at_once: int = 64
    workers: int = 8
    patience: float = 0.5


class Player:
    """Plays episodes of one environment with one model.

    Args:
        model: The policy; it is put into evaluation mode while it plays.
        tokenizer: Its tokenizer, with a chat template.
        env_id: A registered `ToolEnv`.
        env_kwargs: For `gym.make`.
        settings: How to play.

    Raises:
        ConfigurationError: There is no such environment, or the template cannot be used.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        env_id: str,
        env_kwargs: Mapping[str, Any] | None = None,
        settings: PlaySettings | None = None,
    ) -> None:
        self.model = model
        self.settings = settings or PlaySettings()
        self._env_id, self._env_kwargs = env_id, dict(env_kwargs or {})
        self._envs: list[ToolEnv[Any]] = [registration.make(env_id, **self._env_kwargs)]
        self.chat = ChatFormat(model, tokenizer, self._envs[0])
        self._workers = Workers(self.settings.workers)

    @property
    def env(self) -> ToolEnv[Any]:
        """One of the environments that it plays in."""
        return self._envs[0]

    def play(self, requests: Sequence[Request]) -> list[Rollout]:
        """Play one episode for each request, and return the rollouts in order."""
        size, rollouts = self.settings.at_once, list[Rollout]()
        with _evaluating(self.model), self._workers:
            for start in range(0, len(requests), size):
                rollouts += self._play_together(requests[start : start + size])
        return rollouts

    def _play_together(self, requests: Sequence[Request]) -> list[Rollout]:
        while len(self._envs) < len(requests):
            self._envs.append(registration.make(self._env_id, **self._env_kwargs))
        pairs = zip(requests, self._envs, strict=False)
        speakers = [Speaker(number, env) for number, (_, env) in enumerate(pairs)]
        began = self._workers.each(_begin, list(zip(speakers, requests, strict=True)))
        opened = [s for s, has_begun in zip(speakers, began, strict=True) if has_begun]
        self._prompt(opened, requests)
        seated = [speaker for speaker in opened if speaker.ending is None]
        if seated:
            decoder, draw = Decoder(self.model, len(seated)), self._draw(requests)
            Table(decoder, self.chat, draw, seated, self.settings.patience).play(self._workers)
        finished = zip(speakers, requests, began, strict=True)
        return [self._finished(*each_one) for each_one in finished]

    def _prompt(self, speakers: Sequence[Speaker], requests: Sequence[Request]) -> None:
        """Render the prompt of every task once."""
        firsts = {requests[speaker.number].task_id: speaker.env for speaker in reversed(speakers)}
        prompts = dict(zip(firsts, self.chat.prompts(list(firsts.values())), strict=True))
        for speaker in speakers:
            speaker.prompt = prompts[requests[speaker.number].task_id]
            speaker.unfed = list(speaker.prompt)
            left = context_length(self.model) - len(speaker.prompt)
            speaker.room = min(self.settings.max_tokens, left)
            if speaker.room < 1:
                speaker.ending = Ending.NO_ROOM

    def _draw(self, requests: Sequence[Request]) -> Draw:
        return Draw(
            [request.name for request in requests],
            self.settings.temperature,
            self.settings.max_tokens,
            self.model.device,
        )

    def _finished(self, speaker: Speaker, request: Request, has_begun: bool) -> Rollout:
        episode = EpisodeRecord.of(speaker.env.episode, self._env_id) if has_begun else None
        score = episode.score if episode is not None else math.nan
        earned = [turn["reward"] for turn in episode.turns] if episode is not None else []
        earned += [0.0] * (len(speaker.turns) - len(earned))
        if earned:
            earned[-1] += score - math.fsum(earned)
        return Rollout(
            request,
            speaker.prompt,
            speaker.completion,
            speaker.mask,
            speaker.log_probs,
            speaker.turns,
            earned,
            score,
            speaker.ending or Ending.FAULT,
            episode,
            speaker.fault,
        )


@contextmanager
def _evaluating(model: PreTrainedModel) -> Iterator[None]:
    was_training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(was_training)


def _begin(pair: tuple[Speaker, Request]) -> bool:
    """Begin the episode; whether there is one."""
    speaker, request = pair
    try:
        speaker.env.reset(seed=seed_of(request.task_id), options={"task_id": request.task_id})
    except EnvironmentFault as fault:
        speaker.ending, speaker.fault = Ending.FAULT, str(fault)
        return False
    return True
