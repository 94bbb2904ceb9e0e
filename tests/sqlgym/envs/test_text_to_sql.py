"""`sqlgym/TextToSQL-v0`: the answer is SQL, judged by what it gives, with or without exploring."""

import json
import sqlite3

import gymnasium as gym
import pytest

from sqlgym.database.description import RESERVED, create_statements
from sqlgym.database.schema import Schema
from sqlgym.datasets.load import load_tasks
from sqlgym.tasks.gold import gold_of
from tests.sweeps import sweep
from toolgym import ConfigurationError, EnvironmentFault, messages, policies, registration, rollout

ENV = "sqlgym/TextToSQL-v0"
DEV = "film_festival-001"


def make(**kwargs):
    return registration.make(ENV, **kwargs)


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


@pytest.fixture
def env():
    made = make(split="dev")
    made.reset(options={"task_id": DEV})
    return made


@pytest.fixture
def one_shot():
    made = make(split="dev", tools=("answer",))
    made.reset(options={"task_id": DEV})
    return made


@pytest.mark.parametrize("tools", [None, ("answer",)])
@pytest.mark.parametrize("split", sweep(["train", "dev"], []))
def test_the_expert_solves_every_task_that_is_shipped(split, tools):
    found = rollout.evaluate(
        ENV, policies.ExpertPolicy(), dataset="bundled", split=split, tools=tools
    )

    assert found.accuracy == 1.0
    assert found.validity == 1.0


@pytest.mark.parametrize("tools", [None, ("answer",)])
def test_the_expert_solves_a_task_with_and_without_exploring(tools):
    found = rollout.evaluate(ENV, policies.ExpertPolicy(), split="dev", n=25, tools=tools)

    assert found.accuracy == 1.0
    assert found.validity == 1.0


@pytest.mark.parametrize(
    ("split", "options"),
    [("train", {}), ("dev", {"match": "spider"})],
)
def test_the_expert_solves_every_playable_task_of_real_spider(spider, split, options):
    found = rollout.evaluate(
        ENV, policies.ExpertPolicy(), dataset=str(spider), split=split, **options
    )
    assert found.accuracy == 1.0
    assert found.validity == 1.0
    assert len(found.refused) <= 12


def test_the_tools_are_those_of_exploring_but_the_answer_is_sql(env):
    explore = registration.make("sqlgym/Explore-v0")

    assert list(env.tools) == list(explore.tools)
    assert env.tool_schemas()[:3] == explore.tool_schemas()[:3]
    assert env.tools["answer"].required == ("sql",)
    assert env.tools["answer"].code_argument("sql") == "sql"


@pytest.mark.parametrize("said", ["answer", "final_answer", "submit"])
def test_right_sql_in_a_fence_is_right_under_every_name(env, said):
    *_, terminated, truncated, info = env.step(call(said, sql=f"```sql\n{env.task.gold_sql};\n```"))

    assert (terminated, truncated, info["correct"]) == (True, False, True)


def test_wrong_sql_counts_as_a_query_for_the_progress(env):
    gold = env.task.gold_sql
    observation, *_, info = env.step(call("answer", sql=f"{gold} UNION ALL {gold}"))

    assert not info["correct"]
    assert env.episode.ledger.progress > 0
    assert observation == "Answer recorded. The episode is over."


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT nme FROM films", "nme"),
        ("DELETE FROM films", "Not allowed here"),
        ("SELEC 1", "syntax error"),
        ("", "no SQL to run"),
        ("SELECT 1; SELECT 2", "one"),
    ],
)
def test_sql_that_does_not_run_is_a_wrong_answer_and_says_why(env, sql, words):
    observation, _, terminated, _, info = env.step(call("answer", sql=sql))

    assert observation.startswith("The query fails: ")
    assert words in observation
    assert observation.endswith("That was the answer: the episode is over.")
    assert (terminated, info["correct"], info["error"]) == (True, False, None)


def test_a_right_and_a_wrong_query_are_told_the_same(env):
    right = env.step(call("answer", sql=env.task.gold_sql))[0]
    env.reset(options={"task_id": DEV})
    wrong = env.step(call("answer", sql="SELECT count(*) FROM films WHERE 1 = 0"))[0]

    assert right == wrong


def test_a_constant_is_not_right_even_where_it_is(env):
    gold = gold_of(env.task).result
    guess = ", ".join("NULL" if value is None else repr(value) for value in gold.rows[0])
    assert len(gold.rows) == 1
    info = env.step(call("answer", sql=f"SELECT {guess}"))[4]

    assert not info["correct"]
    assert env.episode.ledger.progress == 0.0


