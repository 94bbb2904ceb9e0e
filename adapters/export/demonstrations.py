"""Transcripts of the expert as chat messages with tool calls, for supervised training.

The expert generates them in the environment, so a model reads the same text in supervised training
as in rollouts. Only episodes with a correct answer become rows. With `recoveries`, some calls first
fail and are then corrected. The assistant's message of a failed call has `"weight": 0`, and a
trainer has to exclude it from the loss.

A message has only the keys that it needs. The arguments of a call are either a JSON string, as
servers send them, or an object. Some chat templates insert a string unchanged; others encode it a
second time, which teaches a model to send a JSON string instead of an object.
`adapters.trl.check_format` detects this. Objects are stored with the `Json` type of `datasets`,
which loses digits of some numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from adapters.export.tables import Column, Export, LeftOut, Row, json_text
from adapters.export.tasks import Part, Progress
from adapters.training.models.demonstrations import (
    LAST_WORD,
    RecoveringExpert,
    first_tries,
    play_episodes,
    transcript,
)
from toolgym.env import ToolEnv
from toolgym.messages import Message

Arguments = Literal["text", "object"]
NOT_SOLVED: Final = "expert_failed"
"""Reason code of an episode that is excluded because its answer is incorrect."""


def message_columns(arguments: Arguments) -> tuple[Column, ...]:
    """Return the columns of a transcript."""
    how = "JSON text" if arguments == "text" else "objects"
    return (
        Column(
            "messages",
            ["json"],
            "the chat. Each message has `role` and `content`. A message of the assistant may have"
            f" `tool_calls` (arguments are {how}) and `weight` (0 means not to be learned). A tool"
            " result has the `name` of its tool",
        ),
        Column("tools", "string", "the schemas of the tools, as JSON text"),
    )


def demonstration_export(
    env_id: str,
    parts: Sequence[Part],
    facts: Mapping[str, str],
    left_out: Sequence[LeftOut] = (),
    *,
    seed: int = 0,
    recoveries: float = 0.0,
    arguments: Arguments = "text",
    final: str = LAST_WORD,
    progress: Progress | None = None,
) -> Export:
    """Return the expert's transcripts of the tasks in the given parts as a table.

    Args:
        env_id: Id of the environment.
        parts: Splits of the environment with their tasks.
        facts: Facts for the card, by name.
        left_out: Tasks that have already been refused.
        seed: Seed of the situations that the expert is given.
        recoveries: Probability that a call first fails and is then corrected, from 0 to 1.
        arguments: Format of call arguments.
        final: Text of a final assistant turn without a call, for trainers that continue until such
            a turn. If empty, no turn is added.
        progress: Function that is called with the number of episodes played and the total.
    """
    left, done = list(left_out), 0
    player, total = RecoveringExpert(seed, recoveries), sum(len(part.tasks) for part in parts)

    def rows(part: Part) -> Iterator[Row]:
        nonlocal done
        env = part.env
        for _ in play_episodes(env, player, first_tries(part.tasks.ids, seed)):
            done += 1
            if progress is not None:
                progress(done, total)
            task_id = env.episode.task.id
            if env.episode.ledger.correct:
                messages = transcript(env, final or None)
                yield {"task_id": task_id, **chat_of(env, messages, arguments)}
            else:
                reason = "the expert's answer is not correct."
                left.append(LeftOut(part.split, task_id, NOT_SOLVED, reason))

    return Export(
        title=f"Demonstrations of {env_id}",
        about="Transcripts of the environment's expert, only those with a correct answer.",
        columns=(Column("task_id", "string", "the task"), *message_columns(arguments)),
        splits={part.split: rows(part) for part in parts},
        facts=facts,
        left_out=left,
        notes=notes(arguments),
    )


def chat_of(env: ToolEnv[Any], messages: Sequence[Message], arguments: Arguments) -> Row:
    """Return the columns of `message_columns` for a transcript."""
    written = [dict(message) for message in messages]
    for message in written if arguments == "text" else ():
        if "tool_calls" in message:
            functions = [call["function"] for call in message["tool_calls"]]
            message["tool_calls"] = [
                {"type": "function", "function": {**f, "arguments": json_text(f["arguments"])}}
                for f in functions
            ]
    return {"messages": written, "tools": json_text(env.tool_schemas())}


def notes(arguments: Arguments) -> tuple[str, ...]:
    """Return the card's paragraphs about training with transcripts."""
    check = (
        'Before training, run `adapters.trl.check_format(dataset["train"], tokenizer)`. It renders'
        " every row with the chat template and raises an error for a dropped call, a null among"
        " arguments, or arguments that are encoded twice."
    )
    other = (
        "If arguments are encoded twice, export again with `--arguments object`."
        if arguments == "text"
        else "The `Json` type of `datasets` returns objects with their own keys. It may change the"
        " last digits of numbers, which `--arguments text` keeps."
    )
    return (check, other)
