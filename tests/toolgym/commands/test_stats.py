"""`toolgym stats`: what a family counts, on a terminal and as JSON."""

import json
import re

import pytest

from tests.toolgym.commands.command_line import run_here
from toolgym import evaluate, rollout
from toolgym.runs.run import Run

COMPOSE = "aflowgym/Compose-v0"


@pytest.fixture
def folder(tmp_path):
    """A run with two rollouts before the training and three after it."""
    run = Run.create(tmp_path / "run", {"env_id": COMPOSE})
    for phase, n in (("before", 2), ("after", 3)):
        records = evaluate(COMPOSE, "expert", n=n, split="dev")
        run.log_rollouts({"phase": phase, "step": None, **each.to_json()} for each in records)
    return run.path


def test_the_tables_of_a_family_are_printed_with_their_intervals_or_as_json(folder):
    page = run_here("stats", folder).stdout
    both = json.loads(run_here("stats", folder, "--json").stdout)
    first = json.loads(run_here("stats", folder, "--json", "--phase", "before", "--top", 1).stdout)

    assert page.startswith(f"5 rollouts of {COMPOSE}.\n")
    assert re.search(r"\d\.\d % +\[\d+\.\d, \d+\.\d\]", page)
    assert (both["env_id"], both["rollouts"], first["rollouts"]) == (COMPOSE, 5, 2)
    assert len(first["patterns"]) == 1 < len(both["patterns"])


def test_what_cannot_be_counted_is_said_with_status_2(tmp_path):
    record = rollout.play("sqlgym/Explore-v0", "expert", seed=1).to_json()
    files = {"silent": record, "strange": {**record, "env_id": "nobody/Knows-v0"}}
    for name, line in files.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    empty = Run.create(tmp_path / "empty", {}).path

    for arguments, sentence in (
        (["silent.jsonl", "--phase", "grpo"], "is a file and has no phases"),
        ([empty.name, "--phase", "after"], f"{empty} has no rollouts of phase after."),
        (["strange.jsonl"], "Known environments"),
        (["silent.jsonl"], "there are no statistics for this environment"),
    ):
        done = run_here("stats", tmp_path / arguments[0], *arguments[1:])
        assert done.returncode == 2
        assert sentence in done.stderr
