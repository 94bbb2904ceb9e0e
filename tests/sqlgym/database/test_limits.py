"""Limits that a caller sets."""

import pytest

from sqlgym.database.limits import Limits
from toolgym.errors import ConfigurationError


def test_limits_are_read_from_a_mapping_and_the_time_follows_the_steps():
    assert Limits.of(None) == Limits.of({}) == Limits()
    assert Limits.of({"steps": 2_000_000_000, "rows": 5}) == Limits(steps=2_000_000_000, rows=5)
    assert Limits(steps=2_000_000_000).deadline == 100 * Limits().deadline
    assert Limits.of({"seconds": 60}).deadline == 60


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"step": 5}, "Unknown limit 'step'. The limits are steps, seconds, "),
        ({"steps": 0}, "The limit 'steps' must be a positive integer, got 0."),
        ({"steps": 1.5}, "must be a positive integer"),
        ({"rows": True}, "must be a positive integer"),
        ({"seconds": "5"}, "The limit 'seconds' must be a positive number, got '5'."),
        ({"seconds": float("nan")}, "must be a positive number"),
        ({"rows": None}, "must be a positive integer"),
    ],
)
def test_a_limit_that_is_unknown_or_not_positive_is_refused(limits, message):
    with pytest.raises(ConfigurationError, match=message.replace("(", r"\(")):
        Limits.of(limits)
