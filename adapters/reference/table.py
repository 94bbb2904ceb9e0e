"""The rollouts that share one KV cache, from the first prompt read to the last turn taken.

    open    every task's prompt is read once, for all rollouts of its group
    speak   one forward pass, one token for each rollout that is in the middle of a turn
    listen  the environments take the turns that are complete; what came back is read in one pass

A rollout whose turn is complete takes no part in the passes until it is listened to, and one whose
episode is over gives up its seat: the seats of those that speak are always the first ones, without
a gap. The environments are listened to when nobody speaks any more or enough of the rollouts wait,
so that reading results, which costs a pass of its own, is done for several at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.reference.chat import ChatFormat
from adapters.reference.decoder import Decoder
from adapters.reference.draw import Draw
from adapters.reference.record import Ending
from adapters.training.workers import Workers
from toolgym.env import ToolEnv
from toolgym.errors import EnvironmentFault
from toolgym.messages import Message, turn_messages


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
