"""`match="suite"`: several instances judge, and they keep the rules of the data."""

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqlgym
from sqlgym.database.database import Database, open_database
from sqlgym.database.limits import Limits
from sqlgym.datasets.load import load_tasks
from sqlgym.judging import making
from sqlgym.judging import suite as suites
from sqlgym.judging.instances import ROWS, gold_values, instance_rows
from sqlgym.judging.making import INSTANCES, instance_files, make_instances
from sqlgym.judging.source_rows import READ, NoInstance, read_source, write_instance
from sqlgym.judging.suite import suite_of
from sqlgym.judging.ties import up_to_tie
from toolgym import policies, registration, rollout
from toolgym.errors import EnvironmentFault
from toolgym.long_work import progress_listener

SCHEMA = """
CREATE TABLE team (
    id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE COLLATE NOCASE,
    budget REAL CHECK (budget >= 0), city TEXT, founded TEXT);
CREATE TABLE player (
    number INTEGER, team_id INTEGER NOT NULL REFERENCES team(id), age INT CHECK (age < 60),
    captain INTEGER REFERENCES player(rowid_key), rowid_key INTEGER UNIQUE,
    full TEXT GENERATED ALWAYS AS (team_id || '-' || number), PRIMARY KEY (team_id, number));
CREATE TABLE badge (
    team_id INTEGER, number INTEGER, colour TEXT,
    FOREIGN KEY (team_id, number) REFERENCES player(team_id, number)) ;
CREATE UNIQUE INDEX one_colour ON badge (team_id, number, colour);
CREATE VIEW old AS SELECT * FROM player WHERE age > 30;
"""
GOLD = "SELECT code FROM team WHERE budget > 20 AND city = 'Oslo' AND founded >= '1990-01-01'"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "cache"))
    suites._suite.cache_clear()
    yield
    suites._suite.cache_clear()


def write(path, script, rows=()):
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        for sql, values in rows:
            connection.executemany(sql, values)
        connection.commit()
    return path


teams = st.lists(
    st.tuples(
        st.text("abc'% ", min_size=1, max_size=4),
        st.one_of(st.none(), st.floats(0, 50), st.integers(0, 50)),
        st.sampled_from([None, "Oslo", "Rome", "Łódź", ""]),
        st.sampled_from([None, "1990-01-01", "2020-02-29", "1999-12-31 10:00:00"]),
    ),
    max_size=12,
    unique_by=lambda row: row[0].lower(),
)
players = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 12), st.integers(-3, 59), st.booleans()),
    max_size=25,
    unique_by=lambda row: row[:2],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("instances")


@given(teams, players, st.integers(0, 10_000))
@settings(max_examples=15)
def test_an_instance_keeps_keys_checks_references_and_types(folder, teams, players, seed):
    team_rows = [(number, *row) for number, row in enumerate(teams, 1)]
    own = [(n, t, age, None, n * 100 + t) for n, t, age, _ in players if t <= len(teams)]
    path = write(
        folder / "source.sqlite",
        SCHEMA,
        [
            ("INSERT INTO team VALUES (?, ?, ?, ?, ?)", team_rows),
            ("INSERT INTO player (number, team_id, age, captain, rowid_key) VALUES (?,?,?,?,?)",
             own),
            ("INSERT INTO badge VALUES (?, ?, 'red')", [(t, n) for n, t, *_ in own[:5]]),
            ("UPDATE player SET captain = rowid_key WHERE number > ?", [(5,)]),
        ],
    )  # fmt: skip
    source = read_source(path)
    made = folder / "made.sqlite"
    made.unlink(missing_ok=True)
    write_instance(source, instance_rows(source, gold_values([GOLD]), str(seed)), made)

    with closing(sqlite3.connect(path)) as before, closing(sqlite3.connect(made)) as after:
        schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
        assert after.execute(schema).fetchall() == before.execute(schema).fetchall()
        assert after.execute("PRAGMA foreign_key_check").fetchall() == []
        assert after.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for table in source.tables:
            for column in table.columns:
                kinds = f'SELECT DISTINCT typeof("{column.name}") FROM "{table.name}"'
                assert set(after.execute(kinds)) <= set(before.execute(kinds)), column


