"""Playing episodes with a model: requests in, rollouts out.

All episodes of a batch go in lock step (`table`), each with its own place in one KV cache. Our own
parser decides what a call is: a turn goes to `ToolEnv.step` as it was written, broken JSON and all,
and what comes back is read on. Only the environment ends an episode, or the tokens do; and then it
is closed at once, so that nothing is written that cannot matter.

A fault of the environment leaves its rollout unscored, with what was sampled until then.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.chat import ChatFormat
from adapters.reference.decoder import Decoder
from adapters.reference.rollout import Ending, Request, Rollout
from adapters.training.algorithms.workers import Workers
from adapters.training.models.special_tokens import context_length
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import EnvironmentFault
from toolgym.messages import Message, turn_messages
from toolgym.rollout import EpisodeRecord
from toolgym.tasks import seed_of

# The rollouts that share one KV cache, from the first prompt read to the last turn taken.
#
#     open    every task's prompt is read once, for all rollouts of its group
#     speak   one forward pass, one token for each rollout that is in the middle of a turn
#     listen  the environments take the turns that are complete; what came back is read in one pass
#
# A rollout whose turn is complete takes no part in the passes until it is listened to, and one
# whose episode is over gives up its seat: the seats of those that speak are always the first ones,
# without a gap. The environments are listened to when nobody speaks any more or enough of the
# rollouts wait, so that reading results, which costs a pass of its own, is done for several at
# once.


@dataclass
class Speaker:
    """A rollout that is being played.

    Attributes:
        number: Its place in the batch.
        room: Tokens that its completion may have.
        turn_start: Where in the completion its current turn begins.
        unfed: Tokens that the model has not read yet; the last is read with the next pass.
        ending: Why it is over; None while it is not.
        fault: What failed in the environment.
    """

    number: int
    env: ToolEnv[Any]
    prompt: list[int] = field(default_factory=list)
    room: int = 0
    completion: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    turns: list[tuple[int, int]] = field(default_factory=list)
    turn_start: int = 0
    unfed: list[int] = field(default_factory=list)
    ending: Ending | None = None
    fault: str = ""

    @property
    def held(self) -> int:
        """Tokens in its seat of the cache."""
        return len(self.prompt) + len(self.completion) - len(self.unfed)

    def say(self, token: int, log_prob: float) -> None:
        """Write a token."""
        self.completion.append(token)
        self.mask.append(1)
        self.log_probs.append(log_prob)
        self.unfed = [token]

    def hear(self, tokens: list[int]) -> None:
        """Be told what stands before the next turn."""
        self.completion += tokens
        self.mask += [0] * len(tokens)
        self.log_probs += [0.0] * len(tokens)
        self.unfed += tokens
        self.turn_start = len(self.completion)


class Table:
    """Plays some rollouts to their end; who speaks has a seat before who waits.

    Args:
        decoder: With a seat for each.
        chat: Writes what comes back.
        draw: By the speakers' numbers.
        speakers: With episode, prompt and room for at least one token.
        patience: See `PlaySettings`.
    """

    def __init__(
        self,
        decoder: Decoder,
        chat: ChatFormat,
        draw: Draw,
        speakers: Sequence[Speaker],
        patience: float,
    ) -> None:
        self._decoder, self._chat, self._draw = decoder, chat, draw
        self._seats = list(speakers)
        self._patience = patience
        self._speaking = 0

    def play(self, workers: Workers) -> None:
        """Play until every episode is over or out of tokens."""
        self._open()
        while self._seats:
            if self._speaking:
                self._speak()
            waiting = len(self._seats) - self._speaking
            if not self._speaking or waiting >= self._patience * len(self._seats):
                self._listen(workers)

    def _open(self) -> None:
        """Read every prompt once, all but its last token, and copy it to who shares it."""
        places: dict[tuple[int, ...], int] = {}
        sources = [places.setdefault(tuple(s.prompt), len(places)) for s in self._seats]
        prompts = [list(prompt[:-1]) for prompt in places]
        self._decoder.feed(0, prompts, [0] * len(prompts))
        self._decoder.cache.move(sources, max(map(len, prompts)))
        for speaker in self._seats:
            speaker.unfed = speaker.prompt[-1:]
        self._speaking = len(self._seats)

    def _speak(self) -> None:
        """One token for each that speaks."""
        speakers = self._seats[: self._speaking]
        logits = self._decoder.feed(0, [s.unfed for s in speakers], [s.held for s in speakers])
        drawn = [len(speaker.completion) for speaker in speakers]
        tokens = self._draw.tokens(logits, [speaker.number for speaker in speakers], drawn)
        for seat in reversed(range(len(speakers))):
            speaker, token = speakers[seat], tokens[0][seat]
            speaker.say(token, tokens[1][seat])
            if token in self._chat.stop or len(speaker.completion) >= speaker.room:
                self._stand_back(seat)

    def _stand_back(self, seat: int) -> None:
        """Who has ended a turn changes seats with the last who speaks."""
        self._speaking -= 1
        one, other = self._seats[seat], self._seats[self._speaking]
        one.turns.append((one.turn_start, len(one.completion)))
        if one is not other:
            self._decoder.cache.swap(seat, self._speaking, max(one.held, other.held))
            self._seats[seat], self._seats[self._speaking] = other, one

    def _listen(self, workers: Workers) -> None:
        """Let the environments take the waiting turns, and read what comes back."""
        waiting = self._seats[self._speaking :]
        turns = [self._chat.spoken(s.completion[slice(*s.turns[-1])]) for s in waiting]
        replies = workers.each(_answer, list(zip(waiting, turns, strict=True)))
        heard = [(s, reply) for s, reply in zip(waiting, replies, strict=True) if reply]
        tails = self._chat.following([reply for _, reply in heard])
        for (speaker, _), tail in zip(heard, tails, strict=True):
            self._go_on(speaker, tail)
        self._leave()
        going_on = self._seats[self._speaking :]
        if going_on:
            unread = [speaker.unfed[:-1] for speaker in going_on]
            self._decoder.feed(self._speaking, unread, [s.held for s in going_on])
            for speaker in going_on:
                speaker.unfed = speaker.unfed[-1:]
        self._speaking = len(self._seats)

    def _go_on(self, speaker: Speaker, tail: list[int]) -> None:
        """Hear what came back, if it fits with at least one token to answer."""
        was_cut_off = speaker.completion[-1] not in self._chat.stop
        if was_cut_off:
            speaker.ending = Ending.CUT_OFF
        elif len(speaker.completion) + len(tail) >= speaker.room:
            speaker.ending = Ending.NO_ROOM
        else:
            speaker.hear(tail)

    def _leave(self) -> None:
        """Close the gaps of those that are over; the others keep their order."""
        stay = [seat for seat in range(len(self._seats)) if self._seats[seat].ending is None]
        if len(stay) < len(self._seats):
            widest = max((self._seats[seat].held for seat in stay), default=0)
            self._decoder.cache.move(stay, widest)
            self._seats = [self._seats[seat] for seat in stay]


def _answer(pair: tuple[Speaker, str]) -> list[Message]:
    """What the environment says to a turn; nothing where the episode is over."""
    speaker, text = pair
    env = speaker.env
    try:
        env.step(text)
    except EnvironmentFault as fault:
        speaker.ending, speaker.fault = Ending.FAULT, str(fault)
        return []
    if not env.episode.over:
        return turn_messages(env.episode.turns[-1])[1:]
    speaker.ending = Ending.ANSWERED if env.episode.terminated else Ending.OUT_OF_CALLS
    return []


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


# Drawing tokens, so that a rollout is the same in whatever company it is generated.
#
# Every rollout has a stream of numbers of its own, from a `torch.Generator` that is seeded with the
# rollout's name, and its n-th token is where the n-th number falls in the cumulative distribution.
# So neither the other rollouts of a batch nor their order can change it, up to rounding: a batch of
# another width adds in another order, which can turn a near tie.
#
# The log-probability of what was drawn is taken from the same numbers, at the temperature it was
# drawn with: what a loss later calls the old log-probability.


class Draw:
    """Draws for the rollouts of one batch.

    Args:
        names: One for each rollout; equal names draw equal numbers.
        temperature: Above 0.
        length: Tokens that a rollout may draw.
        device: Where the logits are.
    """

    def __init__(
        self, names: Sequence[str], temperature: float, length: int, device: torch.device
    ) -> None:
        self._temperature = temperature
        streams = [
            torch.rand(length, generator=_stream(name), dtype=torch.float64) for name in names
        ]
        self._numbers = torch.stack(streams).to(device)

    @torch.inference_mode()
    def tokens(
        self, logits: Tensor, rollouts: Sequence[int], drawn: Sequence[int]
    ) -> tuple[list[int], list[float]]:
        """One token for each row.

        Args:
            logits: (rows, vocabulary).
            rollouts: Whose row it is, as a place in `names`.
            drawn: How many tokens that rollout has drawn before.

        Returns:
            The tokens, and the log-probability of each under the tempered distribution.
        """
        log_probs = torch.log_softmax(logits.float() / self._temperature, dim=1)
        chosen = self._chosen(log_probs, rollouts, drawn)
        picked = log_probs.gather(1, chosen[:, None]).squeeze(1)
        return chosen.tolist(), picked.tolist()

    def _chosen(self, log_probs: Tensor, rollouts: Sequence[int], drawn: Sequence[int]) -> Tensor:
        cumulative = log_probs.exp().cumsum(dim=1, dtype=torch.float64)
        # Scaled by the last sum, which rounding leaves a hair off 1.
        points = self._numbers[list(rollouts), list(drawn)] * cumulative[:, -1]
        found = torch.searchsorted(cumulative, points[:, None], right=True).squeeze(1)
        return found.clamp(max=log_probs.shape[1] - 1)


def named_seed(name: str) -> int:
    """A seed below 2^63 that depends on nothing but a name."""
    digest = hashlib.sha256(f"toolgym-rollout-{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _stream(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(named_seed(name))
