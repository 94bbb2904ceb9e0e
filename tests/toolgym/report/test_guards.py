"""The limits that a report draws are those that the guards act by."""

from pathlib import Path
from typing import Any

import pytest

from adapters.training.guards.config import Action, GuardConfig, GuardName
from adapters.training.guards.guards import Guards
from tests.toolgym.report.synthetic_run import Page
from toolgym.report import write_report
from toolgym.report.catalogue import ACTIONS, SECTIONS, SEVERITY
from toolgym.report.view import Limit, limits, thresholds
from toolgym.runs.metrics import METRICS, unknown
from toolgym.runs.run import Run

FIRST = [0.4, 0.6, 0.5, 0.3, 0.7, 0.5, 0.4, 0.6, 0.5, 0.5]


def saved(**changes: Any) -> dict[str, Any]:
    """A guard config as a run folder holds it."""
    return GuardConfig(**changes).model_dump(mode="json")


def trips(key: str, guard: GuardName, value: float) -> bool:
    """Whether the guard acts when a run that began with `FIRST` goes on with this value."""
    guards = Guards(GuardConfig(patience=1))
    found = False
    for step, number in enumerate([*FIRST, value], 1):
        decision = guards.observe(step, {key: number})
        found = any(finding.guard == guard for finding in decision.findings)
    return found


@pytest.mark.parametrize(
    ("key", "guard", "name", "side"),
    [
        ("entropy", "entropy_floor", "floor", -1),
        ("entropy", "entropy_ceiling", "ceiling", 1),
        ("validity", "validity", "floor", -1),
        ("kl", "kl", "ceiling", 1),
    ],
)
def test_a_guard_acts_just_beyond_the_limit_that_is_drawn(
    key: str, guard: GuardName, name: str, side: int
) -> None:
    steps = range(1, len(FIRST) + 2)
    found = {one.name: one for one in limits(key, steps, [*FIRST, 0.5], saved())}

    limit = found[name]
    assert trips(key, guard, limit.value * (1 + side * 1e-6))
    assert not trips(key, guard, limit.value * (1 - side * 1e-6))
    assert limit.since == (1 if key == "kl" else 11)


def test_an_absolute_floor_holds_where_it_is_the_higher_one_and_from_the_start() -> None:
    guards = saved(entropy_floor_nats=0.2)

    early = limits("entropy", [1, 2], [0.5, 0.5], guards)
    late = limits("entropy", range(1, 12), [*FIRST, 0.5], guards)

    assert early == [Limit("floor", 0.2, 1)]
    assert Limit("floor", 0.2, 11) in late


def test_a_step_without_a_valid_turn_is_no_measure_of_what_was_healthy() -> None:
    values = [0.0, 0.0, *FIRST, 0.5]

    (floor,) = limits("validity", range(1, 14), values, saved())

    assert floor == Limit("floor", 0.25, 13)


def test_nothing_is_drawn_where_nothing_would_act() -> None:
    steps, values = range(1, 12), [*FIRST, 0.5]

    off = saved(actions={"entropy_floor": (), "entropy_ceiling": (Action.WARN,)})
    assert [one.name for one in limits("entropy", steps, values, off)] == ["ceiling"]
    assert limits("entropy", steps, values, {}) == []
    assert limits("entropy", [1, 2], [0.5, 0.5], saved()) == []  # still the first steps
    assert limits("reward", steps, values, saved()) == []
    assert limits("kl", [], [], saved()) == []


@pytest.mark.parametrize(
    "config",
    [
        {"guards": {"entropy_floor": 0.1}},
        {"settings": {"reference": {"guards": {"entropy_floor": 0.1}}}},
        {"guards": None, "list": [1], "settings": {"guards": {"entropy_floor": 0.1}}},
    ],
)
def test_thresholds_are_found_wherever_a_trainer_keeps_them(config: dict[str, Any]) -> None:
    assert thresholds(config) == {"entropy_floor": 0.1}
    assert thresholds({"guards": {}, "settings": None}) == {}


def test_a_limit_far_above_a_curve_does_not_press_it_flat(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"guards": saved()})
    for step, entropy in enumerate([*FIRST, 0.5], 1):
        run.log_metrics({"phase": "grpo", "step": step, "entropy": entropy})

    page = Page(write_report(run))

    names = [row["name"] for row in page.values("plot-entropy", "text")]
    assert ("ceiling" in names, "floor" in names) == (False, True)
    assert "Dotted: the limits of the guards." in page.text


def drawn_keys() -> set[str]:
    """Every key that some plot shows."""
    plots = [plot for section in SECTIONS for plot in section.plots]
    keys = {series.key for plot in plots for series in plot.series}
    edges = {key for plot in plots for key in plot.band or ()}
    return keys | edges | {plot.spread for plot in plots if plot.spread} | {SEVERITY}


def test_every_metric_that_is_drawn_is_in_the_vocabulary_and_of_its_unit() -> None:
    assert unknown(dict.fromkeys(drawn_keys())) == []
    for section in SECTIONS:
        for plot in section.plots:
            for series in plot.series:
                metric = METRICS[series.key]
                assert plot.phase in metric.phases, series.key
                assert (metric.unit == "share") == (plot.unit == "share"), series.key


def test_severities_are_named_as_the_guards_name_them() -> None:
    assert len(ACTIONS) == len(Action)
    assert [name.split()[0] for name in ACTIONS] == [action.split("_")[0] for action in Action]
