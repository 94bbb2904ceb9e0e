"""Dynamic sampling: what is kept and drawn, that it biases nothing, and that it resumes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.training.algorithms.dynamic_sampling import (
    TaskStream,
    fill,
)
from toolgym import ConfigurationError, Outcome
from toolgym.runs.metrics import METRICS

RIGHT, WRONG = Outcome(True, 10), Outcome(False, 0)
LIVE, DEAD = [RIGHT, WRONG], [WRONG, WRONG]


def filled(draws, places, *, max_draws=1000.0, exchange=None):
    """Fill a step from groups that are given in the order in which they are drawn."""
    left = iter(draws)
    asked: list[int] = []

    def draw(count):
        asked.append(count)
        return [next(left) for _ in range(count)]

    more = {} if exchange is None else {"exchange": exchange}
    return fill(places, max_draws, draw, list, **more), asked


# What is kept and what is drawn


def test_a_step_without_a_whole_group_is_refused():
    with pytest.raises(ConfigurationError, match="multiple of the group size"):
        filled([], 0)


def test_processes_draw_equally_often_until_the_emptiest_is_full_or_the_cap_is_reached():
    """The other process needs none; then it needs all, and its draws count for both."""
    for needy, rounds in ((0, [4]), (4, [4, 4, 2])):
        step, asked = filled(
            [LIVE] * 20, 4, max_draws=2.5, exchange=lambda own, n=needy: [own, (n, 0, own[2])]
        )
        assert (len(step.live), asked) == (4, rounds)


@settings(max_examples=40)
@given(st.lists(st.booleans(), min_size=60, max_size=60), st.integers(1, 6), st.integers(1, 9))
def test_every_place_is_filled_or_masked_and_nothing_is_counted_twice(fates, places, cap):
    step, _ = filled([LIVE if live else DEAD for live in fates], places, max_draws=cap)
    numbers = step.metrics

    assert len(step.live) + len(step.dead) == places
    assert all(group is LIVE for group in step.live)
    assert numbers["masked_groups"] == len(step.dead)
    assert numbers["drawn_groups"] <= cap * places
    drawn = fates[: int(numbers["drawn_groups"])]
    assert numbers["dropped_groups"] == drawn.count(False)
    assert numbers["surplus_groups"] == drawn.count(True) - len(step.live)
    assert not numbers.keys() - METRICS.keys()


# The stream of tasks


def test_a_stream_of_nothing_is_refused():
    with pytest.raises(ConfigurationError, match="at least one"):
        TaskStream(0, seed=0)


@settings(max_examples=40)
@given(st.integers(1, 4), st.sets(st.integers(0, 6), max_size=6), st.lists(st.integers(0, 5)))
def test_processes_pass_over_the_same_tasks_and_share_the_others(processes, refused, counts):
    def stream(**place):
        return TaskStream(7, seed=1, is_playable=lambda task: task not in refused, **place)

    streams = [stream(process=p, processes=processes) for p in range(processes)]
    rows = [[task for count in counts for task in each.take(count)] for each in streams]
    together = [task for turn in zip(*rows, strict=True) for task in turn]
    assert together == stream().take(len(together))
    assert not refused & set(together)
    playable = 7 - len(refused)
    for start in range(0, len(together) - playable + 1, playable):
        assert len(set(together[start : start + playable])) == playable
    assert len({str(each.state_dict()) for each in streams}) == 1


def test_a_stream_without_a_playable_task_ends_after_one_round():
    with pytest.raises(ConfigurationError, match="none of the 30 tasks"):
        TaskStream(30, seed=0, is_playable=lambda task: False).take(1)


# Resuming


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.sets(st.integers(0, 11), max_size=11),
    st.data(),
)
def test_tasks_go_on_from_a_checkpoint_as_if_nothing_had_happened(counts, refused, data):
    cut = data.draw(st.integers(0, len(counts)))
    unbroken, first, resumed = (
        TaskStream(12, seed=0, is_playable=lambda task: task not in refused) for _ in range(3)
    )
    expected = [unbroken.take(count) for count in counts]
    taken = [first.take(count) for count in counts[:cut]]

    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))

    assert taken + [resumed.take(count) for count in counts[cut:]] == expected


@pytest.mark.parametrize("other", [{"size": 49, "seed": 0}, {"size": 50, "seed": 1}])
def test_a_checkpoint_of_other_tasks_or_seed_is_refused(other):
    with pytest.raises(ConfigurationError, match="same tasks and seed"):
        TaskStream(50, seed=0).load_state_dict(TaskStream(**other).state_dict())
