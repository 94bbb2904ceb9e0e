"""`toolgym train --dataset my.db`: a database without questions is enough to train on."""

import json
import sqlite3

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.training.settings import read_settings, resolve
from tests.toolgym.commands.on_a_terminal import run_on_terminal
from toolgym.runs.run import Run

pytestmark = pytest.mark.torch
ENV = "sqlgym/Explore-v0"
SMALL = ["--demonstrations", "60", "--sft-steps", "6", "--steps", "3", "--save-every", "3"]
SMALL += [
    "--group-size",
    "4",
    "--prompts",
    "2",
    "--eval-tasks",
    "8",
    "--eval-tries",
    "0",
    "--no-preflight",
]


def test_rollouts_may_be_longer_on_other_data_than_the_tiny_models_own():
    own = resolve(ENV, env_kwargs={"dataset": "tiny"})
    other = resolve(ENV, env_kwargs={"dataset": "my.db"})

    assert resolve(ENV).max_completion_length == own.max_completion_length == 256
    assert (other.max_completion_length, other.max_new_tokens) == (512, 192)
    given = resolve(ENV, env_kwargs={"dataset": "my.db"}, max_completion_length=300)
    assert given.max_completion_length == 300


def test_trainings_on_other_data_and_after_a_novice_keep_the_imitation_they_were_tuned_with():
    own = resolve(ENV, env_kwargs={"dataset": "tiny"})
    fresh = {"copying", "sft_matrix_rate"}
    assert own.copying > 0
    assert own.sft_matrix_rate is not None
    for other in (
        resolve(ENV, env_kwargs={"dataset": "my.db"}),
        resolve("aflowgym/Compose-v0", env_kwargs={"dataset": "bundled"}),
        resolve(ENV, model="Qwen/Qwen3-0.6B"),
        read_settings(own.model_dump(exclude=fresh)),
    ):
        assert (other.copying, other.sft_matrix_rate) == (0.0, None)


@pytest.mark.nightly
def test_the_tiny_model_trains_on_a_bare_database_file(tmp_path):
    with sqlite3.connect(tmp_path / "my.db") as database:
        database.execute("CREATE TABLE ship (ship_id INTEGER PRIMARY KEY, name, kind, tons REAL)")
        kinds = ("brig", "cog", "dhow", "junk")
        rows = [(n, f"Ship {n * 7}", kinds[n % 4], 40 + n * n % 97) for n in range(40)]
        database.executemany("INSERT INTO ship VALUES (?, ?, ?, ?)", rows)
    database.close()
    file, out = str(tmp_path / "my.db"), str(tmp_path / "run")
    done = run_on_terminal("train", ENV, "--dataset", file, *SMALL, "--out", out, width=300)

    assert done.returncode == 0, done.terminal
    assert "writing tasks for my" in done.terminal
    assert f"with the data set {json.dumps(file)}" in done.terminal
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "complete"
    assert summary["before"]["episodes"] == summary["after"]["episodes"] == 8
    run = Run.open(tmp_path / "run")
    assert [line["step"] for line in run.metrics("grpo")] == [1, 2, 3]
    asked = {line["task_id"] for line in run.rollouts() if line["phase"] != "grpo"}
    trained = {line["task_id"] for line in run.rollouts() if line["phase"] == "grpo"}
    assert not asked & trained
    assert all(task_id.startswith("my-") for task_id in asked | trained)