def test_an_instance_keeps_what_the_data_keeps_though_nobody_declared_it(tmp_path):
    rows = [(f"name {i}", i % 2, f"2020-01-{i + 1:02}", i * 3, f"h{i % 4}") for i in range(20)]
    path = write(
        tmp_path / "plain.sqlite",
        "CREATE TABLE t (name TEXT, flag INT, day TEXT, size INT, host TEXT);"
        "CREATE TABLE h (host TEXT)",
        [("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows),
         ("INSERT INTO h VALUES (?)", [(f"h{i}",) for i in range(6)])],
    )  # fmt: skip
    source = read_source(path)
    gold = "SELECT name FROM t WHERE flag = 1 AND day > '2020' AND size > 0 AND host = 'h1'"
    for seed in range(8):
        made = tmp_path / f"{seed}.sqlite"
        write_instance(source, instance_rows(source, gold_values([gold]), str(seed)), made)
        broken = Database(made).query(
            "SELECT (SELECT count(*) - count(DISTINCT name) FROM t), (SELECT count(*) FROM t WHERE"
            " name IS NULL OR flag NOT IN (0, 1) OR date(day) IS NOT day OR size < 0 OR"
            " host NOT IN (SELECT host FROM h))"
        )
        assert broken.rows == ((0, 0),)


def test_the_only_two_parents_may_both_be_without_rows_to_begin_with(tmp_path):
    path = write(
        tmp_path / "two.sqlite",
        "CREATE TABLE p (id INTEGER PRIMARY KEY, name TEXT);"
        "CREATE TABLE c (id INTEGER PRIMARY KEY, p_id INTEGER REFERENCES p(id));",
        [("INSERT INTO p VALUES (?, ?)", [(1, "one"), (2, "two")]),
         ("INSERT INTO c VALUES (?, ?)", [(n, 1 + n % 2) for n in range(12)])],
    )  # fmt: skip
    source = read_source(path)
    for seed in range(60):
        made = instance_rows(source, gold_values(["SELECT name FROM p"]), str(seed))
        parents = {row[0] for row in made["p"]}
        assert {row[1] for row in made["c"]} <= parents


def test_a_large_database_is_read_and_written_within_bounds(tmp_path):
    rows = [(i, f"name {i}", i % 100) for i in range(20_000)]
    path = write(
        tmp_path / "large.sqlite",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INT)",
        [("INSERT INTO t VALUES (?, ?, ?)", rows)],
    )
    source = read_source(path)
    numbers = [row[0] for row in source.tables[0].rows]
    planted = gold_values(["SELECT name FROM t WHERE n = 7"])

    assert len(numbers) <= READ
    assert max(numbers) - min(numbers) > 15_000  # and not its beginning only
    assert 0 < len(instance_rows(source, planted, "0")["t"]) <= ROWS


HUTS = """
CREATE TABLE regions (region_id INTEGER PRIMARY KEY, country TEXT, planet TEXT);
INSERT INTO regions VALUES (1, 'Austria', 'Earth'), (2, 'Italy', 'Earth'), (3, 'Austria', 'Earth');
CREATE TABLE huts (
    hut_id INTEGER PRIMARY KEY, region_id INTEGER REFERENCES regions, name TEXT, beds INTEGER,
    altitude_m INTEGER, winter_room INTEGER);
INSERT INTO huts VALUES
    (1, 1, 'Gams', 12, 2210, 1), (2, 1, 'Adler', 40, 1890, 0), (3, 2, 'Luna', 60, 2700, 1),
    (4, 2, 'Sole', 25, 2005, 0), (5, 3, 'Falke', 80, 2450, 1), (6, 3, 'Birke', 33, 1710, 0),
    (7, 1, 'Enzian', 90, 2333, 1), (8, 2, 'Stella', 18, 2120, 0), (9, 3, 'Lerche', 45, 1980, 1);
"""


@pytest.fixture
def huts(tmp_path):
    return write(tmp_path / "huts.sqlite", HUTS)


