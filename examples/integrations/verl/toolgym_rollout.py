"""One rollout of a toolgym environment as tokens; this module does not import verl.

The environment receives each message of the model unchanged. A rollout is a list of tokens with a
mask: 1 for tokens that the model wrote, 0 for results. Earlier turns are never rendered again, so a
model is trained on exactly the tokens that it sampled.

A fault of the machine is an exception and never a score.
"""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from toolgym import registration
from toolgym.calls import opened_thought
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.messages import Message, prompt_messages, turn_messages
from toolgym.records import EpisodeRecord
from toolgym.tries import seed_of_try

GRID: Final = 2**20
"""Scores are rounded to multiples of 1 / GRID, whose sums are exact. verl drops a group only if the
standard deviation of its scores is 0, and `numpy.std([0.1] * 3)` is not 0."""
_ROWS: Final = "write the rows with: toolgym export rows ENV --for verl"


@dataclass(frozen=True)
class Limits:
    """Limits of a rollout.

    Attributes:
        prompt: Maximum tokens before the first message.
        response: Maximum tokens after the prompt, including results.
        message: Maximum tokens of one message.
        messages: Maximum messages; None: as many as the environment allows.
    """

    prompt: int
    response: int
    message: int
    messages: int | None = None


@dataclass(frozen=True)
class Tokens:
    """A rollout so far.

    Attributes:
        ids: All tokens, including the prompt.
        mask: For each token after the prompt, 1 if the model wrote it, else 0.
        logprobs: Log-probabilities of the same tokens, 0 for results; None if not recorded.
    """

    ids: list[int]
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] | None = None

    @property
    def prompt(self) -> list[int]:
        """The tokens before the first message."""
        return self.ids[: len(self.ids) - len(self.mask)]

    @property
    def response(self) -> list[int]:
        """The tokens after the prompt."""
        return self.ids[len(self.ids) - len(self.mask) :]

    def closed(self, end: int) -> "Tokens":
        """Append an end of turn that the model did not write."""
        logprobs = None if self.logprobs is None else [*self.logprobs, 0.0]
        return Tokens([*self.ids, end], [*self.mask, 0], logprobs)


@dataclass(frozen=True)
class Generated:
    """The tokens of one message from the inference server."""

    ids: list[int]
    logprobs: list[float] | None = None


class Model(Protocol):
    """Protocol of a model that writes messages."""

    async def __call__(self, ids: list[int], most: int) -> Generated:
        """Return the next message after these tokens, of at most `most` tokens."""


class Chat(Protocol):
    """Protocol of a chat template that appends tokens."""

    async def prompt(self, messages: list[Message], tools: list[dict[str, Any]]) -> list[int]:
        """The tokens before the first message."""

    async def said(self, tokens: Tokens, message: Generated) -> Tokens:
        """Append a message of the model."""

    async def shown(
        self, tokens: Tokens, before: list[Message], after: list[Message], tools: list[Any]
    ) -> Tokens:
        """Append the messages that `after` has and `before` lacks, and open the next turn."""


class RowEpisode:
    """The episode of one row of `toolgym export rows --for verl`.

    Attributes:
        messages: The chat so far.
        tools: Tools in the OpenAI function format.

    Raises:
        ConfigurationError: The row lacks a field, or its environment cannot be created.
        EnvironmentFault: The task cannot be loaded.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        extra = row.get("extra_info")
        if not isinstance(extra, Mapping) or not {"env_id", "task_id"} <= extra.keys():
            raise ConfigurationError(f"the row has no extra_info with env_id and task_id: {_ROWS}.")
        task_id = str(extra["task_id"])
        env_kwargs = json.loads(extra.get("env_kwargs") or "{}")
        self.env = registration.make(str(extra["env_id"]), **env_kwargs)
        # The rollouts of a group have the same uid, which is new in each step.
        group = row.get("uid")
        seed = None if group is None else seed_of_try(0, str(group), 0)
        self.env.reset(seed=seed, options={"task_id": task_id})
        self.tools = self.env.tool_schemas()
        self.messages = prompt_messages(self.env)

    @property
    def over(self) -> bool:
        """Whether the environment takes no more messages."""
        return self.env.episode.over

    def take(self, text: str) -> tuple[list[Message], list[Message]]:
        """Pass a message of the model to the environment.

        Returns:
            The chat with the message, and the chat with the message and its results.

        Raises:
            EnvironmentFault: The machine failed; the episode has no score.
        """
        self.env.step(text)
        spoken, *results = turn_messages(self.env.episode.turns[-1])
        before = [*self.messages, spoken]
        self.messages = [*before, *results]
        return before, self.messages

    def figures(self) -> dict[str, float]:
        """Close the episode and return its metrics."""
        record = EpisodeRecord.of(self.env.episode, "")
        return record.figures()


def on_grid(score: float) -> float:
    """Round a score to a multiple of 1 / GRID.

    >>> on_grid(0.9519144246449937)
    0.9519147872924805
    """
    return round(score * GRID) / GRID


def message_text(tokenizer: Any, before: Sequence[int], ids: Sequence[int]) -> str:
    """Return the text of a message for the environment.

    Args:
        tokenizer: The tokenizer. Special tokens are kept, since they may be tags of calls.
        before: The tokens before the message. A thinking tag that the prompt opened is prepended.
        ids: The tokens of the message; its end-of-sequence token is omitted.
    """
    own = ids[:-1] if ids and ids[-1] == tokenizer.eos_token_id else ids

    def decoded(part: Sequence[int]) -> str:
        return str(
            tokenizer.decode(
                list(part), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )

    return opened_thought(decoded(before[-16:])) + decoded(own)


async def play(
    episode: RowEpisode, model: Model, chat: Chat, tokenizer: Any, limits: Limits
) -> Tokens:
    """Play an episode to its end or to a limit, and return its tokens.

    The last token is always one of the model; results after it are omitted.

    Raises:
        ConfigurationError: The prompt exceeds the limit.
        EnvironmentFault: The machine failed, or the server generated no token.
    """
    tokens = Tokens(await chat.prompt(episode.messages, episode.tools))
    if len(tokens.ids) > limits.prompt:
        raise ConfigurationError(
            f"the prompt of task {episode.env.task.id} has {len(tokens.ids):,} tokens, and"
            f" data.max_prompt_length is {limits.prompt:,}: set it higher."
        )
    messages = 0
    while not episode.over:
        most = min(limits.message, limits.response - len(tokens.mask))
        message = await model(tokens.ids, most)
        if not message.ids:
            raise EnvironmentFault("the inference server generated no token.", "Look at its log.")
        messages += 1
        text = message_text(tokenizer, tokens.ids, message.ids)
        tokens = await chat.said(tokens, message)
        before, after = await asyncio.to_thread(episode.take, text)
        if episode.over or messages == limits.messages or len(tokens.mask) >= limits.response:
            break
        is_cut = len(message.ids) >= most and message.ids[-1] not in tokenizer.all_special_ids
        ended = tokens.closed(tokenizer.eos_token_id) if is_cut else tokens
        grown = await chat.shown(ended, before, after, episode.tools)
        if len(grown.mask) >= limits.response:
            break
        tokens = grown
    return tokens


def reward_of(figures: Mapping[str, float]) -> float:
    """Return the reward of a rollout for verl.

    Raises:
        EnvironmentFault: The episode has no score.
    """
    if math.isnan(figures["score"]):
        raise EnvironmentFault("the episode has no score.")
    return on_grid(figures["score"])
