"""The expert's transcripts as chat messages with tool calls, for supervised training.

They are played through the real environment, so a model reads the same text when it imitates as
when it acts. Only episodes with a right answer become rows. With `recoveries`, some calls fail and
are then mended; the assistant's message of a failed call has `"weight": 0`, and a trainer has to
leave it out of the loss.

A message has the keys that it needs and no others. Arguments are JSON text, as servers send them,
or objects: some chat templates write a text unchanged, and some encode it once more, so that a
model would learn to send a JSON string instead of an object; `adapters.trl.check_format` finds out.
Objects have the `Json` type of `datasets`, which loses digits of some numbers.
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
"""Code of an episode that is left out because its answer was not right."""


def message_columns(arguments: Arguments) -> tuple[Column, ...]:
    """The columns of a transcript."""
    how = "JSON text" if arguments == "text" else "objects"
    return (
        Column(
            "messages",
            ["json"],
            "the chat: each message has `role` and `content`, an assistant's may have `tool_calls`"
            f" (arguments are {how}) and `weight` (0: not to be learned), a result has the `name`"
            " of its tool",
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
    """The expert's transcripts of the tasks of some parts, as a table.

    Args:
        env_id: The environment.
        parts: Its splits, with their tasks.
        facts: Facts for the card.
        left_out: Tasks that were refused before.
        seed: Seed of the expert's situations.
        recoveries: Probability that a call fails first and is then mended, 0 to 1.
        arguments: Format of the arguments of calls.
        final: Text of a last assistant's turn without a call, which trainers need that continue
            until such a turn; empty for none.
        progress: Called with the number of episodes played, and of all episodes.
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
                reason = "the expert's answer was not right."
                left.append(LeftOut(part.split, task_id, NOT_SOLVED, reason))

    return Export(
        title=f"Demonstrations of {env_id}",
        about="The transcripts of the environment's own expert, right answers only.",
        columns=(Column("task_id", "string", "the task"), *message_columns(arguments)),
        splits={part.split: rows(part) for part in parts},
        facts=facts,
        left_out=left,
        notes=notes(arguments),
    )


def chat_of(env: ToolEnv[Any], messages: Sequence[Message], arguments: Arguments) -> Row:
    """The columns of `message_columns`."""
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
    """Paragraphs of a card on training with transcripts."""
    check = (
        'Before training, `adapters.trl.check_format(dataset["train"], tokenizer)` renders every'
        " row by the chat template and fails on a dropped call, a null among its arguments, or"
        " arguments that are encoded twice."
    )
    other = (
        "If it finds them encoded twice, export again with `--arguments object`."
        if arguments == "text"
        else "The `Json` type of `datasets` returns objects with their own keys; it may change the"
        " last digits of numbers, which `--arguments text` keeps."
    )
    return (check, other)
