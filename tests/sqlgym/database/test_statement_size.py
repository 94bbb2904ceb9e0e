"""Bounds on the size of a statement after SQLite has copied its views and subqueries."""

import sqlite3

import pytest

from sqlgym.database.database import Database
from sqlgym.database.statement_size import StatementSize
from sqlgym.datasets.bundled import dataset_folder
from sqlgym.datasets.load import load_tasks
from toolgym.errors import ToolError

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


def chain(levels, expression, first="SELECT name AS x FROM huts"):
    """Each of `levels` tables computes `x` from the one before."""
    lines = ", ".join(f"t{i + 1} AS (SELECT {expression} FROM t{i})" for i in range(levels))
    return f"WITH t0 AS ({first}), {lines} SELECT x FROM t{levels}"


def refusal(sql, views=None):
    return StatementSize(views or {}, []).refusal(sql.lower())


@pytest.mark.parametrize(
    "sql",
    [
        chain(20, "x || x AS x"),
        chain(20, "x || x x"),
        chain(20, "x || x AS 'X'"),
        chain(20, "(x) + x COLLATE NOCASE AS [x]"),
        chain(20, 'likely(x || "x") AS `x`'),
        chain(20, "x/**/||/* AS y */x AS x -- , z\n"),
        chain(20, "x || x AS x -- \r ' \n"),
        chain(20, "(SELECT x || x) AS x"),
        chain(20, "CASE WHEN x THEN x ELSE x END AS x"),
        chain(20, "x", "SELECT x FROM huts UNION ALL SELECT 1").replace(
            "FROM t", "FROM t0 NATURAL JOIN t"
        ),
        "SELECT 1 /* /* */ FROM (" + chain(20, "x || x AS x") + ") -- */",
    ],
)
def test_a_statement_that_doubles_at_each_level_is_refused_however_it_is_written(sql):
    assert "when written out" in refusal(sql)


def test_a_view_counts_as_what_it_reads():
    views = {
        "big": "create view big as " + chain(12, "x || x as x").lower(),
        "other(y)": "create view other(y) as select x from huts",
    }
    nested = "SELECT x || x AS x FROM (" * 8 + "SELECT x FROM {}" + ")" * 8
    assert refusal("SELECT x FROM big", views) == ""
    assert "written out" in refusal(nested.format("big"), views)
    assert refusal(nested.format("huts"), views) == ""


def test_honest_statements_are_not_refused():
    golds = {task.gold_sql for task in load_tasks("tiny", "dev")}
    assert [sql for sql in golds if refusal(sql)] == []
    assert refusal(ANALYTIC) == ""
    assert (
        refusal(f"SELECT 1 FROM t WHERE x IN ({', '.join(['7'] * 6_000)}) AND y IN (SELECT 1)")
        == ""
    )


@pytest.mark.parametrize("levels", [20, 39, 60])
def test_the_database_refuses_a_chain_of_doublings(levels):
    path = dataset_folder("bundled") / "database" / "mountain_huts" / "mountain_huts.sqlite"
    sql = chain(levels, "x || x AS x")
    with pytest.raises(ToolError, match="more than 500,000 words") as caught:
        Database(path).query(sql)
    assert caught.value.code == "too_large"
    assert Database(path).query(sql.replace("x || x", "x || 1")).rows


def test_a_statement_that_would_overflow_the_stack_is_refused(tmp_path):
    path = tmp_path / "t.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE huts (name)")
    connection.close()
    with pytest.raises(ToolError, match="more than 3,000 words in several SELECTs"):
        Database(path).query(chain(7, f"x{'+1' * 400} AS x"))


def test_a_rewriting_from_another_dialect_is_measured_before_it_is_compiled():
    path = dataset_folder("bundled") / "database" / "mountain_huts" / "mountain_huts.sqlite"
    # SQLite reads the chain as a text; MySQL, where \\' is a quote in a text, as a subquery.
    hidden = chain(16, "x || x AS x")
    sql = (
        rf"SELECT `hut_id`, '\', year(1), ' AS a FROM huts, ({hidden}) AS y WHERE 1 -- ' FROM huts"
    )
    with pytest.raises(ToolError, match="There is no function year") as caught:
        Database(path).query(sql)
    assert caught.value.example == {}