LUCKY = [
    ("SELECT name FROM huts WHERE beds > 50", "SELECT name FROM huts WHERE beds >= 50"),
    ("SELECT name FROM huts WHERE beds > 50", "SELECT name FROM huts WHERE beds > 51"),
]
RIGHT = [
    ("SELECT name FROM huts WHERE beds BETWEEN 20 AND 60",
     "SELECT h.name FROM huts AS h WHERE 60 >= h.beds AND NOT h.beds < 20"),
    ("SELECT count(*) FROM huts", "SELECT count(hut_id) FROM huts"),
    ("SELECT name FROM huts ORDER BY altitude_m DESC LIMIT 1",
     "SELECT name FROM huts WHERE altitude_m = (SELECT max(altitude_m) FROM huts)"),
    ("SELECT h.name FROM huts AS h JOIN regions AS r ON r.region_id = h.region_id"
     " WHERE r.country = 'Austria'",
     "SELECT name FROM huts WHERE region_id IN"
     " (SELECT region_id FROM regions WHERE country = 'Austria')"),
    ("SELECT DISTINCT region_id FROM huts", "SELECT region_id FROM huts GROUP BY 1"),
    ("SELECT DISTINCT name FROM huts", "SELECT name FROM huts"),
    ("SELECT name FROM huts WHERE winter_room = 1", "SELECT name FROM huts WHERE winter_room"),
    ("SELECT avg(beds) FROM huts", "SELECT sum(beds) * 1.0 / count(*) FROM huts"),
]  # fmt: skip


def test_what_one_database_cannot_tell_apart_the_suite_can(huts):
    for gold, wrong in LUCKY:
        verdict = sqlgym.compare(huts, gold, wrong, match="suite")

        assert sqlgym.compare(huts, gold, wrong).equal
        assert not verdict.equal
        assert verdict.reason.startswith("suite: instance ")


def test_another_way_to_write_a_gold_is_right_on_the_instances_of_all_golds(huts):
    suite = suite_of(huts, [gold for gold, _ in [*LUCKY, *RIGHT]])

    assert len(suite.files) == INSTANCES
    for gold, right in RIGHT:
        judged = suite.judge(gold, right)
        assert sqlgym.compare(huts, gold, right).equal
        assert judged.verdict.equal, gold
        assert judged.instances > 0
    for gold, wrong in LUCKY:
        assert not suite.judge(gold, wrong).verdict.equal


def test_content_and_golds_alone_decide_over_the_instances(huts, tmp_path, monkeypatch):
    def made(name, database, golds):
        monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / name))
        return [file.read_bytes() for file in instance_files(database, golds)]

    moved, golds = tmp_path / "moved.sqlite", [gold for gold, _ in RIGHT]
    shutil.copy(huts, moved)

    assert made("one", huts, golds) == made("two", moved, reversed(golds))
    assert made("one", huts, golds) != made("three", huts, golds[:1])


@pytest.mark.integration
def test_instances_of_many_databases_are_made_ahead_by_several_processes(tmp_path):
    golds = {write(tmp_path / f"{n}.sqlite", HUTS): [LUCKY[0][0], f"SELECT {n}"] for n in range(3)}
    golds[tmp_path / "missing.sqlite"] = ["SELECT 1"]
    heard = []
    with progress_listener(lambda *told: heard.append(told)):
        make_instances(golds)
        make_instances(golds)

    made = list((tmp_path / "cache" / "sql" / "instances").iterdir())
    assert [len(list(folder.glob("*.sqlite"))) for folder in made] == [INSTANCES] * 3
    assert [done for _, done, _ in heard] == sorted(done for _, done, _ in heard)
    assert heard[-1] == ("making instances of databases", 3, 3)
    assert len(heard) == 5


def test_threads_and_an_emptied_cache_get_whole_instances(huts, tmp_path):
    def judge(_):
        return suite_of(huts, [LUCKY[0][0]]).judge(*LUCKY[0])

    with ThreadPoolExecutor(3) as pool:
        together = set(pool.map(judge, range(3)))
    shutil.rmtree(tmp_path / "cache" / "sql" / "instances")
    after = judge(0)

    assert together == {after}
    assert not after.verdict.equal
    assert [path.name for path in (tmp_path / "cache/sql/instances").iterdir() if
            path.name.startswith(".")] == []  # fmt: skip


