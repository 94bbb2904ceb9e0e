"""Dead groups, groups of equal rewards, and advice on the group size from measured tries."""

import math
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.training.algorithms import groups as outcomes
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from toolgym import Outcome

RIGHT, WRONG, NEARLY = Outcome(True, 10), Outcome(False, 0), Outcome(False, 9)
some_outcomes = st.sampled_from([RIGHT, WRONG, NEARLY, None])


def test_a_group_whose_costs_differ_is_dead_all_the_same():
    assert outcomes.is_dead([WRONG, WRONG, None])
    assert not outcomes.has_equal_rewards([-0.01, -0.02, math.nan])


@pytest.mark.parametrize("unscored", [math.nan, math.inf])
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


@pytest.mark.parametrize(("size", "scored"), [(2, 5), (4, 8)])
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(4, 5)])
def test_the_estimated_share_of_live_groups_is_right_on_average(rate, size, scored):
    """Over all ways in which the tries can turn out, its mean is 1 - p^K - (1-p)^K."""
    mean = 0.0
    for tries in product([False, True], repeat=scored):
        chance = rate ** sum(tries) * (1 - rate) ** (scored - sum(tries))
        mean += float(chance) * outcomes.mixed_share([tries], size)
    assert mean == pytest.approx(float(1 - rate**size - (1 - rate) ** size), abs=1e-12)


@settings(max_examples=40)
@given(st.lists(st.lists(some_outcomes, max_size=7), max_size=4), st.integers(2, 9))
def test_the_share_of_groups_that_differ_is_that_of_subsets_and_grows_with_the_size(tries, size):
    shares = []
    for results in tries:
        scored = [each for each in results if each is not None]
        subsets = list(combinations(scored, min(size, len(scored))))
        if scored:
            shares.append(sum(len(set(each)) > 1 for each in subsets) / len(subsets))
    share = outcomes.mixed_share(tries, size)
    assert share == pytest.approx(sum(shares) / len(shares)) if shares else math.isnan(share)
    assert not share > outcomes.mixed_share(tries, size + 1) + 1e-12


@pytest.mark.parametrize(
    ("tries", "advice"),
    [
        ([[True] * 2 + [False] * 8] * 50, "A group size of 4 is enough: 67%"),
        ([[False] * 16] * 31 + [[True] + [False] * 15], "A group size of 16 is too small: 3%"),
        ([], "No rollout was scored"),
        ([[None]], "No rollout was scored"),
    ],
)
def test_the_advice_is_the_smallest_group_that_is_live_often_enough(tries, advice):
    assert outcomes.group_size_advice(tries).startswith(advice)
