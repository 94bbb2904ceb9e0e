"""`sqlgym/Explore-v0`: what an agent sees, what it earns, and what never works."""

import hashlib
import random
import shutil

import gymnasium as gym
import pytest

from sqlgym.database.database import open_database
from sqlgym.datasets.load import load_tasks
from sqlgym.envs.expert import read_answer, tables_of
from sqlgym.tasks.gold import gold_of
from tests.sweeps import sweep
from toolgym import (
    ConfigurationError,
    EnvironmentFault,
    TaskRefused,
    policies,
    registration,
    rollout,
)

ENV = "sqlgym/Explore-v0"
GATED = pytest.param(("bundled", "dev"), id="bundled-dev", marks=pytest.mark.integration)
SETS = [("bundled", "train"), ("bundled", "test"), ("tiny", "dev")]


def make(**kwargs):
    return registration.make(ENV, **kwargs)


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


@pytest.fixture
def env():
    made = make(split="dev")
    made.reset(options={"task_id": DEV})
    return made


DEV = "film_festival-001"


@pytest.mark.parametrize("shipped", [GATED, *sweep(SETS, [], "-".join)])
def test_the_expert_solves_every_task_that_is_shipped(shipped):
    dataset, split = shipped
    found = rollout.evaluate(ENV, policies.ExpertPolicy(), dataset=dataset, split=split)
    assert found.accuracy == 1.0
    assert found.refused == ()
    assert found.validity == 1.0


@pytest.mark.parametrize("limit", [3, 4, 6, 15])
def test_the_expert_solves_a_task_where_few_calls_are_left(limit):
    """What is left is told below the result that it reads: no row, and no value of a column."""
    found = rollout.evaluate(ENV, policies.ExpertPolicy(), split="dev", n=25, step_limit=limit)
    assert found.accuracy == 1.0
    assert found.validity == 1.0


@pytest.mark.parametrize("split", sweep(["train", "dev"], ["dev"]))
def test_the_expert_solves_every_playable_task_of_real_spider(spider, split):
    found = rollout.evaluate(ENV, policies.ExpertPolicy(), dataset=str(spider), split=split)
    assert found.accuracy == 1.0
    assert found.episodes + len(found.refused) == 125
    assert len(found.refused) <= 12
    codes = {refusal["code"] for refusal in found.refused}
    assert codes <= {"null_gold", "open_choice", "result_too_large", "tied_limit"}


def test_the_expert_reads_its_answer_off_the_observation_and_not_off_the_gold(tmp_path, spider):
    """With the gold rows shuffled in memory it still reads the right answer."""
    shuffled = random.Random(0)
    copy = shutil.copytree(spider, tmp_path / "copy")  # whose results no other test reads
    for question in load_tasks(copy, "dev").playable():
        gold = gold_of(question)
        rows = list(gold.result.rows)
        shuffled.shuffle(rows)
        object.__setattr__(gold.result, "rows", tuple(rows))
    found = rollout.evaluate(ENV, policies.ExpertPolicy(), dataset=copy, split="dev")
    gold_of.cache_clear()
    assert found.accuracy == 1.0


def test_the_agent_is_told_the_question_the_tables_and_the_budget(env):
    observation, info = env.reset(options={"task_id": DEV})
    assert env.task.question in observation
    assert "\nTables: " in observation
    assert "You have 15 calls" in observation
    assert info["task_id"] == DEV
    assert env.task.gold_sql not in observation


def test_describe_and_sample_show_a_table_whatever_its_case(env):
    table = env._schema.tables[0].name
    assert env.describe(table) == env.describe(table.upper())
    assert len(env.sample(table).splitlines()) >= 2
    wrong = env.describe(table[:-1])
    assert wrong.startswith("error[unknown_table]")
    assert table in wrong
    assert "This works:" in wrong


def test_progress_is_that_of_the_last_query_that_ran(env):
    env.reset(options={"task_id": "film_festival-004"})
    asked = {
        "SELECT 1": 0.0,
        "SELECT 7 FROM films": 0.0,
        "SELECT 'Salt' FROM films WHERE year > 0": 0.0,
        "SELECT title FROM films WHERE language = 'French'": 0.0,
        "SELECT title, language FROM films WHERE language = 'Spanish'": 0.6,
        "SELECT * FROM films": 0.0,
        env.task.gold_sql: 1.0,
        "SELECT nonsense": 1.0,
        "SELECT title FROM films": 0.0,
    }
    for sql, progress in asked.items():
        env.query(sql)
        assert env.episode.ledger.progress == progress, sql


def test_listing_tables_earns_nothing_by_itself(env):
    for table in env._schema.tables:
        env.describe(table.name)
        env.sample(table.name)
    assert env.episode.ledger.progress == 0.0


def test_a_constant_earns_nothing_however_well_it_is_guessed(env):
    gold = gold_of(env.task).result
    guess = ", ".join(repr(value) if value is not None else "NULL" for value in gold.rows[0])
    env.query(f"SELECT {guess}")
    assert env.episode.ledger.progress == 0.0


