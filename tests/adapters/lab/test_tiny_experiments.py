"""The experiments that need SQL and a tiny model, at a size that a test can wait for."""

import dataclasses
import json

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.lab.catalogue import experiment
from adapters.lab.experiments import estimators_sql, null_wall, warm_up
from adapters.lab.experiments.estimators_sql import ARMS
from adapters.lab.prediction import values_of
from adapters.lab.results import finding, to_json
from adapters.lab.runner import run_units
from adapters.lab.sql.tiny_grpo import TinyGrpo, mean, null_share, settings_of, train
from adapters.lab.sql.tiny_start import TinyStart, exported, padded, started
from adapters.lab.starts import remembered_in
from adapters.lab.units import units_of
from adapters.training.preflight.run import Scope
from tests.sweeps import sweep
from tools.make_lab_tables import BEGIN, END, SHORT, SHORT_BEGIN, SHORT_END, filled, short, tables

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


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WALL, *UNDONE])
def test_the_verdict_on_the_wall_of_nulls_holds(wall, name):
    verdicts = {prediction.name: verdict for prediction, verdict in wall.verdicts()}

    assert verdicts[name].outcome == "confirmed", verdicts[name].sentence


@pytest.mark.slow
def test_the_wall_is_drawn_and_told_without_a_clock(wall):
    told = json.dumps(to_json(wall))

    assert {figure.name for figure in wall.figures()} == {"null_wall_reward", "null_wall_nulls"}
    assert "seconds" not in told
    for verdict in wall.verdicts():
        assert verdict[1].sentence


def test_arrow_pads_every_call_and_the_export_none():
    clean = exported(12, seed=0, guesses=0.5)
    spoilt = padded(clean)

    assert all(None not in each.values() for each in arguments(clean))
    assert all(set(each) == NULLS for each in arguments(spoilt))
    for before, after in zip(arguments(clean), arguments(spoilt), strict=True):
        assert {key: value for key, value in after.items() if value is not None} == before
    assert [[m["content"] for m in t] for t in spoilt] == [[m["content"] for m in t] for t in clean]


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


@pytest.mark.parametrize("name", ARMS)
def test_every_algorithm_is_one_that_the_trainer_knows(name):
    config = settings_of(TinyGrpo(trainer={**ARMS[name].trainer, "updates_per_batch": 2}), 0)

    assert config.updates_per_batch == 2
    assert (config.sampling is not None) == (name == "dapo")


@pytest.mark.parametrize("name", sweep(["grpo", "dapo"], ["dapo"]))
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


def test_a_warm_up_has_as_many_steps_as_its_epochs_need():
    cells = warm_up.EXPERIMENT.cells("full")
    for questions, epochs, steps in ((100, 2, 100), (100, 4, 200), (200, 4, 400)):
        start = cells[warm_up.name_of(questions, epochs, 8e-3)]["start"]
        assert start["demonstrations"] == questions
        assert start["steps"] == steps


def test_what_was_refused_is_left_out_of_the_seeds_that_were_let_go():
    rows = {0: {"go": True, "score_gained": 0.3}, 1: {"go": False, "score_gained": 0.0}}
    cell = warm_up.name_of(100, 2, 8e-3)
    refused = next(p for p in warm_up.PREDICTIONS if p.name == "what_is_refused_learns_nothing")

    assert values_of({cell: rows}, cell, "score_gained") == {0: 0.3, 1: 0.0}
    assert refused.effect({cell: rows}).value == 0.0
    assert refused.effect({cell: rows}).seeds == 1


def test_units_of_one_seed_share_their_start():
    cells = null_wall.EXPERIMENT.cells("full")
    names = {json.dumps(config["start"]): set() for config in cells.values()}
    for name, config in cells.items():
        names[json.dumps(config["start"])].add(name)

    padded_ones, half, export = sorted(names.values(), key=lambda each: -len(each))
    assert {"padded-strict", "padded-lenient", "padded-priced", "padded-priced-long"} < padded_ones
    assert {"half-priced", "half-free", "half-strict-long"} < half
    assert export == {"export-strict"}


@pytest.mark.slow
def test_the_page_is_filled_with_every_verdict_and_nothing_else_changes(wall):
    page = f"before\n{BEGIN}\nto be replaced\n{END}\nafter\n"
    results = {"null-wall": to_json(wall)}
    written = filled(page, tables(results))

    assert written.startswith("before\n")
    assert written.endswith(f"{END}\nafter\n")
    assert "to be replaced" not in written
    assert written.count("| confirmed |") >= len(WALL)
    assert written.count("\n| ") == len(null_wall.PREDICTIONS) + 1
    assert written.count("](figures/null_wall_") == 2
    assert filled(written, tables(results)) == written
    assert len(list(short(results))) == 2 + len(SHORT["null-wall"])
    first = filled(f"{SHORT_BEGIN}\n{SHORT_END}\n{page}", short(results), SHORT_BEGIN, SHORT_END)
    assert first.endswith(f"{SHORT_END}\n{page}")
    with pytest.raises(ValueError, match="has no <!-- results: begin -->"):
        filled("nothing", tables({}))


@pytest.mark.parametrize("name", SHORT)
def test_what_is_told_first_of_the_lab_is_predicted(name):
    assert set(SHORT[name]) <= {prediction.name for prediction in experiment(name).predictions}