def test_the_match_of_spider_is_more_lenient():
    task = next(
        task
        for task in load_tasks("bundled", "dev")
        if task.gold_sql.startswith("SELECT DISTINCT ") and not gold_of(task).answer.runs
    )
    loose = task.gold_sql.replace("SELECT DISTINCT", "SELECT", 1)
    right = {}
    for match in ("sound", "spider"):
        env = make(split="dev", match=match)
        env.reset(options={"task_id": task.id})
        right[match] = env.step(call("answer", sql=loose))[4]["correct"]

    assert right == {"sound": False, "spider": True}


@pytest.fixture
def unfair(tmp_path):
    """Golds that are empty, tied, large and failing, and one that is fair."""
    folder = tmp_path / "database" / "d"
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / "d.sqlite")
    connection.execute("CREATE TABLE t (x INT, y INT)")
    connection.executemany("INSERT INTO t VALUES (?, 1)", [(i,) for i in range(300)])
    connection.commit()
    connection.close()
    golds = {
        "empty": "SELECT x FROM t WHERE x < 0",
        "tied": "SELECT x FROM t ORDER BY y LIMIT 1",
        "large": "SELECT x FROM t",
        "failing": "SELECT z FROM t",
        "fair": "SELECT sum(a.x) FROM t AS a, t AS b",
    }
    entries = [{"db_id": "d", "question": f"{k}?", "query": v, "id": k} for k, v in golds.items()]
    (tmp_path / "dev.json").write_text(json.dumps(entries))
    return tmp_path


def test_with_spiders_match_only_golds_that_its_evaluator_cannot_score_are_refused(unfair):
    sound, spider = (make(dataset=unfair, split="dev", match=m) for m in ("sound", "spider"))
    refused = [[sound.tasks.get(i).question for i in env.tasks.check()] for env in (sound, spider)]
    assert refused == [["empty?", "tied?", "large?", "failing?"], ["failing?"]]

    for task in spider.tasks:
        if task.question != "failing?":
            for sql, right in ((task.gold_sql, True), ("SELECT 7 FROM t LIMIT 2", False)):
                spider.reset(options={"task_id": task.id})
                assert spider.step(call("answer", sql=sql))[4]["correct"] is right


def test_an_answer_that_the_clock_ends_is_unscored(unfair):
    limits = {"seconds": 0.05, "steps": 10**12}
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
    env = make(dataset=unfair, split="dev", match="sound", limits=limits)
    env.reset(seed=0)
    with pytest.raises(EnvironmentFault, match="limits="):
        env.step(call("answer", sql=endless))

    env = make(dataset=unfair, split="dev", match="sound", limits={"steps": 10**6})
    env.reset(seed=0)
    *_, info = env.step(call("answer", sql=endless))
    assert info["correct"] is False


def test_an_answer_that_takes_too_much_memory_is_wrong_and_not_unscored(unfair):
    env = make(dataset=unfair, split="dev", match="sound", limits={"memory_bytes": 1_000_000})
    env.reset(seed=0)
    numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 40000)"
    sql = f"{numbers} SELECT printf('%0500d', x) AS text FROM c ORDER BY text"
    *_, info = env.step(call("answer", sql=sql))
    assert info["scored"]
    assert not info["correct"]
    assert env.unwrapped.judged.verdict.reason.startswith("error: too_much_memory")


def test_a_gold_that_needs_more_steps_is_played_with_larger_limits(unfair):
    small, large = (make(dataset=unfair, split="dev", limits={"steps": n}) for n in (10_000, 10**7))
    assert len(small.tasks.check()) > len(large.tasks.check()) == 4


def test_one_shot_has_the_schema_in_the_prompt_and_one_tool(one_shot):
    observation, _ = one_shot.reset(options={"task_id": DEV})

    assert [schema["function"]["name"] for schema in one_shot.tool_schemas()] == ["answer"]
    assert "CREATE TABLE films (film_id INTEGER PRIMARY KEY" in observation
    assert "REFERENCES films(film_id)" in observation
    assert "Answer with one call: it ends the episode." in observation
    assert "You have" not in observation
    assert "describe" not in str(messages.prompt_messages(one_shot))


