"""Spider's levels: the released labels, and each rule and each habit of the labelling program."""

import json

import pytest

from sqlgym.tasks.hardness import hardness

T, U = "SELECT a FROM t", "SELECT b FROM u"
IN_U = f"a IN ({U})"

CASES = {
    "nothing at all": (T, "easy"),
    "one clause": (f"{T} WHERE a = 1", "easy"),
    "one join is one clause": ("SELECT a FROM t JOIN u ON t.i = u.i", "easy"),
    "tables after a comma are joins too": ("SELECT a FROM t, u, v", "medium"),
    "one extra": ("SELECT a, b FROM t", "medium"),
    "two extras beside one clause": ("SELECT a, b FROM t WHERE a = 1 AND b = 2", "medium"),
    "two clauses": (f"{T} ORDER BY a LIMIT 1", "medium"),
    "two clauses and one extra": ("SELECT a, b FROM t ORDER BY a LIMIT 1", "medium"),
    "two clauses and two extras": (
        "SELECT a, b FROM t WHERE a = 1 AND b = 2 ORDER BY a",
        "extra",
    ),
    "two clauses and three extras": (
        "SELECT max(a), min(b) FROM t WHERE a = 1 AND b = 2 GROUP BY c",
        "hard",
    ),
    "three clauses": (f"{T} WHERE a = 1 ORDER BY a LIMIT 1", "hard"),
    "three clauses and three extras": (
        "SELECT max(a), min(b) FROM t WHERE a = 1 AND b = 2 GROUP BY c ORDER BY c",
        "extra",
    ),
    "four clauses": (f"{T} WHERE a = 1 GROUP BY a ORDER BY a LIMIT 1", "extra"),
    "an OR is a clause": (f"{T} WHERE a = 1 OR a = 2", "medium"),
    "a second OR is another clause": (f"{T} WHERE a = 1 OR a = 2 OR a = 3", "hard"),
    "a third OR is another clause": (f"{T} WHERE a = 1 OR a = 2 OR a = 3 OR a = 4", "extra"),
    "LIKE is a clause, NOT LIKE too": (f"{T} WHERE a NOT LIKE 'x%'", "medium"),
    "LIKE in a join counts": ("SELECT a FROM t JOIN u ON a LIKE b WHERE b = 1", "hard"),
    "brackets do not hide conditions": (f"{T} WHERE (a = 1 AND (b = 2))", "medium"),
    "BETWEEN is one condition": (f"{T} WHERE a BETWEEN 1 AND 2", "easy"),
    "HAVING itself is no clause": (f"{T} GROUP BY a HAVING count(*) > 1", "easy"),
    "an aggregate in HAVING does not count": (
        "SELECT count(*) FROM t GROUP BY a HAVING max(b) > 1",
        "easy",
    ),
    "an aggregate in ORDER BY counts": (
        "SELECT count(*) FROM t GROUP BY a ORDER BY count(*)",
        "medium",
    ),
    "two grouping columns": (f"{T} GROUP BY a, b", "medium"),
    "NOT counts as an aggregate": (
        "SELECT count(*) FROM t WHERE a NOT BETWEEN 1 AND 2",
        "medium",
    ),
    "AND in HAVING counts as an aggregate": (
        "SELECT count(*) FROM t GROUP BY a HAVING sum(b) > 1 AND sum(b) < 9",
        "medium",
    ),
    "a subquery in a condition": (f"{T} WHERE {IN_U}", "hard"),
    "a subquery and a second clause": (f"{T} WHERE {IN_U} ORDER BY a", "extra"),
    "a subquery and an extra": (f"SELECT a, b FROM t WHERE {IN_U}", "extra"),
    "two subqueries": (f"{T} WHERE {IN_U} AND c IN ({U})", "extra"),
    "what is inside a subquery does not count": (
        f"{T} WHERE a = (SELECT max(b) FROM u JOIN v WHERE c OR d GROUP BY e, f LIMIT 1)",
        "hard",
    ),
    "a subquery in FROM is a table": (f"SELECT a FROM ({T} WHERE {IN_U})", "easy"),
    "a set operation": (f"{T} UNION {U}", "hard"),
    "only the first branch counts": (f"{T} EXCEPT SELECT a, b FROM u WHERE c = 1", "hard"),
    "an ORDER BY after a union is the last branch's": (f"{T} UNION {U} ORDER BY 1", "hard"),
    "a chain of unions counts once": (f"{T} UNION {U} INTERSECT {T}", "hard"),
    "EXISTS": (f"{T} WHERE EXISTS ({U})", "hard"),
    "a subquery in SELECT": (f"SELECT a - ({U}) FROM t", "hard"),
    "WITH": (f"WITH w AS ({U}) SELECT b FROM w", "hard"),
    "a bracket around it all": (f"({T})", "easy"),
    "a semicolon at the end": (f"{T};", "easy"),
}


@pytest.mark.parametrize(("sql", "level"), CASES.values(), ids=CASES.keys())
def test_the_level_follows_the_components_whatever_the_layout(sql, level):
    assert hardness(sql) == level
    assert hardness(sql.lower().replace(" ", "\n  ")) == level


@pytest.mark.parametrize("sql", ["", "SELEC", "SELECT a FROM", "\0", "SELECT 'open"])
def test_what_cannot_be_parsed_has_no_level(sql):
    with pytest.raises(ValueError, match=r"not one query that can be parsed|Only a SELECT"):
        hardness(sql)


@pytest.mark.parametrize("sql", ["DROP TABLE t", "VALUES (1)", "SELECT 1; SELECT 2"])
def test_what_is_not_a_single_select_has_no_level(sql):
    with pytest.raises(ValueError, match="Only a SELECT statement has a hardness"):
        hardness(sql)


def test_every_released_spider_label_is_reproduced(spider):
    labels = spider / "meta.jsonl"
    if not labels.exists():
        pytest.skip("this copy of Spider has no meta.jsonl with the released labels")
    rows = [json.loads(line) for line in labels.read_text("utf-8").splitlines()]
    files = {name: json.loads((spider / name).read_bytes()) for name in {r["file"] for r in rows}}

    wrong = [
        (row["hardness"], level, sql)
        for row in rows
        for sql in [files[row["file"]][row["index"]]["query"]]
        for level in [hardness(sql)]
        if level != row["hardness"]
    ]

    assert len(rows) > 0
    assert wrong == []
