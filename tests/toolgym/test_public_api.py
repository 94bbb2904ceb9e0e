"""The names of `toolgym`, and the one base class of the exceptions of all packages."""

import importlib

import pytest

import toolgym
from toolgym import ConfigurationError, ToolEnv, ToolgymError


def test_dir_lists_the_public_names_and_no_others():
    assert dir(toolgym) == sorted(toolgym.__all__)
    assert {"ToolEnv", "tool", "make", "play", "evaluate", "__version__"} <= set(dir(toolgym))
    assert all(getattr(toolgym, name) is not None for name in dir(toolgym))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'toolgym' has no attribute 'nothing'"):
        _ = toolgym.nothing


EXCEPTIONS = [
    "toolgym.errors:ConfigurationError",
    "toolgym.errors:EnvironmentFault",
    "toolgym.errors:TaskRefused",
    "toolgym.errors:ToolError",
    "toolgym.plugins:PluginError",
    "toolgym.chat:ChatFault",
    "toolgym.testing:ContractBroken",
    "aflowgym.sandbox.base:SandboxRefused",
    *(
        pytest.param(place, marks=pytest.mark.torch)
        for place in (
            "adapters.training.guards.fault_limit:TrainingStopped",
            "adapters.trl.environment:CallRefused",
        )
    ),
]


@pytest.mark.parametrize("place", EXCEPTIONS)
def test_every_exception_that_reaches_a_caller_has_one_base_class(place):
    module, name = place.split(":")
    assert issubclass(getattr(importlib.import_module(module), name), ToolgymError)


def test_a_class_without_begin_fails_when_it_is_made_and_an_intermediate_class_may_lack_it():
    class Base(ToolEnv):
        """An intermediate class."""

    class Whole(Base):
        """A class that can be made."""

        def begin(self, task):
            return task.question

    tasks = toolgym.TaskSet([toolgym.Task("a", "Say hi.")])
    assert Whole(tasks).reset(seed=0)[0].startswith("Say hi.")
    with pytest.raises(ConfigurationError, match=r"Base has no method `begin\(self, task\)`"):
        Base(tasks)
