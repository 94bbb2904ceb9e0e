"""The expert's transcripts as chat messages with tool calls, for supervised training.

Played through the real environment, as `adapters.trl.sft_dataset` does it: what a model reads while
it imitates is what it will read when it acts. Only right answers become rows.

A message has the keys that it needs and no others. Arguments are JSON text, as servers send them,
or objects: some chat templates write a text as it stands, and some encode it once more, so that a
model would learn to send a JSON string where an object belongs; `adapters.trl.check_format` tells
which. Objects go through the `Json` type of `datasets`, and so lose digits of some numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from adapters.export.tables import Column, Export, LeftOut, Row, json_text
from adapters.export.tasks import Part, Progress
from adapters.training.models.demonstrations import LAST_WORD, first_tries, play_episodes
from toolgym import policies
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, episode_messages

Arguments = Literal["text", "object"]
ARGUMENTS: Final[tuple[Arguments, ...]] = get_args(Arguments)
NOT_SOLVED: Final = "expert_failed"
"""The code of an episode that is left out because its answer was not right."""


def message_columns(arguments: Arguments) -> tuple[Column, ...]:
    """The columns of a transcript."""
    how = "JSON text" if arguments == "text" else "objects"
    return (
        Column(
            "messages",
            ["json"],
            "the chat: each message has `role` and `content`, an assistant's may have `tool_calls`"
            f" (arguments are {how}), a result has the `name` of its tool",
        ),
        Column("tools", "string", "the schemas of the tools, as JSON text"),
    )


def checked_arguments(name: str) -> Arguments:
    """The way of that name.

    Raises:
        ConfigurationError: There is none.
    """
    for known in ARGUMENTS:
        if name == known:
            return known
    raise ConfigurationError(f"--arguments must be {' or '.join(ARGUMENTS)}, got {name!r}.")


def demonstration_export(
    env_id: str,
    parts: Sequence[Part],
    facts: Mapping[str, str],
    left_out: Sequence[LeftOut] = (),
    *,
    seed: int = 0,
    arguments: Arguments = "text",
    final: str = LAST_WORD,
    progress: Progress | None = None,
) -> Export:
    """The expert's transcripts of the tasks of some parts, as a table.

    Args:
        seed: Of the expert's situations.
        arguments: How the arguments of calls are written.
        final: A last assistant's turn without a call, which trainers that go on until such a turn
            need; empty for none.
        progress: Called with how many episodes were played and how many there are.
    """
    everything = list(left_out)
    counter = itertools.count(1)
    total = sum(len(part.tasks) for part in parts)

    def played() -> None:
        done = next(counter)
        if progress is not None:
            progress(done, total)

    splits = {part.split: _episodes(part, seed, final, played, everything) for part in parts}
    return Export(
        title=f"Demonstrations of {env_id}",
        about="The transcripts of the environment's own expert, right answers only.",
        columns=(Column("task_id", "string", "the task"), *message_columns(arguments)),
        splits={split: _rows(rows, arguments) for split, rows in splits.items()},
        facts=facts,
        left_out=everything,
        notes=notes(arguments),
    )


def _episodes(
    part: Part, seed: int, final: str, played: Callable[[], None], left_out: list[LeftOut]
) -> Iterator[tuple[ToolEnv[Any], list[Message]]]:
    """The environment of a part and the transcript of each right answer, as it is played."""
    env = part.env
    for _ in play_episodes(env, policies.ExpertPolicy(), first_tries(part.tasks.ids, seed)):
        played()
        if env.episode.ledger.correct:
            yield env, episode_messages(env, final or None)
        else:
            reason = "the expert's answer was not right."
            left_out.append(LeftOut(part.split, env.episode.task.id, NOT_SOLVED, reason))


def _rows(
    episodes: Iterable[tuple[ToolEnv[Any], list[Message]]], arguments: Arguments
) -> Iterator[Row]:
    for env, messages in episodes:
        yield {"task_id": env.episode.task.id, **chat_of(env, messages, arguments)}


def chat_of(env: ToolEnv[Any], messages: Sequence[Message], arguments: Arguments) -> Row:
    """The columns of `message_columns`."""
    return {
        "messages": _written(messages, arguments),
        "tools": json_text(env.tool_schemas()),
    }


def _written(messages: Sequence[Message], arguments: Arguments) -> list[Message]:
    """The messages with the arguments of their calls as they are to be written."""
    if arguments == "object":
        return list(messages)
    return [_with_text(each) if "tool_calls" in each else each for each in messages]


def _with_text(message: Message) -> Message:
    calls = [
        {**call, "function": {**function, "arguments": json_text(function["arguments"])}}
        for call in message["tool_calls"]
        for function in (call["function"],)
    ]
    return {**message, "tool_calls": calls}


def notes(arguments: Arguments) -> tuple[str, ...]:
    """What a card says of how transcripts are trained on."""
    check = (
        'Before training, `adapters.trl.check_format(dataset["train"], tokenizer)` renders every'
        " row by the chat template and fails on a dropped call, a null among its arguments, or"
        " arguments that are encoded twice."
    )
    other = (
        "Where it finds them encoded twice, export again with `--arguments object`."
        if arguments == "text"
        else "The `Json` type of `datasets` brings objects back with their own keys; it may change"
        " the last digits of numbers, which `--arguments text` keeps."
    )
    return (check, other)
