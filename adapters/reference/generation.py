"""Rollout generation: requests in, rollouts out, by one batched decode loop over a KV cache.

All episodes of a batch advance together (`DecodeLoop`), each in its own slot of one KV cache. Our
own parser decides what a call is: a turn goes to `ToolEnv.step` as it was generated, broken JSON
and all, and its results are appended. An episode ends where the environment or the token budget
ends it, and its sequence stops at once, so that no token is generated that cannot matter.

A fault of the environment leaves its rollout unscored, with what was sampled until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.chat import ChatFormat
from adapters.reference.decoder import Decoder
from adapters.reference.rollout import Ending, Request, Rollout
from adapters.reference.sampling import Sampler
from adapters.reference.shared_decoding import ALONE, Beginning
from adapters.training.algorithms.workers import Workers
from adapters.training.models.shared_prefix import LEAST, alike, common_beginning
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import EnvironmentFault
from toolgym.generation import context_length
from toolgym.messages import Message, turn_messages
from toolgym.rollout import EpisodeRecord
from toolgym.tasks import seed_of

TOKENS_READ: Final = 16_384
"""Tokens of prompts or results in one pass; each takes some 20 bytes for every hidden unit."""

# The decode loop: sequences that share one KV cache, from the prompt to the end of the episode.
#
#     prefill             every task's prompt is read once, for all rollouts of its group
#     decode step         one forward pass, one token for each active sequence
#     environment steps   the environments take the finished turns; results are read in one pass
#
# A sequence whose turn is finished waits outside the passes until its environment has stepped, and
# one whose episode is over gives up its slot: the slots of active sequences are always the first
# ones, without a gap. The environments step when no sequence is active or enough of them wait, so
# that reading results, which costs a pass of its own, is done for several at once.
#
# The cache is as wide as its longest sequence; `PlaySettings.at_once` bounds what it takes.


@dataclass
class ActiveSequence:
    """A sequence in generation: an episode with its tokens so far.

    Attributes:
        index: Its place in the batch.
        beginning: What its prompt has in common with those of others.
        max_length: Most tokens of its completion.
        turn_start: The position in the completion at which its current turn begins.
        pending_tokens: Tokens that are not in the KV cache yet; the last is read by the next pass.
        ending: The reason it ended; None while it is active.
        fault: The error of a failed environment.
    """

    index: int
    env: ToolEnv[Any]
    prompt: list[int] = field(default_factory=list)
    beginning: Beginning = ALONE
    max_length: int = 0
    completion: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    turns: list[tuple[int, int]] = field(default_factory=list)
    turn_start: int = 0
    pending_tokens: list[int] = field(default_factory=list)
    ending: Ending | None = None
    fault: str = ""

    @property
    def length(self) -> int:
        """Tokens of its prompt and completion."""
        return len(self.prompt) + len(self.completion)

    @property
    def cached_length(self) -> int:
        """Tokens in its slot of the KV cache."""
        return self.length - len(self.pending_tokens)

    def last_turn(self) -> tuple[list[int], list[int]]:
        """The tokens of its last turn, and those before it."""
        start, end = self.turns[-1]
        return self.completion[start:end], self.completion[:start] or self.prompt

    def append_token(self, token: int, log_prob: float) -> None:
        """Append a sampled token."""
        self.completion.append(token)
        self.mask.append(1)
        self.log_probs.append(log_prob)
        self.pending_tokens = [token]

    def append_result(self, tokens: list[int]) -> None:
        """Append tool-result tokens, which are masked from the loss."""
        self.completion += tokens
        self.mask += [0] * len(tokens)
        self.log_probs += [0.0] * len(tokens)
        self.pending_tokens += tokens
        self.turn_start = len(self.completion)


class DecodeLoop:
    """The loop that generates some sequences to their end; active ones hold the first slots.

    Args:
        decoder: With a slot for each sequence.
        chat: The format of tool results.
        sampler: By the indices of the sequences.
        sequences: With episode, prompt and a `max_length` of at least one token.
        settings: `patience` and `turn_tokens` of them.
    """

    def __init__(
        self,
        decoder: Decoder,
        chat: ChatFormat,
        sampler: Sampler,
        sequences: Sequence[ActiveSequence],
        settings: PlaySettings,
    ) -> None:
        self._decoder, self._chat, self._sampler = decoder, chat, sampler
        self._slots = list(sequences)
        self._settings = settings
        self._active = 0

    def play(self, workers: Workers) -> None:
        """Generate until every episode is over or out of tokens."""
        self._prefill()
        while self._slots:
            if self._active:
                self._decode_step()
            waiting = len(self._slots) - self._active
            if not self._active or waiting >= self._settings.patience * len(self._slots):
                self._step_environments(workers)

    def _prefill(self) -> None:
        """Read every distinct prompt once, all but its last token, and copy it to its sequences."""
        places: dict[tuple[int, ...], int] = {}
        sources = [places.setdefault(tuple(s.prompt), len(places)) for s in self._slots]
        prompts = [list(prompt[:-1]) for prompt in places]
        beginnings = beginnings_of(prompts)
        read = self._read_beginnings(prompts, beginnings)
        rests = [prompt[length:] for prompt, length in zip(prompts, read, strict=True)]
        self._read(rests, read)
        self._decoder.cache.move(sources, max(map(len, prompts)))
        for sequence in self._slots:
            sequence.pending_tokens = sequence.prompt[-1:]
        for sequence, source in zip(self._slots, sources, strict=True):
            sequence.beginning = beginnings[source]
        self._active = len(self._slots)

    def _read_beginnings(
        self, prompts: Sequence[Sequence[int]], beginnings: Sequence[Beginning]
    ) -> list[int]:
        """Read what prompts have in common into their slots, once each: the length for each.

        First what all begin with, then what those about one database do.
        """
        common = self._read_common_beginning(prompts)
        clusters: dict[int, list[int]] = {}
        for place, beginning in enumerate(beginnings):
            clusters.setdefault(beginning.number, []).append(place)
        lengths, sources = [common] * len(prompts), [0] * len(prompts)
        beyond = list[list[int]]()
        for cluster in clusters.values():
            length = min(beginnings[cluster[0]].length, *(len(prompts[p]) - 1 for p in cluster))
            if len(cluster) > 1 and length - common >= LEAST:
                for place in cluster:
                    lengths[place], sources[place] = length, len(beyond)
                beyond.append(list(prompts[cluster[0]][common:length]))
        if beyond:
            self._read(beyond, [common] * len(beyond))
            self._decoder.cache.move(sources, max(lengths))
        return lengths

    def _read(self, texts: Sequence[list[int]], starts: Sequence[int], first: int = 0) -> None:
        """Read tokens into the slots from `first` on, in passes of bounded memory."""
        rows = max(1, TOKENS_READ // max(map(len, texts)))
        for place in range(0, len(texts), rows):
            part = slice(place, place + rows)
            self._decoder.feed(first + place, texts[part], starts[part])

    def _read_common_beginning(self, prompts: Sequence[Sequence[int]]) -> int:
        """Read what all prompts begin with, the tools mostly, into their slots: its length."""
        shareable = min(map(len, prompts)) - 1
        common = common_beginning([prompt[:shareable] for prompt in prompts])
        if len(prompts) == 1 or common < LEAST:
            return 0
        self._decoder.feed(0, [prompts[0][:common]], [0])
        self._decoder.cache.move([0] * len(prompts), common)
        return common

    def _decode_step(self) -> None:
        """Sample one token for each active sequence."""
        sequences = self._slots[: self._active]
        logits = self._decoder.feed(
            0,
            [s.pending_tokens for s in sequences],
            [s.cached_length for s in sequences],
            [s.beginning for s in sequences],
        )
        positions = [len(sequence.completion) for sequence in sequences]
        indices = [sequence.index for sequence in sequences]
        tokens, log_probs = self._sampler.sample(logits, indices, positions)
        for slot in reversed(range(len(sequences))):
            sequence, token = sequences[slot], tokens[slot]
            sequence.append_token(token, log_probs[slot])
            if token in self._chat.stop or self._is_full(sequence):
                self._finish_turn(slot)

    def _is_full(self, sequence: ActiveSequence) -> bool:
        """Whether the sequence, or its turn, may have no further token."""
        length, limit = len(sequence.completion), self._settings.turn_tokens
        is_long_turn = limit is not None and length - sequence.turn_start >= limit
        return is_long_turn or length >= sequence.max_length

    def _finish_turn(self, slot: int) -> None:
        """Swap the sequence with the last active one, so that active slots stay contiguous."""
        self._active -= 1
        one, other = self._slots[slot], self._slots[self._active]
        one.turns.append((one.turn_start, len(one.completion)))
        if one is not other:
            self._decoder.cache.swap(
                slot, self._active, max(one.cached_length, other.cached_length)
            )
            self._slots[slot], self._slots[self._active] = other, one

    def _step_environments(self, workers: Workers) -> None:
        """Step the environments of the waiting sequences, and read their results."""
        waiting = self._slots[self._active :]
        turns = [self._chat.response(*s.last_turn()) for s in waiting]
        replies = workers.each(_step_environment, list(zip(waiting, turns, strict=True)))
        answered = [(s, reply) for s, reply in zip(waiting, replies, strict=True) if reply]
        tails = self._chat.following([reply for _, reply in answered])
        for (sequence, _), tail in zip(answered, tails, strict=True):
            self._append_result(sequence, tail)
        self._remove_finished()
        unfinished = self._slots[self._active :]
        if unfinished:
            unread = [sequence.pending_tokens[:-1] for sequence in unfinished]
            self._read(unread, [s.cached_length for s in unfinished], self._active)
            for sequence in unfinished:
                sequence.pending_tokens = sequence.pending_tokens[-1:]
        self._active = len(self._slots)

    def _append_result(self, sequence: ActiveSequence, tail: list[int]) -> None:
        """Append a tool result, if it leaves room for at least one token of an answer."""
        if tail[:1] == sequence.completion[-1:]:
            tail = tail[1:]  # it stopped with the opening of what follows
        was_cut_off = sequence.completion[-1] not in self._chat.stop
        if was_cut_off and len(sequence.completion) < sequence.max_length:
            was_cut_off, tail = False, [*self._chat.end_of_turn, *tail]  # the turn alone was long
        if was_cut_off:
            sequence.ending = Ending.CUT_OFF
        elif len(sequence.completion) + len(tail) >= sequence.max_length:
            sequence.ending = Ending.NO_ROOM
        else:
            sequence.append_result(tail)

    def _remove_finished(self) -> None:
        """Free the slots of ended sequences; the others keep their order."""
        remaining = [slot for slot in range(len(self._slots)) if self._slots[slot].ending is None]
        if len(remaining) < len(self._slots):
            widest = max((self._slots[slot].cached_length for slot in remaining), default=0)
            self._decoder.cache.keep(remaining, widest)
            self._slots = [self._slots[slot] for slot in remaining]


def beginnings_of(prompts: Sequence[Sequence[int]]) -> list[Beginning]:
    """The beginning of each of some distinct prompts, as it is read in decoding steps.

    Those that have more than half in common, as questions about one database do, begin alike.

    >>> beginnings_of(["aaab", "cccc", "aaac"])
    [Beginning(number=0, length=3), Beginning(number=1, length=4), Beginning(number=0, length=3)]
    """
    found = [ALONE] * len(prompts)
    for number, cluster in enumerate(alike(prompts, [len(prompt) for prompt in prompts])):
        texts = [prompts[place] for place in cluster]
        shortest = min(map(len, texts))
        common = common_beginning([text[:shortest] for text in texts])
        for place in cluster:
            found[place] = Beginning(number, common)
    return found


def _step_environment(pair: tuple[ActiveSequence, str]) -> list[Message]:
    """The messages that answer a turn; none where the episode is over."""
    sequence, text = pair
    env = sequence.env
    try:
        env.step(text)
    except EnvironmentFault as fault:
        sequence.ending, sequence.fault = Ending.FAULT, str(fault)
        return []
    if not env.episode.over:
        return turn_messages(env.episode.turns[-1])[1:]
    sequence.ending = Ending.ANSWERED if env.episode.terminated else Ending.OUT_OF_CALLS
    return []


@dataclass(frozen=True)
class PlaySettings:
    """The settings of rollout generation.

    Attributes:
        temperature: Sampling temperature; 0 takes the likeliest token, which is not for training.
        max_tokens: Most tokens of one completion, results of tools included.
        turn_tokens: Most tokens of one turn; a longer one is cut off there, and answered as if it
            had ended. None: no more than `max_tokens`.
        at_once: Rollouts that are generated together.
        workers: Threads in which the tools of different rollouts run, if they take long enough; the
            results do not depend on it.
        patience: Share of the sequences that may wait for their environments before these step,
            though other sequences are still active.
    """

    temperature: float = 1.0
    max_tokens: int = 1024
    turn_tokens: int | None = None
    at_once: int = 64
    workers: int = 8
    patience: float = 0.5


class Player:
    """The generator of rollouts: one model in one environment.

    Args:
        model: The policy; it is put into evaluation mode while it plays.
        tokenizer: Its tokenizer, with a chat template.
        settings: Temperature, lengths and batch size.

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
        """One of its environments."""
        return self._envs[0]

    def play(self, requests: Sequence[Request]) -> list[Rollout]:
        """Play one episode for each request, and return the rollouts in order."""
        size, rollouts = self.settings.at_once, list[Rollout]()
        with _evaluation_mode(self.model), self._workers:
            for start in range(0, len(requests), size):
                rollouts += self._play_chunk(requests[start : start + size])
        return rollouts

    def _play_chunk(self, requests: Sequence[Request]) -> list[Rollout]:
        while len(self._envs) < len(requests):
            self._envs.append(registration.make(self._env_id, **self._env_kwargs))
        pairs = zip(requests, self._envs, strict=False)
        sequences = [ActiveSequence(index, env) for index, (_, env) in enumerate(pairs)]
        were_reset = self._workers.each(_reset, list(zip(sequences, requests, strict=True)))
        started = [s for s, was_reset in zip(sequences, were_reset, strict=True) if was_reset]
        self._encode_prompts(started, requests)
        active = [sequence for sequence in started if sequence.ending is None]
        if active:
            decoder, sampler = Decoder(self.model, len(active)), self._sampler(requests)
            loop = DecodeLoop(decoder, self.chat, sampler, active, self.settings)
            loop.play(self._workers)
        finished = zip(sequences, requests, were_reset, strict=True)
        return [self._rollout(*parts) for parts in finished]

    def _encode_prompts(
        self, sequences: Sequence[ActiveSequence], requests: Sequence[Request]
    ) -> None:
        """Encode the prompt of every task once."""
        firsts = {
            requests[sequence.index].task_id: sequence.env for sequence in reversed(sequences)
        }
        prompts = dict(zip(firsts, self.chat.prompts(list(firsts.values())), strict=True))
        for sequence in sequences:
            sequence.prompt = prompts[requests[sequence.index].task_id]
            sequence.pending_tokens = list(sequence.prompt)
            left = context_length(self.model) - len(sequence.prompt)
            sequence.max_length = min(self.settings.max_tokens, left)
            if sequence.max_length < 1:
                sequence.ending = Ending.NO_ROOM

    def _sampler(self, requests: Sequence[Request]) -> Sampler:
        return Sampler(
            [request.name for request in requests],
            self.settings.temperature,
            self.settings.max_tokens,
            self.model.device,
        )

    def _rollout(self, sequence: ActiveSequence, request: Request, has_episode: bool) -> Rollout:
        episode = EpisodeRecord.of(sequence.env.episode, self._env_id) if has_episode else None
        score = episode.score if episode is not None else math.nan
        earned = [turn["reward"] for turn in episode.turns] if episode is not None else []
        earned += [0.0] * (len(sequence.turns) - len(earned))
        if earned:
            earned[-1] += score - math.fsum(earned)
        return Rollout(
            request,
            sequence.prompt,
            sequence.completion,
            sequence.mask,
            sequence.log_probs,
            sequence.turns,
            earned,
            score,
            sequence.ending or Ending.FAULT,
            episode,
            sequence.fault,
        )


@contextmanager
def _evaluation_mode(model: PreTrainedModel) -> Iterator[None]:
    was_training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(was_training)


def _reset(pair: tuple[ActiveSequence, Request]) -> bool:
    """Reset the environment; False where a fault lets no episode begin."""
    sequence, request = pair
    try:
        sequence.env.reset(seed=seed_of(request.task_id), options={"task_id": request.task_id})
    except EnvironmentFault as fault:
        sequence.ending, sequence.fault = Ending.FAULT, str(fault)
        return False
    return True
