"""One rollout of a toolgym environment as tokens: all of the agent loop that needs no verl.

The whole message of the model goes to the environment, which reads the calls, repairs what has one
plain meaning, and answers mistakes with a call that works. What verl is told is a growing list of
tokens with a mask: 1 for those that the model wrote, 0 for the results in between. Earlier turns
are never rendered again, so a model is trained on the very tokens that it sampled.

A fault of the machine is raised, never scored. `toolgym_agent` is the class that verl makes.
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
"""Scores are rounded to multiples of one part in so many. verl drops a group whose scores have no
spread at all, and the mean of equal floats is often another one: `numpy.std([0.1] * 3)` is not 0.
Sums of such multiples are exact."""
_ROWS: Final = "write the rows with: toolgym export rows ENV --for verl"


@dataclass(frozen=True)
class Limits:
    """How long a rollout may be.

    Attributes:
        prompt: Tokens before the first message.
        response: Tokens behind the prompt, results included.
        message: Tokens of one message.
        messages: Messages; None for as many as the environment allows.
    """

    prompt: int
    response: int
    message: int
    messages: int | None = None


@dataclass(frozen=True)
class Tokens:
    """A rollout so far.

    Attributes:
        ids: The prompt and all that came after it.
        mask: For each token behind the prompt, 1 where the model wrote it.
        logprobs: Of the same tokens, 0 where the model did not write them; None if nobody counts.
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
        """The tokens behind the prompt."""
        return self.ids[len(self.ids) - len(self.mask) :]

    def closed(self, end: int) -> "Tokens":
        """With the end of a turn that the model did not write."""
        logprobs = None if self.logprobs is None else [*self.logprobs, 0.0]
        return Tokens([*self.ids, end], [*self.mask, 0], logprobs)


@dataclass(frozen=True)
class Generated:
    """What the inference server generated: the tokens of one message."""

    ids: list[int]
    logprobs: list[float] | None = None


class Model(Protocol):
    """Whoever writes the messages."""

    async def __call__(self, ids: list[int], most: int) -> Generated:
        """The next message after these tokens, of at most so many."""


class Chat(Protocol):
    """The chat template, as tokens that are appended."""

    async def prompt(self, messages: list[Message], tools: list[dict[str, Any]]) -> list[int]:
        """The tokens before the first message."""

    async def said(self, tokens: Tokens, message: Generated) -> Tokens:
        """With a message of the model."""

    async def shown(
        self, tokens: Tokens, before: list[Message], after: list[Message], tools: list[Any]
    ) -> Tokens:
        """With what the chat `after` has more than the one `before`, and the opening of a turn."""


class RowEpisode:
    """The episode of one row that `toolgym export rows --for verl` wrote.

    Attributes:
        messages: The chat so far.
        tools: In the OpenAI function format.

    Raises:
        ConfigurationError: The row is none of those, or its environment cannot be made.
        EnvironmentFault: What the task needs is not there.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        extra = row.get("extra_info")
        if not isinstance(extra, Mapping) or not {"env_id", "task_id"} <= extra.keys():
            raise ConfigurationError(f"the row has no extra_info with env_id and task_id: {_ROWS}.")
        task_id = str(extra["task_id"])
        env_kwargs = json.loads(extra.get("env_kwargs") or "{}")
        self.env = registration.make(str(extra["env_id"]), **env_kwargs)
        # verl gives the rollouts of a group one uid, and a new one at each visit of the task.
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
        """Give the environment a whole message.

        Returns:
            The chat up to the message, and the chat with what came back.

        Raises:
            EnvironmentFault: The machine failed; the episode has no score.
        """
        self.env.step(text)
        spoken, *results = turn_messages(self.env.episode.turns[-1])
        before = [*self.messages, spoken]
        self.messages = [*before, *results]
        return before, self.messages

    def figures(self) -> dict[str, float]:
        """Close the episode: its score, whether it was correct, and the other figures."""
        record = EpisodeRecord.of(self.env.episode, "")
        return record.figures()


def on_grid(score: float) -> float:
    """A score of which equal ones have no spread.

    >>> on_grid(0.9519144246449937)
    0.9519147872924805
    """
    return round(score * GRID) / GRID


def message_text(tokenizer: Any, before: Sequence[int], ids: Sequence[int]) -> str:
    """The text of a message as the environment reads it.

    Args:
        tokenizer: Tags of calls may be special tokens of it, so none is skipped.
        before: The tokens before it; a tag of thinking that the prompt opened belongs to it.
        ids: Its tokens; the one that ended it is left out.
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
    """Play an episode to its end, or to a limit, and return its tokens.

    The last token is always one of the model's: results that nobody reads are left out.

    Raises:
        ConfigurationError: The prompt is longer than the limit; verl would cut off its beginning.
        EnvironmentFault: The machine failed, or the server generated nothing.
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
    """What verl is told a rollout is worth.

    Raises:
        EnvironmentFault: The episode has no score.
    """
    if math.isnan(figures["score"]):
        raise EnvironmentFault("the episode has no score.")
    return on_grid(figures["score"])
