"""`toolgym export`: from the command line to a folder, and what is printed on the way."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.adapters.conftest import NOTES
from toolgym import rollout
from toolgym.cli import application
from toolgym.commands.episode_output import Output

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
    assert (summary["facts"]["data set"], summary["facts"]["seed"]) == ("tiny", "3")
    kwargs = [json.loads(row["env_kwargs"]) for row in lines(tmp_path / "a", "dev")]
    assert kwargs == [{"dataset": "tiny", "split": "dev", "step_limit": 9}] * 3


def test_refused_tasks_are_listed_with_the_reason(tmp_path: Path) -> None:
    shown = run("demonstrations", NOTES, *JSONL, "--out", tmp_path / "a")
    as_json = run("demonstrations", NOTES, *JSONL, "--out", tmp_path / "b", "--json")

    assert "  train: unfair [unfair] this note is unfair." in shown.stdout.splitlines()
    assert json.loads(as_json.stdout)["left_out"] == [
        {"split": "train", "task_id": "unfair", "code": "unfair", "reason": "this note is unfair."}
    ]


@pytest.mark.parametrize(
    ("final", "last"), [("done", "done"), ("", "Answer recorded. The episode is over.")]
)
def test_demonstrations_end_with_the_last_word_or_with_the_last_result(
    final: str, last: str, tmp_path: Path
) -> None:
    done = run("demonstrations", NOTES, *JSONL, "--final", final, "--out", tmp_path / "a")

    assert done.exit_code == 0
    assert lines(tmp_path / "a")[0]["messages"][-1]["content"] == last


def test_rollouts_have_the_prompt_that_was_played(tmp_path: Path) -> None:
    output = Output(tmp_path / "evaluated")
    with output.writing({"env_id": NOTES, "policy": "expert"}, {"step_limit": 9}) as keep:
        output.finish(rollout.evaluate(NOTES, "expert", n=4, step_limit=9, on_episode=keep))

    done = run("rollouts", tmp_path / "evaluated", *JSONL, "--out", tmp_path / "a", "-n", 3)

    assert done.exit_code == 0, done.output
    rows = lines(tmp_path / "a")
    assert [(row["phase"], row["correct"]) for row in rows] == [("eval", True)] * 3
    assert "You have 9 calls" in rows[0]["messages"][1]["content"]
    roles = [message["role"] for message in rows[0]["messages"]]
    assert roles == ["system", "user", *["assistant", "tool"] * 3]
    assert sum(rows[0]["turn_rewards"]) == pytest.approx(rows[0]["reward"], abs=1e-8)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("rows", "sqlgym/Explore-v0", "--for", "ray"), "'ray' is not one of 'trl', 'verl'"),
        (("rows", "sqlgym/Explore-v0", "--split", "exam"), "bundled has no split 'exam'"),
        (("rows", NOTES, "--split", "dev"), f"{NOTES} has no argument 'split'"),
        (("rollouts", "nowhere"), "There is no run folder nowhere"),
    ],
)
def test_a_mistake_is_explained_and_leaves_nothing(
    arguments: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    done = run(*arguments, *JSONL, "--out", tmp_path / "a")

    assert done.exit_code == 2
    assert reason in " ".join(done.output.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


def test_an_environment_is_written_as_a_folder_for_openenv_without_the_extra(
    tmp_path: Path,
) -> None:
    place = tmp_path / "packed"
    (tmp_path / "data").mkdir()
    wanted = ("openenv", place, "--env", "aflowgym/Compose-v0", "--split", "train")

    done = run(*wanted, "--set", "step_limit=9")
    again = run(*wanted)
    local = run("openenv", tmp_path / "a", "--dataset", tmp_path / "data")

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{place}: aflowgym/Compose-v0 for OpenEnv (openenv.yaml,")
    app = (place / "server" / "app.py").read_text()
    assert "'step_limit': 9" in app
    assert "'split': 'train'" in app
    assert (again.exit_code, local.exit_code) == (2, 2)
    assert "the data set" in local.stderr
    assert "is on this machine" in local.stderr
