"""Dead groups, groups of equal rewards, and the group size that measured successes speak for."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.training.algorithms import groups as outcomes
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from toolgym import ConfigurationError, Outcome

RIGHT, WRONG, NEARLY = Outcome(True, 10), Outcome(False, 0), Outcome(False, 9)
some_outcomes = st.sampled_from([RIGHT, WRONG, NEARLY, None])


def test_a_group_whose_costs_differ_is_dead_all_the_same():
    assert outcomes.is_dead([WRONG, WRONG, None])
    assert not outcomes.has_equal_rewards([-0.01, -0.02, None])


@pytest.mark.parametrize("unscored", [None, math.nan, math.inf])
def test_an_unscored_rollout_has_no_reward(unscored):
    assert outcomes.has_equal_rewards([0.5, unscored, 0.5])
    assert outcomes.has_equal_rewards([0.5, unscored])
    assert not outcomes.has_equal_rewards([0.5, unscored, 0.6])


def test_a_group_with_fewer_than_two_scored_members_is_dead():
    assert outcomes.is_dead([RIGHT, None, None])
    assert outcomes.is_dead([])


def test_the_members_of_a_group_need_not_be_adjacent():
    groups = [4, 9, 4, 9]
    assert outcomes.dead_share([RIGHT, WRONG, RIGHT, RIGHT], groups) == 0.5
    assert outcomes.equal_rewards_share([1.0, 0.0, 1.0, 1.0], groups) == 0.5


def test_a_group_that_was_played_with_one_member_is_no_part_of_the_shares():
    assert outcomes.dead_share([RIGHT, RIGHT, WRONG], [0, 1, 1]) == 0.0
    assert outcomes.equal_rewards_share([1.0, 1.0, 1.0], [0, 1, 1]) == 1.0
    assert math.isnan(outcomes.dead_share([RIGHT, WRONG], [0, 1]))
    assert math.isnan(outcomes.equal_rewards_share([1.0, 0.0], [0, 1]))


@settings(max_examples=40)
@given(st.lists(st.tuples(some_outcomes, st.floats(-1, 1)), min_size=8, max_size=8))
def test_the_shares_are_those_that_the_trainers_log(rollouts):
    found = [outcome for outcome, _ in rollouts]
    rewards = [math.nan if o is None else r for o, r in rollouts]
    figures = [Figures(scored=False) if o is None else Figures(True, o) for o in found]
    groups = [0] * 4 + [1] * 4
    logged = batch_metrics(figures, rewards, groups)

    assert outcomes.dead_share(found, groups) == logged["dead_groups"]
    assert outcomes.equal_rewards_share(rewards, groups) == logged["zero_variance_groups"]


@settings(max_examples=40)
@given(st.floats(0, 1), st.integers(2, 64))
def test_the_chance_of_a_live_group_is_a_probability_and_grows_with_the_group(rate, size):
    chance = outcomes.live_chance(rate, size)
    assert -1e-12 <= chance <= 1
    assert outcomes.live_chance(rate, size + 1) >= chance - 1e-12
    assert outcomes.live_chance(1 - rate, size) == pytest.approx(chance, abs=1e-12)


@pytest.mark.parametrize(("size", "scored"), [(2, 5), (4, 8)])
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(4, 5)])
def test_the_estimate_from_counts_is_right_on_average(rate, size, scored):
    """Over all ways in which n rollouts can turn out, its mean is 1 - p^K - (1-p)^K."""
    mean = 0.0
    for rollouts in product([0, 1], repeat=scored):
        right = sum(rollouts)
        chance = rate**right * (1 - rate) ** (scored - right)
        mean += float(chance) * outcomes.live_share([(right, scored)], size)
    assert mean == pytest.approx(outcomes.live_chance(float(rate), size), abs=1e-12)


def test_rates_that_were_measured_as_zero_do_not_count_as_zero_for_larger_groups():
    """The formula with the measured rates sees no live group among tasks that were 0 or 4 of 4."""
    counts = [(0, 4)] * 6 + [(1, 4)] * 3 + [(4, 4)]
    plugged_in = sum(outcomes.live_chance(r / n, 16) for r, n in counts) / len(counts)
    assert plugged_in < 0.3 < outcomes.live_share(counts, 16) < 0.9


def test_tasks_that_are_always_right_or_always_wrong_never_make_a_live_group():
    counts = [(0, 4), (4, 4)] * 4
    assert outcomes.live_share(counts, 4) == outcomes.live_share(counts, 16) == 0.0


@settings(max_examples=40)
@given(st.lists(st.integers(0, 8).map(lambda right: (right, 8)), min_size=1, max_size=20))
def test_a_larger_group_is_never_less_often_live(counts):
    shares = [outcomes.live_share(counts, size) for size in (2, 4, 8)]
    fitted = [outcomes.live_share(counts, size) for size in (9, 16, 32)]
    for row in (shares, fitted):
        assert row == sorted(row)
        assert all(0 <= share <= 1 for share in row)


def test_the_advice_is_the_smallest_group_that_is_live_often_enough():
    advice = outcomes.group_size([(2, 10)] * 50)  # p = .2: .32, .59, .83, .97 by the formula
    assert advice.size == 4
    assert advice.shares[2] == pytest.approx(0.356, abs=0.001)  # two of ten, drawn without return
    assert "Groups of 4" in advice.sentence


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ([(0, 16)] * 30 + [(1, 16)], "Most were not: a longer warm-up or easier tasks"),
        ([(16, 16)] * 30 + [(15, 16)], "Most were right: harder tasks"),
        ([], "No rollout was scored"),
        ([(0, 0)], "No rollout was scored"),
    ],
)
def test_where_no_group_size_helps_the_advice_says_what_does(counts, told):
    advice = outcomes.group_size(counts)
    assert advice.size is None
    assert told in advice.sentence


@pytest.mark.parametrize("sizes", [(), (1, 4)])
def test_a_group_of_one_is_refused(sizes):
    with pytest.raises(ConfigurationError, match="at least 2 members"):
        outcomes.group_size([(1, 2)], sizes)
