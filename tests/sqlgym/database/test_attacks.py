"""A hostile model: whatever it sends, it reads the database and does nothing else.

Each attack has an id, the SQL, and the code of the error that it must get; the file's bytes, size,
modification time and the listing of its folder must be the same before and after. Versions of
SQLite differ in what they have and in how deep they read, so some attacks have a choice of codes.
"""

import hashlib
import itertools
import os
import random
import sqlite3

import pytest

from sqlgym.database.database import Database, Limits, open_database
from sqlgym.database.functions import BOUNDED, DATE_FUNCTIONS, bounded
from sqlgym.database.guard import FUNCTIONS, UNSTEADY
from toolgym.errors import EnvironmentFault, ToolError

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INT, born TEXT);
INSERT INTO singer VALUES (1, 'Joe', 52, '1970-01-02'), (2, 'Ann', 43, NULL), (3, 'Bob', 43, 'now');
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer_id INT REFERENCES singer, place TEXT);
INSERT INTO concert VALUES (1, 1, 'Rome'), (2, 1, 'Oslo'), (3, 2, 'Rome');
CREATE VIEW adult AS SELECT name FROM singer WHERE age > 17;
CREATE VIEW clock AS SELECT date('now') AS today;
CREATE TRIGGER shout AFTER INSERT ON singer BEGIN DELETE FROM concert; END;
"""
VIRTUAL = "CREATE VIRTUAL TABLE docs USING fts5(body); INSERT INTO docs VALUES ('a cat')"

LONG = "printf('%.99000c', 'a')"
HALF = "printf('%.49000c', 'a')"
FLOATS = "printf(replace(printf('%.9000c', 'a'), 'a', '{}'), 1e300)"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
MANY = ENDLESS.replace("FROM c)", "FROM c LIMIT 1000)")
LONG_ROWS = f"WITH t(a, b) AS (SELECT {LONG}, {HALF} || 'b' FROM singer) "
GROWING = "WITH RECURSIVE c(s) AS (SELECT 'a' UNION ALL SELECT {} FROM c) SELECT max(s) FROM c"


def doubled_views(levels):
    """A WITH list in which each table names the one before twice: 2 ** levels when written out."""
    tables = [f"c{i + 1} AS (SELECT a.id FROM c{i} a, c{i} b)" for i in range(levels)]
    return f"WITH c0 AS (SELECT id FROM singer), {', '.join(tables)} SELECT id FROM c{levels}"


ATTACKS = {
    # writing
    "insert": ("INSERT INTO singer VALUES (9, 'x', 1, '')", "not_allowed"),
    "insert-default": ("INSERT INTO singer DEFAULT VALUES", "not_allowed"),
    "insert-select": ("INSERT INTO singer SELECT * FROM singer", "not_allowed"),
    "insert-or-replace": ("INSERT OR REPLACE INTO singer VALUES (1, 'x', 1, '')", "not_allowed"),
    "insert-returning": ("INSERT INTO concert VALUES (9, 1, 'x') RETURNING id", "not_allowed"),
    "upsert": (
        "INSERT INTO singer VALUES (1, 'x', 1, '') ON CONFLICT DO UPDATE SET age = 0",
        "not_allowed",
    ),
    "replace": ("REPLACE INTO singer VALUES (1, 'x', 1, '')", "not_allowed"),
    "update": ("UPDATE singer SET age = 0", "not_allowed"),
    "update-returning": ("UPDATE singer SET age = 0 RETURNING *", "not_allowed"),
    "update-from": ("UPDATE singer SET age = 0 FROM concert", "not_allowed"),
    "delete": ("DELETE FROM singer", "not_allowed"),
    "delete-where-false": ("DELETE FROM singer WHERE 0", "not_allowed"),
    "with-delete": ("WITH t AS (SELECT 1) DELETE FROM singer", "not_allowed"),
    "with-insert": ("WITH t AS (SELECT 1) INSERT INTO singer SELECT 9, 'x', 1, ''", "not_allowed"),
    "delete-schema": ("DELETE FROM sqlite_master", "sql_error"),
    "update-schema": ("UPDATE sqlite_schema SET sql = ''", "sql_error"),
    "update-sequence": ("INSERT INTO sqlite_sequence VALUES ('singer', 9)", "unknown_table"),
    # changing what there is
    "create-table": ("CREATE TABLE t (x)", "not_allowed"),
    "create-table-as": ("CREATE TABLE t AS SELECT * FROM singer", "not_allowed"),
    "create-if-not-exists": ("CREATE TABLE IF NOT EXISTS t (x)", "not_allowed"),
    "temp-table": ("CREATE TEMP TABLE t (x)", "not_allowed"),
    "temp-table-as": ("CREATE TEMPORARY TABLE t AS SELECT 1", "not_allowed"),
    "temp-view": ("CREATE TEMP VIEW v AS SELECT 1", "not_allowed"),
    "temp-trigger": (
        "CREATE TEMP TRIGGER t AFTER INSERT ON singer BEGIN SELECT 1; END",
        "not_allowed",
    ),
    "view": ("CREATE VIEW v AS SELECT 1", "not_allowed"),
    "index": ("CREATE INDEX i ON singer (age)", "not_allowed"),
    "trigger": ("CREATE TRIGGER t AFTER INSERT ON singer BEGIN SELECT 1; END", "not_allowed"),
    "drop-table": ("DROP TABLE singer", "not_allowed"),
    "drop-view": ("DROP VIEW adult", "not_allowed"),
    "drop-trigger": ("DROP TRIGGER shout", "not_allowed"),
    "rename": ("ALTER TABLE singer RENAME TO s", "not_allowed"),
    "add-column": ("ALTER TABLE singer ADD COLUMN x", "not_allowed"),
    "drop-column": ("ALTER TABLE singer DROP COLUMN age", "not_allowed"),
    "analyze": ("ANALYZE", "not_allowed"),
    "analyze-table": ("ANALYZE singer", "not_allowed"),
    "reindex": ("REINDEX", "not_allowed"),
    "vacuum": ("VACUUM", "not_allowed"),
    # other files
    "attach": ("ATTACH 'other.sqlite' AS other", "not_allowed"),
    "attach-memory": ("ATTACH ':memory:' AS other", "not_allowed"),
    "attach-uri": ("ATTACH 'file:x.sqlite?mode=rwc' AS other", "not_allowed"),
    "attach-expression": ("ATTACH ('oth' || 'er.sqlite') AS other", "not_allowed"),
    "detach": ("DETACH main", "not_allowed"),
    "vacuum-into": ("VACUUM INTO 'copy.sqlite'", "not_allowed"),
    "vacuum-main-into": ("VACUUM main INTO 'copy.sqlite'", "not_allowed"),
    "readfile": ("SELECT readfile('/etc/passwd')", "not_allowed or sql_error"),
    "writefile": ("SELECT writefile('x', 'y')", "not_allowed or sql_error"),
    "edit": ("SELECT edit('x', 'vi')", "not_allowed or sql_error"),
    "fsdir": ("SELECT * FROM fsdir('.')", "not_allowed or unknown_table"),
    "csv": ("CREATE VIRTUAL TABLE temp.t USING csv(filename='x.csv')", "not_allowed"),
    "zipfile": ("SELECT * FROM zipfile('x.zip')", "not_allowed or unknown_table"),
    # transactions and settings
    "begin": ("BEGIN", "not_allowed"),
    "begin-exclusive": ("BEGIN EXCLUSIVE", "not_allowed"),
    "commit": ("COMMIT", "not_allowed"),
    "rollback": ("ROLLBACK", "not_allowed"),
    "savepoint": ("SAVEPOINT s", "not_allowed"),
    "release": ("RELEASE s", "not_allowed"),
    "pragma-query-only": ("PRAGMA query_only = 0", "not_allowed"),
    "pragma-journal": ("PRAGMA journal_mode = WAL", "not_allowed"),
    "pragma-writable-schema": ("PRAGMA writable_schema = 1", "not_allowed"),
    "pragma-heap": ("PRAGMA hard_heap_limit = 0", "not_allowed"),
    "pragma-temp-directory": ("PRAGMA temp_store_directory = '.'", "not_allowed"),
    "pragma-user-version": ("PRAGMA main.user_version = 7", "not_allowed"),
    "pragma-table-info": ("PRAGMA table_info(singer)", "not_allowed"),
    "pragma-data-version": ("PRAGMA data_version", "not_allowed"),
    "pragma-function": ("SELECT * FROM pragma_table_info('singer')", "not_allowed"),
    "pragma-function-writes": ("SELECT * FROM pragma_journal_mode('wal')", "not_allowed"),
    "pragma-database-list": ("SELECT file FROM pragma_database_list", "not_allowed"),
    "pragma-compile-options": ("SELECT * FROM pragma_compile_options", "not_allowed"),
    # extensions, tokenizers, virtual tables, SQLite's own insides
    "load-extension": ("SELECT load_extension('x')", "not_allowed or sql_error"),
    "load-extension-entry": ("SELECT load_extension('x.so', 'init')", "not_allowed or sql_error"),
    "fts3-tokenizer": ("SELECT fts3_tokenizer('x')", "not_allowed or sql_error"),
    "fts3-tokenizer-pointer": (
        "SELECT fts3_tokenizer('x', x'4141414141414141')",
        "not_allowed or sql_error",
    ),
    "create-fts5": ("CREATE VIRTUAL TABLE t USING fts5(x)", "not_allowed"),
    "create-rtree": ("CREATE VIRTUAL TABLE t USING rtree(id, a, b)", "not_allowed"),
    "rtree-check": ("SELECT rtreecheck('main', 'docs')", "not_allowed or sql_error"),
    "dbstat": ("SELECT * FROM dbstat", "not_allowed or unknown_table"),
    # Newer versions of SQLite set these up without asking the authorizer; no column is named here.
    "dbstat-counted": ("SELECT count(*) FROM dbstat", "not_allowed or unknown_table"),
    "dbstat-behind-a-decoy": (
        "WITH dbstat AS (SELECT 1) SELECT (SELECT count(*) FROM dbstat),"
        " (SELECT count(*) FROM main.DBSTAT)",
        "not_allowed or unknown_table",
    ),
    "pragma-counted": ("SELECT count(*) FROM pragma_table_info('singer')", "not_allowed"),
    "temp-schema-counted": ("SELECT count(*) FROM sqlite_temp_master", "not_allowed"),
    "bytecode": ("SELECT * FROM bytecode('SELECT 1')", "not_allowed or unknown_table"),
    "sqlite-stmt": ("SELECT * FROM sqlite_stmt", "not_allowed or unknown_table"),
    "sqlite-stmt-counted": ("SELECT count(*) FROM sqlite_stmt", "not_allowed or unknown_table"),
    "generate-series": ("SELECT * FROM generate_series(1, 10)", "not_allowed or unknown_table"),
    "sqlite-version": ("SELECT sqlite_version()", "not_allowed"),
    "sqlite-source-id": ("SELECT sqlite_source_id()", "not_allowed"),
    "sqlite-log": ("SELECT sqlite_log(1, 'x')", "not_allowed"),
    "compile-option": ("SELECT sqlite_compileoption_get(1)", "not_allowed"),
    "sqlite-offset": ("SELECT sqlite_offset(id) FROM singer", "not_allowed or sql_error"),
    "rename-internals": (
        "SELECT sqlite_rename_table('main', '', '', '', '', 0)",
        "sql_error",
    ),
    "explain": ("EXPLAIN SELECT 1", "not_allowed"),
    "explain-query-plan": ("ExPlAiN QUERY PLAN SELECT * FROM singer", "not_allowed"),
    "explain-behind-comments": ("/* x */ -- y\n ; EXPLAIN SELECT 1", "not_allowed"),
    "explain-behind-bom": ("\ufeffEXPLAIN SELECT 1", "not_allowed"),
    "explain-delete": ("EXPLAIN DELETE FROM singer", "not_allowed"),
    # several statements, comments, Unicode
    "two-statements": ("SELECT 1; SELECT 2", "several_statements"),
    "second-deletes": ("SELECT 1; DELETE FROM singer", "several_statements"),
    "second-behind-comment": ("SELECT 1; -- x\nDROP TABLE singer", "several_statements"),
    "second-behind-newlines": ("SELECT 1;\n\n\n;PRAGMA query_only=0", "several_statements"),
    "comment-before": ("/* SELECT */ DELETE FROM singer -- SELECT", "not_allowed"),
    "comment-inside": ("DE/**/LETE FROM singer", "sql_error"),
    "comment-between": ("DELETE/**/FROM/**/singer", "not_allowed"),
    "comment-unclosed": ("DELETE FROM singer /*", "not_allowed"),
    "comment-only": ("-- DELETE FROM singer", "empty_sql"),
    "nothing": (" ;; ", "empty_sql"),
    "nul": ("SELECT 1\0; DELETE FROM singer", "sql_error"),
    "half-character": ("SELECT '\ud800'", "sql_error"),
    "full-width": ("ＤＥＬＥＴＥ FROM singer", "sql_error"),
    "dotless-i": ("ıNSERT INTO singer VALUES (9)", "sql_error"),
    "zero-width-space": ("DEL\u200bETE FROM singer", "sql_error"),
    "non-breaking-space": ("DELETE\u00a0FROM singer", "sql_error"),
    "right-to-left": ("\u202eDELETE FROM singer", "sql_error"),
    "bom": ("\ufeffDELETE FROM singer", "not_allowed"),
    "homoglyph-table": ("SELECT * FROM ѕinger", "unknown_table"),
    "placeholder": ("SELECT ?", "sql_error"),
    # the clock and dice
    "random": ("SELECT random()", "nondeterministic"),
    "order-by-random": ("SELECT name FROM singer ORDER BY RANDOM()", "nondeterministic"),
    "random-in-limit": ("SELECT name FROM singer LIMIT abs(random() % 3)", "nondeterministic"),
    "randomblob": ("SELECT hex(randomblob(4))", "nondeterministic"),
    "random-quoted": ('SELECT "random"()', "nondeterministic"),
    "current-timestamp": ("SELECT current_timestamp", "nondeterministic"),
    "current-date": ("SELECT CURRENT_DATE", "nondeterministic"),
    "now": ("SELECT date('now')", "nondeterministic"),
    "now-put-together": ("SELECT date('NO' || 'W')", "nondeterministic"),
    "now-as-bytes": ("SELECT date(CAST('now' AS BLOB))", "nondeterministic"),
    "now-with-nul": ("SELECT date('now' || char(0) || 'x')", "nondeterministic"),
    "now-from-a-column": ("SELECT date(born) FROM singer", "nondeterministic"),
    "now-from-a-view": ("SELECT today FROM clock", "nondeterministic"),
    "now-by-default": ("SELECT strftime('%s')", "nondeterministic"),
    "date-by-default": ("SELECT date()", "nondeterministic"),
    "datetime-by-default": ("SELECT datetime()", "nondeterministic"),
    "julianday-by-default": ("SELECT julianday()", "nondeterministic"),
    "now-moved": ("SELECT strftime('%Y', 'now', '-1 day')", "nondeterministic"),
    "subsec": ("SELECT datetime('subsec')", "nondeterministic"),
    "universal-time": ("SELECT time('12:00', 'utc')", "nondeterministic"),
    "local-time": ("SELECT datetime('2024-01-01', 'localtime')", "nondeterministic"),
    "changes": ("SELECT changes()", "nondeterministic"),
    "last-insert-rowid": ("SELECT last_insert_rowid()", "nondeterministic"),
    # work without end
    "endless": (ENDLESS + "SELECT count(*) FROM c", "too_many_steps"),
    "endless-union": (ENDLESS.replace(" ALL", "") + "SELECT count(*) FROM c", "too_many_steps"),
    "endless-filter": (ENDLESS + "SELECT x FROM c WHERE x < 0", "too_many_steps"),
    "endless-exists": (
        ENDLESS + "SELECT 1 WHERE EXISTS (SELECT 1 FROM c WHERE x < 0)",
        "too_many_steps",
    ),
    "endless-in": (ENDLESS + "SELECT 1 WHERE 0 IN c", "too_many_steps"),
    "endless-mutual": (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT a.x FROM c AS a JOIN singer) "
        "SELECT count(*) FROM c",
        "too_many_steps",
    ),
    "endless-window": (ENDLESS + "SELECT sum(x) OVER () FROM c", "too_many_steps"),
    "cross-join": ("SELECT count(*) FROM " + ", ".join(["singer"] * 30), "too_many_steps"),
    "cross-join-dump": (
        "SELECT count(*) FROM sqlite_master a, sqlite_master b, sqlite_master c, sqlite_master d, "
        "sqlite_master e, sqlite_master f, sqlite_master g, sqlite_master h, sqlite_master i, "
        "sqlite_master j, sqlite_master k, sqlite_master l",
        "too_many_steps",
    ),
    "ten-million-rows": (
        ENDLESS + "SELECT max(x) FROM (SELECT x FROM c LIMIT 10000000)",
        "too_many_steps",
    ),
    "fibonacci": (
        "WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f) "
        "SELECT count(*) FROM f",
        "too_many_steps",
    ),
    # memory
    "zeroblob-small": ("SELECT zeroblob(10)", "not_allowed"),
    "zeroblob": ("SELECT zeroblob(1000000000)", "not_allowed"),
    "randomblob-huge": ("SELECT randomblob(1000000000)", "nondeterministic"),
    "printf": ("SELECT printf('%.1000000000c', 'a')", "too_large"),
    "printf-in-the-format": ("SELECT printf('%.1000000000c', 'a')", "too_large"),
    "printf-third-argument": (
        "SELECT printf('%*d%%%.*s%-5.*lc', 3, 1, 2, 'x', '1000000000', 'a')",
        "too_large",
    ),
    "printf-width": ("SELECT printf('%1000000000d', 1)", "too_large"),
    "format-precision": ("SELECT printf('%.1000000000f', 1.0)", "too_large"),
    "zeros-that-are-dropped": (f"SELECT {FLOATS.format('%!.99000f')}", "too_large"),
    "zeros-of-a-line-of-calls": (
        "SELECT " + "+".join([f"length({FLOATS.format('%.99000g')})"] * 50),
        "too_large",
    ),
    "replace-bomb": (f"SELECT replace({HALF}, 'a', {LONG})", "too_large"),
    "replace-bytes": (f"SELECT replace({HALF}, x'61', {LONG})", "too_large"),
    "hex": (f"SELECT hex({LONG})", "too_large"),
    "quote": (f"SELECT quote(CAST({LONG} AS BLOB))", "too_large"),
    "concatenate": (f"SELECT {LONG} || {LONG}", "too_large"),
    "doubling": (GROWING.format("s || s"), "too_large"),
    "doubling-by-replace": (GROWING.format("replace(s, 'a', 'aa')"), "too_large"),
    "group-concat": (MANY + f"SELECT group_concat({HALF}) FROM c", "too_large"),
    "json-group-array": (MANY + f"SELECT json_group_array({HALF}) FROM c", "too_large"),
    "json-group-object": (MANY + f"SELECT json_group_object(x, {HALF}) FROM c", "too_large"),
    "json-array": (f"SELECT json_array({LONG}, {LONG})", "too_large"),
    "json-patch": ("SELECT json_patch('{}', '{}')", "not_allowed"),
    "json-set": ("SELECT json_set('{}', '$.a', 1)", "not_allowed"),
    "char-bomb": (f"SELECT {LONG} || char({', '.join(['1114111'] * 500)})", "too_large"),
    "wide-row": (f"SELECT {', '.join([LONG] * 150)}", "too_large"),
    "long-value-in-sql": (f"SELECT '{'a' * 100_001}'", "too_large"),
    # patterns, and calls that one cannot interrupt
    "like-pattern": (f"SELECT {LONG} LIKE '{'%a' * 600}'", "too_large"),
    "glob-pattern": (f"SELECT {LONG} GLOB '{'*[^b]' * 100}'", "too_large"),
    "like-pattern-computed": (f"SELECT 'a' LIKE {LONG}", "too_large"),
    "regexp": ("SELECT 'aaaa' REGEXP '(a+)+b'", "sql_error"),
    "match": ("SELECT name FROM singer WHERE name MATCH 'x'", "sql_error"),
    "a-line-of-calls": (
        LONG_ROWS + f"SELECT {'+'.join(['instr(a, b)'] * 400)} FROM t",
        "too_large",
    ),
    "a-table-of-calls": (
        LONG_ROWS + f"SELECT {', '.join(['a GLOB b'] * 400)} FROM t",
        "too_large",
    ),
    # the size of the statement
    "long-sql": ("SELECT 1 -- " + "x" * 1_000_000, "too_large"),
    "hundred-kilobytes": ("SELECT " + "1+" * 49_000 + "1", "too_large"),
    "expression-depth": ("SELECT " + "1+" * 600 + "1", "too_large"),
    "and-depth": ("SELECT 1 WHERE " + "1 AND " * 600 + "1", "too_large"),
    "nested-selects": ("SELECT * FROM (" * 200 + "SELECT 1" + ")" * 200, "too_large"),
    "union-chain": ("SELECT 1 UNION " * 200 + "SELECT 1", "too_large"),
    "values-columns": ("SELECT " + ", ".join(["1"] * 3_000), "too_large"),
    "many-tables": ("SELECT 1 FROM " + ", ".join(["singer"] * 65), "too_large"),
    "many-arguments": (f"SELECT max({', '.join(['1'] * 200)})", "too_large"),
    "doubling-views": (doubled_views(15), "too_large"),
    "doubling-views-more": (doubled_views(25), "too_large"),
    # errors that are the agent's own
    "misspelt-keyword": ("SELEC 1", "sql_error"),
    "too-short": ("SELECT name FROM", "sql_error"),
    "open-quote": ("SELECT 'open", "sql_error"),
    "named-placeholder": ("SELECT :name", "sql_error"),
    "unknown-function": ("SELECT lenght('x')", "sql_error"),
    "too-many-arguments": ("SELECT abs(1, 2)", "sql_error"),
    "aggregate-in-where": ("SELECT name FROM singer WHERE count(*) > 1", "sql_error"),
    "text-limit": ("SELECT 1 LIMIT 'a'", "sql_error"),
    "unknown-column": ("SELECT nam FROM singer", "unknown_column"),
    "unknown-table": ("SELECT * FROM other.singer", "unknown_table"),
    "ambiguous-column": ("SELECT id FROM singer JOIN concert", "ambiguous_column"),
    "integer-overflow": ("SELECT abs(-9223372036854775807 - 1)", "sql_error"),
    "sum-overflow": (
        "SELECT sum(x) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)",
        "sql_error",
    ),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("attacked") / "music.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCRIPT)
    connection.close()
    return path


@pytest.fixture(scope="module")
def database(path):
    return open_database(path, Limits(steps=300_000, seconds=600.0))


def state_of(path):
    """All that must not change: the bytes, the size, the time, and what lies beside the file."""
    status = path.stat()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return digest, status.st_size, status.st_mtime_ns, sorted(os.listdir(path.parent))


@pytest.mark.parametrize(("sql", "code"), ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_gets_its_code_and_leaves_no_trace(database, path, sql, code, monkeypatch):
    monkeypatch.chdir(path.parent)  # where a file with a relative name would appear
    before = state_of(path)
    with pytest.raises(ToolError, match=r"error\[") as caught:
        database.query(sql)
    assert caught.value.code in code.split(" or ")
    if code == "not_allowed or sql_error":  # a function that is there would have other errors
        assert caught.value.message.startswith(("Not allowed here", "There is no function"))
    assert caught.value.message.endswith((".", "?"))
    assert state_of(path) == before
    assert database.query("SELECT count(*) FROM singer").rows == ((3,),)


def test_an_error_is_that_of_its_own_statement_whatever_ended_the_one_before(database):
    for sql, code in (ATTACKS["endless-mutual"], ATTACKS["nested-selects"]):
        with pytest.raises(ToolError, match=rf"error\[{code}\]"):
            database.query(f"{sql} ")  # a blank more than in the cache


@pytest.mark.parametrize("depth", [200, 2_000, 9_000])
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("(", ")"),
        ("CASE WHEN 1 THEN ", " END"),
        ("NOT ", ""),
        ("- ", ""),
        ("abs(", ")"),
        ("(SELECT ", ")"),
        ("1 BETWEEN ", " AND 1"),
    ],
)
def test_a_deep_expression_is_refused_or_read_and_harms_nothing(database, path, start, end, depth):
    """SQLite before 3.46 reads a hundred levels; newer versions read more of them."""
    before, sql = state_of(path), f"SELECT {start * depth}1{end * depth}"
    try:
        result = database.query(sql)
    except ToolError as error:
        assert error.code == "too_large"  # noqa: PT017
    else:
        assert result.rows == ((1,),)
    assert state_of(path) == before
    assert database.query("SELECT count(*) FROM singer").rows == ((3,),)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """A file with virtual tables of its own; None where this SQLite lacks the modules."""
    path = tmp_path_factory.mktemp("virtual") / "text.sqlite"
    connection = sqlite3.connect(path)
    try:
        connection.executescript(VIRTUAL)
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no fts5")
    finally:
        connection.close()
    return path


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO docs(docs) VALUES ('optimize')",
        "INSERT INTO docs(docs, rank) VALUES ('rank', 'bm25(10.0)')",
        "INSERT INTO docs VALUES ('x')",
        "DELETE FROM docs_data",
        "UPDATE docs_config SET v = 0",
        "INSERT INTO docs_content VALUES (9, 'x')",
        "DROP TABLE docs_idx",
        "DROP TABLE docs",
        "SELECT highlight(docs, 0, 'a', 'b') FROM docs",
        "SELECT fts5(x'00')",
        "CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, docs, row)",
    ],
)
def test_the_insides_of_a_full_text_table_cannot_be_changed(indexed, sql):
    database, before = open_database(indexed), state_of(indexed)
    with pytest.raises(ToolError, match="not_allowed"):
        database.query(sql)
    assert state_of(indexed) == before
    assert database.query("SELECT body FROM docs WHERE docs MATCH 'cat'").rows == (("a cat",),)


def test_a_statement_of_slow_steps_is_a_fault_and_never_cached(path):
    database = Database(path, Limits(seconds=0.05))
    slow = f"{LONG} || x GLOB '*[^{'b' * 5}a]'"
    sql = ENDLESS + f"SELECT count(*) FROM c WHERE {slow}"
    for _ in range(2):
        with pytest.raises(EnvironmentFault, match=r"more than 0\.05 seconds of processor time"):
            database.query(sql)
    assert database._cache.get(sql) is None


FORMATS = """
    %d %5d|%-5d| %05.2f %.3s %s|%10s| %c %.3c %5.3c %% %,d %x %X %o %e %g %q %Q %w %z 2024-%d|12345
    %lld %ld%c %i%u %!s %#x %+d %p %n %d%s%c%f %5 % %.c %--5d