def test_where_the_cache_cannot_be_written_there_are_instances_all_the_same(
    huts, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "file" / "below"))

    assert not sqlgym.compare(huts, *LUCKY[0], match="suite").equal


def test_without_instances_the_database_alone_judges(tmp_path):
    path = tmp_path / "words.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.create_collation("by_length", lambda one, two: len(one) - len(two))
        connection.execute("CREATE TABLE t (n INT, word TEXT COLLATE by_length UNIQUE)")
        connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'bb')")
        connection.commit()
    suite, source = suite_of(path, ["SELECT n FROM t"]), read_source(path)

    with pytest.raises(NoInstance, match="no such collation"):
        write_instance(source, {}, tmp_path / "made.sqlite")
    assert suite.files == ()
    assert not suite.can_judge("SELECT n FROM t")
    assert sqlgym.compare(path, "SELECT n FROM t", "SELECT n + 0 FROM t", match="suite").equal


TIED = "SELECT name FROM huts ORDER BY winter_room DESC LIMIT 1"


def test_of_rows_that_tie_at_a_limit_any_is_right_and_so_are_all(huts):
    suite = suite_of(huts, [LUCKY[0][0]])
    for right in (
        f"{TIED.replace(' LIMIT', ', name LIMIT')}",
        "SELECT name FROM huts WHERE winter_room = (SELECT max(winter_room) FROM huts)",
        "SELECT name FROM huts WHERE hut_id ="
        " (SELECT hut_id FROM huts ORDER BY winter_room DESC LIMIT 1)",
    ):
        assert suite.judge(TIED, right).verdict.equal, right
    for wrong in (
        "SELECT name FROM huts",
        "SELECT name FROM huts LIMIT 1",
        "SELECT name FROM huts ORDER BY winter_room LIMIT 1",
    ):
        assert not suite.judge(TIED, wrong).verdict.equal, wrong


@pytest.mark.parametrize(
    ("script", "gold"),
    [
        ("CREATE TABLE t (rowid TEXT, n INT); INSERT INTO t VALUES ('a', 1), ('b', 2)",
         "SELECT rowid FROM t WHERE n > 1"),
        ("CREATE TABLE t (n REAL); INSERT INTO t VALUES (1.5), (2.5)",
         "SELECT n FROM t WHERE n < 1e999"),
        ("CREATE TABLE t (n INT); INSERT INTO t VALUES (-9223372036854775808),"
         " (9223372036854775807)", "SELECT n FROM t WHERE n > 0"),
        ("CREATE TABLE virtual_machines (n INT); INSERT INTO virtual_machines VALUES (1), (2)",
         "SELECT n FROM virtual_machines WHERE n > 1"),
        ("CREATE TABLE t (n INT, o INT REFERENCES missing (id)); INSERT INTO t VALUES (1, 7),"
         " (2, 8)", "SELECT o FROM t WHERE n > 1"),
        ("CREATE TABLE p (id INT); INSERT INTO p VALUES (1); CREATE TABLE t (n INT, o INT"
         " REFERENCES p (id)); INSERT INTO t VALUES (1, 1), (2, 1)", "SELECT n FROM t WHERE n > 1"),
        ("".join(f"CREATE TABLE t{i} (n INT); INSERT INTO t{i} VALUES ({i}), (99);"
                 for i in range(70)), "SELECT count(*) FROM t69"),
    ],
    ids=["rowid", "infinite", "largest", "virtual", "no parent", "mismatch", "many tables"],
)  # fmt: skip
def test_odd_databases_have_instances(tmp_path, script, gold):
    path = write(tmp_path / "odd.sqlite", script)
    suite = suite_of(path, [gold])

    assert len(suite.files) == INSTANCES
    assert suite.judge(gold, gold).verdict.equal
    assert suite.can_judge(gold)


def test_a_full_disk_is_a_fault_and_leaves_no_instances_behind(huts, tmp_path, monkeypatch):
    def full(*_):
        raise EnvironmentFault("The disk is full.", "Make room.")

    with monkeypatch.context() as patched:
        patched.setattr(making, "write_instance", full)
        with pytest.raises(EnvironmentFault, match="disk is full"):
            suite_of(huts, [LUCKY[0][0]])
    assert list((tmp_path / "cache" / "sql" / "instances").iterdir()) == []
    assert len(suite_of(huts, [LUCKY[0][0]]).files) == INSTANCES


