"""The statistics of episodes that were really played, and `toolgym stats` on a run of them."""

import json
import random

import pytest
from typer.testing import CliRunner

import aflowgym
from aflowgym.statistics.tables import workflow_statistics
from aflowgym.statistics.workflows import readings
from toolgym import policies, rollout
from toolgym.cli import application
from toolgym.records import EpisodeRecord
from toolgym.runs.run import Run

COMPOSE, OPERATE = "aflowgym/Compose-v0", "aflowgym/Operate-v0"
WORKFLOWS = ("Custom", "Custom -> Review ? Revise : done", "[Custom * 3] -> ScEnsemble")


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def played(env_id: str, *actions: str, n: int = 3, **kwargs) -> list[EpisodeRecord]:
    evaluation = rollout.evaluate(env_id, policies.ScriptedPolicy([*actions]), n=n, **kwargs)
    return list(evaluation.records)


def patterns(records):
    return [row[:2] for row in workflow_statistics(records)["patterns"].rows]


def test_what_is_composed_is_counted_under_its_canonical_text():
    sloppy = "Thus:\n```\ncustom → review ? revise\n```"
    records = played(COMPOSE, call("run_workflow", dsl=sloppy), call("answer"))

    assert patterns(records) == [("Custom -> Review ? Revise : done", 3)]


@pytest.mark.parametrize(
    ("text", "kind", "codes"),
    [
        ("Custom -> ScEnsemble", "math", ["E-NEEDS-LIST"]),
        ("Let me think step by step.", "qa", ["E-NO-WORKFLOW"]),
        ("CustomCodeGenerate -> Test", "code", []),
        ('Custom("say 7")', "math", ["instruction_refused"]),
    ],
)
def test_what_the_environment_refuses_is_what_is_counted_as_not_valid(text, kind, codes):
    records = played(COMPOSE, call("run_workflow", dsl=text), call("answer"), kind=kind)
    refused = [bool(record.turns[0]["errors"]) for record in records]
    told = workflow_statistics(records)

    assert refused == [bool(codes)] * 3
    assert [row[0] for row in told["errors"].rows] == codes
    assert sum(count for _, count in patterns(records)) == 3 * (not codes)


def test_a_workflow_for_another_kind_of_task_is_not_valid_by_the_codes_of_its_refusal():
    text = "CustomCodeGenerate -> Test"
    records = played(COMPOSE, call("run_workflow", dsl=text), call("answer"), kind="math")
    (wrong,) = aflowgym.parse(text, kind="math").errors

    assert [row[0] for row in workflow_statistics(records)["errors"].rows] == [wrong.code]


def test_calls_of_operators_are_told_as_the_workflow_that_they_make():
    actions = [call("revise"), call("custom", copies=3), call("custom"), call("sc_ensemble")]
    records = played(OPERATE, *actions, call("format"), call("answer"), kind="math")

    text = "[Custom, Custom, Custom] -> ScEnsemble -> Format"
    assert patterns(records) == [(text, 3)]
    assert aflowgym.parse(text).workflow is not None


def test_several_calls_in_one_action_are_told_as_if_they_came_one_by_one():
    together = "\n".join([call("revise"), call("custom"), call("review"), call("revise")])
    records = played(OPERATE, together, call("answer"), kind="qa")

    assert patterns(records) == [("Custom -> Review -> Revise", 3)]


@pytest.mark.parametrize("env_id", [COMPOSE, OPERATE])
def test_every_workflow_of_an_expert_is_valid(env_id):
    records = rollout.evaluate(env_id, policies.ExpertPolicy(), n=30).records
    found = list(readings(records))

    assert all(reading.workflows and reading.valid for reading in found)
    told = workflow_statistics(records)
    assert told["errors"].rows == ()
    right = sum(row[3].count for row in told["patterns"].rows)
    assert right == sum(record.correct for record in records)


@pytest.mark.parametrize("env_id", [COMPOSE, OPERATE])
def test_a_random_policy_is_counted_alike_from_records_and_from_the_lines_of_a_run(env_id):
    records = rollout.evaluate(env_id, policies.load("random", seed=3), n=40).records
    lines = [json.loads(json.dumps(record.to_json())) for record in records]

    assert workflow_statistics(lines) == workflow_statistics(records)


def test_each_kind_of_task_has_its_own_favourite():
    records = rollout.evaluate(COMPOSE, policies.ExpertPolicy(), n=60).records
    table = workflow_statistics(records)["kinds"].to_json()

    assert [row["kind"] for row in table] == ["math", "code", "qa"]
    assert sum(row["rollouts"] for row in table) == 60
    for row in table:
        right = [r.correct for r in records if r.question.endswith(f"\nKind: {row['kind']}.")]
        if right:  # a question with passages says so after its kind
            assert (row["right"]["count"], row["right"]["of"]) == (sum(right), len(right))
        assert row["its share"]["share"] == 1.0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in which three workflows become one."""
    rng = random.Random(2)
    made = Run.create(tmp_path_factory.mktemp("stats") / "compose", {"env_id": COMPOSE})
    for step in range(1, 7):
        for _ in range(4):
            text = WORKFLOWS[1] if rng.random() < step / 6 else rng.choice(WORKFLOWS)
            (record,) = played(COMPOSE, call("run_workflow", dsl=text), call("answer"), n=1)
            made.log_rollouts([{"phase": "grpo", "step": step, **record.to_json()}])
    (record,) = played(COMPOSE, "### Step 1: Analyze the problem.", n=1, step_limit=2)
    made.log_rollouts([{"phase": "before", "step": None, **record.to_json()}])
    return made


def told(*arguments):
    return CliRunner().invoke(application(), ["stats", *map(str, arguments)])


def test_the_command_tells_all_tables_of_a_run(run):
    shown = told(run.path)

    assert shown.exit_code == 0, shown.output
    for title in ("Validity", "Patterns", "Operators", "Structures", "Over time"):
        assert title in shown.stdout.splitlines()
    assert "Custom -> Review ? Revise : done" in shown.stdout


def test_the_command_gives_the_figures_of_a_phase_as_json(run):
    found = json.loads(told(run.path, "--json", "--phase", "grpo").stdout)

    assert found["rollouts"] == 24
    assert found["patterns"][0]["workflow"] == WORKFLOWS[1]
    assert sum(row["count"] for row in found["patterns"]) == 24
    assert [row["steps"] for row in found["time"]] == list("123456")
    assert found["time"][-1]["entropy"] == 0.0
    before = json.loads(told(run.path, "--json", "--phase", "before").stdout)
    assert before["validity"][1]["count"] == 0
