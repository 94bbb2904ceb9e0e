"""How often policies solved each task, as `benchmarks/task_hardness.py` counts it."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import sqlgym
from benchmarks.task_hardness import by_kind, main, solved
from toolgym.cli import application
from toolgym.runs.episodes import read_episodes

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def episodes(tmp_path_factory):
    """Twelve tasks of the training split, played twice by the expert and twice at random."""
    folder, files = tmp_path_factory.mktemp("episodes"), []
    for policy in ("expert", "random"):
        file = folder / f"{policy}.jsonl"
        options = ["--dataset", "bundled", "--split", "train", "--n", "12", "--k", "2"]
        command = ["sqlgym/Explore-v0", "--policy", policy, *options, "--out", str(file)]
        done = CliRunner().invoke(application("eval"), ["eval", *command])
        assert done.exit_code == 0, done.output
        files.append(file)
    return files


def test_rates_of_several_policies_are_joined_to_level_and_shape(episodes, tmp_path, capsys):
    rates_file = tmp_path / "rates.json"
    main(
        [
            *map(str, episodes),
            "--dataset",
            "bundled",
            "--split",
            "train",
            "--out",
            str(rates_file),
        ]
    )
    rates = json.loads(rates_file.read_text())
    tasks = {task.id: task for task in sqlgym.load_tasks("bundled", "train")}
    assert len(rates) == 12
    for task_id, rate in rates.items():
        assert rate["tries"] == 4
        assert 2 <= rate["solved"] <= 4  # the expert solves each, twice
        assert rate["level"] == tasks[task_id].hardness
        assert rate["shape"] == tasks[task_id].extra.get("shape", "")
    printed = capsys.readouterr().out
    assert all(f"level {rate['level']}" in printed for rate in rates.values())
    assert "0 tasks of the episodes are not in the data set" in printed


def test_tasks_of_another_set_are_counted_as_such_and_left_out(episodes, capsys):
    main([str(episodes[0]), "--dataset", "bundled", "--split", "dev"])
    assert "12 tasks of the episodes are not in the data set" in capsys.readouterr().out


def test_episodes_without_a_score_are_no_tries(episodes):
    records = read_episodes(episodes[0])
    unscored = [replace(record, scored=False) for record in records[:3]]
    counts = solved([*unscored, *records[3:]])
    assert sum(tries for _, tries in counts.values()) == len(records) - 3
    assert by_kind(counts, {}) == {}
