"""The table of `benchmarks/workflow_regret.py`, of a run that was really played."""

import json

import pytest

from benchmarks import workflow_regret
from toolgym import policies, rollout
from toolgym.errors import ConfigurationError
from toolgym.runs.run import Run

COMPOSE = "aflowgym/Compose-v0"


def run_of(path, settings, **workflows):
    run = Run.create(path, {"env_id": COMPOSE, "settings": settings})
    for phase, text in workflows.items():
        script = [{"name": "run_workflow", "arguments": {"dsl": text}}, {"name": "answer"}]
        policy = policies.scripted([json.dumps(each) for each in script])
        played = rollout.evaluate(COMPOSE, policy, n=5, kind="math", split="dev")
        run.log_rollouts({"phase": phase, "step": None, **r.to_json()} for r in played.records)
    return run.path


SETTINGS = {"env_kwargs": {"kind": "math"}, "evaluation_split": "dev"}


def test_the_table_has_everybody_on_the_same_tasks(tmp_path):
    best = "[Programmer * 5, Programmer * 5] -> ScEnsemble"
    paths = [run_of(tmp_path / name, SETTINGS, before="Custom", after=best) for name in "ab"]
    first, heads, reward, regret, *rest = workflow_regret.report([str(path) for path in paths])

    counted = "10 before, 10 after, 10 expert, 10 novice, 10 random"
    assert first == f"{COMPOSE}, runs: 2; rollouts: {counted}"
    assert heads.split() == ["before", "after", "expert", "novice", "random", "best*"]
    before, after, expert, novice, random, most = map(float, reward.split()[2:])
    assert novice < expert < after == most
    assert random < novice
    assert before < most
    assert "0.000 [0.000, 0.000]" in regret
    assert any(line.endswith("  Custom") and "100.0 %" in line for line in rest)


def test_a_run_without_an_end_has_a_dash(tmp_path):
    path = run_of(tmp_path / "cut", SETTINGS, before="Custom")
    reward = list(workflow_regret.report([str(path)]))[2]

    assert reward.split()[3] == "-"


def test_runs_of_other_environments_are_refused(tmp_path):
    (tmp_path / "other").mkdir()
    other = Run.create(tmp_path / "other" / "x", {"env_id": "sqlgym/Explore-v0"})
    with pytest.raises(ConfigurationError, match="is no run of `toolgym train aflowgym/Compose"):
        list(workflow_regret.report([str(other.path)]))

    paths = [
        run_of(tmp_path / backend, {"env_kwargs": {"backend": f"simulated:{backend}"}})
        for backend in ("paper", "teaching")
    ]
    with pytest.raises(ConfigurationError, match="different environments"):
        list(workflow_regret.report([str(path) for path in paths]))
