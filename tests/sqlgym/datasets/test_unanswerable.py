"""Questions that a database cannot answer: how they are made, mixed in, scored and shown."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import gymnasium as gym
import pytest

import sqlgym
from sqlgym.database.database import open_database
from sqlgym.datasets.absence import stems
from sqlgym.datasets.unanswerable import KINDS, make_unanswerable, with_unanswerable
from sqlgym.tasks.task import UnanswerableTask
from toolgym import ConfigurationError, policies, rollout
from toolgym.messages import system_prompt
from toolgym.testing.contract import check_tool_env


def run(*arguments):
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "toolgym", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


EXPLORE, TEXT_TO_SQL = "sqlgym/Explore-v0", "sqlgym/TextToSQL-v0"
REFUSE = {"name": "cannot_answer", "arguments": {}}


@pytest.fixture(scope="module")
def tasks():
    return sqlgym.load_tasks("bundled", "train")


@pytest.fixture(scope="module")
def made(tasks):
    return make_unanswerable(tasks, 10_000)


@pytest.mark.nightly
@pytest.mark.parametrize("env_id", [EXPLORE, TEXT_TO_SQL])
def test_a_share_of_0_changes_no_byte(env_id):
    plain, off = (gym.make(env_id, **kwargs).unwrapped for kwargs in ({}, {"unanswerable": 0}))
    assert plain.tasks is off.tasks
    assert plain.tool_schemas() == off.tool_schemas()
    assert "cannot_answer" not in off.tools
    assert type(off).tools.keys() == off.tools.keys()
    assert off.reset(seed=3) == plain.reset(seed=3)
    assert system_prompt(plain) == system_prompt(off)
    assert "mistake" not in off.reset(seed=3)[1]
    assert "mistake" not in rollout.play(off, policies.expert(), seed=3).to_json()


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, True, "half", None])
def test_a_share_out_of_range_is_refused(tasks, share):
    with pytest.raises(ConfigurationError, match="a share from 0 to below 1"):
        with_unanswerable(tasks, share)


@pytest.mark.nightly
def test_two_makings_agree_and_a_smaller_one_is_the_beginning(tasks, made):
    again = make_unanswerable(tasks, 20)
    assert again == made[:20]
    assert len({(task.item, task.question) for task in made}) == len(made)
    assert {task.missing for task in made} == set(KINDS)
    assert not {task.id for task in made} & set(tasks.ids)


@pytest.mark.nightly
def test_a_missing_value_is_in_no_cell(made):
    for task in made:
        if task.missing == "value":
            assert task.name in task.question
            cells = {str(cell).casefold() for cell in cells_of(task.database)}
            assert task.name.casefold() not in cells
            assert not open_database(task.database).query(task.search).rows


@pytest.mark.nightly
def test_a_missing_column_or_table_has_no_name_in_the_schema(made):
    for task in made:
        if task.missing != "value":
            names = names_of(task.database)
            words = {word for name in names for word in stems(name)}
            assert not stems(task.name) - {"type", "address"} & words, task
            assert task.name in task.question.lower() or task.name[:-1] in task.question.lower()


def cells_of(path):
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        return [
            cell
            for (name,) in tables
            for row in connection.execute(f'SELECT * FROM "{name}"')
            for cell in row
        ]


def names_of(path):
    schema = open_database(path).schema
    return [*schema.names, *(column.name for table in schema.tables for column in table.columns)]


@pytest.mark.nightly
@pytest.mark.parametrize("env_id", [EXPLORE, TEXT_TO_SQL])
def test_an_environment_with_unanswerable_tasks_keeps_the_contract(env_id):
    check_tool_env(env_id, unanswerable=0.3, seeds=8)


@pytest.mark.nightly
def test_cannot_answer_cannot_be_asked_for_without_the_share():
    with pytest.raises(ConfigurationError, match="tools must name some of"):
        gym.make(TEXT_TO_SQL, tools=("answer", "cannot_answer"))


@pytest.mark.nightly
@pytest.mark.parametrize("env_id", [EXPLORE, TEXT_TO_SQL])
def test_who_always_refuses_earns_the_share_and_no_more(env_id):
    found = rollout.evaluate(env_id, policies.scripted([REFUSE]), split="dev", unanswerable=0.2)
    without = [r for r in found.records if "-without-" in r.task_id]
    assert found.mean_score == pytest.approx(len(without) / len(found.records))
    assert found.summary()["refused_answerable"] == pytest.approx(1 - found.mean_score)
    assert found.summary()["answered_unanswerable"] == 0
    assert all(record.correct and record.score == 1 for record in without)


@pytest.mark.parametrize(
    ("env_id", "arguments"),
    [
        (EXPLORE, {"value": None}),
        (TEXT_TO_SQL, {"sql": "SELECT 1"}),
    ],
)
def test_whatever_is_answered_where_there_is_no_answer_is_wrong(env_id, arguments):
    env = gym.make(env_id, unanswerable=0.02).unwrapped
    task = next(task for task in env.tasks if isinstance(task, UnanswerableTask))
    _, info = env.reset(options={"task_id": task.id})
    assert info["mistake"] == ""
    *_, info = env.step({"name": "answer", "arguments": arguments})
    if info["error"] is None:
        assert (info["correct"], info["mistake"]) == (False, "answered_unanswerable")
    assert info["score"] <= env.reward_config.partial
    assert info["score"] + env.reward_config.margin <= 1 - env.reward_config.cost_cap


def test_refusing_what_has_an_answer_is_the_other_mistake():
    env = gym.make(EXPLORE, unanswerable=0.02).unwrapped
    task = next(task for task in env.tasks if not isinstance(task, UnanswerableTask))
    env.reset(options={"task_id": task.id})
    *_, info = env.step(REFUSE)
    assert (info["correct"], info["mistake"], info["score"]) == (False, "refused_answerable", 0)


@pytest.mark.nightly
def test_the_second_judge_agrees_on_both_kinds_of_tasks(tasks):
    env = gym.make(EXPLORE, unanswerable=0.3).unwrapped
    for policy in (policies.expert(), policies.scripted([REFUSE])):
        for seed in range(40):
            record = rollout.play(env, policy, seed=seed)
            turns = record.to_json()["turns"]
            assert env.family.recheck(env, env.task, turns) is record.correct, record


@pytest.mark.nightly
def test_a_task_is_shown_with_why_it_has_no_answer(made):
    options = ["--split", "train", "--set", "unanswerable=0.2"]
    shown = run("tasks", "show", "bundled", made[0].id, *options)
    assert shown.returncode == 0, shown.stderr
    assert "right answer: cannot_answer" in shown.stdout
    assert f"why: {made[0].because}" in shown.stdout
    counted = run("tasks", "stats", "bundled", *options, "--json")
    assert json.loads(counted.stdout)["splits"]["train"]["result"]["no answer"] > 40


@pytest.mark.nightly
def test_a_set_of_one_database_without_names_is_refused(tmp_path):
    path = tmp_path / "database" / "n" / "n.sqlite"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE n(a INTEGER); INSERT INTO n VALUES(1), (2)")
    entry = {"db_id": "n", "question": "What is the sum?", "query": "SELECT sum(a) FROM n"}
    (tmp_path / "train.json").write_text(json.dumps([entry]))
    with pytest.raises(ConfigurationError, match="no unanswerable question can be made"):
        gym.make(EXPLORE, dataset=str(tmp_path), unanswerable=0.2)
