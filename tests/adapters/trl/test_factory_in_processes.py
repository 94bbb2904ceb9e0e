"""The class of `environment_factory` in another process, which TRL sends it to as a pickle."""

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

import gymnasium as gym
import pytest

from adapters.trl import environment_factory
from tests.adapters.conftest import NOTES, NotesEnv
from toolgym import ConfigurationError, registration

FEW = "trl-tests/Few-v0"
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("read", (), {"note": "a", "sql": None}),
    ("read", (), {"nte": "a"}),
    ("read", ("b",), {}),
    ("count", (), {}),
    ("answer", (), {"value": 11}),
]


class ShorterName(environment_factory(NOTES)):  # type: ignore[misc]
    """A subclass with a name in a module."""


def play(factory: Callable[[], Any]) -> list[Any]:
    """Play an episode with right and wrong arguments; the results and the reward."""
    environment = factory()
    told = [environment.reset(task_id="note-1")]
    told += [getattr(environment, name)(*args, **kwargs) for name, args, kwargs in CALLS]
    return [*told, environment.get_reward()]


def name_of(factory: Any) -> str:
    return str(factory.__name__)


def are_one_class(*pickles: bytes) -> bool:
    return len({pickle.loads(each) for each in pickles}) == 1


@pytest.fixture(scope="module")
def process() -> Iterator[Executor]:
    """A process that has imported nothing yet."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def few() -> Iterator[str]:
    """An environment that no other process has registered."""
    gym.register(id=FEW, entry_point=NotesEnv, kwargs={"size": 2})
    yield FEW
    gym.registry.pop(FEW)


@pytest.mark.integration
@pytest.mark.parametrize("env_id", [NOTES, f"tests.adapters.conftest:{NOTES}"])
def test_a_spawned_process_plays_and_scores_as_the_environment(
    process: Executor, env_id: str
) -> None:
    env = registration.make(env_id, step_limit=7)
    told = [env.reset(options={"task_id": "note-1"})[0]]
    told += [env.call(name, *args, **kwargs) for name, args, kwargs in CALLS]
    factory = environment_factory(env_id, step_limit=7)
    assert process.submit(play, factory).result() == [*told, env.finish()]


@pytest.mark.integration
def test_a_spawned_process_plays_what_only_its_parent_registered(
    process: Executor, few: str
) -> None:
    factory = environment_factory(few)
    assert process.submit(play, factory).result() == play(factory)


@pytest.mark.integration
def test_two_pickles_of_a_class_are_one_class_in_a_spawned_process(process: Executor) -> None:
    one, other = environment_factory(NOTES), environment_factory(NOTES)
    assert process.submit(are_one_class, pickle.dumps(one), pickle.dumps(one)).result()
    assert not process.submit(are_one_class, pickle.dumps(one), pickle.dumps(other)).result()


@pytest.mark.integration
def test_a_class_keeps_the_name_that_rewards_are_logged_under(process: Executor) -> None:
    factory = environment_factory(NOTES)
    factory.__name__ = "OtherNotes"
    assert process.submit(name_of, factory).result() == "OtherNotes"


def test_a_pickle_that_comes_back_is_the_class_itself() -> None:
    factory = environment_factory(NOTES)
    assert pickle.loads(pickle.dumps(factory)) is factory


def test_a_subclass_in_a_module_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(ShorterName)) is ShorterName


def test_an_argument_that_cannot_be_pickled_is_refused_with_a_cure() -> None:
    factory = environment_factory(NOTES, size=3, folder=lambda: "/")
    with pytest.raises(
        ConfigurationError, match=r"trl-tests/Notes-v0 cannot .* arguments that can"
    ):
        pickle.dumps(factory)


def test_an_entry_point_that_cannot_be_pickled_is_refused_with_a_cure() -> None:
    gym.register(id=FEW, entry_point=lambda **options: NotesEnv(**options))
    try:
        with pytest.raises(ConfigurationError, match=r"trl-tests/Few-v0 cannot .*MODULE:ID"):
            pickle.dumps(environment_factory(FEW))
    finally:
        gym.registry.pop(FEW)
