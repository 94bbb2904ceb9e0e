"""The random policy: what it calls is allowed by the tools' schemas, and the same for a seed."""

import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolgym import Task, TaskSet, ToolEnv, policies, rollout, tool
from toolgym.errors import ConfigurationError


class Side(enum.Enum):
    LEFT = "left"
    RIGHT = "right"


class Place(BaseModel):
    row: Annotated[int, Field(ge=1, le=3)]
    side: Side
    label: str = ""


class BoundsEnv(ToolEnv[Task]):
    """Values of many types."""

    def begin(self, task: Task) -> str:
        return "one two three 4"

    @tool
    def numbers(
        self,
        copies: Annotated[int, Field(ge=1, le=5)],
        below: Annotated[int, Field(ge=0, lt=2)],
        above: Annotated[int, Field(gt=500)],
        negative: Annotated[int, Field(lt=-3)],
        share: Annotated[float, Field(ge=0, le=1)],
        flag: bool,
    ) -> str:
        """Take numbers.

        Args:
            copies: Some.
            below: Few.
            above: Many.
            negative: Less than nothing.
            share: A part.
            flag: Yes or no.
        """
        return "taken"

    @tool
    def choices(
        self,
        mode: Literal["fast", "slow"],
        either: int | None,
        text: str | int,
        rows: list[Annotated[int, Field(ge=7, le=8)]],
        place: Place,
        anything: list[Any],
    ) -> str:
        """Take choices.

        Args:
            mode: One of two.
            either: Or nothing.
            text: A word.
            rows: Numbers.
            place: A place.
            anything: Whatever.
        """
        return "taken"


@pytest.fixture
def env():
    tasks = TaskSet([Task(f"task-{i}", "Which?") for i in range(2)])
    return BoundsEnv(tasks, step_limit=200, parsing="strict")


def test_random_values_are_of_the_types_and_within_the_bounds_of_the_schema(env):
    record = rollout.play(env, policies.RandomPolicy(), task_id="task-0")
    assert len(record.turns) == 200
    assert {turn.observation.splitlines()[0] for turn in env.episode.turns} == {"taken"}


def test_a_bounded_value_takes_every_value_that_it_may(env):
    rollout.play(env, policies.RandomPolicy(), task_id="task-0")
    calls = [call.arguments for turn in env.episode.turns for call in turn.calls]
    assert {each["copies"] for each in calls if "copies" in each} == {1, 2, 3, 4, 5}
    assert {each["mode"] for each in calls if "mode" in each} == {"fast", "slow"}
    assert {type(each["text"]) for each in calls if "text" in each} == {str}


class Branch(BaseModel):
    branches: list["Branch"]


class TreeEnv(ToolEnv[Task]):
    """Values that hold their own kind."""

    def begin(self, task: Task) -> str:
        return "one two three 4"

    @tool
    def plant(self, trees: list[Branch]) -> str:
        """Plant trees.

        Args:
            trees: The trees.
        """
        return f"{len(trees)} planted"


def test_a_random_value_of_a_type_that_holds_itself_ends():
    record = rollout.play(TreeEnv(TaskSet([Task("a", "?")])), "random", seed=0)
    assert record.turns[0]["observation"] == "1 planted"


@pytest.mark.parametrize("name", ["x" * 5000, "x\0y"])
def test_a_text_that_can_be_no_file_is_no_policy(name):
    with pytest.raises(ConfigurationError, match="there is no policy"):
        policies.load(name)
