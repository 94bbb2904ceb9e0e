"""Advantage estimators: values worked by hand, properties, and an expected gradient."""

import itertools
import math

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import logsigmoid

from adapters.training.algorithms.advantages import (
    ESTIMATORS,
    advantages,
)
from toolgym.errors import ConfigurationError

pytestmark = pytest.mark.torch

NAN = math.nan
NAMES = [*ESTIMATORS, "turn_normalized"]


def exact(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def whole(*values: int) -> Tensor:
    return torch.tensor(values)


def of_rollouts(name: str, rewards: Tensor, groups: Tensor, limit: float | None = None) -> Tensor:
    """The advantages of rollouts of one turn, [N]."""
    taken = torch.ones(len(rewards), 1, dtype=torch.bool)
    turns = {"turn_rewards": rewards[:, None], "taken": taken}
    return advantages(name, rewards, groups, limit=limit, **turns).flatten()


def of_turns(rewards: Tensor, groups: Tensor, turn_rewards: Tensor, taken: Tensor) -> Tensor:
    """The advantages of turns, [N, S]."""
    options = {"turn_rewards": turn_rewards, "taken": taken}
    return advantages("turn_normalized", rewards, groups, **options)


# Two groups, [1, 0, .5] and [.25, .25]; their leads over the mean are .5, -.5, 0 and 0, 0. The
# deviation is sqrt(.25) in the first group, sqrt(.575 / 4) of rewards, sqrt(.5 / 4) of leads and
# sqrt(1.125 / 4) of leads over the others.
BY_HAND = {
    "group_normalized": (0.5 / 0.5001, -0.5 / 0.5001, 0, 0, 0),
    "group_centered": (0.5, -0.5, 0, 0, 0),
    "leave_one_out": (0.75, -0.75, 0, 0, 0),
    "batch_scaled": tuple(lead / 0.3792438 for lead in (0.5, -0.5, 0, 0, 0)),
    "batch_normalized": tuple(lead / 0.3792438 for lead in (0.6, -0.4, 0.1, -0.15, -0.15)),
    "batch_normalized_baseline": tuple(lead / 0.3536534 for lead in (0.5, -0.5, 0, 0, 0)),
    "turn_normalized": tuple(lead / 0.5304301 for lead in (0.75, -0.75, 0, 0, 0)),
}


@pytest.mark.parametrize("name", NAMES)
def test_an_estimator_gives_what_was_worked_by_hand(name: str) -> None:
    found = of_rollouts(name, exact(1, 0, 0.5, 0.25, 0.25), whole(7, 7, 7, 3, 3))
    clipped = of_rollouts(name, exact(1, 0, 0.5, 0.25, 0.25), whole(7, 7, 7, 3, 3), 0.5)

    assert found.tolist() == pytest.approx(BY_HAND[name], abs=1e-6)
    assert clipped.tolist() == found.clamp(-0.5, 0.5).tolist()


BATCHES = st.lists(
    st.tuples(
        st.sampled_from([-0.3, 0.0, 0.25, 0.97, 1.0, NAN]), st.integers(0, 2), st.integers(0, 10**6)
    ),
    min_size=1,
    max_size=10,
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20, deadline=None)
@given(batch=BATCHES)
def test_whatever_the_batch(name: str, batch: list[tuple[float, int, int]]) -> None:
    """Order and unscored rollouts change nothing; equal, single and unscored ones get 0."""
    rewards = exact(*(reward for reward, _, _ in batch))
    groups = whole(*(group for _, group, _ in batch))
    order = whole(*(place for _, place in sorted((key, i) for i, (_, _, key) in enumerate(batch))))
    scored = rewards.isfinite()

    found = of_rollouts(name, rewards, groups)

    torch.testing.assert_close(of_rollouts(name, rewards[order], groups[order]), found[order])
    assert found[~scored].abs().sum() == 0
    if scored.any():
        torch.testing.assert_close(
            found[scored], of_rollouts(name, rewards[scored], groups[scored])
        )
    compared = torch.zeros_like(groups) if name == "batch_normalized" else groups
    for group in compared.unique():
        members = scored & (compared == group)
        if rewards[members].unique().numel() < 2:
            assert found[members].abs().sum() == 0
        if name != "turn_normalized":
            assert abs(found[members].sum().item()) < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_equal_rewards_get_exactly_nothing_even_where_their_mean_is_rounded(name: str) -> None:
    rewards, groups = torch.tensor([0.97] * 7), torch.zeros(7)
    assert rewards.mean() != rewards[0]

    assert of_rollouts(name, rewards, groups).tolist() == [0.0] * 7


def test_the_floor_keeps_a_cost_small_where_everything_is_solved() -> None:
    rewards = torch.ones(32, dtype=torch.float64)
    rewards[5] -= 0.01
    groups = torch.arange(4).repeat_interleave(8)

    assert advantages("group_normalized", rewards, groups).abs().max() > 2
    for name in ("batch_scaled", "batch_normalized", "batch_normalized_baseline"):
        assert 0.08 < advantages(name, rewards, groups).abs().max() <= 0.1


def test_an_unknown_estimator_or_missing_turns_are_refused() -> None:
    rewards, groups = exact(1, 0), whole(0, 0)
    with pytest.raises(
        ConfigurationError, match=r"unknown advantage estimator 'gae'.*leave_one_out"
    ):
        advantages("gae", rewards, groups)
    with pytest.raises(ConfigurationError, match="'turn_normalized' needs the rewards of turns"):
        advantages("turn_normalized", rewards, groups)


# Turns


def test_a_turn_is_compared_with_all_others_and_one_that_has_ended_earns_nothing_more() -> None:
    rewards = torch.tensor([[1.0, 2.0], [4.0, 0.0], [0.0, 0.5], [9.0, 9.0]]).double()
    taken = torch.tensor([[True, True], [True, False], [True, True], [True, True]])

    found = advantages(
        "turn_normalized", rewards.sum(1), whole(0, 0, 0, 1), turn_rewards=rewards, taken=taken
    )

    # Returns are [3, 2], [4, -], [.5, .5]: at the second turn the others of the first had 0 and .5.
    leads = exact(3 - 2.25, 2 - 0.25, 4 - 1.75, 0.5 - 3.5, 0.5 - 1, 0, 0)
    torch.testing.assert_close(found[taken], leads / (leads.std() + 1e-4))
    assert found[1, 1] == 0


def test_rollouts_without_a_reward_or_without_turns_are_compared_with_nobody() -> None:
    """A fault may come before the first turn, or in a later one."""
    rewards = torch.tensor([[0.5, 0.5], [0.2, 0.0], [0.0, 0.0], [0.1, NAN]])
    taken = torch.tensor([[True, True], [True, False], [False, False], [True, True]])
    groups = whole(0, 0, 0, 0)

    found = of_turns(exact(1, 0.2, NAN, NAN), groups, rewards, taken)

    assert found[2:].abs().sum() == 0
    scored = advantages(
        "turn_normalized", exact(1, 0.2), groups[:2], turn_rewards=rewards[:2], taken=taken[:2]
    )
    torch.testing.assert_close(found[:2], scored)
    assert found[0].abs().min() > 0


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
        self.log_probs = torch.stack(rows)
        self.chances = self.log_probs.sum(dim=1).exp()
        combined = torch.tensor(list(itertools.product(range(shape[0]), repeat=self.SIZE)))
        self.rows = combined.flatten()
        self.groups = torch.arange(len(combined)).repeat_interleave(self.SIZE)
        self.odds = self.chances.detach()[combined].prod(dim=1).repeat_interleave(self.SIZE)

    def gradient(self, value: Tensor) -> Tensor:
        return torch.autograd.grad(value, self.weights, retain_graph=True)[0]


def test_the_expected_gradient_of_turn_level_credit_is_that_of_the_reward() -> None:
    walk = Walk()
    reward = (walk.chances * walk.rewards.sum(dim=1)).sum()

    rewards = walk.rewards[walk.rows]
    found = advantages(
        "turn_normalized",
        rewards.sum(1),
        walk.groups,
        turn_rewards=rewards,
        taken=walk.taken[walk.rows],
    )

    pushed = (walk.odds[:, None] * found * walk.log_probs[walk.rows]).sum() / walk.SIZE
    ratio = walk.gradient(pushed) / walk.gradient(reward)  # the scale of the batch
    torch.testing.assert_close(ratio, ratio[:1].expand(3), rtol=1e-12, atol=0)
    assert ratio[0] > 0
