"""The metrics of a batch, worked by hand."""

import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from toolgym import Outcome
from toolgym.runs.metrics import METRICS

pytestmark = pytest.mark.torch

LOST = Figures(scored=False)
PAIRS = [0, 0, 1, 1]


def rollout(correct: bool = False, progress: int = 0, **more: Any) -> Figures:
    return Figures(scored=True, outcome=Outcome(correct, progress), **more)


def test_a_group_is_dead_when_its_members_agree_in_outcome() -> None:
    figures = [rollout(progress=3), rollout(progress=3), rollout(True, 3), rollout(progress=3)]
    numbers = batch_metrics(figures, [0.1, 0.2, 1.0, 0.2], PAIRS[: len(figures)])
    assert numbers["dead_groups"] == 0.5
    assert numbers["zero_variance_groups"] == 0.0
    assert numbers["accuracy"] == 0.25
    assert numbers["reward"] == pytest.approx(0.375)
    assert numbers["reward_std"] == pytest.approx((0.1 / math.sqrt(2) + 0.8 / math.sqrt(2)) / 2)


def test_unscored_rollouts_count_in_nothing_but_the_faults() -> None:
    figures = [rollout(True, answered=True, calls=2, failures=1), LOST, LOST, LOST]
    numbers = batch_metrics(figures, [1.0, math.nan, math.nan, math.nan], PAIRS[: len(figures)])
    assert numbers["faults"] == 3.0
    assert numbers["reward"] == numbers["accuracy"] == numbers["answered"] == 1.0
    assert numbers["dead_groups"] == numbers["zero_variance_groups"] == 1.0
    assert numbers["tool_failures"] == 0.5
    assert math.isnan(numbers["reward_std"])


def test_shares_are_over_all_turns_and_calls_of_the_batch() -> None:
    figures = [
        rollout(turns=4, valid_turns=3, calls=4, repairs=2, failures=1),
        rollout(turns=1, valid_turns=0),
    ]
    numbers = batch_metrics(figures, [0.0, 0.0], PAIRS[: len(figures)])
    assert numbers["validity"] == 0.6
    assert numbers["repairs_per_call"] == 0.5
    assert numbers["tool_failures"] == 0.25


def test_a_batch_without_any_score_is_all_nan_but_the_counts() -> None:
    numbers = batch_metrics([LOST, LOST], [math.nan, math.nan], [0, 0])
    counted = {key for key, value in numbers.items() if not math.isnan(value)}
    ends = {"completion_length", "clipped", "unfinished"}
    groups = {"dead_groups", "zero_variance_groups"}
    assert counted == groups | ends | {"rollouts", "faults", "turns", "over_limit"}


def test_ends_and_calls_over_a_limit_are_counted() -> None:
    figures = [
        rollout(over_limit=2, written=10, clipped=True, unfinished=True),
        rollout(written=20, unfinished=True),
        Figures(scored=False, written=30),
        rollout(turns=3, valid_turns=3, written=40),
    ]
    numbers = batch_metrics(figures, [0.0, 0.5, math.nan, 0.25], PAIRS[: len(figures)])
    assert numbers["over_limit"] == 2.0
    assert numbers["clipped"] == 0.25
    assert numbers["unfinished"] == 0.5
    assert numbers["completion_length"] == 25.0
    assert numbers["reward_max"] == 0.5
    assert numbers["turns"] == 3.0
    assert numbers.keys() <= METRICS.keys()
