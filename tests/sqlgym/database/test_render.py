"""What an agent reads: of tables, of rows, and of what is too long to be read."""

import json
import sqlite3

import pytest

from sqlgym.database.render import LONG_VALUE, MAX_CHARS, parse_rendered, render, render_json
from sqlgym.database.sqlite_file import quoted
from toolgym import ConfigurationError, registration

ENV = "sqlgym/Explore-v0"


@pytest.fixture
def play(tmp_path):
    """Make a database by a script, and an environment with one question about it."""

    def made(script, name="d", **options):
        path = tmp_path / f"{name}.sqlite"
        connection = sqlite3.connect(path)
        if callable(script):
            script(connection)
        else:
            connection.executescript(f"BEGIN; {script}")
        connection.commit()
        (table,) = connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone()
        connection.close()
        gold = f"SELECT count(*) FROM {quoted(table)}"
        entries = [{"db_id": name, "question": f"{n}?", "query": gold} for n in range(5)]
        (tmp_path / "dev.json").write_text(json.dumps(entries))
        env = registration.make(ENV, dataset=tmp_path, split="dev", **options)
        env.reset(options={"task_id": "dev-00000"})
        return env

    return made


def rows(table, count, *values):
    """A script that fills a table by row number."""
    cells = ", ".join(["i", *values])
    return (
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        f" INSERT INTO {table} SELECT {cells} FROM n;"
    )


SHOP = (
    "CREATE TABLE owner (id INTEGER PRIMARY KEY, city TEXT, note TEXT);"
    + rows("owner", 30, "CASE i % 3 WHEN 0 THEN 'Rome' WHEN 1 THEN 'L''Aquila' END", "'n' || i")
    + "CREATE TABLE pet (id INTEGER PRIMARY KEY, owner_id INT REFERENCES owner, sold INT, w REAL);"
    + rows("pet", 40, "1 + i % 30", "i % 2", "i / 8.0")
    + "CREATE TABLE few (kind TEXT); INSERT INTO few VALUES ('a'), ('b');"
    "CREATE VIEW romans AS SELECT * FROM owner WHERE city = 'Rome';"
)


def test_a_description_tells_keys_both_ways_and_the_values_of_columns_that_have_few(play):
    env = play(SHOP)
    assert env.describe("owner").splitlines() == [
        "owner (30 rows)",
        "id INTEGER primary key <- pet.owner_id",
        "city TEXT in ('L''Aquila', 'Rome')",
        "note TEXT",
    ]
    assert env.describe("pet").splitlines()[1:] == [
        "id INTEGER primary key",
        "owner_id INT -> owner.id",
        "sold INT in (0, 1)",
        "w REAL",
    ]


def test_a_table_that_is_read_at_a_glance_has_no_examples_and_a_view_has_none(play):
    env = play(SHOP)
    assert env.describe("few") == "few (2 rows)\nkind TEXT"
    assert "in (" not in env.describe("romans")
    assert env.describe("romans").startswith("romans view (10 rows)\n")


def test_the_examples_of_a_large_table_are_said_to_be_some(play):
    env = play("CREATE TABLE t (id INT, kind TEXT);" + rows("t", 20_500, "'k' || (i / 20001)"))
    assert env.describe("t") == "t (20500 rows)\nid INT\nkind TEXT such as 'k0'"


@pytest.mark.parametrize("name", ["", " ", "*", '""'])
def test_describe_without_a_table_lists_the_tables(play, name):
    env = play(SHOP)
    assert env.describe(name) == "owner (30 rows)\npet (40 rows)\nfew (2 rows)\nromans view"
    assert env.episode.ledger.progress == 0.0


def test_five_hundred_tables_are_listed_by_name_and_cut_with_a_note(play):
    script = "".join(f"CREATE TABLE some_table_{n} (x INT);" for n in range(500))
    env = play(script)
    text = env.describe("")
    assert text.startswith("some_table_0\nsome_table_1\n")
    assert len(text) <= MAX_CHARS
    shown = text.count("some_table_")
    assert text.endswith(f"... ({500 - shown} more tables; sqlite_master has their names)")
    assert "and 420 more" in env.reset(options={"task_id": "dev-00000"})[0]
    assert "Did you mean 'some_table_499'?" in env.describe("some_tabel_499")


def test_a_wide_table_is_described_in_bounds_and_says_what_is_left_out(play):
    columns = ", ".join(f"column_number_{n} INTEGER" for n in range(1_500))
    env = play(f"CREATE TABLE wide ({columns}); INSERT INTO wide DEFAULT VALUES;")
    text = env.describe("wide")
    shown = text.count("column_number_")
    assert len(text) <= MAX_CHARS
    assert text.endswith(f"... ({1_500 - shown:,} more columns; sqlite_master has their names)")
    for call in (env.sample("wide"), env.query("SELECT * FROM wide")):
        assert len(call) <= MAX_CHARS
        assert call.endswith("... (cut: too long to be shown)")


