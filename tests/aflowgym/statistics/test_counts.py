"""Counting while rollouts pass: nothing is held, and what is taken together adds up."""

import gc
import json
import tracemalloc
import weakref
from itertools import pairwise

import pytest

from aflowgym.statistics import counts
from aflowgym.statistics.counts import Course, Gathered, moments
from aflowgym.statistics.tables import workflow_statistics
from aflowgym.statistics.workflows import readings
from toolgym import policies, rollout


class Line(dict):
    """A rollout that can be watched."""


def line(step, text, phase="grpo", correct=False, seen="2 calls, 300 tokens.\nSolution:\n7"):
    turn = {
        "action": text,
        "calls": [{"name": "run_workflow", "arguments": {"dsl": text}}],
        "observation": seen,
        "errors": [],
    }
    return Line(phase=phase, step=step, turns=[turn], correct=correct, scored=True)


def test_no_rollout_is_held_once_it_was_counted():
    alive = []

    def passing():
        for step in range(1, 60):
            one = line(step, "Custom")
            alive.append(weakref.ref(one))
            yield one
            del one
            assert sum(each() is not None for each in alive) <= 2

    gc.disable()  # what is let go is let go at once
    try:
        found = Gathered(readings(passing()))
    finally:
        gc.enable()

    assert found.total.rollouts == 59


@pytest.mark.nightly
def test_ten_times_the_rollouts_take_no_more_memory():
    texts = ["Custom", "Programmer", "Custom -> Format", "nonsense"]

    def peak(steps):
        lines = (line(1 + n % 50, texts[n % 4]) for n in range(steps))
        tracemalloc.start()
        workflow_statistics(lines)
        return tracemalloc.get_traced_memory()[1], tracemalloc.stop()

    peak(200)  # what is remembered between calls is remembered now
    assert peak(6_000)[0] < 1.5 * peak(600)[0]


@pytest.mark.parametrize("order", [1, -1])
def test_more_steps_than_are_told_apart_are_taken_together(monkeypatch, order):
    monkeypatch.setattr(counts, "MOST_STRETCHES", 8)
    course = Course()
    for reading in readings([line(step, "Custom") for step in range(1, 101)][::order]):
        course.add(reading)
    stretches = course.stretches

    assert len(stretches) <= 8
    assert (stretches[0].first, stretches[-1].last) == (1, 100)
    assert all(a.last + 1 == b.first for a, b in pairwise(stretches))
    assert sum(each.tally.rollouts for each in stretches) == 100
    assert sum(each.tally.counts["Custom"] for each in stretches) == 100


def test_windows_add_up_to_the_phase():
    lines = [line(1 + n % 7, "Custom", correct=n % 3 == 0) for n in range(50)]
    found = Gathered(readings(lines))
    told = moments(found, windows=3)

    assert sum(each.tally.right for each in told) == found.by_phase["grpo"].right == 17
    assert sum(each.tally.calls for each in told) == 100


def test_phases_stand_in_the_order_of_a_run():
    found = Gathered(readings(line(None, "Custom", phase) for phase in ("after", "grpo", "before")))

    assert found.phases == ["before", "grpo", "after"]


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


@pytest.mark.parametrize(
    ("env_id", "actions", "calls"),
    [
        ("aflowgym/Compose-v0", [call("run_workflow", dsl="Custom -> Format")], 2),
        ("aflowgym/Compose-v0", [call("run_workflow", dsl="custom → format")], 2),
        ("aflowgym/Compose-v0", [call("run_workflow", dsl="Custom"), "Custom ->"], 1),
        ("aflowgym/Compose-v0", [call("run_workflow", dsl="Custom -> ScEnsemble")], 0),
        ("aflowgym/Operate-v0", [call("custom", copies=3), call("review")], 3),
        ("aflowgym/Operate-v0", [call("custom") + "\n" + call("format")], 2),
        ("aflowgym/Operate-v0", [call("format"), call("custom")], 1),
    ],
)
def test_the_calls_of_the_operators_are_read_from_what_the_agent_was_told(env_id, actions, calls):
    policy = policies.ScriptedPolicy([*actions, call("answer")])
    records = rollout.evaluate(env_id, policy, n=4, kind="qa").records

    told = [each.calls for each in readings(records)]
    assert told == [calls] * 4


def test_what_a_solution_says_of_calls_is_not_counted():
    seen = (
        "Took 2 calls of the model, 300 tokens.\nSolution:\nTook 99 calls of the model, 1 tokens."
    )
    (reading,) = readings([line(1, "Custom", seen=seen)])

    assert reading.calls == 2
