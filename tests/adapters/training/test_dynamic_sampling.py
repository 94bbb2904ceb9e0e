"""Dynamic sampling: what is kept and drawn, that it biases nothing, and that it resumes."""

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, islice, product
from math import factorial, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.training.algorithms.dynamic_sampling import (
    TaskStream,
    fill,
)
from adapters.training.algorithms.groups import is_dead
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
    assert step.live == [group for group in step.drawn if group is LIVE][:places]
    assert numbers["masked_groups"] == len(step.dead)
    assert numbers["drawn_groups"] == len(step.drawn) <= cap * places
    assert numbers["dropped_groups"] == step.drawn.count(DEAD)
    assert numbers["surplus_groups"] == step.drawn.count(LIVE) - len(step.live)
    assert not numbers.keys() - METRICS.keys()


# Bias: a bandit with two tasks and three arms, all sums over all outcomes, in exact fractions

POLICY = [[Fraction(n, 10) for n in row] for row in ([6, 3, 1], [1, 2, 7])]
ARM_OUTCOME = [WRONG, WRONG, RIGHT]
BY_OUTCOME = [Fraction(0), Fraction(0), Fraction(1)]
WITH_COSTS = [Fraction(-1, 100), Fraction(-6, 100), Fraction(97, 100)]
K = 3
Gradient = tuple[Fraction, ...]


def all_groups(rewards: list[Fraction]) -> Iterator[tuple[Fraction, list[Outcome], Gradient]]:
    """Chance, outcomes and gradient of every group: a task drawn evenly, K arms by its policy."""
    for task, arms in product(range(2), combinations_with_replacement(range(3), K)):
        orders = factorial(K) // prod(map(factorial, Counter(arms).values()))
        chance = Fraction(orders, 2) * prod(POLICY[task][arm] for arm in arms)
        yield chance, [ARM_OUTCOME[arm] for arm in arms], gradient(task, arms, rewards)


def gradient(task: int, arms: tuple[int, ...], rewards: list[Fraction]) -> Gradient:
    """REINFORCE with leave-one-out baseline, to the logits of both tasks."""
    earned = [rewards[arm] for arm in arms]
    total = [Fraction(0)] * 6
    for i, arm in enumerate(arms):
        advantage = earned[i] - (sum(earned) - earned[i]) / (K - 1)
        for logit in range(3):
            score = (logit == arm) - POLICY[task][logit]
            total[3 * task + logit] += advantage * score / K
    return tuple(total)


def plus(*weighted: tuple[Fraction, Gradient]) -> Gradient:
    return tuple(sum(w * g[i] for w, g in weighted) for i in range(6))


def expected_step(groups, places: int, cap: float) -> tuple[Fraction, Gradient]:
    """Chance that anything was kept, and the expectation of the mean gradient of what was."""
    chance_kept, total = Fraction(0), plus()

    def go_on(drawn, weight):
        nonlocal chance_kept, total
        left = iter(drawn)

        def draw(count):
            taken = list(islice(left, count))
            if len(taken) < count:
                raise LookupError(count)
            return taken

        try:
            step = fill(places, cap, draw, lambda group: group[1])
        except LookupError as missing:
            for more in product(groups, repeat=missing.args[0]):
                go_on([*drawn, *more], weight * prod(group[0] for group in more))
            return
        kept = [group[2] for group in step.live]
        if kept:
            chance_kept += weight
            total = plus((Fraction(1), total), *((weight / len(kept), g) for g in kept))

    for first in product(groups, repeat=places):
        go_on(list(first), prod(group[0] for group in first))
    return chance_kept, total


@pytest.fixture(scope="module")
def merged():
    """All groups, the dead ones merged into one without a gradient: fewer sums, same result."""

    def merge(rewards):
        table: dict[tuple, Fraction] = {}
        for chance, outcomes, slope in all_groups(rewards):
            key = ((WRONG,) * K, plus()) if is_dead(outcomes) else (tuple(outcomes), slope)
            table[key] = table.get(key, Fraction(0)) + chance
        return [(chance, list(outcomes), slope) for (outcomes, slope), chance in table.items()]

    return merge


@pytest.mark.parametrize(
    ("places", "cap", "rewards"),
    [
        pytest.param(1, 3.0, BY_OUTCOME, id="one place, by outcome"),
        pytest.param(2, 1.5, WITH_COSTS, id="two places, with costs"),
    ],
)
def test_the_expected_gradient_of_live_groups_is_left_unchanged(merged, rewards, places, cap):
    """Kept groups have, on average, exactly the gradient that live groups have anyway."""
    groups = merged(rewards)
    live = [group for group in groups if not is_dead(group[1])]
    chance_live = sum(group[0] for group in live)
    of_live = plus(*((chance / chance_live, slope) for chance, _, slope in live))

    chance_kept, total = expected_step(groups, places, cap)

    assert plus((1 / chance_kept, total)) == of_live
    most = int(places * cap)
    assert chance_kept == 1 - (1 - chance_live) ** most


# The stream of tasks


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(0, 5), st.lists(st.integers(0, 7), max_size=20))
def test_a_stream_has_each_task_once_before_any_twice_however_it_is_cut(size, seed, cuts):
    stream, whole = TaskStream(size, seed=seed), TaskStream(size, seed=seed)
    taken = [task for count in cuts for task in stream.take(count)]
    assert taken == whole.take(len(taken))
    for start in range(0, len(taken) - size + 1, size):
        assert sorted(taken[start : start + size]) == list(range(size))


@pytest.mark.parametrize(("size", "process", "processes"), [(0, 0, 1), (3, 2, 2), (3, -1, 2)])
def test_a_stream_of_nothing_or_for_nobody_is_refused(size, process, processes):
    with pytest.raises(ConfigurationError, match="at least one task"):
        TaskStream(size, seed=0, process=process, processes=processes)


def test_a_task_is_checked_when_the_stream_reaches_it_and_refused_ones_are_passed_over():
    checked: list[int] = []

    def is_playable(position):
        checked.append(position)
        return position % 3 > 0

    stream = TaskStream(17_000, seed=0, is_playable=is_playable)
    taken = stream.take(8)
    assert len(taken) == 8
    assert taken == [position for position in checked if position % 3]
    assert len(checked) < 60


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
