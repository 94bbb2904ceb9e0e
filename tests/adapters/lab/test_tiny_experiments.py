"""The experiments that need SQL and a tiny model, at a size that a test can wait for."""

import dataclasses
import json

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.lab.experiments import estimators_sql, null_wall, warm_up
from adapters.lab.results import finding
from adapters.lab.runner import run_units
from adapters.lab.sql.tiny_grpo import TinyGrpo, mean, null_share, train
from adapters.lab.sql.tiny_start import TinyStart, exported, padded, started
from adapters.lab.starts import remembered_in
from adapters.lab.units import units_of
from adapters.training.preflight.run import Scope

pytestmark = pytest.mark.torch

MICRO = {"demonstrations": 240, "steps": 120}
SETTINGS = {"max_completion_length": 160, "prompts": 2}
TINIEST = {"demonstrations": 16, "steps": 3}
NULLS = {"table_name", "sql", "value"}
SEEDS = 3


def arguments(transcripts):
    return [
        call["function"]["arguments"]
        for transcript in transcripts
        for message in transcript
        for call in message.get("tool_calls") or []
    ]


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    return tmp_path_factory.mktemp("starts")


@pytest.fixture(scope="module")
def wall(tmp_path_factory):
    """What comes of the wall at a size for tests, and the experiment."""
    small = dataclasses.replace(
        null_wall.EXPERIMENT,
        cells=lambda scale: {
            cell: config
            for cell, config in null_wall.cells_of("quick", 3, 4, MICRO, SETTINGS).items()
            if not cell.startswith("half")
        },
    )
    units, out = units_of(small, "quick", SEEDS), tmp_path_factory.mktemp("wall")
    assert run_units(units, out, jobs=1) == []
    return finding(small, "quick", units, out)


WALL = ("wall_is_level", "wall_has_no_gradient", "wall_stays", "lenient_has_signal")
UNDONE = ("export_is_clean", "price_needs_a_choice")


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*WALL, *UNDONE])
def test_the_verdict_on_the_wall_of_nulls_holds(wall, name):
    verdicts = {prediction.name: verdict for prediction, verdict in wall.verdicts()}

    assert verdicts[name].outcome == "confirmed", verdicts[name].sentence


def test_arrow_pads_every_call_and_the_export_none():
    clean = exported(12, seed=0, guesses=0.5)
    spoilt = padded(clean)

    assert all(None not in each.values() for each in arguments(clean))
    assert all(set(each) == NULLS for each in arguments(spoilt))
    for before, after in zip(arguments(clean), arguments(spoilt), strict=True):
        assert {key: value for key, value in after.items() if value is not None} == before
    assert [[m["content"] for m in t] for t in spoilt] == [[m["content"] for m in t] for t in clean]


@pytest.mark.nightly
def test_a_start_is_made_once_and_the_same_as_without_a_folder(starts):
    size = TinyStart(padded=0.5, **TINIEST)
    with remembered_in(starts):
        first, tokenizer = started(size, 5)
        kept = {path: path.stat().st_mtime_ns for path in starts.rglob("*") if path.is_file()}
        again, _ = started(size, 5)
    alone, _ = started(size, 5)

    assert kept == {p: p.stat().st_mtime_ns for p in starts.rglob("*") if p.is_file()}
    for one, other, third in zip(
        first.parameters(), again.parameters(), alone.parameters(), strict=True
    ):
        assert one.equal(other)
        assert one.equal(third)
    assert len(list(starts.iterdir())) == 1
    assert tokenizer.chat_template


@pytest.mark.nightly
def test_a_training_twice_gives_the_same_numbers_and_has_no_times():
    size, grpo = TinyStart(**TINIEST), TinyGrpo(2, trainer={**SETTINGS, "group_size": 2})
    first, again = (train(started(size, 0), grpo, 0) for _ in range(2))

    assert first == again
    assert len(first) == 2
    assert not any("seconds" in key or key == "peak_memory" for step in first for key in step)


def test_nulls_are_counted_in_calls_only():
    turns = [
        {"action": '{"arguments": {"sql": null}}', "calls": [{}]},
        {"action": '{"arguments": {"sql": "x"}}', "calls": [{}]},
        {"action": "a: null", "calls": []},
    ]

    assert null_share([{"turns": turns}]) == 0.5
    assert mean([{"reward": 0.5}, {"reward": 1.0}], "reward", first=1) == 0.5


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["grpo", "dapo"])
def test_an_algorithm_is_trained_and_measured(name, starts):
    config = estimators_sql.EXPERIMENT.cells("smoke")[f"short-{name}"]
    trainer = {**config["trainer"], "max_completion_length": 64}
    small = {**config, "start": TINIEST, "trainer": trainer, "evaluated": 2}
    with remembered_in(starts):
        record = estimators_sql.run(small, 0)

    assert 0 <= record["held_out_accuracy"] <= 1
    assert record["rollouts"] >= 32
    assert len(record["reward"]) == 1  # one batch, two updates
    json.dumps(record, allow_nan=False)


@pytest.mark.nightly
def test_a_warm_up_is_looked_at_and_trained_whatever_was_found(starts, monkeypatch):
    monkeypatch.setattr(warm_up, "SCOPE", Scope(tasks=1, tries=2, transcripts=1))
    monkeypatch.setattr(warm_up, "ROOM", 128)
    config = {"start": TINIEST, "steps": 1, "tasks": 2}
    with remembered_in(starts):
        record = warm_up.run(config, 0)

    assert record["go"] is False
    assert record["reasons"]
    assert record["validity"] < 0.5
    assert len(record["reward"]) == 1
    json.dumps(record, allow_nan=False)
