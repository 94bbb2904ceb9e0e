"""Logs of other trainers: the figures of a published report, JSONL, and hostile text."""

import json

import pytest

from aflowgym.statistics import read_log, tables, workflow_statistics
from tests.aflowgym.statistics.training_log import FALLBACK, REST, TOP, log
from tests.toolgym.commands.command_line import run_here
from toolgym.statistics import Share


def told(lines, **options):
    """The rows of each table by their first cell."""
    tables = workflow_statistics(read_log(lines), **options).tables
    return {table.name: {row[0]: row[1:] for row in table.rows} for table in tables}


@pytest.mark.parametrize(
    "mark", ["Step 4: 准确率 50%, DSL输出正常", "📍 Step 4/96", "=== Step 4/96"]
)
def test_a_step_is_marked_by_the_trainer_and_not_by_the_model(mark):
    line = "fallback=False, ops=1, chain=False, DSL=Custom"
    model = [
        line,
        '"Programmer"',
        "### Step 1: Analyze",
        "Step 2: Solve it.",
        "**Step 3/4** of it",
        "Step 5/6 is next",
    ]

    assert [each["step"] for each in read_log([mark, *model, line])] == [4, 4]


def test_what_the_trainer_accepts_and_the_language_does_not_is_counted_by_its_error():
    line = "DSL质量: fallback=False, ops=2, chain=True, DSL="
    found = told([line + "Custom -> ScEnsemble", line + "Custom", line + FALLBACK])

    assert found["validity"]["valid"] == (1, Share(1, 3))
    assert {code: row[1] for code, row in found["errors"].items()} == {
        "E-NEEDS-LIST": 1,
        "E-NO-WORKFLOW": 1,
    }


def test_lines_of_json_may_have_step_phase_correctness_and_score():
    lines = [
        '"Programmer"',
        '{"dsl": "Custom"}',
        '{"workflow": "custom", "step": 1, "phase": "grpo", "correct": true, "score": 0.5}',
        '{"workflow": "Custom", "step": 1, "phase": "grpo", "correct": 0, "reward": -1.0}',
        '{"workflow": "", "step": 2, "phase": "grpo", "correct": false}',
    ]
    statistics = workflow_statistics(read_log(lines))

    assert statistics["patterns"].rows[0] == ("Custom", 3, Share(3, 4), Share(1, 2))
    assert [row[:6] for row in statistics["time"].rows] == [
        ("", "outputs 1-64", 2, Share(2, 2), Share(0, 0), None),
        ("grpo", "1", 2, Share(2, 2), Share(1, 2), -0.25),
        ("grpo", "2", 1, Share(0, 1), Share(0, 1), None),
    ]
    assert statistics["collapse"].rows[0][:4] == ("grpo", "all steps", 1, 1)


def test_hostile_lines_are_counted_or_ignored(tmp_path):
    file = tmp_path / "training.log"
    line = "fallback=False, ops=1, chain=False, DSL="
    hostile = [
        '{"workflow": "Custom(\\"\\ud800\\")", "step": ' + "9" * 5_000 + "}",
        '{"workflow": "Custom(\\"\\ud800\\")", "step": NaN, "score": Infinity}',
        '{"workflow": ["Custom"]}',
        "[" * 100_000,
        '"' + "[" * 1_000_000 + '"',
        "fallback=True, ops=" * 60_000,
        "Step " * 200_000,
        line + "Custom -> " * 100_000,
        line + "Custom\rProgress 10%\r" + line + "Custom",
    ]
    raw = "\n".join(hostile).encode("utf-8", "surrogatepass") + b"\n\xff\xfe\x00\n"
    file.write_bytes(
        raw + "DSL质量: ".encode("gb18030") + line.encode() + b'Custom\n"Custom -> Rev'
    )
    found = json.loads(run_here("stats", file, "--json").stdout)

    assert found["rollouts"] == 6
    assert {row["workflow"]: row["count"] for row in found["patterns"]} == {
        "Custom": 3,
        'Custom("\ufffd")': 1,
    }


def test_where_nothing_repeats_a_bounded_number_of_workflows_and_steps_is_told_apart(monkeypatch):
    monkeypatch.setattr(tables, "MOST", 50)
    lines = [json.dumps({"workflow": f'Custom("{n}")', "step": n}) for n in range(1, 201)]
    statistics = workflow_statistics(read_log(lines), top=1)

    assert statistics["patterns"].rows[0][:2] == ("(others)", 150)
    assert len(statistics["time"].rows) <= 20
    assert sum(row[2] for row in statistics["time"].rows) == 200


def test_the_statistics_of_a_log_are_those_of_the_report(tmp_path):
    file = tmp_path / "training.log"
    file.write_text("\n".join(log()))
    page = run_here("stats", file).stdout
    found = json.loads(run_here("stats", file, "--json").stdout)
    top = {row["workflow"]: row["count"] for row in found["patterns"]}
    validity = {row["what"]: row["count"] for row in found["validity"]}
    errors = {row["code"]: row["count"] for row in found["errors"]}

    assert page.startswith("570 outputs in a log of aflowgym/Compose-v0.\n")
    assert "57.2 % [53.1, 61.2]" in page
    assert "97.4 % [" in page
    assert validity["accepted by the trainer and valid"] == 326
    assert validity["different valid workflows"] == 20
    assert errors["fallback"] == 244
    assert top == TOP
    assert [row["collapses"] for row in found["collapse"]] == [37, 37]
    for row in found["operators"]:
        within = sum(n for text, n in {**TOP, **REST}.items() if row["operator"] in text)
        assert row["workflows"] == within


def test_a_file_without_outputs_is_an_error_with_the_next_step(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("Step 1/96\nnothing here\n")
    done = run_here("stats", file)

    assert done.returncode == 2
    assert "toolgym stats --help" in done.stderr


def test_without_marks_windows_of_outputs_are_compared():
    lines = [line for line in log() if "DSL" in line]
    statistics = workflow_statistics(read_log(lines))

    assert [row[1:4] for row in statistics["collapse"].rows] == [("all steps", 8, 0)]
    assert [row[1] for row in statistics["time"].rows][::8] == ["outputs 1-64", "outputs 513-576"]