def test_rows_that_tie_with_the_last_one_of_a_limit_are_listed(huts):
    rows, runs = up_to_tie(open_database(huts), TIED)
    assert sorted(rows) == [("Enzian",), ("Falke",), ("Gams",), ("Lerche",), ("Luna",)]
    assert runs == (5,)
    for sql in ("SELECT name FROM huts LIMIT 1", f"{TIED} OFFSET 1", "SELECT name FROM huts"):
        assert up_to_tie(open_database(huts), sql) is None


def test_the_limits_hold_on_every_instance(huts):
    gold = "SELECT count(*) FROM huts"
    heavy = (
        "SELECT (SELECT count(*) FROM huts AS a, huts AS b, huts AS c, huts AS d, huts AS e,"
        " huts AS f) * 0 + count(*) FROM huts"
    )
    judged = suite_of(huts, [gold], Limits(steps=50_000)).judge(gold, heavy)

    assert not judged.verdict.equal
    assert "too_many_steps" in judged.verdict.reason


def test_a_gold_without_rows_on_an_instance_wants_none(huts):
    run = suites.GoldRun(suites.QueryResult(("a",), (), False, frozenset({("huts", "a")}), 0), ())
    gold, database = LUCKY[0][0], open_database(huts)

    assert suites.judge_on(database, gold, run, "SELECT name FROM huts WHERE beds < 0").equal
    assert not suites.judge_on(database, gold, run, "SELECT name FROM huts").equal


def test_values_and_pairs_of_columns_that_a_gold_compares_are_planted():
    pair = "SELECT name FROM huts WHERE beds < altitude_m AND beds > 50 AND country LIKE 'A%'"
    counts = "SELECT a FROM t GROUP BY a HAVING count(*) >= 3 AND b > -2.5"

    planted = gold_values([pair, "SELECT FROM WHERE (", counts])
    assert planted.values == {"beds": [50], "country": ["A%"], "altitude_m": [], "b": [-2.5]}
    assert planted.pairs == {("beds", "altitude_m"), ("altitude_m", "beds")}


def test_the_environment_tells_the_agent_nothing_of_a_refusal_by_the_suite(huts):
    gold, lucky = LUCKY[0]
    entry = {"db_id": huts.stem, "question": "Which are large?", "query": gold}
    tasks = load_tasks([entry], "dev", databases=huts.parent)
    env = registration.make("sqlgym/TextToSQL-v0", dataset=tasks, match="suite")
    told = []
    for sql in (gold, "SELECT country FROM regions", lucky):
        env.reset(seed=0)
        assert env.judged is None
        observation, *_, info = env.step({"name": "answer", "arguments": {"sql": sql}})
        told.append((observation, info["correct"], env.judged.verdict.reason[:16]))

    assert {observation for observation, *_ in told} == {"Answer recorded. The episode is over."}
    assert [correct for _, correct, _ in told] == [True, False, False]
    assert [reason for *_, reason in told] == ["", "rows differ", "suite: instance "]


@pytest.mark.nightly
@pytest.mark.parametrize("split", ["train", "dev"])
def test_the_expert_is_right_on_every_instance(split):
    found = rollout.evaluate(
        "sqlgym/TextToSQL-v0",
        policies.ExpertPolicy(),
        dataset="bundled",
        split=split,
        match="suite",
    )

    assert found.accuracy == 1.0


def test_a_query_that_is_right_by_the_order_of_the_file_is_wrong_on_an_instance(tmp_path):
    script = "CREATE TABLE t (name); INSERT INTO t VALUES ('a'), ('b')"
    database = Database(write(tmp_path / "t.sqlite", script))
    gold = "SELECT min(name) FROM t"
    run = suites.gold_run(database, gold)
    assert suites.gold_run(database, "SELECT max(name) FROM t WHERE name > 'b'") is None
    lucky = "SELECT name FROM t LIMIT 1"
    assert not suites.judge_on(database.backwards, gold, run, lucky).equal
    asked = lucky.replace("LIMIT", "ORDER BY name LIMIT")
    assert suites.judge_on(database.backwards, gold, run, asked).equal
