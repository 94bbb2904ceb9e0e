"""What is known of an environment by its id, before one is made."""

import gymnasium as gym
import pytest

from toolgym import ConfigurationError, Task, TaskSet, ToolEnv
from toolgym.family import TaskFamily
from toolgym.registration import environment_creator, family_of


class Cards(TaskFamily):
    kinds = ("tasks", "decks")


class Never(ToolEnv):
    """An environment that fails when it is made."""

    family = Cards()

    def __init__(self):
        raise AssertionError("it was made")

    def begin(self, task):
        return task.question


def made_by_a_function():
    return ToolEnv(TaskSet([Task("a", "Say hi.")]))


@pytest.fixture(autouse=True)
def registered():
    gym.register("toy/Never-v0", entry_point=Never)
    gym.register("toy/Function-v0", entry_point=made_by_a_function)
    gym.register("toy/Gone-v0", entry_point="toolgym:Gone")
    yield
    for name in ("Never", "Function", "Gone"):
        del gym.registry[f"toy/{name}-v0"]


def test_a_family_is_found_without_an_environment_being_made():
    assert environment_creator("toy/Never-v0") is Never
    assert family_of("toy/Never-v0") is Never.family


def test_an_environment_that_a_function_makes_has_the_family_that_knows_any_task():
    assert type(family_of("toy/Function-v0")) is TaskFamily


def test_an_environment_whose_class_is_gone_is_refused_with_a_cure():
    with pytest.raises(ConfigurationError, match=r"cannot be imported .* Install its package"):
        family_of("toy/Gone-v0")
