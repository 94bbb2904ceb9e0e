"""Questions that a database cannot answer: how they are read, offered, scored and shown."""

import json
import sqlite3
from contextlib import closing

import gymnasium as gym
import pytest

import sqlgym
from toolgym import ConfigurationError, policies, rollout
from toolgym.testing import check_tool_env

EXPLORE, TEXT_TO_SQL = "sqlgym/Explore-v0", "sqlgym/TextToSQL-v0"
REFUSE = {"name": "cannot_answer", "arguments": {}}
ENTRIES = [
    {"db_id": "fruit", "question": "How many?", "query": "SELECT count(*) FROM fruit"},
    {"db_id": "fruit", "question": "Who grew the plums?", "answerable": False},
    {"db_id": "fruit", "question": "Total?", "query": "SELECT sum(n) FROM fruit"},
    {"db_id": "fruit", "question": "Which is red?", "query": "SELECT", "answerable": False},
]
ANSWERABLE, UNANSWERABLE = ("train-00000", "train-00002"), ("train-00001", "train-00003")


@pytest.fixture(scope="module", params=["train.json", "train.jsonl", "rows"])
def tasks(request, tmp_path_factory):
    """The same entries in each form that a data set may have."""
    folder = tmp_path_factory.mktemp("fruit")
    (folder / "database" / "fruit").mkdir(parents=True)
    with closing(sqlite3.connect(folder / "database" / "fruit" / "fruit.sqlite")) as connection:
        connection.executescript(
            "CREATE TABLE fruit(name TEXT, n INTEGER); INSERT INTO fruit VALUES ('a', 2), ('b', 5)"
        )
    if request.param == "rows":
        return sqlgym.load_tasks(ENTRIES, "train", databases=folder)
    lines = "\n".join(map(json.dumps, ENTRIES))
    text = lines if request.param == "train.jsonl" else json.dumps(ENTRIES)
    (folder / request.param).write_text(text)
    return sqlgym.load_tasks(str(folder), "train")


@pytest.mark.parametrize("env_id", [EXPLORE, TEXT_TO_SQL])
@pytest.mark.parametrize("tasks", ["rows"], indirect=True)
def test_a_data_set_without_such_questions_offers_no_refusal(env_id, tasks):
    env = gym.make(env_id, dataset=tasks.filter(lambda task: task.answerable)).unwrapped
    assert "cannot_answer" not in env.tools
    assert "mistake" not in env.reset(seed=3)[1]
    assert "mistake" not in rollout.play(env, policies.ExpertPolicy(), seed=3).to_json()


def test_an_unanswerable_task_that_was_overlooked_in_a_large_set_is_an_error(tasks, monkeypatch):
    monkeypatch.setattr("sqlgym.envs.explore._LOOKED_AT", 1)
    env = gym.make(EXPLORE, dataset=tasks.filter(lambda task: True))
    with pytest.raises(ConfigurationError, match="Put an unanswerable task first in the file"):
        env.reset(options={"task_id": UNANSWERABLE[0]})


def test_an_entry_may_be_marked_as_unanswerable_and_needs_no_sql(tasks):
    assert tuple(task.id for task in tasks if not task.answerable) == UNANSWERABLE
    assert tasks.check() == {}


@pytest.mark.parametrize("env_id", [EXPLORE, TEXT_TO_SQL])
def test_an_environment_with_unanswerable_tasks_keeps_the_contract(env_id, tasks):
    check_tool_env(env_id, dataset=tasks)


@pytest.mark.parametrize("tasks", ["rows"], indirect=True)
def test_with_fewer_tools_it_can_be_refused_too_and_need_not_be_named(tasks):
    check_tool_env(TEXT_TO_SQL, dataset=tasks, tools=("answer",), match="suite")
    with pytest.raises(ConfigurationError, match="tools must name some of"):
        gym.make(TEXT_TO_SQL, dataset=tasks, tools=("answer", "cannot_answer"))


@pytest.mark.parametrize("env_id", [EXPLORE, TEXT_TO_SQL])
def test_who_always_refuses_earns_the_share_and_no_more(env_id, tasks):
    found = rollout.evaluate(env_id, policies.ScriptedPolicy([REFUSE]), dataset=tasks)
    assert {record.task_id for record in found.records if record.score == 1} == {*UNANSWERABLE}
    assert found.mean_score == 0.5
    assert found.summary()["refused_answerable"] == 0.5
    assert found.summary()["answered_unanswerable"] == 0


@pytest.mark.parametrize(
    ("env_id", "arguments"),
    [
        (EXPLORE, {"value": None}),
        (TEXT_TO_SQL, {"sql": "SELECT 1"}),
        (TEXT_TO_SQL, {"sql": "SELECT nothing"}),
    ],
)
def test_whatever_is_answered_where_there_is_no_answer_is_wrong(env_id, arguments, tasks):
    env = gym.make(env_id, dataset=tasks).unwrapped
    _, info = env.reset(options={"task_id": UNANSWERABLE[0]})
    assert info["mistake"] == ""
    *_, info = env.step({"name": "answer", "arguments": arguments})
    if info["error"] is None:
        assert (info["correct"], info["mistake"]) == (False, "answered_unanswerable")
    assert info["score"] <= env.reward_config.partial
    assert info["score"] + env.reward_config.margin <= 1 - env.reward_config.cost_cap


def test_refusing_what_has_an_answer_is_the_other_mistake(tasks):
    env = gym.make(EXPLORE, dataset=tasks).unwrapped
    env.reset(options={"task_id": ANSWERABLE[0]})
    *_, info = env.step(REFUSE)
    assert (info["correct"], info["mistake"], info["score"]) == (False, "refused_answerable", 0)


def test_the_second_judge_agrees_on_both_kinds_of_tasks(tasks):
    env = gym.make(EXPLORE, dataset=tasks).unwrapped
    for policy in (policies.ExpertPolicy(), policies.ScriptedPolicy([REFUSE])):
        for task_id in (*ANSWERABLE, *UNANSWERABLE):
            record = rollout.play(env, policy, task_id=task_id)
            turns = record.to_json()["turns"]
            assert env.family.recheck(env, env.task, turns) is record.correct, record


def test_a_task_is_shown_and_counted_as_one_without_an_answer(tasks):
    family, task = gym.make(EXPLORE, dataset=tasks).unwrapped.family, tasks.get(UNANSWERABLE[0])
    assert family.shown(task)["right answer"] == "cannot_answer"
    assert family.facts(task, tasks)["result"] == "no answer"
    assert family.marks(task, "tasks")
    assert not family.marks(task, "shapes")
