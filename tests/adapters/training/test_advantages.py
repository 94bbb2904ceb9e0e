"""What a rollout, a turn and a token are told that they were worth."""

import doctest
import itertools
import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from adapters.training.algorithms import advantages as estimators
from adapters.training.algorithms.advantages import (
    ESTIMATORS,
    TURN_ESTIMATORS,
    advantages,
    batch_normalized,
    batch_normalized_baseline,
    clipped,
    group_centered,
    group_normalized,
    leave_one_out,
    token_advantages,
    turn_centered,
    turn_normalized,
    turn_returns,
)
from toolgym.errors import ConfigurationError

pytestmark = pytest.mark.torch

NAN = math.nan


def exact(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def whole(*values: int) -> Tensor:
    return torch.tensor(values)


def test_the_example_in_the_documentation_is_true() -> None:
    failed, attempted = doctest.testmod(estimators)

    assert failed == 0 < attempted


@pytest.mark.parametrize(
    ("rewards", "advantage"), [((1.0, 0.0), 0.70701), ((0.51, 0.5), 0.69725), ((0.5, 0.5), 0.0)]
)
def test_only_the_epsilon_tells_gaps_of_two_apart(
    rewards: tuple[float, float], advantage: float
) -> None:
    found = group_normalized(exact(*rewards), whole(0, 0))

    assert found.tolist() == pytest.approx([advantage, -advantage], abs=1e-5)


# Two groups, [1, 0, .5] and [.25, .25]; their leads over the mean are .5, -.5, 0 and 0, 0. The
# deviation is sqrt(.25) in the first group, sqrt(.575 / 4) of rewards, sqrt(.5 / 4) of leads.
BY_HAND = {
    "group_normalized": (0.5 / 0.5001, -0.5 / 0.5001, 0, 0, 0),
    "group_centered": (0.5, -0.5, 0, 0, 0),
    "leave_one_out": (0.75, -0.75, 0, 0, 0),
    "batch_scaled": tuple(lead / 0.3792438 for lead in (0.5, -0.5, 0, 0, 0)),
    "batch_normalized": tuple(lead / 0.3792438 for lead in (0.6, -0.4, 0.1, -0.15, -0.15)),
    "batch_normalized_baseline": tuple(lead / 0.3536534 for lead in (0.5, -0.5, 0, 0, 0)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_gives_what_was_worked_by_hand(name: str) -> None:
    found = ESTIMATORS[name](exact(1, 0, 0.5, 0.25, 0.25), whole(7, 7, 7, 3, 3))

    assert found.tolist() == pytest.approx(BY_HAND[name], abs=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_members_of_a_group_need_not_stand_together(name: str) -> None:
    rewards, groups = exact(1, 0, 0.5, 0.25, 0.75, 0), whole(0, 0, 0, 1, 1, 1)
    order = [3, 0, 4, 2, 5, 1]

    found = ESTIMATORS[name](rewards[order], groups[order])

    torch.testing.assert_close(found, ESTIMATORS[name](rewards, groups)[order])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_unscored_get_nothing_and_move_nobody(name: str) -> None:
    rewards, groups = exact(1, NAN, 0, 0.5, NAN, 0.25, NAN), whole(0, 0, 0, 1, 1, 1, 2)
    known = rewards.isfinite()

    found = ESTIMATORS[name](rewards, groups)

    assert found[~known].tolist() == [0.0] * 3
    torch.testing.assert_close(found[known], ESTIMATORS[name](rewards[known], groups[known]))
    marked = rewards.nan_to_num(nan=100.0)  # a mask is believed, whatever stands beside it
    torch.testing.assert_close(ESTIMATORS[name](marked, groups, scored=known), found)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_where_all_earned_the_same_nobody_leads_not_even_by_a_rounding(name: str) -> None:
    rewards = torch.tensor([0.97] * 7 + [0.3] * 7)
    assert (rewards[:7].mean() - rewards[0]).abs() > 0 or (rewards[7:].mean() - 0.3).abs() > 0
    groups = torch.arange(2).repeat_interleave(7)
    if name == "batch_normalized":  # for it, the batch is the group
        rewards = rewards[:7]
        groups = groups[:7]

    assert ESTIMATORS[name](rewards, groups).tolist() == [0.0] * len(rewards)


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - {"batch_normalized"}))
def test_who_is_alone_in_a_group_learns_nothing(name: str) -> None:
    found = ESTIMATORS[name](exact(1, 0, 5, 3, NAN), whole(0, 0, 1, 2, 2))

    assert found[2:].tolist() == [0.0] * 3
    assert found[:2].abs().min() > 0


def test_the_floor_keeps_a_cost_small_where_everything_is_solved() -> None:
    rewards = torch.ones(32, dtype=torch.float64)
    rewards[5] -= 0.01
    groups = torch.arange(4).repeat_interleave(8)

    assert group_normalized(rewards, groups).abs().max() > 2
    for name in ("batch_scaled", "batch_normalized", "batch_normalized_baseline"):
        assert 0.08 < ESTIMATORS[name](rewards, groups).abs().max() <= 0.1


@pytest.mark.parametrize("estimator", [batch_normalized, batch_normalized_baseline])
def test_statistics_over_tokens_are_those_of_each_rollout_told_once_per_token(
    estimator: Any,
) -> None:
    rewards, groups, tokens = exact(1, 0, 0.5, 0, NAN), whole(0, 0, 1, 1, 1), whole(3, 1, 2, 4, 9)
    lead = rewards if estimator is batch_normalized else group_centered(rewards, groups)
    told = torch.cat([lead[i].repeat(int(n)) for i, n in enumerate(tokens) if i < 4])

    found = estimator(rewards, groups, tokens=tokens)

    centre = told.mean() if estimator is batch_normalized else 0
    expected = (lead[:4] - centre) / (told.std() + 1e-4)
    torch.testing.assert_close(found[:4], expected)
    assert found[4] == 0


def test_advantages_are_cut_off_on_both_sides() -> None:
    assert clipped(exact(-3, -1, 0, 2.5), 2.0).tolist() == [-2, -1, 0, 2]
    rewards, groups = exact(1, 0, 0, 0, 0, 0, 0, 0), torch.zeros(8)
    assert advantages("group_normalized", rewards, groups, limit=2.0).max() == 2.0


def test_an_unknown_estimator_is_refused_with_the_known_ones() -> None:
    rewards, groups = exact(1, 0), whole(0, 0)
    with pytest.raises(ConfigurationError, match=r"no advantage estimator 'gae'.*leave_one_out"):
        advantages("gae", rewards, groups)
    with pytest.raises(ConfigurationError, match="'turn_centered' needs the rewards of the turns"):
        advantages("turn_centered", rewards, groups)


# Turns


def test_a_turn_answers_for_what_came_after_it() -> None:
    rewards = torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, NAN]])
    taken = torch.tensor([[True, True, True], [True, True, False]])

    assert turn_returns(rewards, taken).tolist() == [[7, 6, 4], [8, 5, 0]]
    assert turn_returns(rewards, taken, 0.5).tolist() == [[3, 4, 4], [5.5, 5, 0]]


