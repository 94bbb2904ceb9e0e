"""Different environments in one run of TRL's `GRPOTrainer`."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from datasets import concatenate_datasets
from trl import GRPOConfig

from adapters.trl import environment_factory, training_dataset
from adapters.trl.response_reading import with_call_reading
from tests.adapters.trl.scripted_trl import NOTES, SETTINGS, Scripted, call
from toolgym import Task, TaskSet, ToolEnv, tool

DOORS = "trl-tests/Doors-v0"


class DoorsEnv(ToolEnv[Task]):
    """Open the right door."""

    def __init__(self, **options: Any) -> None:
        super().__init__(TaskSet([Task("left", "Left or right?")]), **options)

    def begin(self, task: Task) -> str:
        return task.question

    @tool(terminal=True)
    def enter(self, side: str) -> str:
        """Enter a door.

        Args:
            side: Which one.
        """
        return self.submit(side == self.task.id)


@pytest.fixture
def doors() -> Iterator[str]:
    gym.register(id=DOORS, entry_point=DoorsEnv)
    yield DOORS
    gym.registry.pop(DOORS)


def test_a_data_set_names_the_environment_of_its_rows(doors: str) -> None:
    rows = concatenate_datasets(
        [training_dataset(env_id, environment=env_id) for env_id in (NOTES, doors)]
    )
    assert rows["environment"] == [NOTES] * 7 + [doors]


@pytest.mark.torch
@pytest.mark.integration
def test_each_environment_of_a_batch_has_its_own_tools_and_its_own_rewards(
    doors: str, tiny_model: Any, tokenizer: Any, tmp_path: Any
) -> None:
    names = {"notes": NOTES, "doors": doors}
    rows = [training_dataset(names[name], n=1, environment=name) for name in names]
    settings = {**SETTINGS, "per_device_train_batch_size": 8, "shuffle_dataset": False}
    trainer = Scripted(
        model=tiny_model,
        processing_class=with_call_reading(tokenizer),
        args=GRPOConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none", **settings),
        train_dataset=concatenate_datasets(rows),
        environment_factory={name: environment_factory(names[name]) for name in names},
    )

    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        number = 10 + int(inputs[0]["task_id"].rpartition("-")[2])
        right = {"notes": call("answer", value=number), "doors": call("enter", side="left")}
        other = {"notes": call("enter", side="left"), "doors": call("answer", value=number)}
        names = [row["environment"] for row in inputs]
        return [[right[name]] if n % 2 else [other[name]] for n, name in enumerate(names)]

    trainer.script = script
    trainer.train()
    rewards = {name: list(values) for name, values in trainer._logs["rewards"].items()}
    nothing = pytest.approx([float("nan")] * 4, nan_ok=True)
    assert rewards["NotesEnvironment"][4:] == nothing
    assert rewards["DoorsEnvironment"][:4] == nothing
    for scores in (rewards["NotesEnvironment"][:4], rewards["DoorsEnvironment"][4:]):
        assert scores[1] == scores[3] == 1.0
        assert scores[0] == scores[2] < 0
    offered = [trainer.processing_class.decode(ids) for ids in trainer.output["prompt_ids"]]
    assert ["enter" in text for text in offered] == [False] * 4 + [True] * 4
