"""The law of the score: wrong never beats right, differences add up, nothing can be farmed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgym.errors import ConfigurationError
from toolgym.rewards import COSTS, PARTS, Ledger, RewardConfig

spending = st.fixed_dictionaries({cost: st.integers(0, 10_000) for cost in COSTS})


def ledger(spent, progress=0.0, **flags):
    made = Ledger(RewardConfig(), **flags)
    made.spent.update(spent)
    made.reach(progress)
    return made


@given(right=spending, wrong=spending, progress=st.floats(0, 1), silent=st.booleans())
def test_every_correct_episode_beats_every_incorrect_one_by_the_margin(
    right, wrong, progress, silent
):
    correct = ledger(right, correct=True, answered=True)
    incorrect = ledger(wrong, progress, answered=not silent, closed_unanswered=silent)
    assert correct.score() >= incorrect.score() + RewardConfig().margin - 1e-12


@given(spent=spending, progress=st.floats(0, 1), correct=st.booleans(), silent=st.booleans())
def test_the_parts_sum_to_the_score_and_stay_within_bounds(spent, progress, correct, silent):
    made = ledger(spent, progress, correct=correct, closed_unanswered=silent and not correct)
    parts = made.parts()
    assert tuple(parts) == PARTS
    assert math.fsum(parts.values()) == pytest.approx(made.score(), abs=1e-12)
    low, high = made.config.bounds
    assert low <= made.score() <= high


@given(spent=spending, cost=st.sampled_from(COSTS))
def test_every_further_mistake_costs_something_but_never_a_gain(spent, cost):
    made = ledger(spent)
    before = made.score()
    made.charge(cost)
    assert made.score() <= before


@given(st.lists(st.floats(0, 1), min_size=1))
def test_progress_is_the_best_state_and_never_a_count(states):
    made = ledger({})
    for state in states:
        made.reach(state)
    best = ledger({}, max(states))
    assert made.score() == best.score()


def test_progress_is_told_in_bins_and_an_edge_reached_by_rounding_counts():
    made = ledger({}, 0.1 + 0.2)
    assert made.progress == pytest.approx(0.3)
    made.reach(0.39)
    assert made.progress == pytest.approx(0.3)


def test_a_fault_leaves_the_score_and_every_part_unscored():
    made = ledger({"step": 3}, faulted=True)
    assert math.isnan(made.score())
    assert all(math.isnan(part) for part in made.parts().values())


def test_answering_wrongly_is_never_worse_than_stopping():
    spent = {"step": 4, "failed_call": 1}
    stopped = ledger(spent, 0.5, closed_unanswered=True)
    answered = ledger(spent, 0.5, answered=True)
    assert answered.score() > stopped.score()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"partial": 0.6}, r"0\.6 \+ 0\.3 = 0\.9 > 0\.8"),
        ({"repaired_call": 0.05}, r"0\.05 > 0\.01"),
        ({"bins": 20}, r"0\.4 / 20 = 0\.02 <= 0\.03"),
        ({"margin": 0.0}, "margin"),
        ({"unanswered": 0.0}, "unanswered"),
        ({"stepp": 0.1}, "stepp"),
        ({"step": float("nan")}, "step"),
    ],
)
def test_a_config_that_breaks_the_law_is_refused_with_both_sides(weights, words):
    with pytest.raises(ConfigurationError, match=words):
        RewardConfig.of(weights)


@pytest.mark.parametrize("progress", [-0.1, 1.1, float("nan")])
def test_an_environment_that_reports_impossible_progress_is_told(progress):
    with pytest.raises(ConfigurationError, match="between 0 and 1"):
        ledger({}, progress)
