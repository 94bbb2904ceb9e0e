"""The class that TRL gets: what it shows, what it takes, and what never gets out of it."""

import inspect
import math
from pathlib import Path
from typing import Annotated, Any, Literal

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from adapters.trl import CallRefused, RolloutEnvironment, environment_factory
from adapters.trl.environment import json_type, tool_method
from toolgym import ConfigurationError, Task, TaskSet, ToolEnv
from toolgym.tools import read_spec

NOTES = "trl-tests/Notes-v0"


@pytest.fixture
def environment() -> RolloutEnvironment:
    made = environment_factory(NOTES)()
    made.reset(task_id="note-1")
    return made


def public_functions(cls: type) -> set[str]:
    """What TRL finds: the functions of the class without an underscore."""
    members = inspect.getmembers(cls, predicate=inspect.isfunction)
    return {name for name, _ in members if not name.startswith("_")}


def test_nothing_but_the_tools_and_two_hooks_is_public(environment: RolloutEnvironment) -> None:
    tools = {"read", "count", "answer", "explode"}
    assert public_functions(type(environment)) == tools | {"reset", "get_reward"}


def test_the_class_is_named_after_the_environment() -> None:
    assert environment_factory(NOTES).__name__ == "NotesEnvironment"


@pytest.mark.torch
def test_trl_reads_the_schemas_of_the_tools(environment: Any) -> None:
    utils = pytest.importorskip("transformers.utils", reason="needs the extra `train`")
    for schema in environment._playing.tool_schemas():
        function = schema["function"]
        seen = utils.get_json_schema(getattr(environment, function["name"]))["function"]
        assert seen["description"] == function["description"]
        assert set(seen["parameters"]["properties"]) == set(function["parameters"]["properties"])
        assert seen["parameters"].get("required", []) == function["parameters"].get("required", [])
        for name, declared in function["parameters"]["properties"].items():
            assert seen["parameters"]["properties"][name]["description"] == declared["description"]


@pytest.mark.torch
def test_trl_reads_the_types_of_the_tools(environment: Any) -> None:
    utils = pytest.importorskip("transformers.utils", reason="needs the extra `train`")
    count = utils.get_json_schema(environment.count)["function"]["parameters"]["properties"]
    assert [count["text"]["type"], count["twice"]["type"]] == ["string", "boolean"]
    answer = utils.get_json_schema(environment.answer)["function"]["parameters"]["properties"]
    kinds = [option["type"] for option in answer["value"]["anyOf"]]
    assert kinds == ["string", "integer", "number", "boolean", "array"]


def test_a_signature_tells_the_defaults(environment: Any) -> None:
    assert str(inspect.signature(environment.count)) == "(text: str, *, twice: bool = False)"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (Annotated[str, "SQL"], str),
        (list[Annotated[int, "n"]], list[int]),
        (tuple[int, str], list),
        (set[str], list[str]),
        (dict[str, list[Any]], dict[str, list[Any]]),
        (Literal["a", "b"] | None, Literal["a", "b"] | None),
        (Task, dict),
        (Path, str),
        (Any, Any),
        (frozenset, list[Any]),
    ],
    ids=str,
)
def test_a_type_becomes_one_that_trl_can_express(written: Any, read: Any) -> None:
    schema = TypeAdapter(written).json_schema()
    assert json_type(schema, schema.get("$defs", {})) == read


def test_a_required_argument_may_follow_an_optional_one() -> None:
    def paint(self: Any, colour: str = "red", *, wall: str) -> str:
        """Paint a wall.

        Args:
            colour: Which colour.
            wall: Which wall.
        """
        return wall + colour

    signature = inspect.signature(tool_method(read_spec(paint)))
    assert str(signature) == "(self, /, *, colour: str = 'red', wall: str)"


def test_a_call_with_arguments_nobody_asked_for_runs(environment: Any) -> None:
    assert environment.read(note="a", sql=None, self=1, name="x", tool_name=None).endswith("is 11")
    assert environment.read("b").endswith("is 11")
    assert environment.read().startswith("error[missing_argument]")


def test_strict_parsing_raises_what_lenient_parsing_says() -> None:
    strict: Any = environment_factory(NOTES, parsing="strict")()
    strict.reset(task_id="note-1")
    with pytest.raises(CallRefused, match="sql"):
        strict.read(note="a", sql=None)
    assert strict.read(note="a").endswith("is 11")


def test_reset_takes_any_row_and_returns_the_user_message(environment: RolloutEnvironment) -> None:
    question = environment.reset(task_id="note-2", prompt=[{"role": "user", "content": ""}], x=None)
    assert question.startswith("Which number is in note 2?\nYou have 15 calls")
    prompt = [{"role": "user", "content": "Do this."}]
    assert environment.reset(task_id="note-2", prompt=prompt) == "\n" + question


def test_a_row_without_a_task_has_its_seed_decide(environment: RolloutEnvironment) -> None:
    again = environment_factory(NOTES)()
    questions = [environment.reset(seed=seed) for seed in range(8)]
    assert [again.reset(seed=seed) for seed in range(8)] == questions
    assert len(set(questions)) > 1


