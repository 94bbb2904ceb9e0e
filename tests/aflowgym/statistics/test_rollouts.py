"""The statistics of recorded rollouts: played episodes, lines of a run, and made-up turns."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aflowgym
from aflowgym.operators import Operator
from aflowgym.statistics import workflow_statistics
from aflowgym.statistics.workflows import structure
from tests.toolgym.commands.command_line import run_here
from toolgym import policies, rollout
from toolgym.records import EpisodeRecord
from toolgym.runs.run import Run
from toolgym.statistics import Share

GUESS = Operator("Guess", "Guess the answer.", "{problem}")
COMPOSE, OPERATE = "aflowgym/Compose-v0", "aflowgym/Operate-v0"


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def played(env_id: str, *actions: str, n: int = 3, **kwargs: Any) -> list[EpisodeRecord]:
    evaluation = rollout.evaluate(env_id, policies.ScriptedPolicy([*actions]), n=n, **kwargs)
    return list(evaluation.records)


def line(*texts: str, **more: Any) -> dict[str, Any]:
    """A rollout with calls of `run_workflow`, as a line of a run."""
    calls = [[{"name": "run_workflow", "arguments": {"dsl": text}}] for text in texts]
    turns = [{"action": "", "calls": made, "observation": "ok", "errors": []} for made in calls]
    return {"phase": "grpo", "step": 1, "turns": turns, "correct": False, "score": 0.0} | more


def counts(records: Any, table: str, **options: Any) -> dict[Any, Any]:
    """The counts of a table by the first cell of each row."""
    found = workflow_statistics(records, **options)[table]
    place = found.columns.index("count")
    return {row[0]: row[place] for row in found.rows if row[place]}


@pytest.mark.parametrize(
    ("text", "kind", "codes"),
    [
        ("custom → review ? revise", "math", set()),
        ("Custom -> ScEnsemble", "math", {"E-NEEDS-LIST"}),
        ("Let me think step by step.", "qa", {"E-NO-WORKFLOW"}),
        ("CustomCodeGenerate -> Test", "math", {"E-KIND"}),
        ('Custom("say 7")', "math", {"instruction_refused"}),
    ],
)
def test_valid_workflows_are_counted_by_their_canonical_text_and_others_by_their_error(
    text, kind, codes
):
    records = played(COMPOSE, call("run_workflow", dsl=text), call("answer"), kind=kind)

    assert counts(records, "errors").keys() == codes
    assert counts(records, "patterns") == ({} if codes else {"Custom -> Review ? Revise : done": 3})


def test_in_one_shot_mode_each_message_is_a_workflow():
    records = played(COMPOSE, "Custom", n=2, one_shot=True)
    records += played(COMPOSE, "Let me think step by step.", n=2, one_shot=True)

    assert counts(records, "patterns") == {"Custom": 2}
    assert counts(records, "errors").keys() == {"E-NO-WORKFLOW"}


def test_operators_that_are_called_one_by_one_form_the_workflow_of_their_order():
    actions = [call("revise"), call("custom", copies=3), call("sc_ensemble"), call("format")]
    records = played(OPERATE, *actions, call("answer"), kind="math")
    together = played(OPERATE, "\n".join([call("revise"), call("custom"), call("review")]))
    refused = played(OPERATE, call("revise"), call("answer"))
    unfinished = played(OPERATE, call("custom", copies=2), call("answer"))

    text = "[Custom, Custom, Custom] -> ScEnsemble -> Format"
    assert counts(records, "patterns") == {text: 3}
    assert counts(together, "patterns") == {"Custom -> Review": 3}
    assert counts(refused, "errors") == {"needs_solution": 3}
    assert counts(unfinished, "errors") == {"E-LIST-END": 3}


@pytest.mark.parametrize("env_id", [COMPOSE, OPERATE])
def test_records_and_lines_of_a_run_give_the_same_tables(env_id):
    records = rollout.evaluate(env_id, policies.load("random", seed=3), n=20).records
    records += rollout.evaluate(env_id, policies.ExpertPolicy(), n=20).records
    lines = [json.loads(json.dumps(record.to_json())) for record in records]

    assert workflow_statistics(lines) == workflow_statistics(records)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Custom", "single operator"),
        ("Custom -> Format", "chain"),
        ("Custom -> Review ? Revise : done", "condition"),
        ("[Custom * 3] -> ScEnsemble", "list"),
        ("Custom -> (Review -> Revise) * 3", "loop"),
        ('Custom("is [a] * b -> c right?")', "single operator"),
        ("[Custom -> Review ? Revise : done, Custom] -> ScEnsemble", "mixed"),
    ],
)
def test_a_class_is_decided_by_constructs_at_any_depth(text, name):
    assert structure(aflowgym.parse(text).workflow) == name


def test_a_rollout_counts_once_however_many_workflows_it_wrote():
    rollouts = [line("[", "Custom"), line("Custom", "[", correct=True), line("Nonsense")]
    rollouts.append(line("Custom", scored=False, score=None))
    found = workflow_statistics(rollouts)

    assert [row[:2] for row in found["validity"].rows][:4] == [
        ("rollouts", 4),
        ("rollouts with a valid workflow", 3),
        ("workflows", 6),
        ("valid", 3),
    ]
    # A rollout that a fault left unscored is neither right nor wrong.
    assert found["patterns"].rows == (("Custom", 3, Share(3, 3), Share(1, 2)),)


def test_operators_of_your_own_are_those_of_the_run(tmp_path):
    kwargs = {"operators": [f"{__name__}:GUESS"]}
    run = Run.create(tmp_path / "run", {"settings": {"env_kwargs": kwargs}})
    run.log_rollouts([line("Guess", env_id=COMPOSE)])
    found = json.loads(run_here("stats", run.path, "--json").stdout)

    assert counts([line("Guess")], "patterns") == {}
    assert [row["workflow"] for row in found["patterns"]] == ["Guess"]


@settings(max_examples=5)
@given(st.lists(st.text(max_size=60) | st.none() | st.integers() | st.lists(st.integers())))
def test_no_argument_that_a_model_writes_stops_the_counting(values):
    rollout = line("")
    rollout["turns"][0]["calls"] = [
        {"name": name, "arguments": {"dsl": value, "copies": value}}
        for value in values
        for name in ("run_workflow", "custom")
    ]
    rollout["turns"][0]["results"] = ["ok"] * 2 * len(values)

    assert json.dumps(workflow_statistics([rollout]).to_json(), allow_nan=False)


def test_the_command_gives_the_figures_of_a_run_and_of_a_phase(tmp_path):
    run = Run.create(tmp_path / "compose", {"env_id": COMPOSE})
    for phase, text in (("before", "### Step 1: Analyze."), ("after", "Custom")):
        (record,) = played(COMPOSE, call("run_workflow", dsl=text), call("answer"), n=1)
        run.log_rollouts([{"phase": phase, "step": None, **record.to_json()}])
    shown = run_here("stats", run.path).stdout
    after = json.loads(run_here("stats", run.path, "--json", "--phase", "after").stdout)

    assert shown.startswith(f"2 rollouts of {COMPOSE}.\n")
    for title in ("Validity", "Errors", "Patterns", "Operators", "Structures", "Over time"):
        assert title in shown.splitlines()
    assert [row["workflow"] for row in after["patterns"]] == ["Custom"]