def test_with_the_schema_first_prompts_of_one_database_begin_alike():
    env = make(split="dev", tools=("answer",), schema_first=True)
    by_database = {}
    for task in env.tasks:
        by_database.setdefault(task.database, []).append(task)
    for tasks in by_database.values():
        for task in tasks[:3]:
            observation, _ = env.reset(options={"task_id": task.id})
            schema, _, rest = observation.partition(f"\n{task.question}\n")
            assert schema == create_statements(env._schema)
            assert rest.startswith("Answer with one call")
    assert env.step(call("answer", sql=env.task.gold_sql))[4]["correct"]


def test_with_tools_to_explore_the_names_of_the_tables_come_first():
    env = make(split="dev", schema_first=True)
    lines = env.reset(options={"task_id": DEV})[0].splitlines()
    assert lines[0].startswith("Tables: ")
    assert lines[1] == env.task.question


def test_what_is_not_offered_is_no_tool_and_shown_in_no_example(one_shot):
    for name in ("describe", "query"):
        observation, *_, info = one_shot.step(call(name, sql="SELECT 1 FROM films"))
        assert info["error"].code == "unknown_tool"
        assert '"name": "answer"' in observation
    assert one_shot.step(call("answer", sql=one_shot.task.gold_sql))[4]["correct"]


def test_an_error_of_a_query_names_no_tool_that_is_not_offered():
    env = make(split="dev", tools=["answer", "query"])
    env.reset(options={"task_id": DEV})
    observation, *_ = env.step(call("query", sql="SELECT 1 FROM film"))

    assert list(env.tools) == ["query", "answer"]
    assert "CREATE TABLE" in env.episode.question
    assert '"describe"' not in observation


def test_an_environment_with_fewer_tools_leaves_the_others_theirs(one_shot, env):
    assert list(env.tools) == ["describe", "sample", "query", "answer"]
    assert list(type(one_shot).tools) == list(env.tools)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"match": "exact"}, '"sound", "spider" or "suite"'),
        ({"tools": ()}, 'including "answer"'),
        ({"tools": ("query",)}, 'including "answer"'),
        ({"tools": ("answer", "drop")}, "some of describe, sample, query, answer"),
    ],
)
def test_an_option_out_of_range_is_told(kwargs, words):
    with pytest.raises(ConfigurationError, match=words):
        make(**kwargs)


def test_a_single_tool_may_be_given_by_its_name():
    assert list(make(tools="answer").tools) == ["answer"]


def test_the_schema_of_a_prompt_is_sql(tmp_path, spider):
    """Every schema of Spider, and one of awkward names, can be created from what is shown."""
    awkward = tmp_path / "awkward.sqlite"
    connection = sqlite3.connect(awkward)
    names = ['"order"', '"two words"', '"a""b"', '"ünï"', '"1st"']
    connection.execute(f'CREATE TABLE "group" ({", ".join(names)}, PRIMARY KEY ("order", "1st"))')
    connection.execute('CREATE TABLE b (x REFERENCES "group"("order") REFERENCES "group")')
    connection.close()
    for path in [awkward, *spider.glob("database/*/*.sqlite")]:
        schema = Schema.read(path)
        fresh = tmp_path / f"copy-{path.name}"
        connection = sqlite3.connect(fresh)
        connection.executescript(";".join(create_statements(schema).splitlines()))
        connection.close()
        again = Schema.read(fresh)
        assert again.names == schema.names
        for one, other in zip(schema.tables, again.tables, strict=True):
            assert [(c.name, c.type, c.primary_key) for c in one.columns] == [
                (c.name, c.type, c.primary_key) for c in other.columns
            ]
            assert set(one.foreign_keys) == set(other.foreign_keys)


def test_every_word_that_sqlite_reserves_is_quoted():
    connection = sqlite3.connect(":memory:")
    text = """ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE
        BEGIN BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE
        CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE
        DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE
        EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP GROUPS
        HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS
        ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL
        NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY
        RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING
        RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION
        TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW
        WITH WITHOUT"""
    refused = set()
    for word in text.split():
        try:
            connection.execute(f"CREATE TABLE t_{word} (a, {word} INTEGER, b)")
            connection.execute(f"SELECT {word} FROM t_{word}")
        except sqlite3.OperationalError:
            refused.add(word)

    assert refused <= RESERVED


def test_it_is_made_by_gymnasium_with_its_options():
    env = gym.make(ENV, dataset="tiny", match="spider", tools=("answer",), step_limit=3)

    assert "CREATE TABLE" in env.reset(seed=0)[0]