def test_without_task_and_seed_all_instances_draw_the_same_tasks() -> None:
    factory = environment_factory(NOTES)
    one, other = factory(), factory()
    questions = [one.reset() for _ in range(8)]
    assert [other.reset() for _ in range(8)] == questions
    assert len(set(questions)) > 1


def test_the_reward_is_the_score_and_asking_twice_changes_nothing(environment: Any) -> None:
    environment.answer(value=11)
    assert environment.get_reward() == environment.get_reward() == 1.0


def test_an_episode_without_an_answer_is_closed_by_asking_for_its_reward(environment: Any) -> None:
    assert environment.get_reward() == -0.05
    assert environment.answer(value=11).startswith("error[episode_over]")


@pytest.mark.parametrize("row", [{"task_id": "nowhere"}, {"seed": "soon"}])
def test_a_row_that_cannot_be_played_is_left_out(environment: Any, row: dict[str, Any]) -> None:
    told = environment.reset(**row)
    assert environment.read(note="a") == environment.answer(value=1) == told
    assert environment.get_reward() is None
    assert len(environment._tally.faults) == 1
    environment.reset(task_id="note-1")
    assert environment.get_reward() is not None


def test_for_a_refused_task_the_next_playable_one_is_played(environment: Any) -> None:
    ids = environment._playing.tasks.ids
    following = ids[(ids.index("unfair") + 1) % len(ids)]
    told = [environment.reset(task_id=task_id) for task_id in ("unfair", following)]
    assert told[0] == told[1]


def test_nothing_is_played_before_the_first_reset() -> None:
    environment: Any = environment_factory(NOTES)()
    assert "not counted" in environment.read(note="a")
    assert environment.get_reward() is None


def test_a_fault_of_the_machine_is_no_reward_and_no_exception(notes_folder: Path) -> None:
    environment: Any = environment_factory(NOTES, folder=notes_folder)()
    environment.reset(task_id="note-3")
    (notes_folder / "note-3").unlink()
    assert "not counted" in environment.read(note="note-3")
    assert "not counted" in environment.answer(value=13)
    assert environment.get_reward() is None
    assert "note-3" in environment._tally.faults[-1]


def test_an_exception_nobody_foresaw_is_no_reward_and_counted_once(environment: Any) -> None:
    environment.explode()
    environment.explode()
    assert environment.get_reward() is None
    assert (environment._tally.rollouts, len(environment._tally.faults)) == (1, 1)


def test_an_interrupt_is_not_swallowed(environment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> bool:
        raise KeyboardInterrupt("by hand")

    monkeypatch.setattr(environment._playing, "call", interrupted)
    with pytest.raises(KeyboardInterrupt, match="by hand"):
        environment.read(note="a")


NOTES_FACTORY = environment_factory(NOTES)


@settings(max_examples=25)
@given(
    st.sampled_from(["read", "count", "answer"]),
    st.lists(st.none() | st.integers() | st.text(), max_size=3),
    st.dictionaries(
        st.text(),
        st.recursive(st.none() | st.floats() | st.text(), st.lists, max_leaves=4),
        max_size=4,
    ),
)
def test_no_arguments_at_all_make_a_tool_raise(name: str, args: Any, kwargs: Any) -> None:
    environment: Any = NOTES_FACTORY()
    environment.reset(task_id="note-1")
    assert isinstance(getattr(environment, name)(*args, **kwargs), str)
    assert math.isfinite(environment.get_reward())


def test_an_unknown_environment_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="Nots"):
        environment_factory("trl-tests/Nots-v0")


def test_an_unknown_argument_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="sizes"):
        environment_factory(NOTES, sizes=3)


def test_a_tool_that_trl_would_hide_is_refused() -> None:
    class Doors(ToolEnv[Task]):
        """Open doors."""

        def __init__(self, **options: Any) -> None:
            super().__init__(TaskSet([Task("a", "?")]), **options)

        def begin(self, task: Task) -> str:
            return task.question

    def reset(self: Any) -> str:
        """Close all doors."""
        return "closed"

    Doors.tools = {"reset": read_spec(reset)}
    gym.register(id="trl-tests/Doors-v0", entry_point=Doors)
    try:
        with pytest.raises(ConfigurationError, match=r"\['reset'\] .* rename"):
            environment_factory("trl-tests/Doors-v0")
    finally:
        gym.registry.pop("trl-tests/Doors-v0")


def test_the_database_environment_is_offered_too() -> None:
    environment: Any = environment_factory("sqlgym/Explore-v0", dataset="tiny")()
    assert "Tables:" in environment.reset()
    table = environment._playing.example_call("describe")["arguments"]["table_name"]
    assert table.lower() in environment.describe(table=table, sql=None, value=None).lower()
    assert environment.answer(value=None).startswith("error[")
    assert environment.get_reward() < 0.4
