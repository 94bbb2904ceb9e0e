"""Intervals and verdicts of the lab."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.lab.prediction import (
    Prediction,
    exact,
    first_record,
    mean_above,
    mean_unchanged,
    share_above,
    share_unchanged,
)
from toolgym.intervals import (
    Effect,
    average,
    paired_difference,
    share,
    share_difference,
    t_quantile,
    welch_difference,
)

numbers = st.floats(-1e6, 1e6)
counts = st.integers(0, 40).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))


def cells_of(**cells):
    return {
        name: {seed: {"value": value} for seed, value in enumerate(values)}
        for name, values in cells.items()
    }


def verdict_on(low, high, size, *, within=False):
    effect = Effect((low + high) / 2, low, high, 10)
    return Prediction("p", "A claim.", lambda cells: effect, size, within).verdict({}).outcome


@pytest.mark.parametrize(
    ("low", "high", "size", "outcome"),
    [
        (0.6, 0.8, 0.5, "confirmed"),
        (0.4, 0.8, 0.5, "inconclusive"),
        (0.1, 0.4, 0.5, "refuted"),
        (-0.9, -0.6, 0.5, "refuted"),
    ],
)
def test_an_effect_above_a_size_is_judged_by_its_whole_interval(low, high, size, outcome):
    assert verdict_on(low, high, size) == outcome


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (-0.1, 0.1, "confirmed"),
        (-0.1, 0.3, "inconclusive"),
        (0.3, 0.4, "refuted"),
        (-0.4, -0.3, "refuted"),
        (-0.5, 0.5, "inconclusive"),
    ],
)
def test_no_change_is_confirmed_inside_and_refuted_outside(low, high, outcome):
    assert verdict_on(low, high, 0.2, within=True) == outcome


@pytest.mark.nightly
@given(value=numbers, half=st.floats(0, 1e3), size=st.floats(0, 1e3), within=st.booleans())
def test_a_wider_interval_never_decides_what_a_narrower_one_leaves_open(value, half, size, within):
    narrow = verdict_on(value - half, value + half, size, within=within)
    wide = verdict_on(value - 2 * half, value + 2 * half, size, within=within)

    assert wide in (narrow, "inconclusive")


@given(one=counts, other=counts)
def test_a_difference_of_shares_lies_in_its_interval_and_turns_round(one, other):
    there, back = share_difference(*one, *other), share_difference(*other, *one)

    assert -1 <= there.low <= there.high <= 1
    if one[1] and other[1]:
        assert there.low - 1e-12 <= there.value <= there.high + 1e-12
        assert there.value == pytest.approx(-back.value)
        assert there.low == pytest.approx(-back.high)


@given(values=st.lists(numbers, min_size=2, max_size=30), shift=numbers)
def test_the_interval_of_a_mean_moves_with_the_values(values, shift):
    here, there = average(values), average([value + shift for value in values])

    assert here.low <= here.value <= here.high
    assert there.low == pytest.approx(here.low + shift, abs=1e-3)


def test_intervals_agree_with_published_ones():
    assert [round(t_quantile(n), 3) for n in (1, 4, 30)] == [12.706, 2.776, 2.042]
    newcombe = share_difference(56, 70, 48, 80)  # Newcombe 1998, table II, example a
    assert (round(newcombe.low, 4), round(newcombe.high, 4)) == (0.0524, 0.3339)
    welch = welch_difference([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert welch.value == -2.0
    assert (round(welch.low, 2), round(welch.high, 2)) == (-6.16, 2.16)  # 2.94 degrees of freedom
    assert share(0, 0).low == 0.0


def test_seeds_that_share_their_start_are_compared_with_themselves():
    values, others = [1.0, 5.0, 9.0, 13.0], [0.0, 4.1, 7.9, 12.0]

    assert paired_difference(values, others).low > 0
    assert welch_difference(values, others).low < 0


def test_a_mean_above_another_is_confirmed_over_seeds_that_both_have():
    cells = cells_of(a=[2.0, 2.1, 1.9, 5.0], b=[1.0, 1.1, 0.9])
    verdict = mean_above("p", "A claim.", "a", "value", than="b", by=0.5).verdict(cells)

    assert (verdict.outcome, verdict.effect.seeds) == ("confirmed", 3)
    assert "at least 0.5" in verdict.sentence
    assert "3 seeds" in verdict.sentence


def test_an_equal_mean_is_unchanged_and_not_above():
    cells = cells_of(a=[1.0, 2.0, 3.0], b=[1.0, 2.0, 3.0])

    assert mean_unchanged("p", "c", "a", "value", than="b", within=0.1).verdict(cells).outcome == (
        "confirmed"
    )
    assert mean_above("p", "c", "a", "value", than="b", by=0.1).verdict(cells).outcome == "refuted"


def test_shares_count_truths_and_leave_out_what_has_none():
    cells = cells_of(a=[True] * 30 + [None], b=[False] * 30)

    above = share_above("p", "c", "a", "value", than="b", by=0.5).verdict(cells)
    assert (above.outcome, above.effect.seeds) == ("confirmed", 30)
    assert share_above("p", "c", "a", "value", by=0.5).verdict(cells).outcome == "confirmed"
    same = share_unchanged("p", "c", "a", "value", than="b", within=0.2).verdict(cells)
    assert same.outcome == "refuted"


def test_smoke_size_is_inconclusive_by_design_but_arithmetic_is_not():
    cells = cells_of(a=[2.0, 2.0], b=[0.0, 0.0])
    measured = mean_above("p", "c", "a", "value", than="b", by=0.5)
    computed = exact("p", "c", lambda cells: first_record(cells, "a")["value"], at_least=2.0)

    assert measured.verdict(cells).outcome == "confirmed"
    assert measured.verdict(cells, smoke=True).outcome == "inconclusive"
    assert "by design" in measured.verdict(cells, smoke=True).sentence
    assert computed.verdict(cells, smoke=True).outcome == "confirmed"


def test_nothing_measured_is_inconclusive():
    verdict = mean_above("p", "c", "a", "value", than="b", by=0.5).verdict({})

    assert verdict.outcome == "inconclusive"
    assert "Nothing was measured" in verdict.sentence


def test_arithmetic_is_at_least_or_within_and_not_both():
    with pytest.raises(ValueError, match="not both"):
        exact("p", "c", lambda cells: 0.0)
    assert exact("p", "c", lambda cells: 0.1, within=0.2).verdict({}).outcome == "confirmed"
    assert exact("p", "c", lambda cells: math.nan, within=0.2).verdict({}).outcome == "inconclusive"
