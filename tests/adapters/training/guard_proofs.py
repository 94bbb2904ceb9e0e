"""What a run did under its guards, and the proof of each action on weights and optimizer.

Filled in by the tests of both trainers: `Run.states[N]` is what step N left, a return to earlier
weights included, `states[0]` what the run began with.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from adapters.training.guards.checks import GUARDS
from adapters.training.guards.config import GUARD_NAMES, Action
from adapters.training.guards.guards import Decision, GuardFinding


@dataclass
class State:
    """All that an update moves, copied."""

    weights: dict[str, torch.Tensor]
    optimizer: dict[str, Any]

    def moved(self, since: "State") -> torch.Tensor:
        """By how much the weights have changed, one after the other."""
        pairs = ((value, since.weights[name]) for name, value in self.weights.items())
        return torch.cat([(after - before).flatten() for after, before in pairs])

    def is_finite(self) -> bool:
        """Whether every weight is a number."""
        return all(bool(value.isfinite().all()) for value in self.weights.values())


@dataclass
class Run:
    """What a run did.

    Attributes:
        rate: The learning rate, which no schedule changes.
        told: By step, from 1, the trainer's metrics.
        decisions: By step, from 1.
        returns: By step of a roll-back the step whose weights were restored.
        diagnosis: Why the guards stopped it; empty where they did not.
        log: What the user is told.
    """

    rate: float
    states: list[State] = field(default_factory=list)
    told: list[dict[str, float]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    returns: dict[int, int] = field(default_factory=dict)
    diagnosis: str = ""
    log: list[str] = field(default_factory=list)

    def trips(self, guard: str) -> list[tuple[int, GuardFinding]]:
        """When it tripped, and what it found."""
        return [(d.step, f) for d in self.decisions for f in d.findings if f.guard == guard]

    def numbers(self, step: int) -> dict[str, float]:
        """What the trainer told of a step, from 1."""
        return self.told[step - 1]


def alone(guard: str, **config: Any) -> dict[str, Any]:
    """The config of guards that are all off but for one, which keeps its own list of actions."""
    off: dict[str, list[str]] = {name: [] for name in GUARD_NAMES if name != guard}
    return {**config, "actions": {**off, **config.get("actions", {})}}


def watch(guards: Any, run: Run) -> None:
    """Take down what the guards decide, as they decide it."""
    observe, choose = guards.observe, guards.choose_snapshot

    def observed(*args: Any) -> Decision:
        run.decisions.append(observe(*args))
        return run.decisions[-1]

    def chosen(*args: Any) -> int | None:
        place = choose(*args)
        if place is not None:
            run.returns[len(run.decisions)] = place
        return place

    guards.observe, guards.choose_snapshot = observed, chosen


@contextmanager
def listening(logger: str, run: Run) -> Iterator[None]:
    """Take down what is logged."""

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            run.log.append(record.getMessage())

    heard = Heard()
    logging.getLogger(logger).addHandler(heard)
    try:
        yield
    finally:
        logging.getLogger(logger).removeHandler(heard)


def is_same(one: Any, other: Any) -> bool:
    """Whether two states agree to the last bit, nan and nan included."""
    if isinstance(one, State):
        return is_same(one.weights, other.weights) and is_same(one.optimizer, other.optimizer)
    if isinstance(one, torch.Tensor):
        return bool(((one == other) | (one.isnan() & other.isnan())).all())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


def check_all_actions(run: Run, guard: str) -> dict[int, Action]:
    """Make sure that the guard took its actions in turn, and that the trainer did each of them.

    Returns:
        The actions by step.
    """
    (promised,) = (each.actions for each in GUARDS if each.name == guard)
    trips = run.trips(guard)
    taken = tuple(finding.action for _, finding in trips)
    assert taken
    assert taken == promised[: len(taken)]
    for step, finding in trips:
        CHECKS[finding.action](run, step, finding)
    return {step: finding.action for step, finding in trips}


def check_warned(run: Run, step: int, finding: GuardFinding) -> None:
    """The update is made, and the user is told."""
    assert run.decisions[step - 1].update
    assert run.states[step].moved(run.states[step - 1]).any()
    assert run.numbers(step)["guard_severity"] == 1.0
    lines = [line for line in run.log if line.startswith(f"step {step}, warn")]
    assert any(f"{finding.guard}: {finding.reason}" in line for line in lines)


def check_left_out(run: Run, step: int, finding: GuardFinding) -> None:
    """Neither weights nor the optimizer's state move."""
    assert is_same(run.states[step], run.states[step - 1])
    made = run.numbers(step - 1)["updates"] if step > 1 else 0.0
    assert run.numbers(step)["updates"] == made
    assert run.numbers(step)["guard_severity"] == finding.action.severity


