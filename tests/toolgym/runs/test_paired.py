"""Two evaluations on the same tasks: what is counted, how sure it is, and what is refused."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgym import ConfigurationError
from toolgym.intervals import sign_test
from toolgym.records import EpisodeRecord
from toolgym.runs.paired import compare_folders, paired
from toolgym.runs.run import Run

BLANK = EpisodeRecord("e/E-v0", "", 0, "?", (), 1.0, False, True, True, 0, {})


def played(outcomes: Iterable[Sequence[bool | None]]) -> list[EpisodeRecord]:
    """One task for each entry, with a try for each of its outcomes; None was not scored."""
    return [
        replace(
            BLANK, task_id=f"t{task}", number=number, correct=bool(each), scored=each is not None
        )
        for task, tries in enumerate(outcomes)
        for number, each in enumerate(tries)
    ]


def singles(outcomes: Iterable[bool]) -> list[EpisodeRecord]:
    return played([each] for each in outcomes)


PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
TRIES = st.lists(st.booleans(), min_size=2, max_size=3)


@settings(max_examples=60)
@given(PAIRS, st.randoms(use_true_random=False))
def test_the_difference_is_that_of_the_shares_and_lies_in_its_interval(
    pairs: list[tuple[bool, bool]], order: Any
) -> None:
    first, second = (singles(side) for side in zip(*pairs, strict=True))
    found = paired(first, second)

    assert found.difference.value == pytest.approx(
        sum(b for _, b in pairs) / len(pairs) - sum(a for a, _ in pairs) / len(pairs)
    )
    assert -1 <= found.difference.low <= found.difference.value <= found.difference.high <= 1
    assert (len(found.gained), len(found.lost)) == (
        pairs.count((False, True)),
        pairs.count((True, False)),
    )
    order.shuffle(second)
    assert paired(first, second) == found


@given(st.integers(0, 9), st.integers(0, 9))
def test_the_sign_test_counts_all_ways_in_which_pairs_can_fall(more: int, fewer: int) -> None:
    count = more + fewer
    apart = [
        abs(2 * sum(ways) - count) >= abs(more - fewer)
        for ways in itertools.product((0, 1), repeat=min(count, 12))
    ]
    if count <= 12:
        assert sign_test(more, fewer) == pytest.approx(sum(apart) / len(apart))
    assert 0 < sign_test(more, fewer) <= 1


@settings(max_examples=60)
@given(st.lists(st.tuples(TRIES, TRIES), min_size=1, max_size=8))
def test_several_tries_count_by_their_mean(pairs: list[tuple[list[bool], list[bool]]]) -> None:
    found = paired(*(played(side) for side in zip(*pairs, strict=True)))

    means = [sum(b) / len(b) - sum(a) / len(a) for a, b in pairs]
    assert found.difference.value == pytest.approx(sum(means) / len(means))
    assert -1 <= found.difference.low <= found.difference.value <= found.difference.high <= 1
    assert found.difference.low < found.difference.high
    assert paired(*(played(side) for side in zip(*pairs, strict=True))) == found


def test_tasks_that_one_has_not_or_has_not_scored_are_counted_and_left_out() -> None:
    found = paired(played([[True], [None], [True], [False]]), played([[False], [True], [True]]))

    assert (found.tasks, found.unpaired, found.lost) == (2, 2, ("t0",))


def test_what_cannot_be_paired_is_refused() -> None:
    one = singles([True])
    with pytest.raises(ConfigurationError, match="t0 names different tasks of e/E-v0 and"):
        paired(one, [replace(one[0], question="Another?")])
    with pytest.raises(ConfigurationError, match="no task was scored in both"):
        paired(one, [replace(one[0], task_id="else")])


def run_with(folder: Path, before: Sequence[bool], after: Sequence[bool], unseen: list[str]) -> Run:
    run = Run.create(folder, {"settings": {}})
    for phase, outcomes in (("before", before), ("after", after)):
        records = (record.to_json() for record in singles(outcomes))
        run.log_rollouts({"phase": phase, **record} for record in records)
    evaluation = {"name": "unseen databases", "unseen": unseen, "temperature": 0.0}
    run.write_summary({"status": "complete", "evaluations": [evaluation]})
    return run


def test_two_runs_are_compared_by_their_final_evaluations_and_one_by_both_its_own(
    tmp_path: Path,
) -> None:
    unseen = ["tasks", "databases"]
    one = run_with(tmp_path / "one", [False, False], [True, False], unseen)
    other = run_with(tmp_path / "other", [False, False], [True, True], unseen)

    (found,) = compare_folders(one.path, other.path)
    assert (found.name, found.result.gained) == ("unseen databases", ("t1",))
    assert found.about[0].endswith("after a training that held out: tasks, databases")
    (own,) = compare_folders(one.path, one.path)
    assert (own.name, own.result.gained) == ("unseen databases", ("t0",))
    assert own.about[0].endswith("before a training that held out: tasks, databases")

    third = run_with(tmp_path / "third", [False], [True], [])
    (mixed,) = compare_folders(one.path, third.path)
    assert mixed.about[1].endswith("after a training that held out: nothing")


@pytest.mark.parametrize("listed", [5, [None, 5], [{"name": 5, "unseen": 7}]])
def test_a_run_with_a_damaged_summary_is_compared_by_its_episodes(
    tmp_path: Path, listed: object
) -> None:
    run = run_with(tmp_path / "one", [False, False], [True, False], [])
    run.write_summary({"status": "complete", "evaluations": listed})
    (found,) = compare_folders(run.path, run.path)
    assert found.result.gained == ("t0",)
