"""A run folder keeps what was written to it, through a kill at any moment."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgym.errors import ConfigurationError
from toolgym.runs import files
from toolgym.runs.run import Run

TEXTS = st.text(st.characters(codec=None))  # half surrogate pairs and control characters too
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def grpo(step: int, **numbers: object) -> dict[str, object]:
    return {"phase": "grpo", "step": step, **numbers}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", {"seed": 0})


def test_a_created_run_opens_with_the_config_it_was_given(tmp_path: Path) -> None:
    config = {"seed": 3, "model": Path("some") / "model", "rates": (np.float32(0.5), 1)}

    created = Run.create(tmp_path / "a" / "b", config)

    opened = Run.open(tmp_path / "a" / "b")
    assert opened.path == created.path
    expected = {"seed": 3, "model": str(Path("some") / "model"), "rates": [0.5, 1]}
    assert opened.config == created.config == expected
    assert opened.summary == {}
    assert opened.metrics() == []
    assert list(opened.rollouts()) == []
    assert not opened.is_complete


def test_a_name_that_is_taken_gets_a_counter_and_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "run-2").write_text("somebody's file")

    runs = [Run.create(tmp_path / "run", {"number": number}) for number in range(3)]

    assert [run.name for run in runs] == ["run", "run-3", "run-4"]
    assert [Run.open(run.path).config["number"] for run in runs] == [0, 1, 2]
    assert (tmp_path / "run-2").read_text() == "somebody's file"


def test_opening_what_is_no_run_folder_names_what_is_missing(tmp_path: Path) -> None:
    Run.create(tmp_path / "first", {})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")

    for place, problem in (
        ("nowhere", r"There is no run folder .*nowhere"),
        ("", r"config\.json is missing. It contains .*first"),
        ("broken", r"config.json is not JSON"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            Run.open(tmp_path / place)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"step": 1}, "`phase` must be one of sft, grpo, .*, not None"),
        ({"phase": "grpo", "step": 0}, "`step` must be a whole number from 1, not 0"),
        ({"phase": "grpo", "step": True}, "`step` must be a whole number from 1, not True"),
        ({"phase": "grpo", "step": 1, "x": {1, 2}}, r"metrics\.x is of type set"),
    ],
)
def test_a_record_without_its_place_is_refused_and_not_written(
    run: Run, record: dict[str, object], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        run.log_metrics(record)

    assert run.metrics() == []


def test_rollouts_are_all_written_or_none(run: Run) -> None:
    fine = {"phase": "before", "step": None, "task_id": "t1", "score": 0.5}

    with pytest.raises(ConfigurationError, match="`phase` must be one of before, after, grpo"):
        run.log_rollouts([fine, {"phase": "sft", "step": 1}])
    assert list(run.rollouts()) == []
    run.log_rollouts([fine, {"phase": "after", "task_id": "t2"}])

    assert list(run.rollouts("after")) == [{"phase": "after", "step": None, "task_id": "t2"}]
    assert [rollout["task_id"] for rollout in run.rollouts()] == ["t1", "t2"]


@settings(max_examples=50)
@given(value=VALUES)
def test_any_text_and_any_number_survives_the_file(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    run = Run.create(tmp_path_factory.mktemp("any") / "run", {})

    run.log_rollouts([{"phase": "grpo", "step": 1, "value": value}])

    (read,) = run.rollouts()
    assert read["value"] == files.plain(value, "value")


def test_a_line_cut_off_at_any_byte_is_dropped_told_and_never_glued_to_the_next(
    tmp_path: Path,
) -> None:
    whole = files.line_text(grpo(2, note="höher"))
    for cut in range(1, len(whole)):
        run = Run.create(tmp_path / f"run{cut}", {})
        run.log_metrics(grpo(1))
        with (run.path / "metrics.jsonl").open("ab") as stream:
            stream.write(whole[:cut])
        is_whole = cut == len(whole) - 1  # only the end of the line is missing
        kept = [grpo(1), grpo(2, note="höher")] if is_whole else [grpo(1)]

        assert run.metrics() == kept
        run.log_metrics(grpo(3))

        assert run.metrics() == [*kept, grpo(3)]
        told = [] if is_whole else ["The last line of metrics.jsonl was cut off and is omitted."]
        assert run.notes == told


@pytest.mark.parametrize("damage", ['{"phase": "grpo", "st', "[1]", '{"phase": "grpo"}', "\xff"])
def test_a_damaged_line_before_the_last_is_an_error_that_names_it(run: Run, damage: str) -> None:
    run.log_metrics(grpo(1))
    with (run.path / "metrics.jsonl").open("ab") as stream:
        stream.write(damage.encode("latin-1") + b"\n")
    run.log_metrics(grpo(3))

    with pytest.raises(ConfigurationError, match=r"Line 2 of .*metrics\.jsonl is damaged"):
        run.metrics()


def test_a_resumed_run_cuts_what_came_after_its_checkpoint_and_nothing_else(run: Run) -> None:
    sft = {"phase": "sft", "step": 9}
    for record in (sft, grpo(1), grpo(2), grpo(3)):
        run.log_metrics(record)
    before = {"phase": "before", "step": None}
    after = {"phase": "after", "step": None}
    run.log_rollouts([before, grpo(1), grpo(2), grpo(3), after])

    run.cut_metrics("grpo", after_step=2)
    run.cut_rollouts("grpo", after_step=1)
    run.cut_rollouts("after")

    assert run.metrics() == [sft, grpo(1), grpo(2)]
    assert list(run.rollouts()) == [before, grpo(1)]


def test_the_summary_says_whether_a_run_is_complete(run: Run) -> None:
    run.write_summary({"status": "interrupted", "seconds": 12.5})
    assert not Run.open(run.path).is_complete

    run.write_summary({"status": "complete", "after": {"accuracy": math.nan}})

    assert run.is_complete
    assert Run.open(run.path).summary == {"status": "complete", "after": {"accuracy": None}}
    assert sorted(os.listdir(run.path)) == ["config.json", "summary.json"]


@pytest.mark.skipif(os.name != "posix", reason="a process is killed by a signal")
def test_a_run_whose_process_was_killed_keeps_every_step_that_was_logged(tmp_path: Path) -> None:
    writer = (
        "import sys; from toolgym.runs.run import Run\n"
        "run = Run.create(sys.argv[1], {})\n"
        "for step in range(1, 10**9):\n"
        "    run.log_metrics({'phase': 'grpo', 'step': step}); print(step, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", writer, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(20)]
        process.send_signal(signal.SIGKILL)

    steps = [record["step"] for record in Run.open(tmp_path / "run").metrics()]
    assert steps[: len(told)] == told
    assert steps == list(range(1, len(steps) + 1))


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("interrupted", "Interrupted: step 2 of 60 of GRPO. Continue: toolgym train --resume "),
        ("failed", "Failed: step 2 of 60 of GRPO. Continue: toolgym train --resume "),
        ("stopped", "Stopped by the guards: step 2 of 60 of GRPO. Train anyway: toolgym train"),
        ("complete", ""),
    ],
)
def test_a_run_says_how_far_it_came_and_how_it_continues(
    status: str, state: str, tmp_path: Path
) -> None:
    run = Run.create(tmp_path / "a run", {"settings": {"steps": 60}})
    run.log_metrics(grpo(2))
    run.write_summary({"status": status})

    assert run.state.startswith(state)
    assert (run.status, run.is_complete) == (status, status == "complete")
    if state:
        assert f"'{run.path}'" in run.state
        with run.held():
            assert (run.status, run.state) == ("running", "Still running: step 2 of 60 of GRPO.")
