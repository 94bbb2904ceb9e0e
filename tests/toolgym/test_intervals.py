"""Intervals of shares and means."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgym.intervals import average, share, t_quantile

numbers = st.floats(-1e6, 1e6)


@given(values=st.lists(numbers, min_size=2, max_size=30), shift=numbers)
def test_the_interval_of_a_mean_moves_with_the_values(values, shift):
    here, there = average(values), average([value + shift for value in values])

    assert here.low <= here.value <= here.high
    assert there.low == pytest.approx(here.low + shift, abs=1e-3)


def test_intervals_agree_with_published_ones():
    assert [round(t_quantile(n), 3) for n in (1, 4, 30)] == [12.706, 2.776, 2.042]
    assert share(0, 0).low == 0.0


def test_one_value_bounds_nothing():
    assert (average([2.0]).low, average([2.0]).high) == (-math.inf, math.inf)