def test_a_turn_is_compared_with_all_others_and_who_has_ended_earns_nothing_more() -> None:
    rewards = torch.tensor([[1.0, 2.0], [4.0, 0.0], [0.0, 0.5], [9.0, 9.0]])
    taken = torch.tensor([[True, True], [True, False], [True, True], [True, True]])

    found = turn_centered(rewards, whole(0, 0, 0, 1), taken=taken)

    # Returns are [3, 2], [4, -], [.5, .5]: at the second turn the others of the first had 0 and .5.
    expected = [[3 - 2.25, 2 - 0.25], [4 - 1.75, 0], [0.5 - 3.5, 0.5 - 1], [0, 0]]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_with_one_turn_it_is_leave_one_out() -> None:
    rewards, groups = exact(1, 0, 0.5, NAN, 3), whole(0, 0, 0, 0, 1)
    taken = torch.ones(5, 1, dtype=torch.bool)

    found = turn_centered(rewards[:, None], groups, taken=taken)

    torch.testing.assert_close(found[:, 0], leave_one_out(rewards, groups))


class Walk:
    """Up to three turns; in each the policy stops or goes on, and is paid for either.

    Every group of three rollouts is written out with its probability, so what an estimator makes of
    the gradient in expectation is a sum, not a sample.
    """

    TURNS, SIZE = 3, 3
    PATHS = ((0,), (1, 0), (1, 1, 0), (1, 1, 1))
    PAY = ((0.2, 0.5), (1.0, 0.4), (0.1, 2.0))

    def __init__(self) -> None:
        self.weights = exact(0.3, -0.5, 0.8).requires_grad_()
        shape = (len(self.PATHS), self.TURNS)
        self.rewards = torch.zeros(shape, dtype=torch.float64)
        self.taken = torch.zeros(shape, dtype=torch.bool)
        rows = []
        for row, path in enumerate(self.PATHS):
            logs = [logsigmoid((2 * go - 1) * self.weights[turn]) for turn, go in enumerate(path)]
            rows.append(torch.stack(logs + [exact(0)[0]] * (self.TURNS - len(path))))
            for turn, go in enumerate(path):
                self.rewards[row, turn], self.taken[row, turn] = self.PAY[turn][go], True
        self.logprobs = torch.stack(rows)
        self.chances = self.logprobs.sum(dim=1).exp()
        combined = torch.tensor(list(itertools.product(range(shape[0]), repeat=self.SIZE)))
        self.rows = combined.flatten()
        self.groups = torch.arange(len(combined)).repeat_interleave(self.SIZE)
        self.odds = self.chances.detach()[combined].prod(dim=1).repeat_interleave(self.SIZE)

    def true_gradient(self) -> Tensor:
        reward = (self.chances * self.rewards.sum(dim=1)).sum()
        return torch.autograd.grad(reward, self.weights, retain_graph=True)[0]

    def expected_gradient(self, per_turn: Tensor) -> Tensor:
        pushed = (self.odds[:, None] * per_turn * self.logprobs[self.rows]).sum() / self.SIZE
        return torch.autograd.grad(pushed, self.weights, retain_graph=True)[0]


