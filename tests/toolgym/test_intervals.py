"""Intervals of shares, of means, and of what several tries at each task tell."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgym import ConfigurationError
from toolgym.intervals import (
    average,
    mean_over_tasks,
    pass_at,
    share,
    t_quantile,
    wilson_interval,
)

MOST_TASKS_ALIKE, EVEN, HARD = (0.1, 0.1), (1.0, 1.0), (1.0, 9.0)
"""Populations of tasks, as the two numbers of a beta distribution: nearly all are always or never
solved, every rate is as frequent as any other, and most are hard."""


def test_a_mean_over_fewer_than_three_seeds_is_refused_with_what_to_do():
    for values in ([], [2.0], [1.0, 2.0]):
        with pytest.raises(ConfigurationError, match=f"got {len(values)}: run more seeds"):
            average(values)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [
        (1, math.tan(0.475 * math.pi)),
        (1.25, 8.027951377),
        (2, 0.95 * math.sqrt(2 / (1 - 0.95**2))),
        (2.5, 3.574654842),
        (29, 2.0452296421),
        (1e8, 1.9599640083),
    ],
)
def test_students_quantile_is_right_for_any_degrees_of_freedom(freedom, quantile):
    """The values of 1 and 2 are in closed form; the others are scipy's `t.ppf(0.975, freedom)`."""
    assert t_quantile(freedom) == pytest.approx(quantile, rel=1e-7)


def test_no_outcome_bounds_nothing():
    assert (share(0, 0).low, share(0, 0).high) == (0.0, 1.0)
    assert (mean_over_tasks([], []).low, mean_over_tasks([], []).high) == (0.0, 1.0)


def rates(population: tuple[float, float], tasks: int, k: int, draw: random.Random) -> list[float]:
    """By task, the share of its k tries that are right."""
    chances = (draw.betavariate(*population) for _ in range(tasks))
    return [sum(draw.random() < chance for _ in range(k)) / k for chance in chances]


@pytest.mark.parametrize("k", [1, 4, 16])
@pytest.mark.parametrize("population", [MOST_TASKS_ALIKE, EVEN, HARD])
def test_more_tries_at_the_same_tasks_do_not_make_an_accuracy_surer_than_it_is(population, k):
    """Taken for independent, sixteen tries held the truth in 40 to 80 of 100 evaluations."""
    truth, draw = population[0] / sum(population), random.Random(f"{population} {k}")
    found = [mean_over_tasks(rates(population, 40, k, draw), [k] * 40) for _ in range(150)]

    held = sum(each.low <= truth <= each.high for each in found)
    assert 0.89 <= held / len(found) <= 1.0


@settings(max_examples=40)
@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_with_one_try_a_task_the_interval_is_wilsons(outcomes: Sequence[bool]):
    found = mean_over_tasks([float(each) for each in outcomes], [1] * len(outcomes))

    assert (found.low, found.high) == wilson_interval(sum(outcomes), len(outcomes))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8)), min_size=1, max_size=30),
    st.integers(1, 8),
)
def test_an_interval_lies_between_those_of_all_tries_and_of_one_a_task(tasks, j):
    """For unequal numbers of tries too, as where some could not be scored."""
    values = [min(right, tries) / tries for right, tries in tasks]
    tries = [each for _, each in tasks]
    found = mean_over_tasks(values, tries)

    total = sum(min(each) for each in tasks)
    assert found.value == pytest.approx(total / sum(tries))
    assert 0 <= found.low <= found.value <= found.high <= 1
    inner = wilson_interval(total, sum(tries))
    assert found.high - found.low >= inner[1] - inner[0] - 1e-9
    passes = mean_over_tasks([pass_at(8, min(right, 8), j) for right, _ in tasks], [8] * len(tasks))
    assert 0 <= passes.low <= passes.value <= passes.high <= 1