def test_dumping_a_table_earns_little(env):
    for table in env._schema.tables:
        env.query(f'SELECT * FROM "{table.name}"')
    assert env.episode.ledger.progress <= 0.5


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("DELETE FROM films", "not_allowed"),
        ("ATTACH 'x.db' AS x", "not_allowed"),
        ("PRAGMA table_info(films)", "not_allowed"),
        ("SELECT random()", "nondeterministic"),
        ("SELEC 1", "sql_error"),
        ("SELECT json_extract('1', x'ff')", "sql_error"),  # the message is no UTF-8
        ("SELECT 1; SELECT 2", "several_statements"),
        ("", "empty_sql"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
            "too_many_steps",
        ),
    ],
)
def test_hostile_or_broken_sql_is_answered_and_the_file_stays_as_it_was(env, sql, code):
    before = hashlib.sha256(env.task.database.read_bytes()).hexdigest()
    folder = sorted(path.name for path in env.task.database.parent.iterdir())
    observation, *_, info = env.step(call("query", sql=sql))
    assert info["error"] is not None
    assert info["error"].code == code, observation
    assert hashlib.sha256(env.task.database.read_bytes()).hexdigest() == before
    assert sorted(path.name for path in env.task.database.parent.iterdir()) == folder


@pytest.mark.parametrize(
    "value", ["I do not know", "", "error[sql_error]", [], [[]], True, 10**30, 1e308]
)
def test_a_wrong_answer_of_any_kind_ends_the_episode_as_wrong(env, value):
    *_, terminated, _, info = env.step(call("answer", value=value))
    assert terminated
    assert not info["correct"]


def test_the_right_answer_counts_as_a_number_and_as_text(env):
    env.reset(options={"task_id": SCALAR})
    [[number]] = gold_of(env.task).result.rows
    for value in (number, str(number), f" {number}. ", f"Answer: {number}"):
        env.reset(options={"task_id": SCALAR})
        assert env.step(call("answer", value=value))[4]["correct"], value
    env.reset(options={"task_id": SCALAR})
    assert not env.step(call("answer", value=f"{number} or {number + 1}"))[4]["correct"]


SCALAR = "film_festival-001"


def test_a_database_that_vanishes_is_a_fault_and_no_mistake_of_the_agent(tmp_path, spider):
    copy = shutil.copytree(spider, tmp_path / "copy")
    env = make(dataset=copy, split="dev")
    env.reset(seed=0)
    env.task.database.chmod(0o644)
    env.task.database.parent.chmod(0o755)
    env.task.database.unlink()
    with pytest.raises(EnvironmentFault, match=env.task.database.name):
        env.query("SELECT 1 FROM nowhere_asked_before")
    assert not env.episode.info((), ())["scored"]


def test_a_refused_task_says_why_and_reset_by_seed_goes_round_it(spider):
    env = make(dataset=str(spider), split="dev")
    with pytest.raises(TaskRefused, match=r"result_too_large.*230 rows"):
        env.reset(options={"task_id": "dev-00042"})
    for seed in range(300):
        assert env.reset(seed=seed)[1]["task_id"] != "dev-00042"


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"dataset": "nowhere/at/all"}, "there is no data set 'nowhere/at/all'"),
        ({"split": "exam"}, "exam"),
    ],
)
def test_a_data_set_or_split_that_is_not_there_is_named(kwargs, words):
    with pytest.raises(ConfigurationError, match=words):
        make(**kwargs)


def test_a_seed_gives_one_task_and_one_observation_in_every_process(env):
    one, other = gym.make(ENV), gym.make(ENV)
    assert [one.reset(seed=s)[0] for s in range(20)] == [other.reset(seed=s)[0] for s in range(20)]


def test_what_the_expert_reads_is_typed_by_its_text_alone():
    assert read_answer("count\n42") == 42
    assert read_answer("a | b\n1 | x") == [1, "x"]
    assert read_answer("name\nann\nbob") == ["ann", "bob"]
    assert read_answer("code\n007") == "007"
    assert read_answer("a | b\n1 | NULL\n2 | y") == [[1, None], [2, "y"]]


def test_tables_are_found_in_every_corner_of_a_query():
    sql = "WITH t AS (SELECT * FROM a) SELECT * FROM t JOIN B ON 1 WHERE x IN (SELECT y FROM c) "
    assert sorted(tables_of(sql + "UNION SELECT 1 FROM b"), key=str.lower) == ["a", "B", "c"]


def test_a_sample_shows_the_same_rows_in_every_episode_of_a_task():
    shown = []
    for _ in range(2):
        env = registration.make("sqlgym/Explore-v0", dataset="bundled", step_limit=40)
        env.reset(seed=3)
        names = open_database(env.task.database).schema.names
        calls = [{"name": "sample", "arguments": {"table_name": name}} for name in names]
        shown.append([env.step(call)[0] for call in calls])

    assert shown[0] == shown[1]