def check_lowered(run: Run, step: int, finding: GuardFinding) -> None:
    """The rate is halved, and the step's own update is made at it."""
    check_rate(run, step)
    assert not is_same(run.states[step], run.states[step - 1])


def check_rate(run: Run, step: int) -> None:
    """The rate is halved from a step on."""
    before, now, after = (d.learning_rate_scale for d in run.decisions[step - 2 : step + 1])
    assert now == before / 2
    assert after <= now
    assert run.numbers(step)["learning_rate"] == pytest.approx(run.rate * now)
    assert run.numbers(step + 1)["learning_rate"] == pytest.approx(run.rate * after)


def check_returned(run: Run, step: int, finding: GuardFinding) -> None:
    """Weights and optimizer are those of an earlier step, and the rate is halved."""
    place = run.returns[step]
    assert place < step - 1
    assert is_same(run.states[step], run.states[place])
    assert not is_same(run.states[step], run.states[step - 1])
    assert run.states[step].is_finite()
    check_rate(run, step)


def check_stopped(run: Run, step: int, finding: GuardFinding) -> None:
    """The last update is left out, and the diagnosis says what was seen and what to change."""
    check_left_out(run, step, finding)
    assert len(run.told) == step
    assert run.diagnosis.startswith(f"Training stops at step {step}.")
    assert f"- {finding.guard}: {finding.reason}." in run.diagnosis
    assert f"1. {finding.advice}" in run.diagnosis


CHECKS: dict[Action, Callable[[Run, int, GuardFinding], None]] = {
    Action.WARN: check_warned,
    Action.SKIP: check_left_out,
    Action.LOWER_LR: check_lowered,
    Action.ROLL_BACK: check_returned,
    Action.STOP: check_stopped,
}


def check_half_as_far(run: Run, free: Run, step: int) -> None:
    """At this step a run went half as far as one without guards, equal to the bit until then."""
    assert is_same(free.states[step - 1], run.states[step - 1])
    whole, half = (each.states[step].moved(each.states[step - 1]) for each in (free, run))
    assert whole.abs().max() > 1e-5
    torch.testing.assert_close(half, whole / 2, atol=1e-7, rtol=1e-3)


def check_silent(run: Run) -> None:
    """All rollouts ran out of tokens: two warnings, and then the end, all three with what to do.

    With `idle_steps` at 2, which is the same for both trainers, and so is every word.
    """
    assert [numbers["unfinished"] for numbers in run.told] == [1.0] * 6
    assert run.numbers(6)["skipped_updates"] == 6.0
    assert is_same(run.states[6], run.states[0])
    assert [line.split(":")[0] for line in run.log] == [
        "step 2, warn, idle",
        "step 4, warn, idle",
        "step 6, stop, idle",
    ]
    assert "100% of the rollouts ran out of tokens or turns. Double max_completion" in run.log[0]
    assert run.diagnosis.startswith("Training stops at step 6.\n- idle: no learning signal in 6")
    assert "1. Double max_completion_length" in run.diagnosis