"""


def test_a_format_gives_what_sqlite_gives():
    builtin, ours = sqlite3.connect(":memory:"), bounded("printf", 100_000)
    builtin.text_factory = lambda data: data.decode("utf-8", "replace")
    given = [0, 3, -2, 70, "é", "abc", "7", 1.5, None, b"xy"]
    for template, first, second in itertools.product(FORMATS.split(), given, given):
        values = (template, first, second, "end")
        expected = builtin.execute("SELECT printf(?, ?, ?, ?)", values).fetchone()[0]
        if expected is None:
            with pytest.raises(OverflowError, match="long text"):
                ours(*values)
        else:
            assert ours(*values) == expected


@pytest.mark.parametrize(
    "template",
    [
        "%.*c",
        b"%.*c",
        "%.6294967296c",
        "%.0000000000099999c" * 2,
        "%!.99000f" * 2,
        "%l.99000lc" * 2,
    ],
)
def test_a_format_that_repeats_much_is_refused(template):
    with pytest.raises(OverflowError, match=r"long text|width"):
        bounded("printf", 100_000)(template, 2_000_000_000, "a")


def test_long_text_is_searched_for_a_short_one_only(path):
    database, long = Database(path), "printf('%.90000c', 'a')"
    assert database.query(f"SELECT instr({long} || 'word', 'word')").rows == ((90_001,),)
    assert database.query(f"SELECT length(replace({long}, 'aaaaa', 'b'))").rows == ((18_000,),)
    assert database.query(f"SELECT trim({long} || 'x', 'a')").rows == (("x",),)
    for call in (
        f"instr({long}, {long})",
        f"replace({long}, {long}, 'b')",
        f"trim({long}, {long})",
    ):
        with pytest.raises(ToolError, match="too_large"):
            database.query(f"SELECT {call}")


SEARCHES = {
    "SELECT body FROM docs WHERE docs MATCH 'cat'": None,
    "SELECT body FROM docs('cat') WHERE body LIKE '%a%'": None,
    "SELECT d.body FROM docs d JOIN docs e ON e.rowid = d.rowid WHERE d.docs = 'cat'": None,
    "SELECT count(*) FROM docs WHERE docs MATCH 'c' || 'at'": "too_large",
    "SELECT count(*) FROM docs(replace('cut', 'u', 'a'))": "too_large",
    f"SELECT count(*) FROM docs WHERE docs MATCH 'NEAR({'a ' * 600}, 9)'": "too_large",
}


@pytest.mark.parametrize(("sql", "code"), SEARCHES.items())
def test_a_search_is_short_and_not_computed(indexed, sql, code):
    if code is None:
        assert len(open_database(indexed).query(sql).rows) == 1
    else:
        with pytest.raises(ToolError, match="a full-text search with more than 1,000 characters"):
            open_database(indexed).query(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM (SELECT 1) AS a",
        "WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT count(*) FROM b, a",
        "WITH a AS MATERIALIZED (VALUES (1), (2)) SELECT count(*) / 4 FROM a AS b JOIN a AS c",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT 1 FROM n) SELECT count(*) FROM n",
        "WITH a AS (SELECT 1) SELECT 1 WHERE EXISTS (SELECT * FROM a)",
        "SELECT count(*) FROM json_each('[0]')",
        "SELECT count(*) > 0 FROM sqlite_schema",
    ],
)
def test_what_a_statement_names_itself_may_be_counted(indexed, sql):
    assert open_database(indexed).query(sql).rows == ((1,),)


def named(values):
    """Values as the parameters `:v0`, `:v1` and so on."""
    return {f"v{i}": value for i, value in enumerate(values)}


TEXTS = ["", "a", "ab", "aba", "é", "日本", "a\0b", "\0", "  a ", "1.5", b"", b"a", b"\xc3\xa9"]
VALUES = [*TEXTS, 1, 1.5, -0.0, 1e300, None]


@pytest.mark.parametrize(
    ("name", "arity"), [(name, arity) for name, arity in BOUNDED.items() if arity > 0]
)
def test_a_bounded_function_is_sqlites_own(name, arity):
    builtin, ours = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    ours.create_function(name, arity, bounded(name, 100_000), deterministic=True)
    marks = ", ".join(f":v{i}" for i in range(arity))
    sql = f"SELECT {name}({marks}), typeof({name}({marks}))"
    for values in itertools.product(VALUES, repeat=arity):
        assert ours.execute(sql, named(values)).fetchone() == (
            builtin.execute(sql, named(values)).fetchone()
        )


WORDS = """
    SELECT SELECT FROM FROM WHERE GROUP BY ORDER BY LIMIT HAVING DISTINCT UNION ALL INTERSECT EXCEPT
    JOIN LEFT ON USING NATURAL AS WITH RECURSIVE VALUES CASE WHEN THEN ELSE END CAST COLLATE NOCASE
    IN EXISTS NOT NULL IS LIKE GLOB BETWEEN AND OR OVER PARTITION ROWS PRECEDING FILTER ESCAPE
    INSERT INTO UPDATE SET DELETE DROP TABLE CREATE TEMP VIEW INDEX TRIGGER ALTER ADD COLUMN RENAME
    ATTACH DETACH VACUUM PRAGMA BEGIN COMMIT ROLLBACK SAVEPOINT ANALYZE REINDEX EXPLAIN REPLACE
    RETURNING DEFAULT VIRTUAL MATERIALIZED INDEXED RAISE CURRENT_TIME GENERATED STRICT ROWID
    ( ( ( ) ) ) , , , ; . * * + - / % || = == <> < > <= >= << & | ~ -> ->> ? :a @b $c
    -- /* */ ' " ` [ ] \0 \ufeff é 😀 0 1 -1 1.5 1e999 9223372036854775808 x'00' 'now' 'a' '%' ''
    main temp sqlite_master sqlite_schema sqlite_temp_master sqlite_sequence rowid _rowid_
    json_each json_tree pragma_table_info dbstat generate_series sqlite_stmt bytecode
    writefile readfile edit load_extension zeroblob fts3_tokenizer sqlite_rename_column
