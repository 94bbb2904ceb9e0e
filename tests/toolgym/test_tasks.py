"""Views of tasks compose, copy nothing, and share what is refused."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgym.errors import ConfigurationError, TaskRefused
from toolgym.tasks import Task, TaskSet


def tasks(n=20, items=5, verify=None):
    made = [Task(f"t{i}", f"question {i}?", item=f"db{i % items}") for i in range(n)]
    return TaskSet(made, name="toy", verify=verify)


def refuse_odd(task):
    if int(task.id[1:]) % 2:
        raise TaskRefused(task.id, "odd", "it is odd.")


def test_views_compose_in_the_order_they_are_written():
    view = tasks().filter(lambda task: task.item == "db1")[1:][:2]
    assert view.ids == ["t6", "t11"]
    assert len(tasks()[3:5]) == 2
    assert tasks()[-1].id == "t19"


@given(seed=st.integers(0, 2**64), other=st.integers(0, 2**64))
def test_a_shuffle_keeps_every_task_and_a_second_one_builds_on_the_first(seed, other):
    once = tasks().shuffle(seed)
    assert sorted(once.ids) == sorted(tasks().ids)
    assert once.ids == tasks().shuffle(seed).ids
    assert sorted(once.shuffle(other).ids) == sorted(once.ids)


@given(seed=st.integers(0, 1000))
def test_a_split_never_cuts_through_an_item(seed):
    parts = tasks(n=50, items=10).split({"train": 0.7, "dev": 0.3}, seed=seed)
    train, dev = ({task.item for task in part} for part in parts.values())
    assert not train & dev
    assert len(train) == 7
    assert len(dev) == 3


def test_shares_that_do_not_sum_to_one_are_refused():
    with pytest.raises(ConfigurationError, match="sum to 1"):
        tasks().split({"train": 0.5, "dev": 0.1})


@given(seed=st.integers(0, 2**63))
def test_a_seed_draws_one_playable_task_and_always_the_same(seed):
    drawn = tasks(verify=refuse_odd).draw(seed)
    assert int(drawn.id[1:]) % 2 == 0
    assert drawn == tasks(verify=refuse_odd).draw(seed)


def test_the_task_of_a_seed_is_pinned_across_versions():
    assert [tasks(1000).draw(seed).id for seed in range(3)] == ["t552", "t636", "t50"]


def test_a_refused_task_is_refused_in_every_view_and_says_why():
    whole = tasks(verify=refuse_odd)
    view = whole.filter(lambda task: task.item == "db1")
    with pytest.raises(TaskRefused, match=r"'t1' is refused \[odd\]: it is odd"):
        view.require("t1")
    assert list(whole.refused) == ["t1"]
    with pytest.raises(TaskRefused, match="odd"):
        whole.require("t1")


def test_verification_is_lazy_and_happens_once():
    verified = []
    whole = tasks(verify=lambda task: verified.append(task.id))
    assert verified == []
    whole.require("t3")
    whole.shuffle(1).require("t3")
    assert verified == ["t3"]
    assert whole.first_playable(2).ids == ["t0", "t1"]
    assert verified == ["t3", "t0", "t1"]


def test_an_unknown_id_an_empty_set_and_a_hopeless_set_say_so():
    with pytest.raises(ConfigurationError, match="no task 'nope' in toy"):
        tasks().get("nope")
    with pytest.raises(ConfigurationError, match="toy has no tasks"):
        tasks(0).draw(0)
    hopeless = tasks(verify=refuse_odd).filter(lambda task: int(task.id[1:]) % 2 == 1)
    with pytest.raises(ConfigurationError, match="no task of toy is playable: 10 "):
        hopeless.draw(0)


def test_a_refusal_that_is_raised_many_times_does_not_grow():
    whole = tasks(verify=refuse_odd)
    for _ in range(50):
        with pytest.raises(TaskRefused, match="odd") as caught:
            whole.require("t1")
    assert len(caught.traceback) < 5


def test_an_id_is_found_while_another_thread_looks_up_its_first():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            for whole in (tasks(5000) for _ in range(5)):
                assert {task.id for task in pool.map(whole.get, ["t4999"] * 4)} == {"t4999"}
    finally:
        sys.setswitchinterval(usual)
