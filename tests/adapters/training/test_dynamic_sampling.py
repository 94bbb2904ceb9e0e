"""Dynamic sampling: what is kept and drawn, that it biases nothing, and that it resumes."""

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import factorial, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.training.algorithms.dynamic_sampling import (
    DynamicSampling,
    Filling,
    SamplingConfig,
    TaskStream,
)
from adapters.training.algorithms.groups import is_dead
from toolgym import ConfigurationError, Outcome
from toolgym.runs.metrics import METRICS

RIGHT, WRONG = Outcome(True, 10), Outcome(False, 0)
LIVE, DEAD = [RIGHT, WRONG], [WRONG, WRONG]


def sampling(size=50, seed=0, process=0, processes=1, **config):
    stream = TaskStream(size, seed=seed, process=process, processes=processes)
    return DynamicSampling(SamplingConfig(**config), stream)


# What is kept and what is drawn


def test_live_groups_are_kept_in_their_order_and_dead_ones_held_for_empty_places():
    filling = sampling().begin(3)
    assert filling.offer([DEAD, LIVE, DEAD]) == ([1], [0, 2])
    assert filling.next_draw() > 0
    assert filling.offer([LIVE, DEAD, LIVE, LIVE]) == ([0, 2], [])
    assert filling.next_draw() == 0
    assert filling.metrics() == {
        "drawn_groups": 7.0,
        "dropped_groups": 3.0,
        "surplus_groups": 1.0,
        "masked_groups": 0.0,
        "sampling_rounds": 2.0,
    }


def test_a_batch_of_dead_groups_only_ends_at_the_cap_with_every_place_masked():
    filling = sampling(max_draws=2.5).begin(4)
    drawn, count = 0, 4
    while count:
        filling.offer([DEAD] * count)
        drawn += count
        count = filling.next_draw()
    assert drawn == 10
    assert filling.missing == filling.metrics()["masked_groups"] == 4


def test_more_is_drawn_where_fewer_groups_are_live():
    rich, poor = Filling(8, 80), Filling(8, 80)
    rich.offer([LIVE] * 6 + [DEAD] * 2)
    poor.offer([LIVE] * 2 + [DEAD] * 6)
    assert rich.next_draw() == 3
    assert poor.next_draw() == 8


def test_a_step_without_a_whole_group_is_refused():
    with pytest.raises(ConfigurationError, match="multiple of the group size"):
        sampling().begin(0)


@settings(max_examples=40)
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=9), min_size=1), st.integers(1, 6))
def test_every_place_is_filled_or_has_a_spare_and_nothing_is_counted_twice(draws, places):
    filling = Filling(places, 1000)
    kept = spares = 0
    for draw in draws:
        keep, spare = filling.offer([LIVE if live else DEAD for live in draw])
        assert all(draw[place] for place in keep)
        assert not any(draw[place] for place in spare)
        kept, spares = kept + len(keep), spares + len(spare)
    numbers = filling.metrics()

    assert kept + filling.missing == places
    assert numbers["drawn_groups"] == sum(map(len, draws))
    assert numbers["dropped_groups"] + numbers["surplus_groups"] + kept == numbers["drawn_groups"]
    if numbers["drawn_groups"] >= places:
        assert spares >= filling.missing
    assert not numbers.keys() - METRICS.keys()


# Several processes


@settings(max_examples=25)
@given(st.lists(st.lists(st.booleans(), min_size=40, max_size=40), min_size=2, max_size=3))
def test_all_processes_draw_equally_often_and_until_the_emptiest_is_full(fates):
    fillings = [Filling(4, 40) for _ in fates]
    count, drawn = 4, 0
    while count:
        for filling, fate in zip(fillings, fates, strict=True):
            filling.offer([LIVE if live else DEAD for live in fate[drawn : drawn + count]])
        drawn += count
        tallies = [filling.tally for filling in fillings]
        counts = {filling.next_draw(tallies) for filling in fillings}
        assert len(counts) == 1
        count = counts.pop()
    assert drawn <= 40
    assert drawn == 40 or not any(filling.missing for filling in fillings)


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
        filling, kept, at = sampling(max_draws=cap).begin(places), [], 0
        count = places
        while at < len(drawn):
            batch = drawn[at : at + count]
            kept += [batch[i][2] for i in filling.offer([group[1] for group in batch]).keep]
            at += count
            count = filling.next_draw()
        if count:
            for more in product(groups, repeat=count):
                go_on([*drawn, *more], weight * prod(group[0] for group in more))
        elif kept:
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


def test_equal_seeds_draw_equally_and_others_do_not():
    assert TaskStream(100, seed=3).take(40) == TaskStream(100, seed=3).take(40)
    assert TaskStream(100, seed=3).take(40) != TaskStream(100, seed=4).take(40)
    assert TaskStream(100, seed=3).take(40) != TaskStream(100, seed=3, name="main").take(40)
    assert TaskStream(40, seed=3).take(40) != TaskStream(40, seed=3).take(80)[40:]


@settings(max_examples=40)
@given(st.integers(1, 4), st.lists(st.integers(0, 5), max_size=10))
def test_processes_share_one_stream_without_a_task_left_out(processes, counts):
    streams = [TaskStream(7, seed=1, process=p, processes=processes) for p in range(processes)]
    rows = [[task for count in counts for task in stream.take(count)] for stream in streams]
    together = [task for turn in zip(*rows, strict=True) for task in turn]
    assert together == TaskStream(7, seed=1).take(len(together))


@pytest.mark.parametrize(("size", "process", "processes"), [(0, 0, 1), (3, 2, 2), (3, -1, 2)])
def test_a_stream_of_nothing_or_for_nobody_is_refused(size, process, processes):
    with pytest.raises(ConfigurationError, match="at least one task"):
        TaskStream(size, seed=0, process=process, processes=processes)


# Resuming


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.data())
def test_refills_and_advice_go_on_from_a_checkpoint_as_if_nothing_had_happened(counts, data):
    cut = data.draw(st.integers(0, len(counts)))
    unbroken, first, resumed = sampling(), sampling(), sampling()
    expected = [unbroken.refill(count) for count in counts]
    drawn = [first.refill(count) for count in counts[:cut]]
    for one in (unbroken, first):
        one.note([LIVE, DEAD, [RIGHT, None]])

    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))

    assert drawn + [resumed.refill(count) for count in counts[cut:]] == expected
    assert resumed.advice() == unbroken.advice()


def test_a_checkpoint_is_taken_up_by_another_number_of_processes():
    two = [sampling(process=p, processes=2) for p in range(2)]
    before = [task for turn in zip(*(one.refill(4) for one in two), strict=True) for task in turn]
    alone = sampling()
    alone.load_state_dict(two[1].state_dict())
    assert two[0].state_dict() == two[1].state_dict()
    assert before + alone.refill(3) == sampling().refill(11)


@pytest.mark.parametrize("other", [{"size": 49}, {"seed": 1}])
def test_a_checkpoint_of_other_tasks_or_seed_is_refused(other):
    with pytest.raises(ConfigurationError, match="same tasks and seed"):
        sampling().load_state_dict(sampling(**other).state_dict())