ODD = ["order", "a b", "naïve☃", 'quo"te', "semi;colon", "[brackets]", "select", "1st", "q'q"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_tables_and_columns_work_in_every_tool(play, name):
    table, column = quoted(name), quoted(name + " c")
    env = play(f"CREATE TABLE {table} ({column} TEXT); INSERT INTO {table} VALUES ('v');")
    assert env.describe(name).startswith(f"{name} (1 row)\n")
    assert env.sample(name).splitlines()[1] == "v"
    assert env.query(f"SELECT {column} FROM {table}").splitlines()[1] == "v"
    assert name in env.describe("")


def test_a_sample_is_the_same_throughout_a_task_and_differs_between_tasks(play):
    env = play("CREATE TABLE t (id INT);" + rows("t", 1_000).replace("SELECT i,", "SELECT i"))
    first = env.sample("t")
    again = env.reset(options={"task_id": "dev-00000"}) and env.sample("T")
    others = []
    for number in range(1, 5):
        env.reset(options={"task_id": f"dev-{number:05d}"})
        others.append(env.sample("t"))
    assert first == again
    assert len({first, *others}) > 3
    numbers = [int(line) for line in first.splitlines()[1:]]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 3
    assert first != "id\n1\n2\n3"


def test_a_sample_of_a_short_table_is_all_of_it_and_of_an_empty_one_says_so(play):
    env = play(SHOP + "CREATE TABLE empty (x INT, y INT);")
    assert env.sample("few") == "kind\na\nb"
    assert env.sample("empty") == "x | y\n(no rows)"


def test_long_values_are_cut_to_their_starts_with_their_lengths(play):
    long = f"INSERT INTO t VALUES ('{'ab' * 3_000}', zeroblob(9000)), ('short', x'01');"
    env = play("CREATE TABLE t (s TEXT, b BLOB);" + long)
    text = env.sample("t")
    assert len(text) <= MAX_CHARS // 2
    assert f'"{"ab" * (LONG_VALUE // 2)}"... (6,000 characters)' in text
    assert "'... (9,000 bytes)" in text
    assert "short | x'01'" in text
    assert text.endswith("\n... (cut: too long to be shown)")


def test_text_that_is_no_utf8_is_shown_with_marks_and_offered_as_no_example(play):
    def fill(connection):
        connection.execute("CREATE TABLE t (s TEXT)")
        data = [(b"caf\xe9",)] * 15 + [(b"bar",)] * 15
        connection.executemany("INSERT INTO t SELECT CAST(? AS TEXT)", data)

    env = play(fill)
    assert "caf\ufffd" in env.query("SELECT s FROM t")
    assert env.describe("t") == "t (30 rows)\ns TEXT"


def test_a_view_of_a_table_that_is_gone_and_a_module_that_is_not_here_end_in_words(play):
    env = play("CREATE TABLE t (x INT); CREATE VIEW v AS SELECT y FROM gone;")
    assert env.describe("v") == "v view"
    assert env.sample("v").startswith("error[")


def test_results_come_as_json_where_that_is_asked_for(play):
    env = play(SHOP, render="json")
    shown = json.loads(env.query("SELECT id, city, id / 3.0, x'00ff' FROM owner LIMIT 2"))
    assert shown["rows"] == [
        [1, "L'Aquila", 0.3333333333, "x'00ff'"],
        [2, None, 0.6666666667, "x'00ff'"],
    ]
    many = json.loads(env.query("SELECT p.id FROM pet p, owner"))
    assert len(many["rows"]) == 100
    assert many["left_out"] == "1,100 more rows"
    assert set(json.loads(env.sample("few"))) == {"columns", "rows"}


def test_json_of_a_wide_or_long_result_is_bounded_and_says_what_is_left_out():
    names = [f"column_{n}" for n in range(2_000)]
    wide = json.loads(render_json(names, [tuple(range(2_000))] * 3))
    assert len(wide["columns"]) == len(wide["rows"][0]) < 2_000
    assert wide["left_out"].startswith(f"{2_000 - len(wide['columns']):,} more columns, ")
    long = render_json(["a"], [("x" * 90_000,), (b"y" * 90_000,)])
    assert len(long) < 1_000
    assert '"left_out": "cut: too long to be shown"' in long
    assert len(render_json(["a"], [("y" * 150,)] * 90)) <= MAX_CHARS


def test_json_and_table_show_the_same_cells_whole_or_not_at_all():
    cells = [(None, 1, 2.5, 'q"x | y', b"\x00", float("inf")), ("", -1, 1e300, "\n", b"", 0.1)]
    names = list("abcdef")
    assert parse_rendered(render_json(names, cells)) == parse_rendered(render(names, cells))
    for cut in (render_json(names, cells, max_rows=1), render_json(names, cells, truncated=True)):
        with pytest.raises(ValueError, match="does not show a whole result"):
            parse_rendered(cut)


def test_whatever_a_table_shows_whole_is_whole_as_json_too():
    cells = [("a" + '"' * 30,)] * 90
    assert len(parse_rendered(render(["a"], cells))) == 90
    assert len(parse_rendered(render_json(["a"], cells))) == 90


@pytest.mark.parametrize("form", ["csv", "", None])
def test_an_unknown_form_is_refused(form):
    with pytest.raises(ConfigurationError, match='render must be "table" or "json"'):
        registration.make(ENV, render=form)
