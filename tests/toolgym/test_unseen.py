"""What is unseen is computed from tasks; what is one set is divided so that nothing is shared."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgym import ConfigurationError, Task, TaskRefused, TaskSet
from toolgym.family import TaskFamily
from toolgym.unseen import divided, kinds_unseen, load_split, split_of, unseen

FAMILY = TaskFamily()


def tasks(*told: tuple[str, str, str]) -> TaskSet[Task]:
    """A set of (id, question, item)."""
    return TaskSet([Task(name, question, item) for name, question, item in told], name="mine")


def test_a_task_is_the_same_under_another_id_and_an_item_is_seen_with_any_task_of_it() -> None:
    training = tasks(("a", "Why?", "one"), ("b", "How?", "two"))
    others = tasks(("x", "Why?", "one"), ("y", "When?", "one"), ("z", "Why?", "three"))

    assert unseen(others, training, "tasks", FAMILY).ids == ["y", "z"]
    assert unseen(others, training, "items", FAMILY).ids == ["z"]
    assert kinds_unseen(others[1:], training, FAMILY.kinds, FAMILY) == ("tasks",)
    assert kinds_unseen(others[2:], training, FAMILY.kinds, FAMILY) == ("tasks", "items")
    assert kinds_unseen(others, training, FAMILY.kinds, FAMILY) == ()


def test_fields_of_a_subclass_tell_tasks_apart_in_whatever_order_they_were_filled() -> None:
    @dataclass(frozen=True)
    class Maze(Task):
        walls: frozenset[str] = frozenset()

    words = [f"wall {n}" for n in range(40)]
    training, same, other = (
        TaskSet([Maze(name, "Out?", walls=frozenset(walls))])
        for name, walls in (("a", words), ("b", words[::-1]), ("b", words[1:]))
    )

    assert len(unseen(same, training, "tasks", FAMILY)) == 0
    assert len(unseen(other, training, "tasks", FAMILY)) == 1


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("dev", None),
        ("dev-items", ("dev", "items")),
        ("my-own-tasks", ("my-own", "tasks")),
        ("-items", None),
    ],
)
def test_the_name_of_a_split_tells_its_kind(name: str, found: tuple[str, str] | None) -> None:
    assert split_of(name, FAMILY.kinds) == found


def test_a_split_of_a_kind_has_what_train_has_not_and_is_refused_where_that_is_nothing() -> None:
    sets = {
        "train": tasks(("a", "Why?", "one")),
        "dev": tasks(("b", "How?", "one"), ("c", "How?", "two")),
        "dev-tasks": tasks(("d", "Why?", "one"), ("e", "Who?", "one")),
    }

    assert load_split("dev", FAMILY, sets.__getitem__) is sets["dev"]
    assert load_split("dev-items", FAMILY, sets.__getitem__).ids == ["c"]
    assert load_split("dev-tasks", FAMILY, sets.__getitem__).ids == ["b", "c"]
    assert load_split("dev-tasks", FAMILY, sets.__getitem__, is_own=True).ids == ["e"]
    with pytest.raises(
        ConfigurationError, match="no split 'train-tasks': none of the 1 tasks of mine"
    ):
        load_split("train-tasks", FAMILY, sets.__getitem__)


# Dividing one set ---------------------------------------------------------------------------------

TOLD = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", "one", "two", "three"])),
    max_size=30,
)


@settings(max_examples=60)
@given(TOLD)
def test_the_parts_of_a_set_share_no_task_and_no_item_where_it_has_two(
    told: list[tuple[str, str]],
) -> None:
    whole = tasks(*((f"t{n}", *pair) for n, pair in enumerate(told)))

    parts = divided(whole, FAMILY)

    if len(set(told)) < 2:
        assert parts == {}
        return
    training, evaluation = parts["training"], parts["evaluation"]
    asked = [{(task.question, task.item) for task in part} for part in (training, evaluation)]
    assert asked[0]
    assert asked[1]
    assert not asked[0] & asked[1]
    assert len(evaluation) <= len(whole) / 2
    items = {item for _, item in told}
    if len(items) >= 2:
        own = [{task.item for task in part} - {""} for part in (training, evaluation)]
        assert not own[0] & own[1]
        assert len(training) + len(evaluation) == len(whole) or "" in items


def test_about_a_fifth_is_for_the_evaluation_and_never_the_largest_item() -> None:
    even = tasks(*((f"t{n}", f"{n}?", "") for n in range(1000)))
    uneven = tasks(*((f"t{n}", f"{n}?", "large" if n < 90 else "small") for n in range(100)))

    assert len(divided(even, FAMILY)["evaluation"]) == 200
    assert len(divided(uneven, FAMILY)["evaluation"]) == 10


def test_a_part_has_a_task_that_can_be_played_if_there_are_two() -> None:
    def verify(task: Task) -> None:
        if task.id not in ("t3", "t4"):
            raise TaskRefused(task.id, "unfair", "it is unfair.")

    for first in range(20):
        told = [Task(f"t{n}", f"{n + first}?") for n in range(9)]
        parts = divided(TaskSet(told, verify=verify), FAMILY)
        assert [len(part.playable()) for part in parts.values()] == [1, 1]


def test_another_process_with_another_hash_seed_divides_alike() -> None:
    code = (
        "from toolgym import Task, TaskSet; from toolgym.family import TaskFamily\n"
        "from toolgym.unseen import divided\n"
        "whole = TaskSet([Task(f't{n}', f'{n}?', extra={'x': {str(n), 'y'}}) for n in range(50)])\n"
        "print(divided(whole, TaskFamily())['evaluation'].ids)"
    )
    root = Path(__file__).resolve().parents[2]
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            cwd=root,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(told) == 1
    assert b"t" in told.pop()