"""


HONEST = [
    "SELECT * FROM {0}",
    "SELECT count(*) , max( 1 ) FROM {0} WHERE 1 = 1 GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
    "SELECT DISTINCT a.* FROM {0} AS a JOIN {1} AS b ON a.rowid = b.rowid WHERE a.rowid > 1",
    "WITH t AS ( SELECT rowid AS r FROM {1} ) SELECT r , r + 1 FROM t UNION SELECT 1 , 2",
    "SELECT ( SELECT max( rowid ) FROM {0} ) , CASE WHEN 1 THEN 'a' ELSE 2 END FROM {1}",
    "SELECT sum( rowid ) OVER ( ORDER BY rowid ) FROM {0} WHERE rowid IN ( SELECT 1 )",
    "SELECT value FROM json_each( '[1, 2]' ) , {0} WHERE {0}.rowid = value",
]


def statements(seed, n, names):
    """Random statements: mixtures of words, and honest queries with words put in and taken out."""
    draw = random.Random(seed)
    calls = sorted(FUNCTIONS | UNSTEADY | DATE_FUNCTIONS.keys())
    words = [*WORDS.replace("\\0", "\0").split(), *names, *names, *calls, *(c + "(" for c in calls)]
    tables = ", ".join(names[:2])
    honest = [sql.split() for sql, _ in ATTACKS.values() if len(sql) < 200]
    honest += [sql.format(*names, tables=tables).split() for sql in HONEST] * 20
    for _ in range(n):
        tokens = list(draw.choice(honest)) if draw.random() < 0.5 else []
        if not tokens:
            tokens = [
                "SELECT",
                *draw.choices(words, k=draw.randint(1, 8)),
                "FROM",
                draw.choice(names),
            ]
        for _ in range(draw.choice((0, 1, 1, 2, 4))):
            place = draw.randrange(len(tokens) + 1)
            tokens[place : place + draw.randint(0, 2)] = draw.choices(words, k=draw.randint(0, 2))
        yield draw.choice([" ", " ", " ", "\n", "/**/"]).join(tokens)


def fuzz(path, seed, n):
    """How many of `n` random statements gave a result; all else is a `ToolError`."""
    database = Database(path, Limits(steps=100_000, seconds=600.0, rows=100))
    names = [*database.schema.names, *(c.name for t in database.schema.tables for c in t.columns)]
    before, answered = state_of(path), 0
    for sql in statements(seed, n, names):
        try:
            database.query(sql)
        except ToolError:
            continue
        answered += 1
    assert state_of(path) == before
    return answered


def test_no_mixture_of_sql_words_breaks_out(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    assert fuzz(path, 1, 800) > 25


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_no_mixture_of_sql_words_breaks_out_of_a_real_database(spider, seed, monkeypatch):
    path = spider / "database" / "hr_1" / "hr_1.sqlite"
    assert fuzz(path, seed, 10_000) > 300
