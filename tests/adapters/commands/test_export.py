"""`toolgym export`: from the command line to a folder, and what is said on the way."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.adapters.conftest import NOTES
from toolgym import policies, rollout
from toolgym.cli import application
from toolgym.commands.episode_output import Output
from toolgym.runs.run import Run

JSONL = ("--format", "jsonl")


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(application(), ["export", *map(str, arguments)])


def lines(place: Path, split: str = "train") -> list[dict[str, Any]]:
    text = (place / "data" / f"{split}-00000-of-00001.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_rows_are_those_of_every_split_and_of_the_trainer(tmp_path: Path) -> None:
    done = run("rows", "sqlgym/Explore-v0", "-n", 2, "--for", "verl", *JSONL, "--out", tmp_path)

    assert (done.exit_code, done.stdout.strip()) == (
        0,
        f"{tmp_path}: Tasks of sqlgym/Explore-v0 for verl: 2 train, 2 dev, 2 test (jsonl)",
    )
    row = lines(tmp_path, "dev")[1]
    assert row["agent_name"] == "toolgym_agent"
    assert row["extra_info"] | {"task_id": ""} == {
        "index": 1,
        "split": "dev",
        "env_id": "sqlgym/Explore-v0",
        "task_id": "",
        "env_kwargs": '{"split": "dev"}',
    }


def test_the_options_of_the_environment_are_in_the_rows(tmp_path: Path) -> None:
    options = ("--set", "step_limit=9", "--dataset", "tiny", "--split", "dev", "--seed", 3)
    done = run(
        *("rows", "sqlgym/Explore-v0", "-n", 3, "--for", "skyrl", *options, *JSONL),
        *("--out", tmp_path / "a", "--json"),
    )
    summary = json.loads(done.stdout)

    assert summary["rows"] == {"dev": 3}
    assert summary["for"] == "skyrl"
    assert summary["facts"]["data set"] == "tiny"
    assert summary["facts"]["seed"] == "3"
    kwargs = {
        json.dumps(json.loads(row["env_kwargs"]), sort_keys=True)
        for row in lines(tmp_path / "a", "dev")
    }
    assert kwargs == {'{"dataset": "tiny", "split": "dev", "step_limit": 9}'}


def test_refused_tasks_are_listed_with_the_reason(tmp_path: Path) -> None:
    told = run("demonstrations", NOTES, *JSONL, "--out", tmp_path / "a")
    as_json = run("demonstrations", NOTES, *JSONL, "--out", tmp_path / "b", "--json")

    assert told.stdout.splitlines()[1:] == [
        "left out: 1 (1 unfair)",
        "  train: unfair [unfair] this note is unfair.",
    ]
    assert json.loads(as_json.stdout)["left_out"] == [
        {"split": "train", "task_id": "unfair", "code": "unfair", "reason": "this note is unfair."}
    ]


def test_demonstrations_end_as_they_are_told_to(tmp_path: Path) -> None:
    for final in ("done", ""):
        done = run(
            *("demonstrations", NOTES, *JSONL, "--final", final),
            *("--arguments", "object", "--out", tmp_path / f"a{final}"),
        )
        assert done.exit_code == 0
        last = lines(tmp_path / f"a{final}")[0]["messages"][-1]
        assert (last["role"], last["content"]) == (
            ("assistant", "done") if final else ("tool", "Answer recorded. The episode is over.")
        )


@pytest.fixture
def evaluated(tmp_path: Path) -> Path:
    """What `toolgym eval --out FOLDER` keeps."""
    output = Output(tmp_path / "evaluated")
    setting = {"env_id": NOTES, "policy": "expert"}
    with output.writing(setting, {"step_limit": 9}) as keep:
        output.finish(rollout.evaluate(NOTES, "expert", n=4, step_limit=9, on_episode=keep))
    return tmp_path / "evaluated"


def test_rollouts_have_the_prompt_that_was_played(evaluated: Path, tmp_path: Path) -> None:
    done = run("rollouts", evaluated, *JSONL, "--out", tmp_path / "a", "-n", 3)

    assert done.exit_code == 0, done.output
    assert "| data set | the environment's own |" in (tmp_path / "a" / "README.md").read_text()
    rows = lines(tmp_path / "a")
    assert [(row["phase"], row["step"], row["correct"]) for row in rows] == [
        ("eval", None, True)
    ] * 3
    assert "You have 9 calls" in rows[0]["messages"][1]["content"]
    assert [m["role"] for m in rows[0]["messages"]] == [
        "system",
        "user",
        *["assistant", "tool"] * 3,
    ]
    assert sum(rows[0]["turn_rewards"]) == pytest.approx(rows[0]["reward"], abs=1e-8)


def test_an_episode_of_an_older_version_is_left_out_where_it_cannot_be_told(tmp_path: Path) -> None:
    calls = [{"name": "read", "arguments": {"note": "a"}}] * 2
    record = rollout.play(NOTES, policies.ScriptedPolicy([calls, ""]), seed=0).to_json()
    old = json.loads(json.dumps(record))
    del old["turns"][0]["results"]
    path = Run.create(tmp_path / "run", {"kind": "evaluation"}).path
    Run.open(path).log_rollouts({"phase": "eval", **each} for each in (record, old))

    done = run("rollouts", path, *JSONL, "--out", tmp_path / "a", "--json")

    summary = json.loads(done.stdout)
    assert summary["rows"] == {"train": 1}
    assert [each["code"] for each in summary["left_out"]] == ["several_calls"]
    (row,) = lines(tmp_path / "a")
    assert [m["role"] for m in row["messages"][2:5]] == ["assistant", "tool", "tool"]


WRONG = {
    ("rows", "sqlgym/Explore-v0", "--for", "ray"): "--for must be one of trl, verl, skyrl",
    ("rows", "sqlgym/Explore-v0", "--split", "exam"): "bundled has no split 'exam'",
    ("rows", NOTES, "--split", "dev"): f"{NOTES} has no argument 'split'; leave it out",
    (
        "demonstrations",
        NOTES,
        "--arguments",
        "xml",
    ): "--arguments must be text or object, got 'xml'",
    ("rollouts", "nowhere"): "There is no run folder nowhere",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_use_is_told_and_leaves_nothing(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*arguments, *JSONL, "--out", tmp_path / "a")

    assert done.exit_code == 2
    assert WRONG[arguments] in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_an_environment_is_written_as_a_folder_without_the_extra(tmp_path: Path) -> None:
    place = tmp_path / "packed"
    wanted = ("openenv", place, "--env", "aflowgym/Compose-v0", "--split", "train")

    done = run(*wanted, "--set", "step_limit=9")
    again = run(*wanted)
    replaced = run(*wanted, "--overwrite")

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{place}: aflowgym/Compose-v0 for OpenEnv: openenv.yaml,")
    assert (again.exit_code, replaced.exit_code) == (2, 0)
    assert "'step_limit': 9" not in (place / "server" / "app.py").read_text()
    assert "'split': 'train'" in (place / "server" / "app.py").read_text()


def test_what_a_container_would_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")

    local = run("openenv", tmp_path / "a", "--dataset", tmp_path / "data")
    wheel = run("openenv", tmp_path / "a", "--wheel", tmp_path / "none.whl")
    taken = run("openenv", tmp_path / "notes", "--overwrite")

    assert [each.exit_code for each in (local, wheel, taken)] == [2, 2, 2]
    assert "lies on this machine" in local.stderr
    assert "none.whl is no file of that kind" in wheel.stderr
    assert "holds what no such export wrote" in taken.stderr
    assert not (tmp_path / "a").exists()
