"""`toolgym stats`: what a family counts, on a terminal and as JSON."""

import json
import math

import gymnasium as gym
import pytest
from typer.testing import CliRunner

import toolgym.statistics
from toolgym import Task, TaskSet, ToolEnv, policies, rollout, tool
from toolgym.cli import application
from toolgym.family import TaskFamily
from toolgym.runs.run import Run
from toolgym.statistics import Share, Statistics, Table

COUNTED, UNCOUNTED = "stats-tests/Coins-v0", "stats-tests/Silent-v0"


class CoinFamily(TaskFamily):
    """Counts which side was called."""

    def statistics(self, rollouts, top=10):
        said = [turn["calls"][0]["arguments"].get("side") for r in rollouts for turn in r["turns"]]
        rows = [(side, said.count(side), Share(said.count(side), len(said))) for side in set(said)]
        rows.sort(key=lambda row: (-row[1], row[0]))
        table = Table("sides", "Sides", ("side", "count", "share"), tuple(rows[:top]), "Of calls.")
        return Statistics((table, Table("errors", "Errors", ("code",), ())))


class SilentEnv(ToolEnv):
    """Call the side of a coin."""

    def __init__(self):
        super().__init__(TaskSet([Task("coin", "Heads or tails?")], name="coins"))

    def begin(self, task):
        return task.question

    @tool(terminal=True)
    def call_side(self, side: str) -> str:
        """Call a side.

        Args:
            side: heads or tails.
        """
        return self.submit(side == "heads")


class CoinEnv(SilentEnv):
    """The same, counted."""

    family = CoinFamily()


for env_id, made in ((COUNTED, CoinEnv), (UNCOUNTED, SilentEnv)):
    if env_id not in gym.registry:
        gym.register(id=env_id, entry_point=made)


def played(env_id, *sides):
    said = [json.dumps({"name": "call_side", "arguments": {"side": side}}) for side in sides]
    return [
        record.to_json()
        for each in said
        for record in rollout.evaluate(env_id, policies.ScriptedPolicy([each]), n=1).records
    ]


@pytest.fixture
def folder(tmp_path):
    run = Run.create(tmp_path / "coins", {"env_id": COUNTED})
    for phase, step, sides in (
        ("before", None, ["tails", "tails"]),
        ("grpo", 1, ["heads", "tails"]),
        ("after", None, ["heads", "heads", "heads"]),
    ):
        run.log_rollouts(
            {"phase": phase, "step": step, **record} for record in played(COUNTED, *sides)
        )
    return run.path


def told(*arguments):
    return CliRunner().invoke(application(), ["stats", *map(str, arguments)])


def test_the_tables_of_the_family_are_printed_with_their_intervals(folder):
    shown = told(folder)

    assert shown.exit_code == 0, shown.output
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["7", "rollouts", "of", f"{COUNTED}."],
        [],
        ["Sides"],
        ["side", "count", "share"],
        ["heads", "4", "57.1", "%", "[25.0,", "84.2]"],
        ["tails", "3", "42.9", "%", "[15.8,", "75.0]"],
        ["Of", "calls."],
        [],
        ["Errors:", "none"],
    ]


def test_json_is_one_object_with_the_counts_behind_each_share(folder):
    shown = json.loads(told(folder, "--json", "--phase", "before", "--phase", "grpo").stdout)

    assert (shown["env_id"], shown["rollouts"]) == (COUNTED, 4)
    first = shown["sides"][0]
    assert (first["side"], first["count"], first["share"]["share"]) == ("tails", 3, 0.75)
    assert first["share"]["interval"] == pytest.approx([0.301, 0.954], abs=1e-3)
    assert shown["errors"] == []


def test_top_reaches_the_family(folder):
    assert len(json.loads(told(folder, "--json", "--top", "1").stdout)["sides"]) == 1


def test_a_file_of_eval_is_as_good_as_a_run(tmp_path):
    file = tmp_path / "episodes.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in played(COUNTED, "heads", "edge")))
    shown = json.loads(told(file, "--json").stdout)

    assert [row["side"] for row in shown["sides"]] == ["edge", "heads"]


def test_a_family_that_counts_nothing_is_told_in_a_sentence(tmp_path):
    run = Run.create(tmp_path / "silent", {})
    run.log_rollouts({"phase": "before", "step": None, **r} for r in played(UNCOUNTED, "heads"))
    shown = told(run.path)

    assert shown.exit_code == 2
    assert shown.stderr == (
        "toolgym: there are no statistics for the environment that was played; `toolgym report`"
        " shows the metrics that every run has.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{file}", "--phase", "grpo"], "is a file and has no phases"),
        (["{empty}"], "{empty} has no rollouts."),
        (["{empty}", "--phase", "after"], "{empty} has no rollouts of phase after."),
        (["{strange}"], "Known environments"),
    ],
)
def test_what_cannot_be_counted_is_said_with_status_2(tmp_path, arguments, sentence):
    (tmp_path / "file.jsonl").write_text('{"question": "What is this?"}\n')
    strange = {**played(COUNTED, "heads")[0], "env_id": "nobody/Knows-v0"}
    (tmp_path / "strange.jsonl").write_text(json.dumps(strange) + "\n")
    places = {
        "file": tmp_path / "file.jsonl",
        "empty": Run.create(tmp_path / "empty", {}).path,
        "strange": tmp_path / "strange.jsonl",
    }
    shown = told(*(argument.format(**places) for argument in arguments))

    assert shown.exit_code == 2
    assert sentence.format(**places) in shown.stderr


def test_a_number_that_is_none_is_null_in_json_and_a_dash_in_print():
    table = Table("x", "X", ("a", "b"), ((math.nan, Share(0, 0)),))

    assert table.to_json() == [
        {"a": None, "b": {"count": 0, "of": 0, "share": None, "interval": None}}
    ]
    assert [toolgym.statistics.cell_text(cell) for cell in table.rows[0]] == ["–", "–"]
