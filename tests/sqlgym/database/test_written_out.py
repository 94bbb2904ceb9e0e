"""What a statement weighs when it is written out, before SQLite is given it."""

import sqlite3

import pytest

from sqlgym.database.database import Database, Limits
from sqlgym.database.statement_size import StatementSize, may_be_large
from sqlgym.database.written_out import CALL, CHEAP_CALL, SELECT, weight
from sqlgym.datasets.bundled import dataset_folder
from sqlgym.datasets.load import load_tasks
from tests.sqlgym.database.hostile_statements import all_statements
from toolgym.errors import ToolError

MOST = Limits().written_out
CHAIN = "WITH a AS (SELECT {} FROM t), b AS (SELECT x || x AS x FROM a) SELECT x FROM b"
ANALYTIC = """
WITH orders AS (SELECT o.id, o.customer_id, o.ordered_on, sum(i.quantity * i.price) AS total,
    count(*) AS lines FROM o JOIN i ON i.order_id = o.id GROUP BY o.id),
monthly AS (SELECT customer_id, strftime('%Y-%m', ordered_on) AS month, sum(total) AS revenue,
    count(*) AS n, avg(total) AS mean FROM orders GROUP BY 1, 2),
ranked AS (SELECT customer_id, month, revenue, rank() OVER (PARTITION BY month ORDER BY revenue
    DESC) AS place, lag(revenue) OVER (PARTITION BY customer_id ORDER BY month) AS before,
    sum(revenue) OVER (PARTITION BY customer_id ORDER BY month ROWS BETWEEN 2 PRECEDING AND
    CURRENT ROW) AS rolling FROM monthly),
growth AS (SELECT customer_id, month, revenue, place, rolling, CASE WHEN before IS NULL OR
    before = 0 THEN NULL ELSE round(100.0 * (revenue - before) / before, 2) END AS change
    FROM ranked),
best AS (SELECT month, max(change) AS most, min(change) AS least, avg(change) AS mean FROM growth
    WHERE change IS NOT NULL GROUP BY month),
final AS (SELECT g.customer_id, g.month, g.revenue, g.change, g.place, CASE WHEN g.change = b.most
    THEN 'best' WHEN g.change = b.least THEN 'worst' WHEN g.change > b.mean THEN 'above' ELSE
    'below' END AS verdict FROM growth g JOIN best b ON b.month = g.month)
SELECT c.name, f.month, f.revenue, f.change, f.verdict FROM final f JOIN customers c
    ON c.id = f.customer_id WHERE f.place <= 3
UNION ALL SELECT 'all', month, sum(revenue), avg(change), max(verdict) FROM final GROUP BY month
ORDER BY 2, 3 DESC LIMIT 100
"""


@pytest.mark.parametrize(
    "column",
    [
        "id + 1 AS x",
        "id + 1 x",
        "id + 1 AS 'X'",
        'id + 1 AS "x"',
        "id + 1 AS [x]",
        "(x + 1)",
        "x + 1 COLLATE NOCASE",
        "likely(x + 1)",
        "id + 1 /* AS y */ AS x -- , z\n",
    ],
)
def test_a_column_weighs_what_stands_behind_its_name_however_it_got_it(column):
    assert weight(CHAIN.format(column), {}) - weight(CHAIN.format("1 AS y"), {}) >= 3 + 2 * 2


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT a FROM t", 1 + SELECT),
        ("SELECT sum(a) FROM t", CHEAP_CALL + 1 + SELECT),
        ("SELECT upper(a) FROM t", CALL + 1 + SELECT),
        ("SELECT x + x FROM (SELECT a AS x FROM t)", 3 + 2 * SELECT + 1 + SELECT),
        ("SELECT x FROM (SELECT a + b AS x FROM t)", 3 + 2 * SELECT + 3 + SELECT),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT 1", 1 + SELECT),
        ("SELECT ) FROM (", 0),
        ("WITH a", 0),
    ],
)
def test_words_are_counted_once_and_names_by_what_they_stand_for(sql, words):
    assert weight(sql, {}) == words


def test_the_depth_adds_up_over_levels_but_not_over_branches():
    chain = "SELECT x{} AS y FROM (SELECT id{} AS x FROM t)"
    deep = chain.format("+1" * 30, "+1" * 40)
    assert weight(deep, {}, "depth") == 70
    assert weight("SELECT CASE" + " WHEN a = 1 THEN b" * 90 + " END FROM t", {}, "depth") == 1


def test_views_weigh_what_they_hold():
    views = {
        "v": "CREATE VIEW v(x) AS SELECT a || a FROM t",
        "w": "CREATE VIEW w AS SELECT x FROM v",
    }
    assert weight("SELECT x FROM w", views) > weight("SELECT x FROM v", views)
    assert weight("SELECT x FROM v", views) > weight("SELECT x FROM t", views)
    size = StatementSize(Limits(), {"big": "CREATE VIEW big AS " + CHAIN.format("a AS x")}, [])
    plain, chain = "select x from big", "select x from big"
    for _ in range(18):
        chain = f"select x || x as x from ({chain})"
    assert size.refusal(plain, plain) == ""
    assert "words" in size.refusal(chain, chain)


def test_what_is_quickly_let_through_is_never_heavy():
    heavy = [s for s in all_statements() if len(s.sql) < 3_000 and weight(s.sql, {}) > MOST]
    assert len(heavy) > 60
    for statement in heavy:
        assert may_be_large(statement.sql.lower(), MOST) or statement.name == "views"


def test_honest_statements_stay_far_below_the_bound():
    golds = {task.gold_sql for task in load_tasks("bundled", "train")}
    assert max(weight(sql, {}) for sql in golds) < MOST / 100
    assert sum(may_be_large(sql.lower(), MOST) for sql in golds) < len(golds) / 100
    assert 0 < weight(ANALYTIC, {}) < MOST / 5
    assert weight(ANALYTIC, {}, "depth") < Limits().expression_depth / 10


@pytest.mark.parametrize("levels", [20, 39, 60])
def test_a_chain_of_doublings_is_refused_before_it_is_compiled(levels):
    path = dataset_folder("bundled") / "database" / "mountain_huts" / "mountain_huts.sqlite"
    lines = ", ".join(f"t{i + 1} AS (SELECT x || x AS x FROM t{i})" for i in range(levels))
    sql = f"WITH t0 AS (SELECT name AS x FROM huts), {lines} SELECT x FROM t{levels}"
    with pytest.raises(ToolError, match="more than 500,000 words") as caught:
        Database(path).query(sql)
    assert caught.value.code == "too_large"
    assert Database(path).query(sql.replace("x || x", "x || 1")).rows


def test_a_statement_that_would_overflow_the_stack_is_refused(tmp_path):
    path = tmp_path / "t.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    lines = ", ".join(f"t{i + 1} AS (SELECT x{'+1' * 400} AS x FROM t{i})" for i in range(7))
    with pytest.raises(ToolError, match="an expression deeper than 1,000"):
        Database(path).query(f"WITH t0 AS (SELECT x FROM t), {lines} SELECT x FROM t7")