def test_the_expected_gradient_of_turn_level_credit_is_that_of_the_reward() -> None:
    walk = Walk()

    found = turn_centered(walk.rewards[walk.rows], walk.groups, taken=walk.taken[walk.rows])

    torch.testing.assert_close(
        walk.expected_gradient(found), walk.true_gradient(), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("name", TURN_ESTIMATORS)
def test_turns_of_the_unscored_the_lone_and_of_dead_groups_get_exactly_nothing(name: str) -> None:
    rewards = torch.tensor([[0.1, 0.3], [0.7, 0.1], [NAN, 0.1], [0.9, 0.9]] + [[0.1, 0.87]] * 7)
    groups = whole(0, 0, 0, 1, *[2] * 7)
    taken = torch.ones(11, 2, dtype=torch.bool)

    found = TURN_ESTIMATORS[name](rewards, groups, taken=taken)

    assert found[2:].abs().max() == 0
    assert found[:2].abs().min() > 0
    same = advantages(name, rewards.sum(1), groups, step_rewards=rewards, taken=taken)
    assert torch.equal(found, same)


def test_turns_of_a_batch_are_scaled_together_and_never_by_less_than_the_floor() -> None:
    rewards = torch.tensor([[1.0, 2.0], [4.0, 1.0], [0.0, 0.5], [0.0, 0.0]], dtype=torch.float64)
    groups, taken = whole(0, 0, 0, 0), torch.ones(4, 2, dtype=torch.bool)
    plain = turn_centered(rewards, groups, taken=taken)

    found = turn_normalized(rewards, groups, taken=taken)
    small = turn_normalized(rewards / 1000, groups, taken=taken)

    torch.testing.assert_close(found, plain / (plain.std() + 1e-4))
    torch.testing.assert_close(small, plain / 1000 / 0.1)


def test_a_turn_hands_its_advantage_to_its_own_tokens_only() -> None:
    turns = torch.tensor([[0, 0, -1, 1, -1], [1, -1, 0, -1, -1]])

    found = token_advantages(torch.tensor([[2.0, -1.0], [3.0, 5.0]]), turns)

    assert found.tolist() == [[2, 2, 0, -1, 0], [5, 0, 3, 0, 0]]
