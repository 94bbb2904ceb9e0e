"""Tasks as rows, in the formats of trainers: TRL, verl and SkyRL.

A row names its task; the environment of the trainer plays it. So all rollouts of a group get the
same question, and the prompt of a row is what that trainer needs of it: nothing for TRL, which adds
what `reset` returns, and the bare question for verl and SkyRL, whose environments write the system
message, the tools and the budget themselves.

verl 0.9 takes a row to the agent loop called `agent_name` and hands it `extra_info`; SkyRL-gym 0.4
takes it to the environment class `env_class` and hands it all other columns. Arguments of the
environment are JSON text: Arrow would pad them with nulls as it pads calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.export.tables import MESSAGE, Column, Export, LeftOut, Row, json_text
from adapters.export.tasks import Part
from adapters.trl.datasets import open_prompt
from toolgym.errors import ConfigurationError
from toolgym.tasks import Task

AGENT_LOOP, ENV_CLASS = "toolgym_agent", "toolgym"
"""By which names verl finds an agent loop and SkyRL-gym an environment class."""


@dataclass(frozen=True)
class RowFormat:
    """The row format of a trainer.

    Attributes:
        title: The trainer's name.
        columns: Of its rows.
        row: Makes a row of a task: environment id, part, task, and its place in the split.
        note: How the rows are used.
    """

    title: str
    columns: tuple[Column, ...]
    row: Callable[[str, Part, Task, int], Row]
    note: str


def _trl_row(env_id: str, part: Part, task: Task, place: int) -> Row:
    return {"prompt": open_prompt(part.env), "task_id": task.id}


def _verl_row(env_id: str, part: Part, task: Task, place: int) -> Row:
    return {
        "data_source": env_id,
        "agent_name": AGENT_LOOP,
        "prompt": [{"role": "user", "content": task.question}],
        "ability": env_id.partition("/")[0],
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {
            "index": place,
            "split": part.split,
            "env_id": env_id,
            "task_id": task.id,
            "env_kwargs": json_text(dict(part.env_kwargs)),
        },
    }


def _skyrl_row(env_id: str, part: Part, task: Task, place: int) -> Row:
    return {
        "data_source": env_id,
        "env_class": ENV_CLASS,
        "prompt": [{"role": "user", "content": task.question}],
        "env_id": env_id,
        "task_id": task.id,
        "env_kwargs": json_text(dict(part.env_kwargs)),
    }


_TASK_ID = Column("task_id", "string", "the task, for `reset`")
_QUESTION = Column("prompt", [MESSAGE], "the bare question; the environment writes the real prompt")
_SOURCE = Column("data_source", "string", "the environment's id, by which metrics are grouped")

ROW_FORMATS: Final[Mapping[str, RowFormat]] = {
    "trl": RowFormat(
        "TRL",
        (
            Column("prompt", [MESSAGE], "system message, and a user message that `reset` fills"),
            _TASK_ID,
        ),
        _trl_row,
        "For `GRPOTrainer(train_dataset=...)` with `adapters.trl.environment_factory`, which is to"
        " be given the same environment, arguments and split.",
    ),
    "verl": RowFormat(
        "verl",
        (
            _SOURCE,
            Column("agent_name", "string", "the agent loop that plays the row"),
            _QUESTION,
            Column("ability", "string", "the family of the environment"),
            Column(
                "reward_model",
                {"style": "string", "ground_truth": "string"},
                "what verl asks of every row; empty, since the environment scores",
            ),
            Column(
                "extra_info",
                {
                    "index": "int64",
                    "split": "string",
                    "env_id": "string",
                    "task_id": "string",
                    "env_kwargs": "string",
                },
                "what the agent loop plays: the task, the environment's id, and its arguments as"
                " JSON text",
            ),
        ),
        _verl_row,
        f"The rows name the agent loop `{AGENT_LOOP}`: it makes the environment, resets it with"
        " `extra_info.task_id`, hands each message to `step`, and takes `finish()` for the reward.",
    ),
    "skyrl": RowFormat(
        "SkyRL",
        (
            _SOURCE,
            Column("env_class", "string", "the SkyRL-gym environment class that plays the row"),
            _QUESTION,
            Column("env_id", "string", "the environment's id"),
            _TASK_ID,
            Column("env_kwargs", "string", "the environment's arguments, as JSON text"),
        ),
        _skyrl_row,
        f"The rows name the environment class `{ENV_CLASS}`: it gets all other columns, writes the"
        " prompt in `init`, and hands each message to `step`. Set `generator.max_turns`, which is 1"
        " by default.",
    ),
}
"""By what `--for` calls them."""


def task_export(
    env_id: str,
    parts: Sequence[Part],
    facts: Mapping[str, str],
    left_out: Sequence[LeftOut] = (),
    *,
    trainer: str = "trl",
) -> Export:
    """The tasks of some parts as a table for a trainer.

    Raises:
        ConfigurationError: The trainer has no row format here.
    """
    shape = row_format(trainer)

    def rows(part: Part) -> Iterator[Row]:
        for place, task in enumerate(part.tasks):
            yield shape.row(env_id, part, task, place)

    return Export(
        title=f"Tasks of {env_id} for {shape.title}",
        about=f"One row for each task that can be played, in the row format of {shape.title}.",
        columns=shape.columns,
        splits={part.split: rows(part) for part in parts},
        facts=facts,
        left_out=list(left_out),
        notes=(shape.note,),
    )


def row_format(trainer: str) -> RowFormat:
    """The row format of a trainer.

    Raises:
        ConfigurationError: There is none of that name.
    """
    if trainer not in ROW_FORMATS:
        raise ConfigurationError(f"--for must be one of {', '.join(ROW_FORMATS)}, got {trainer!r}.")
    return ROW_FORMATS[trainer]
