"""Questions that a database cannot answer: how they are made, mixed in, scored and shown."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqlgym
from sqlgym.database.database import open_database
from sqlgym.datasets.absence import Source, alike, stems
from sqlgym.datasets.unanswerable import KINDS, _crossed, make_unanswerable, with_unanswerable
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


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.9])
def test_the_share_holds_whether_or_not_tasks_must_be_left_out(tasks, share):
    mixed = with_unanswerable(tasks, share)
    without = sum(isinstance(task, UnanswerableTask) for task in mixed)
    assert without / len(mixed) == pytest.approx(share, abs=0.5 / len(mixed) + 1e-3)
    kept = [task.id for task in mixed if not isinstance(task, UnanswerableTask)]
    assert kept == [task.id for task in tasks if task.id in set(kept)]
    assert len(kept) == len(tasks) or share > 0.2


def test_the_seeds_draw_about_the_share():
    env = gym.make(EXPLORE, unanswerable=0.2).unwrapped
    drawn = [env.tasks.draw(seed) for seed in range(1000)]
    share = sum(isinstance(task, UnanswerableTask) for task in drawn) / len(drawn)
    assert share == pytest.approx(0.2, abs=0.04)


def test_two_makings_agree_and_a_smaller_one_is_the_beginning(tasks, made):
    again = make_unanswerable(tasks, 20)
    assert again == made[:20]
    assert len({(task.item, task.question) for task in made}) == len(made)
    assert {task.missing for task in made} == set(KINDS)
    assert not {task.id for task in made} & set(tasks.ids)


def test_a_missing_value_is_in_no_cell(made):
    for task in made:
        if task.missing == "value":
            assert task.name in task.question
            cells = {str(cell).casefold() for cell in cells_of(task.database)}
            assert task.name.casefold() not in cells
            assert not open_database(task.database).query(task.search).rows


def test_a_missing_column_or_table_has_no_name_in_the_schema(made):
    for task in made:
        if task.missing != "value":
            names = names_of(task.database)
            words = {word for name in names for word in stems(name)}
            assert not stems(task.name) - {"type", "address"} & words, task
            assert task.name in task.question.lower() or task.name[:-1] in task.question.lower()


def test_no_question_counts_or_sums_what_is_not_there(made):
    assert not [t for t in made if t.missing != "column" and t.question.startswith("How many p")]
    for task in made:
        if task.missing == "table":
            assert "count(" not in task.gold_sql.lower()
            assert "sum(" not in task.gold_sql.lower()


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


@pytest.fixture
def people(tmp_path):
    """A database whose only names are spread over two columns."""
    path = tmp_path / "people.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE people(first TEXT, last TEXT, note);"
            "INSERT INTO people VALUES('Eva', 'Kolhof', 'met ADA LOVELACE'), ('Milan', 'Maier', 3)"
        )
    return Source("people", path, open_database(path))


@pytest.mark.parametrize(
    "text", ["Eva Kolhof", "kolhof eva", "Kolhof, Eva", "Ada Lovelace", "ada", "MAIER", "?", ""]
)
def test_a_name_that_some_row_has_is_not_missing(people, text):
    assert not people.lacks(text)


@pytest.mark.parametrize("text", ["Eva Maier", "Milan Kolhof", "Ida Lovelace", "O'Hara"])
def test_a_name_that_no_row_has_is_missing(people, text):
    assert people.lacks(text)


@settings(max_examples=20)
@given(st.text(max_size=12), st.text(alphabet="aäEÉß 'x\"%_", min_size=1, max_size=8))
def test_no_text_of_a_cell_is_ever_missing(tmp_path_factory, before, text):
    path = tmp_path_factory.mktemp("cells") / "cells.sqlite"
    try:
        before.encode()
    except UnicodeEncodeError:
        before = ""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t(c TEXT)")
        connection.execute("INSERT INTO t VALUES(?)", (f"{before.replace(chr(0), '')}{text}",))
    assert not Source("cells", path, open_database(path)).lacks(text)


@given(st.text(alphabet="ABabé -", max_size=10), st.text(alphabet="ABabé -", max_size=10))
def test_a_crossed_name_keeps_the_beginning_and_takes_the_end(name, other):
    for crossed in _crossed(name, other):
        assert crossed[0] == name[0]
        assert crossed[-1] == other[-1]


def test_words_for_one_thing_stand_for_each_other():
    assert "elevation" in alike(stems("height_m"))
    assert "salary" in alike(stems("hourly_pay"))
    assert not alike(stems("blood_group")) & alike(stems("beds"))


@pytest.mark.parametrize("env_id", [EXPLORE, TEXT_TO_SQL])
def test_an_environment_with_unanswerable_tasks_keeps_the_contract(env_id):
    check_tool_env(env_id, unanswerable=0.3, seeds=8)


def test_without_a_query_no_value_is_said_to_be_missing():
    env = gym.make(TEXT_TO_SQL, tools=("answer",), unanswerable=0.1).unwrapped
    assert list(env.tools) == ["answer", "cannot_answer"]
    assert env.budget_line() == "Answer with one call: it ends the episode."
    missing = {task.missing for task in env.tasks if isinstance(task, UnanswerableTask)}
    assert missing == {"column", "table"}
    check_tool_env(TEXT_TO_SQL, tools=("answer",), unanswerable=0.1)


def test_cannot_answer_cannot_be_asked_for_without_the_share():
    with pytest.raises(ConfigurationError, match="tools must name some of"):
        gym.make(TEXT_TO_SQL, tools=("answer", "cannot_answer"))


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
        (EXPLORE, {"value": "cannot_answer"}),
        (EXPLORE, {"value": []}),
        (TEXT_TO_SQL, {"sql": "SELECT 1"}),
        (TEXT_TO_SQL, {"sql": "SELECT no"}),
    ],
)
def test_whatever_is_answered_where_there_is_no_answer_is_wrong(env_id, arguments):
    env = gym.make(env_id, unanswerable=0.2).unwrapped
    task = next(task for task in env.tasks if isinstance(task, UnanswerableTask))
    _, info = env.reset(options={"task_id": task.id})
    assert info["mistake"] == ""
    *_, info = env.step({"name": "answer", "arguments": arguments})
    if info["error"] is None:
        assert (info["correct"], info["mistake"]) == (False, "answered_unanswerable")
    assert info["score"] <= env.reward_config.partial
    assert info["score"] + env.reward_config.margin <= 1 - env.reward_config.cost_cap


def test_refusing_what_has_an_answer_is_the_other_mistake():
    env = gym.make(EXPLORE, unanswerable=0.2).unwrapped
    task = next(task for task in env.tasks if not isinstance(task, UnanswerableTask))
    env.reset(options={"task_id": task.id})
    *_, info = env.step(REFUSE)
    assert (info["correct"], info["mistake"], info["score"]) == (False, "refused_answerable", 0)


def test_a_record_with_a_mistake_survives_json():
    record = rollout.play(EXPLORE, policies.scripted([REFUSE]), seed=0, unanswerable=0.2)
    assert rollout.EpisodeRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_the_second_judge_agrees_on_both_kinds_of_tasks(tasks):
    env = gym.make(EXPLORE, unanswerable=0.3).unwrapped
    for policy in (policies.expert(), policies.scripted([REFUSE])):
        for seed in range(40):
            record = rollout.play(env, policy, seed=seed)
            turns = record.to_json()["turns"]
            assert env.family.recheck(env, env.task, turns) is record.correct, record


def test_a_task_is_shown_with_why_it_has_no_answer(made):
    options = ["--split", "train", "--set", "unanswerable=0.2"]
    shown = run("tasks", "show", "bundled", made[0].id, *options)
    assert shown.returncode == 0, shown.stderr
    assert "right answer: cannot_answer" in shown.stdout
    assert f"why: {made[0].because}" in shown.stdout
    counted = run("tasks", "stats", "bundled", *options, "--json")
    assert json.loads(counted.stdout)["splits"]["train"]["result"]["no answer"] > 40


def test_a_set_of_one_database_without_names_is_refused(tmp_path):
    path = tmp_path / "database" / "n" / "n.sqlite"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE n(a INTEGER); INSERT INTO n VALUES(1), (2)")
    entry = {"db_id": "n", "question": "What is the sum?", "query": "SELECT sum(a) FROM n"}
    (tmp_path / "train.json").write_text(json.dumps([entry]))
    with pytest.raises(ConfigurationError, match="no unanswerable question can be made"):
        gym.make(EXPLORE, dataset=str(tmp_path), unanswerable=0.2)
