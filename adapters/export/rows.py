"""Tasks as rows for TRL, verl and SkyRL.

A row identifies a task, which the trainer's environment loads. The prompt depends on the trainer.
For TRL the user message is empty, since TRL appends the text that `reset` returns. For verl and
SkyRL the prompt is only the question, since their environments add the system message, the tools
and the budget. verl 0.9 passes `extra_info` to the agent loop that `agent_name` specifies;
SkyRL-gym 0.4 passes all columns to the class that `env_class` specifies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from adapters.export.tables import MESSAGE, Column, Export, LeftOut, Row, json_text
from adapters.export.tasks import Part
from adapters.trl.datasets import open_prompt
from toolgym.tasks import Task

Trainer = Literal["trl", "verl", "skyrl"]
AGENT_LOOP, ENV_CLASS = "toolgym_agent", "toolgym"
"""Names of verl's agent loop and of SkyRL-gym's environment class."""

_PLAYED: Final = {"env_id": "string", "task_id": "string", "env_kwargs": "string"}
_SOURCE: Final = Column(
    "data_source", "string", "the id of the environment, by which metrics are grouped"
)
_QUESTION: Final = Column(
    "prompt", [MESSAGE], "the bare question; the environment writes the real prompt"
)
_COLUMNS: Final = {
    "trl": (
        Column("prompt", [MESSAGE], "a system message and a user message that `reset` fills"),
        Column("task_id", "string", "the task, for `reset`"),
    ),
    "verl": (
        _SOURCE,
        Column("agent_name", "string", "the agent loop that plays the row"),
        _QUESTION,
        Column("ability", "string", "the family of the environment"),
        Column(
            "reward_model",
            {"style": "string", "ground_truth": "string"},
            "required by verl; empty, because the environment computes the score",
        ),
        Column(
            "extra_info",
            {"index": "int64", "split": "string", **_PLAYED},
            "the task, and the environment with its arguments as JSON text",
        ),
    ),
    "skyrl": (
        _SOURCE,
        Column("env_class", "string", "the SkyRL-gym environment class that plays the row"),
        _QUESTION,
        Column("env_id", "string", "the environment's id"),
        Column("task_id", "string", "the task"),
        Column("env_kwargs", "string", "the environment's arguments, as JSON text"),
    ),
}
_NOTES: Final = {
    "trl": "For `GRPOTrainer(train_dataset=...)` with `adapters.trl.environment_factory` of the"
    " same environment, arguments and split.",
    "verl": f"The agent loop `{AGENT_LOOP}` makes the environment, resets it with"
    " `extra_info.task_id`, passes each message to `step`, and uses `finish()` as the reward.",
    "skyrl": f"The environment class `{ENV_CLASS}` writes the prompt in `init` and passes each"
    " message to `step`. Set `generator.max_turns`; its default is 1.",
}


def task_export(
    env_id: str,
    parts: Sequence[Part],
    facts: Mapping[str, str],
    left_out: Sequence[LeftOut] = (),
    *,
    trainer: Trainer = "trl",
) -> Export:
    """Return the tasks of the given splits as a table for a trainer."""

    def row(part: Part, task: Task, place: int) -> Row:
        if trainer == "trl":
            return {"prompt": open_prompt(part.env), "task_id": task.id}
        env_kwargs = json_text(dict(part.env_kwargs))
        played = {"env_id": env_id, "task_id": task.id, "env_kwargs": env_kwargs}
        common = {
            "data_source": env_id,
            "prompt": [{"role": "user", "content": task.question}],
        }
        if trainer == "skyrl":
            return {**common, "env_class": ENV_CLASS, **played}
        return {
            **common,
            "agent_name": AGENT_LOOP,
            "ability": env_id.partition("/")[0],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": place, "split": part.split, **played},
        }

    def rows(part: Part) -> Iterator[Row]:
        for place, task in enumerate(part.tasks):
            yield row(part, task, place)

    return Export(
        title=f"Tasks of {env_id} for {trainer}",
        about=f"One row for each task that can be played, in the row format of {trainer}.",
        columns=_COLUMNS[trainer],
        splits={part.split: rows(part) for part in parts},
        facts=facts,
        left_out=list(left_out),
        notes=(_NOTES[trainer],),
    )
