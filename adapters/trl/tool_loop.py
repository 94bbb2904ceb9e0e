"""TRL's tool loop on tool environments: early stops, collective generation, parallel tools.

TRL knows no end of an episode: after the answer it generates one turn more, and a turn with a call
in it goes on until the budget of calls is spent. Those tokens cost time and are trained on, though
nothing the model writes there can matter. So a rollout whose environment is over gets the
end-of-turn token in place of a generated turn, and that token is masked out of the loss.

The sections below keep collective generation in step across processes (`SynchronisedGeneration`),
record the ends of rollouts (`RolloutEnd`), and run tools in threads (`ParallelToolRunner`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adapters.training.algorithms.workers import Workers
from adapters.trl.environment import RolloutEnvironment
from toolgym.calls import FORMATS, ToolCall, opened_thought, parse_calls
from toolgym.errors import ConfigurationError
from toolgym.tools import ToolSpec

# `ParsingTokenizer`: responses parsed in training as they are in evaluation.
#
# TRL reads calls by itself: JSON that does not load, or one broken call beside a good one, makes
# the whole turn plain text, and the rollout just ends; a misspelt tool gets "not found". None of
# that reaches the environment, so the model neither learns what was wrong nor is charged for it.
# Here `toolgym.parse_calls` decides what is a call, and the message goes to `ToolEnv.step` as it
# was written.
#
# Two small objects stand where TRL looks: here a tokenizer that parses a response our way, and, for
# each rollout, a tool dictionary that holds every name (`ToolLookup`). TRL's parser is asked where
# ours finds nothing, for formats that only a model's own template knows: a call in a format of our
# table that ours does not read stands in a thought or is only spoken of, and TRL would run it.

_MARKS: Final = tuple(dict.fromkeys(mark for each in FORMATS for mark in each.marks))


class ParsedMessage(dict[str, Any]):
    """An assistant message with tool calls, and the text that they were parsed from.

    Attributes:
        action: The action for the environment: the text, or the calls that only TRL could parse.
    """

    action: Any


class ParsingTokenizer:
    """A tokenizer whose `parse_response` is our parser; all else is the wrapped tokenizer's.

    Args:
        tools: By name.
        stop: The tokens that end a turn besides the tokenizer's own.
    """

    def __init__(
        self, tokenizer: Any, tools: dict[str, ToolSpec], stop: Collection[int] = ()
    ) -> None:
        self._tokenizer = tokenizer
        self._tools = tools
        self._ends = {*stop, tokenizer.eos_token_id, tokenizer.pad_token_id} - {None}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Tokenize, as the wrapped tokenizer does."""
        return self._tokenizer(*args, **kwargs)

    def parse_response(self, response: list[int], **options: Any) -> dict[str, Any]:
        """One generated turn as a message.

        Args:
            response: Token ids of the turn.
            options: `prefix`, the ids before it, and `tools`, as TRL passes them.
        """
        text = self.response_text(response, options.get("prefix"))
        calls = parse_calls(text, self._tools)
        if not calls:
            return self._parse_as_trl(response, text, options)
        message = ParsedMessage(role="assistant", content=text)
        message["tool_calls"] = [_call_for_trl(call) for call in calls]
        message.action = text
        return message

    def response_text(self, response: list[int], prefix: list[int] | None) -> str:
        """The turn's text without its end token, with the tag of thinking that the prompt opens."""
        written = list(response)
        while written and written[-1] in self._ends:
            written.pop()
        text = str(self._tokenizer.decode(written, clean_up_tokenization_spaces=False))
        before = self._tokenizer.decode(prefix[-16:]) if prefix else ""
        return opened_thought(before) + text

    def _parse_as_trl(
        self, response: list[int], text: str, options: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            parsed = self._tokenizer.parse_response(response, **options)
        except (ValueError, TypeError):  # TRL takes it for plain text, too
            parsed = None
        calls = (parsed or {}).get("tool_calls")
        if calls and any(mark in text for mark in _MARKS):
            return {"role": "assistant", "content": text}
        if not calls:
            return parsed or {"role": "assistant", "content": text}
        message = ParsedMessage(parsed)
        message.action = [call.get("function", call) for call in calls]
        return message


def _call_for_trl(call: ToolCall) -> dict[str, Any]:
    """A call as TRL counts and logs it; it is played from the text.

    TRL writes completions to parquet, which knows neither empty structs nor columns of two types,
    so the arguments have one shape throughout.
    """
    arguments = {"json": json.dumps(call.arguments, ensure_ascii=False, default=repr)}
    function = {"name": call.name or "unknown", "arguments": arguments}
    return {"type": "function", "function": function}


Sequences = list[list[int]]
Turns = tuple[list[list[int]], list[list[float]] | None]
"""The result of one call of generation: token ids per sequence, and log-probabilities or None."""
Generate = Callable[[Sequences], Turns]


@dataclass
class ToolLoop:
    """Early stopping of one tool loop's rollouts, by reference to lists that TRL itself extends.

    Attributes:
        completions: The messages of each.
        end_of_turn: The token that ends a turn.
        completion_ids: The tokens of each.
        stopped: Rollouts whose last turn is an end-of-turn token put in here.
    """

    environments: Sequence[RolloutEnvironment]
    completions: Sequence[Sequence[dict[str, Any]]]
    end_of_turn: int
    completion_ids: Sequence[Sequence[int]] = ()
    stopped: set[int] = field(default_factory=set)
    _message_counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._message_counts = [len(messages) for messages in self.completions]

    def generate(self, sequences: Sequences, generate: Generate) -> Turns:
        """One turn per sequence: generated while its episode goes on, else the end-of-turn token.

        Args:
            sequences: Token ids of the rollouts that called a tool, results included.
            generate: Generation for some of them, or none.

        Raises:
            ConfigurationError: This version of TRL passes other rollouts than those that called.
        """
        active = self._active_rollouts(len(sequences))
        over = [self.environments[rollout]._is_over() for rollout in active]
        going = [sequence for sequence, done in zip(sequences, over, strict=True) if not done]
        ids, log_probs = generate(going)
        self.stopped |= {rollout for rollout, done in zip(active, over, strict=True) if done}
        fresh, scores = iter(ids), iter(log_probs or [])
        turns = [[self.end_of_turn] if done else next(fresh) for done in over]
        if going and log_probs is None:
            return turns, None
        return turns, [[0.0] if done else next(scores) for done in over]

    def without_repetition(self, told: list[int], results: Sequence[dict[str, Any]]) -> list[int]:
        """What follows a turn, without the token that the turn itself ended with.

        Where a family has no end of a message but the opening of the next one (GLM), a model stops
        with that opening, and the template writes it too.

        Args:
            told: The tokens between a turn and the next.
            results: The messages that they render, as they stand in `completions`.
        """
        for messages, ids in zip(self.completions, self.completion_ids, strict=True):
            if messages and messages[-1] is results[-1]:
                return told[1:] if ids and told[:1] == ids[-1:] else told
        return told

    def mask(self, tool_mask: list[list[int]]) -> None:
        """Mask the end-of-turn tokens that were put in here out of the loss."""
        for rollout in self.stopped:
            tool_mask[rollout][-1] = 0

    def _active_rollouts(self, count: int) -> list[int]:
        """The rollouts that the sequences belong to, in their order.

        They are those that have just received a tool's result. TRL takes a result back that did
        not fit, and a turn of which nothing fitted leaves no message, so both are known by the
        number of messages. Their tokens would not tell them apart: twins differ once a tool answers
        them differently.
        """
        lengths = [len(messages) for messages in self.completions]
        before, self._message_counts = self._message_counts, lengths
        grown = [i for i, (old, new) in enumerate(zip(before, lengths, strict=True)) if new > old]
        active = [i for i in grown if self.completions[i][-1].get("role") == "tool"]
        if len(active) != count:
            raise ConfigurationError(
                f"TRL generates for {count} rollouts where {len(active)} were told a result: its"
                " tool loop is not the one this was written for. Install the version of trl that"
                " constraints.txt names."
            )
        return active


def behind_turn(
    user: list[int], turn: list[int], whole: list[int], end_tokens: Collection[int]
) -> list[int]:
    """The tokens between a turn with calls and the next, from three renderings of one chat.

    A turn ends with the last token of its message at which generation stops. That need not be the
    tokenizer's own: behind a call it can be another one, whose place only the message itself tells.

    Args:
        user: The chat up to the turn.
        turn: With the turn.
        whole: With the results of its calls, and the opening of the next turn.
        end_tokens: Those at which generation stops.

    Raises:
        ConfigurationError: The template rewrites the turn once results follow.
    """
    begin = next((i for i, (a, b) in enumerate(zip(user, turn, strict=False)) if a != b), len(user))
    ends = [i for i, token in enumerate(turn) if i >= begin and token in end_tokens]
    cut = ends[-1] + 1 if ends else len(turn)
    if whole[:cut] != turn[:cut]:
        raise ConfigurationError(
            "the chat template renders a turn with calls differently once results follow, so"
            " nothing can be appended to what was sampled: pass --chat-template hermes."
        )
    return whole[cut:]


def local_generation(generate: Generate) -> Generate:
    """Generation of one process alone, skipped where no sequence is left."""
    return lambda sequences: generate(sequences) if sequences else ([], None)


# Collective generation calls, kept in step across processes.
#
# vLLM's server is sent the prompts of all processes by one of them; vLLM over several GPUs and
# sharded weights are used by several at once. But a tool loop lasts as long as its own rollouts do:
# TRL 1.16 waits for ever where another process goes on longer, and where processes come with
# unequal numbers of sequences it cuts the answer of the server into equal parts, so that rollouts
# get the words of others. So here the processes tell each other how many sequences each has, all
# fill up to the largest number, and one whose loop has ended takes part with an empty batch until
# all have.

_ENDED = -1


class SynchronisedGeneration:
    """The generation of one tool loop, in step with the same loops of the other processes.

    Args:
        exchange: Gathers a number of this process with those of all others.
        filler: Token ids of a sequence, to fill up a batch that is smaller than another process'.
    """

    def __init__(self, exchange: Callable[[int], list[int]], filler: list[int]) -> None:
        self._exchange, self._filler = exchange, filler

    def wrap(self, generate: Generate) -> Generate:
        """Generation for this process' sequences, even none, as one collective call."""

        def generate_in_step(sequences: Sequences) -> Turns:
            most = max(self._exchange(len(sequences)))
            return self._generate_padded(sequences, most, generate)

        return generate_in_step

    def drain(self, generate: Generate) -> None:
        """Take part in the remaining collective calls with an empty batch until all have ended."""
        while (most := max(self._exchange(_ENDED))) != _ENDED:
            self._generate_padded([], most, generate)

    def _generate_padded(self, sequences: Sequences, most: int, generate: Generate) -> Turns:
        if not most:
            return [], None
        ids, log_probs = generate([*sequences, *[self._filler] * (most - len(sequences))])
        own = len(sequences)
        return ids[:own], log_probs[:own] if log_probs is not None else None


def shared_prompts(prompts: Sequences, size: int) -> bool:
    """Whether the prompts of each group are the same, so that one can be sent for all of them."""
    return all(prompt == prompts[place - place % size] for place, prompt in enumerate(prompts))


# The end of a rollout: of its own accord, with its episode, or for want of tokens or turns.
#
# TRL knows a truncated rollout by its last token. That misses two kinds, in which the last token is
# an end of turn: a call that was made but not run, since the calls or the tokens were used up, and
# a result that did not fit and was taken back. All three are unfinished here: their reward is
# unknown, so they are marked in their environments and counted, and their tokens can be left out of
# the loss.


@dataclass(frozen=True)
class RolloutEnd:
    """The end of one rollout.

    Attributes:
        tokens: The number of tokens that the model wrote.
        clipped: Its tokens ran out inside a turn.
        unfinished: Tokens or turns ran out before the episode was over.
    """

    tokens: int
    clipped: bool
    unfinished: bool


def rollout_ends(
    environments: Sequence[RolloutEnvironment],
    completions: Sequence[Sequence[dict[str, Any]]],
    completion_ids: Sequence[Sequence[int]],
    tool_mask: Sequence[Sequence[int]],
    end_tokens: Collection[int],
) -> list[RolloutEnd]:
    """The ends of a tool loop's rollouts; unfinished ones are marked in their environments.

    Args:
        environments: One per rollout, before their rewards are asked for.
        completions: The messages of each.
        completion_ids: Its tokens, results of tools among them.
        tool_mask: For each of these 1 where the model wrote it.
        end_tokens: Those that end a turn, and padding.
    """
    ends = []
    rollouts = zip(environments, completions, completion_ids, tool_mask, strict=True)
    for environment, messages, ids, mask in rollouts:
        clipped = not ids or ids[-1] not in end_tokens
        waits = messages[-1].get("role") == "tool" or bool(messages[-1].get("tool_calls"))
        unfinished = (clipped or waits) and not environment._is_over()
        environment._is_unfinished = unfinished
        ends.append(RolloutEnd(sum(mask), clipped, unfinished))
    return ends


# The tools of different rollouts run at the same time, though TRL asks for them one by one.
#
# TRL goes through the rollouts of a batch and runs the calls of each before it looks at the next,
# so a tool that takes a second takes as many as there are rollouts. Here the first call that TRL
# asks for starts every rollout that has a new message (`workers`), and all later ones find their
# results there. A rollout plays its own message in order, as it would alone, and no two
# rollouts share anything, so the results do not depend on the threads.

Message = dict[str, Any]


class ParallelToolRunner:
    """A runner of the tool calls of all rollouts of one tool loop, in threads.

    Args:
        completions: The messages of each so far, by reference: TRL extends these lists.
    """

    def __init__(
        self,
        environments: Sequence[RolloutEnvironment],
        completions: Sequence[list[Message]],
        workers: Workers,
    ) -> None:
        self._environments, self._completions = environments, completions
        self._workers = workers
        self._played: list[Message | None] = [None] * len(environments)
        self._results: list[Iterator[str]] = [iter(())] * len(environments)

    def tools(self) -> list[ToolLookup]:
        """A tool dictionary for each rollout, as TRL looks tools up."""
        return [ToolLookup(self, rollout) for rollout in range(len(self._environments))]

    def next_result(self, rollout: int) -> str:
        """The result of the next call in a rollout's latest message."""
        if self._completions[rollout][-1] is not self._played[rollout]:
            self._play()
        return next(self._results[rollout], "")

    def _play(self) -> None:
        """Run the calls of every message that was not played yet."""
        latest = [messages[-1] for messages in self._completions]
        waiting = [i for i, message in enumerate(latest) if self._waits(i, message)]
        pending = [(self._environments[i], latest[i]) for i in waiting]
        for i, results in zip(waiting, self._workers.each(_play_message, pending), strict=True):
            self._played[i], self._results[i] = latest[i], iter(results)

    def _waits(self, rollout: int, message: Message) -> bool:
        return bool(message.get("tool_calls")) and message is not self._played[rollout]


def _play_message(pending: tuple[RolloutEnvironment, Message]) -> list[str]:
    environment, message = pending
    return environment._play_message(getattr(message, "action", message))


class ToolLookup(dict[str, Callable[..., str]]):
    """The tool dictionary of one rollout: it has every name, and a message is played as a whole."""

    def __init__(self, runner: ParallelToolRunner, rollout: int) -> None:
        super().__init__()
        self._runner, self._rollout = runner, rollout

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Callable[..., str]:
        result = self._runner.next_result(self._rollout)
        return lambda **arguments: result
