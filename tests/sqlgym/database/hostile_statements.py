# ruff: noqa: E501 (a statement is easier to read as it is)
"""Statements that try to take memory or time for ever, by kind.

Each reads the file that `SCRIPT` makes. None is wrong SQL by accident: where SQLite refuses one, it
is a limit that does it. What each is to get is not written here, since it differs by SQLite's
version; that it stays within its bounds does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Hostile(NamedTuple):
    kind: str
    name: str
    sql: str


_WIDE = ", ".join(f"c{i} INT" for i in range(120))
SCRIPT = f"""
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INT, born TEXT);
INSERT INTO singer VALUES (1, 'Joe', 52, '1970-01-02'), (2, 'Ann', 43, NULL), (3, 'Bob', 43, 'x');
CREATE TABLE wide (k INTEGER PRIMARY KEY, {_WIDE});
CREATE INDEX wide_a ON wide (c1, c2);
CREATE INDEX wide_b ON wide (c2, c3);
CREATE INDEX wide_c ON wide (c3, c1);
CREATE INDEX wide_d ON wide (c4);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 500)
INSERT INTO wide (k, c1, c2, c3, c4) SELECT x, x % 7, x % 11, x % 13, x FROM n;
CREATE TABLE body (k INTEGER PRIMARY KEY, t TEXT COLLATE NOCASE, b BLOB);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 40)
INSERT INTO body SELECT x, replace(printf('%.2000c', 'a'), 'a', 'the quick brown fox jumps over the lazy dog ') || x, zeroblob(90000) FROM n;
CREATE TABLE hard (j TEXT);
CREATE VIEW twice AS SELECT a.name || b.name AS x FROM singer a, singer b;
CREATE VIEW more AS SELECT x || x AS x FROM twice UNION ALL SELECT x FROM twice;
"""
FULL_TEXT = """
CREATE VIRTUAL TABLE docs USING fts5(body);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 300)
INSERT INTO docs SELECT 'a cat and a dog number ' || x || ' of many words' FROM n;
"""
"""Where this SQLite has the module."""

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
LONG = "printf('%.99000c', 'a')"
HALF = "printf('%.49000c', 'a')"
EMOJI = "(printf('%.99000c', 'a') || char(128512))"


def _joined(part: str, n: int, by: str = ", ") -> str:
    """The part `n` times; `{}` in it is the number of the copy."""
    return by.join(part.replace("{}", str(i)) for i in range(n))


def _chain(expression: str, levels: int, start: str = "SELECT name AS x FROM singer") -> str:
    """A WITH list in which each table computes `x` from the one before."""
    tables = ", ".join(f"t{i + 1} AS (SELECT {expression} AS x FROM t{i})" for i in range(levels))
    return f"WITH t0 AS ({start}), {tables} "


def _nested(expression: str, levels: int, end: str = "SELECT name AS x FROM singer") -> str:
    """The same, written as selects in brackets."""
    sql = end
    for _ in range(levels):
        sql = f"SELECT {expression} AS x FROM ({sql})"
    return sql


def _doubled(levels: int, select: str, first: str = "SELECT id AS x FROM singer") -> str:
    """A WITH list in which each table names the one before twice."""
    tables = [f"t{i + 1} AS ({select.replace('OLD', f't{i}')})" for i in range(levels)]
    return f"WITH t0 AS ({first}), {', '.join(tables)} "


def formats() -> Iterator[tuple[str, str]]:
    """`printf` whose widths are hidden from whoever reads only its text."""
    huge = "2000000000"
    for name, template in {
        "blob": "x'252e2a63'",
        "cast_blob": "CAST('%.*c' AS BLOB)",
        "joined": "'%.' || '*c'",
        "text": "'%.*c'",
        "long": "'%.*lc'",
        "longlong": "'%.*llc'",
        "flags": "'%-+ 0#,!.*c'",
        "with_nul": "'%.*c' || char(0) || 'x'",
        "percents": "'%%%%%.*c'",
    }.items():
        for kind, width in {
            "number": huge,
            "text": f"'{huge}'",
            "blank_text": f"'  +{huge}x'",
            "real": f"{huge}.5",
            "blob": f"CAST('{huge}' AS BLOB)",
            "negative": f"-{huge}",
            "wrapped": "4294967296 + 2000000000",
        }.items():
            yield f"{name}_{kind}", f"SELECT printf({template}, {width}, 'a')"
    yield "literal_width", f"SELECT printf('%.{huge}c', 'a')"
    yield "literal_blob", f"SELECT format(CAST('%.{huge}c' AS BLOB), 'a')"
    yield "literal_wraps", "SELECT printf('%.6294967296c', 'a')"
    yield "adding_up", f"SELECT printf('{'%.99000c' * 9000}', 'a')"
    yield "adding_up_blob", f"SELECT printf(CAST('{'%.99000c' * 9000}' AS BLOB), 'a')"
    yield "adding_up_stars", f"SELECT printf('{'%.*c' * 60}', {_joined('99000', 120)})"
    yield "behind_a_percent", f"SELECT printf('%d%%%s%.*c', 1, 2, {huge}, 'a')"
    yield "width_and_precision", f"SELECT printf('%*.*c', 5, {huge}, 'a')"
    for letter in "dfegsqQwxozTj":
        yield f"wide_{letter}", f"SELECT printf('%{huge}{letter}', 1)"
        yield f"precise_{letter}", f"SELECT printf('%.{huge}{letter}', 1)"
    yield "precise_floats", f"SELECT printf('{'%!.99000f' * 9000}', 1e300)"
    yield "in_a_loop", ENDLESS + "SELECT count(printf(x'252e2a63', 90000, 'a')) FROM c"
    floats = "printf(replace(printf('%.9000c', 'a'), 'a', '%!.99000f'), 1e300, {})"
    yield "precise_floats_in_a_line", f"SELECT {_joined(f'length({floats})', 60, '+')}"
    yield "precise_floats_in_a_loop", ENDLESS + f"SELECT count({floats.format('x')}) FROM c"
    yield "in_a_line", "SELECT " + _joined("length(printf('%.*c', 99000, {}))", 99, "+")


def functions() -> Iterator[tuple[str, str]]:
    """Calls that are slow or large by themselves."""
    quadratic = {
        "instr": "instr(a.t, a.u)",
        "instr_blobs": "instr(CAST(a.t as blob), CAST(a.u as blob))",
        "instr_mixed": "instr(CAST(a.t as blob), a.u)",
        "replace": "replace(a.t, a.u, 'x')",
        "replace_blobs": "replace(CAST(a.t as blob), CAST(a.u as blob), x'00')",
        "replace_grows": "replace(a.t, 'a', 'aa')",
        "replace_grows_blob": "replace(a.t, x'61', a.t)",
        "trim": "trim(a.t, a.u)",
        "trim_blobs": "trim(CAST(a.t as blob), CAST(a.u as blob))",
        "ltrim_mixed": "ltrim(a.t, CAST(a.u as blob))",
        "rtrim": "rtrim(a.t, a.u)",
        "like": f"a.t LIKE '%{'a' * 250}b%'",
        "glob": f"a.t GLOB '*{'[^b]' * 60}b'",
        "glob_class": f"a.t GLOB '*[^{'b' * 240}a]'",
        "like_many": f"a.t LIKE '{'%a' * 120}b'",
        "hex": "hex(substr(a.t, 1, 49000))",
        "quote": "quote(a.t)",
        "upper": "upper(lower(upper(a.t)))",
        "soundex": "soundex(replace(a.t, 'a', '1'))",
        "unhex": "unhex(a.t, a.u)",
        "json_quote": "json_quote(a.t)",
        "json_array": "json_array(" + _joined("a.t", 100) + ")",
        "json_control": "json_quote(replace(a.t, 'a', char(1)))",
        "concat_ws": "concat_ws(" + _joined("a.t", 100) + ")",
        "concat": "concat(" + _joined("a.t", 100) + ")",
        "max": "max(" + _joined("a.t || {}", 100) + ")",
        "coalesce": "coalesce(" + _joined("nullif(a.t, a.t)", 90) + ", 1)",
        "char": "char(" + _joined("1114111", 100) + ")",
        "unistr": "unistr(a.t)",
        "unistr_quote": "unistr_quote(replace(a.t, 'a', char(1)))",
        "strftime": "strftime(replace(a.t, 'a', '%f'), '2000-01-01')",
        "strftime_days": "strftime(replace(substr(a.t, 1, 49000), 'a', '%J'), '2000-01-01')",
        "date_modifiers": "date('2000-01-01'" + ", '+1 day'" * 99 + ")",
        "compare": "a.t || 'x' < a.t || 'y'",
        "unicode_trim": "trim(replace(a.t, 'a', char(233)), replace(a.u, 'a', char(233)))",
    }
    for name, text in quadratic.items():
        source = "(SELECT printf('%.60000c', 'a') AS t, printf('%.39000c', 'a') || 'b' AS u) AS a"
        yield f"{name}_once", f"SELECT length({text}) FROM {source}"
        yield f"{name}_line", f"SELECT {_joined(f'length({text})', 60, '+')} FROM {source}"
        changing = text.replace("a.t", "(a.t || c.x)")
        for calls in (1, 8):
            long = _joined(f"length({changing})", calls, "+")
            yield (
                f"{name}_loop_{calls}",
                (
                    f"WITH RECURSIVE c(x, n) AS (SELECT 1, 0 UNION ALL SELECT x + 1, {long} "
                    f"FROM c, {source}) SELECT count(n) FROM c"
                ),
            )


def json() -> Iterator[tuple[str, str]]:
    """Large and deep JSON."""
    deep = "replace(printf('%.900c', 'a'), 'a', '[') || replace(printf('%.900c', 'a'), 'a', ']')"
    flat = "'[' || replace(printf('%.24000c', 'a'), 'a', '1, ') || '1]'"
    yield "deep_tree", f"SELECT count(fullkey), max(path) FROM json_tree({deep})"
    yield "flat_each", f"SELECT count(*) FROM json_each({flat}) a, json_each({flat}) b"
    yield "joined_trees", "SELECT count(*) FROM " + _joined(f"json_tree({flat}) j{{}}", 20)
    yield "sorted_each", f"SELECT a.value FROM json_each({flat}) a, json_each({flat}) b ORDER BY 1"
    yield (
        "extract_line",
        f"SELECT {_joined(f'json_extract({flat}, {chr(39)}$[23000]{chr(39)})', 60, '+')}",
    )
    yield (
        "extract_paths",
        f"SELECT json_extract({flat}, {_joined(chr(39) + '$[#-{}]' + chr(39), 90)})",
    )
    yield "group_array", ENDLESS + f"SELECT json_group_array({HALF}) FROM c"
    yield "group_object", ENDLESS + f"SELECT json_group_object(x, {HALF}) FROM c"
    yield "group_small", ENDLESS + "SELECT json_group_array(x) FROM c"
    yield "pretty_deep", f"SELECT json_pretty({deep})"
    yield "pretty_indent", f"SELECT json_pretty({deep}, {LONG})"
    yield (
        "pretty_flat",
        (
            "SELECT json_pretty(replace(printf('%.900c', 'a'), 'a', '[') || "
            "replace(printf('%.40000c', 'a'), 'a', '1,') || '1' || "
            "replace(printf('%.900c', 'a'), 'a', ']'))"
        ),
    )
    yield (
        "object_keys",
        f"SELECT json_object({_joined(chr(39) + '{}' + chr(39) + ', ' + LONG, 50)})",
    )
    yield "of_json", "SELECT " + "json_array(" * 90 + LONG + ")" * 90
    yield "valid_loop", ENDLESS + f"SELECT sum(json_valid({flat} || x)) FROM c"
    yield "window_arrays", ENDLESS + "SELECT json_group_array(x) OVER (ORDER BY x) FROM c"


def memory() -> Iterator[tuple[str, str]]:
    """Large values that a statement keeps: sorts, groups, queues, frames."""
    for name, value in {
        "long": f"{LONG} || x",
        "emoji": f"{EMOJI} || x",
        "half": f"{HALF} || x",
        "small": "x",
        "text": "'some text of a row, number ' || x",
        "kilobyte": "printf('%.1000c', 'a') || x",
    }.items():
        rows = ENDLESS.replace("FROM c)", "FROM c LIMIT 300000)")
        for start, kind in ((ENDLESS, ""), (rows, "_finite")):
            yield f"order_{name}{kind}", start + f"SELECT {value} FROM c ORDER BY 1"
            yield f"distinct_{name}{kind}", start + f"SELECT DISTINCT {value} FROM c"
            yield f"group_{name}{kind}", start + f"SELECT max(x) FROM c GROUP BY {value}"
        yield f"descending_{name}", rows + f"SELECT {value} FROM c ORDER BY 1 DESC, x"
        yield f"nocase_{name}", rows + f"SELECT {value} FROM c ORDER BY ({value}) COLLATE NOCASE"
        yield f"union_{name}", ENDLESS + f"SELECT {value} FROM c UNION SELECT 1 FROM c"
        yield f"except_{name}", ENDLESS + f"SELECT {value} FROM c EXCEPT SELECT 1"
        yield f"in_{name}", ENDLESS + f"SELECT 1 WHERE 0 IN (SELECT {value} FROM c)"
        yield f"window_{name}", ENDLESS + f"SELECT count(*) OVER (), {value} FROM c"
        yield (
            f"frame_{name}",
            rows
            + (
                f"SELECT max({value}) OVER (ORDER BY x GROUPS BETWEEN 99999 PRECEDING AND CURRENT ROW)"
                " FROM c"
            ),
        )
        yield f"lag_{name}", rows + f"SELECT lag({value}, 99999) OVER (ORDER BY x) FROM c"
        yield (
            f"queue_{name}",
            (
                f"WITH RECURSIVE q(x, v) AS (SELECT 1, '' UNION SELECT x + 1, {value} FROM q) "
                "SELECT count(*) FROM q"
            ),
        )
        yield (
            f"breadth_{name}",
            (
                f"WITH RECURSIVE q(x, v) AS (SELECT 1, '' UNION ALL SELECT x + 1, {value} FROM q, "
                "singer ORDER BY 1 DESC) SELECT count(*) FROM q"
            ),
        )
        yield (
            f"materialized_{name}",
            ENDLESS
            + (
                f", m AS MATERIALIZED (SELECT {value} AS v FROM c LIMIT 500000) SELECT count(*) FROM m"
            ),
        )
        yield (
            f"joined_{name}",
            ENDLESS
            + (
                f", m AS (SELECT {value} AS v FROM c LIMIT 500000) "
                "SELECT count(*) FROM m a JOIN m b ON a.v = b.v"
            ),
        )
        yield f"concatenated_{name}", rows + f"SELECT group_concat(DISTINCT {value}) FROM c"
    yield "counted_distinct", ENDLESS + f"SELECT count(DISTINCT {LONG} || x) FROM c"
    yield "many_distincts", ENDLESS + f"SELECT {_joined('count(DISTINCT x + {})', 90)} FROM c"
    yield (
        "many_windows",
        ENDLESS
        + (
            "SELECT "
            + _joined("sum(x) OVER (ORDER BY x + {})", 40)
            + " FROM (SELECT x FROM c LIMIT 9999)"
        ),
    )
    yield "body_sorted", "SELECT a.t || b.k FROM body a, body b, body c ORDER BY 1"
    yield "body_nocase", "SELECT a.k FROM body a, body b ORDER BY a.t || b.t"
    yield "body_blobs", "SELECT a.b, b.b FROM body a, body b ORDER BY 1, 2"
    yield "wide_sorted", f"SELECT * FROM wide a, wide b ORDER BY {LONG} || a.k"


def rows() -> Iterator[tuple[str, str]]:
    """Rows of many or large values."""
    for name, value in {"long": LONG, "emoji": EMOJI}.items():
        for n in (60, 120, 400, 1999):
            source = f"(SELECT {value} AS b FROM singer LIMIT 3)"
            yield f"same_{name}_{n}", f"SELECT {_joined('b', n)} FROM {source}"
            yield f"made_{name}_{n}", f"SELECT {_joined('b || {}', n)} FROM {source}"
        yield f"calls_{name}", f"SELECT {_joined(value, 90)}"
        yield f"thousand_{name}", ENDLESS + f"SELECT {value} FROM c"
    yield "grouped_terms", f"SELECT 1 FROM (SELECT {LONG} b) GROUP BY {_joined('b || {}', 1900)}"
    yield "ordered_terms", f"SELECT 1 FROM (SELECT {LONG} b) ORDER BY {_joined('b || {}', 1900)}"
    yield (
        "partition_terms",
        (f"SELECT sum(1) OVER (PARTITION BY {_joined('b || {}', 900)}) FROM (SELECT {LONG} b)"),
    )
    yield (
        "row_values",
        (
            f"SELECT ({_joined('b || {}', 900)}) = ({_joined('b || {}', 900)}) FROM (SELECT {LONG} b)"
        ),
    )
    yield "stars", "SELECT " + _joined("w.*", 15) + " FROM wide w"
    yield "joined_stars", "SELECT * FROM " + _joined("wide w{}", 16)
    yield "compound_rows", " UNION ALL ".join([f"SELECT {_joined(LONG, 2)}"] * 90)
    yield "values_rows", f"VALUES {_joined('({}, 1)', 12_000)}"
    yield "values_texts", f"SELECT * FROM (VALUES {_joined('({})', 12_000)}) ORDER BY 1"


def written_out() -> Iterator[tuple[str, str]]:
    """Statements that are small until SQLite writes them out."""
    for levels in (10, 15, 20, 30, 39, 60):
        for name, expression in {
            "joined": "x || x",
            "added": "x + x + x",
            "case": "CASE WHEN x THEN x ELSE x END",
            "call": "max(x, x, x, x)",
        }.items():
            yield f"chain_{name}_{levels}", _chain(expression, levels) + f"SELECT x FROM t{levels}"
        yield (
            f"where_{levels}",
            (
                _chain("x || x", levels).replace("SELECT x || x", "SELECT DISTINCT x || x")
                + f"SELECT x FROM t{levels} WHERE x > 'a'"
            ),
        )
        doubling = "SELECT a.x FROM OLD a, OLD b"
        yield f"doubled_{levels}", _doubled(levels, doubling) + f"SELECT x FROM t{levels}"
        arms = "SELECT x FROM OLD UNION ALL SELECT x FROM OLD"
        yield f"arms_{levels}", _doubled(levels, arms) + f"SELECT x FROM t{levels}"
        yield f"arms_sum_{levels}", _doubled(levels, arms) + f"SELECT sum(x) FROM t{levels}"
        yield (
            f"constant_{levels}",
            (_doubled(levels, doubling, "SELECT 1 AS x") + f"SELECT x FROM t{levels}"),
        )
        stars = "SELECT * FROM OLD, OLD b"
        yield f"stars_{levels}", _doubled(levels, stars) + f"SELECT 1 FROM t{levels}"
        inside = "SELECT (SELECT x FROM OLD) + (SELECT x FROM OLD) AS x"
        yield f"scalars_{levels}", _doubled(levels, inside) + f"SELECT x FROM t{levels}"
        exists = "SELECT 1 AS x WHERE EXISTS (SELECT 1 FROM OLD) AND EXISTS (SELECT x FROM OLD)"
        yield f"exists_{levels}", _doubled(levels, exists) + f"SELECT x FROM t{levels}"
    for levels in (6, 12, 18, 24):
        yield f"brackets_{levels}", _nested("x || x || x", levels)
        yield f"brackets_case_{levels}", _nested("CASE x WHEN x THEN x ELSE x || x END", levels)
        yield f"brackets_many_{levels}", _nested("x+" * 200 + "x", levels)
    yield (
        "two_levels",
        f"SELECT {_joined('x', 400)} FROM (SELECT {_joined('id', 400, '+')} AS x FROM singer)",
    )
    yield "three_levels", _nested("x+" * 400 + "x", 3)
    yield "depth", _chain("x" + "+1" * 400, 60) + "SELECT x FROM t60"
    yield "depth_calls", _chain("abs(" * 90 + "x" + ")" * 90, 60) + "SELECT x FROM t60"
    yield (
        "wide_arms",
        (
            "SELECT "
            + _joined("x+{}", 300)
            + " FROM ("
            + _joined("SELECT id AS x FROM singer", 90, " UNION ALL ")
            + ")"
        ),
    )
    yield (
        "arms_of_arms",
        (
            "WITH a AS ("
            + _joined("SELECT id AS x FROM singer", 90, " UNION ALL ")
            + "), b AS ("
            + _joined("SELECT x FROM a", 90, " UNION ALL ")
            + ") SELECT x + x FROM b"
        ),
    )
    yield "views", "SELECT count(*) FROM " + _joined("more m{}", 60)
    yield "view_chain", (_chain("x || x", 12, "SELECT x FROM more") + "SELECT x FROM t12")
    yield (
        "hundred_tables",
        (
            "WITH "
            + _joined("t{} AS (SELECT * FROM wide)", 300)
            + " SELECT 1 FROM "
            + _joined("t{}", 60)
        ),
    )
    yield (
        "quoted_names",
        (
            'WITH "t 0" AS (SELECT name AS "x y" FROM singer), '
            + ", ".join(
                f'"t {i + 1}" AS (SELECT "x y" || [x y] AS `x y` FROM "t {i}")' for i in range(30)
            )
            + ' SELECT "x y" FROM "t 30"'
        ),
    )
    yield (
        "listed_columns",
        (
            "WITH t0(x) AS (SELECT name FROM singer), "
            + ", ".join(f"t{i + 1}(x) AS (SELECT x || x FROM t{i})" for i in range(30))
            + " SELECT x FROM t30"
        ),
    )
    yield (
        "no_alias",
        (
            "WITH t0 AS (SELECT name AS x FROM singer), "
            + ", ".join(
                f"t{i + 1} AS (SELECT {'x' if i == 0 else _again(i)} FROM t{i})" for i in range(9)
            )
            + " SELECT * FROM t9"
        ),
    )
    yield (
        "hidden_by_comments",
        _chain("x/**/||/* x */x", 30).replace(" AS (", "/*(*/AS(") + "SELECT x FROM t30",
    )
    yield "inner_with", _nested_with(20)
    yield "correlated", _correlated(20)


def _again(i: int) -> str:
    """The name that SQLite gives a column without one, twice."""
    return '"' + "x" + '" || "' + "x" + '"' if i == 1 else "*"


def _nested_with(levels: int) -> str:
    sql = "SELECT id AS x FROM singer"
    for i in range(levels):
        sql = f"WITH w{i} AS ({sql}) SELECT a.x || b.x AS x FROM w{i} a, w{i} b"
    return sql


def _correlated(levels: int) -> str:
    sql = "SELECT s.id + t.id"
    for _ in range(levels):
        sql = f"SELECT ({sql}) + ({sql})" if len(sql) < 20_000 else f"SELECT ({sql})"
    return f"SELECT ({sql}) FROM singer s, singer t"


def planner() -> Iterator[tuple[str, str]]:
    """Statements that are hard to plan."""
    tables = _joined("wide w{}", 60)
    keys = _joined("w{}.c1 = w0.c2", 60, " AND ")
    yield "join_60", f"SELECT 1 FROM {tables}"
    yield "join_60_keys", f"SELECT 1 FROM {tables} WHERE {keys}"
    yield (
        "join_all_pairs",
        (
            "SELECT 1 FROM "
            + _joined("wide w{}", 30)
            + " WHERE "
            + " AND ".join(
                f"w{i}.c1 = w{j}.c2" for i in range(30) for j in range(i) if (i + j) % 3 == 0
            )
        ),
    )
    yield (
        "natural_join",
        "SELECT 1 FROM " + " NATURAL JOIN ".join(_joined("wide w{}", 30).split(", ")),
    )
    yield (
        "left_joins",
        "SELECT 1 FROM wide w0 " + _joined("LEFT JOIN wide v{} ON v{}.c1 = w0.c2", 60, " "),
    )
    yield (
        "using_joins",
        "SELECT * FROM wide w0 " + _joined("JOIN wide v{} USING (c1, c2, c3)", 16, " "),
    )
    yield "or_chain", "SELECT 1 FROM wide WHERE " + _joined("c1 = {} AND c2 = {}", 200, " OR ")
    yield (
        "or_indices",
        (
            "SELECT 1 FROM wide a, wide b, wide c WHERE "
            + _joined("(a.c1 = {} OR b.c2 = a.c3 OR c.c4 = b.c1)", 100, " AND ")
        ),
    )
    yield (
        "or_join",
        "SELECT 1 FROM "
        + _joined("wide w{}", 12)
        + " WHERE "
        + _joined("(w0.c1 = {} OR w1.c2 = w2.c3 OR w3.c4 = {})", 60, " AND "),
    )
    yield "and_chain", "SELECT 1 FROM wide WHERE " + _joined("c1 > {}", 450, " AND ")
    yield (
        "between_chain",
        "SELECT 1 FROM wide WHERE " + _joined("c1 BETWEEN {} AND 9", 400, " AND "),
    )
    yield "in_list", f"SELECT 1 FROM wide WHERE c1 IN ({_joined('{}', 16_000)})"
    yield (
        "in_lists",
        "SELECT 1 FROM wide WHERE " + _joined(f"c1 IN ({_joined('9', 300)})", 100, " OR "),
    )
    yield (
        "in_lists_and",
        "SELECT 1 FROM wide WHERE "
        + _joined("(c1, c2) IN (SELECT c1, c2 FROM wide)", 100, " AND "),
    )
    yield "in_expressions", f"SELECT 1 FROM wide WHERE c1 IN ({_joined('c2 + {}', 6000)})"
    yield "like_prefixes", "SELECT 1 FROM body WHERE " + _joined("t LIKE 'a{}%'", 190, " OR ")
    yield "case_chain", f"SELECT CASE c1 {_joined('WHEN {} THEN {}', 4000, ' ')} END FROM wide"
    yield "case_calls", f"SELECT CASE {_joined('WHEN c1 = {} THEN c2', 4000, ' ')} END FROM wide"
    yield "group_terms", f"SELECT 1 FROM wide GROUP BY {_joined('c1 + {}', 1900)}"
    yield "order_terms", f"SELECT 1 FROM wide ORDER BY {_joined('c1 + {}', 1900)}"
    yield "order_indexed", "SELECT 1 FROM wide a, wide b, wide c ORDER BY " + _joined("a.c{}", 60)
    yield "distinct_columns", f"SELECT DISTINCT {_joined('c1 + {}', 1900)} FROM wide"
    yield "aggregates", f"SELECT {_joined('sum(c1 + {})', 190)} FROM wide"
    yield (
        "same_terms",
        f"SELECT {_joined('c1 + {}', 1900)} FROM wide GROUP BY {_joined('c1 + {}', 1900)}",
    )
    yield (
        "windows",
        "SELECT " + _joined("sum(c1) OVER (PARTITION BY c{} ORDER BY c2)", 110) + " FROM wide",
    )
    yield "compound_sorted", " UNION ".join(["SELECT c1, c2 FROM wide"] * 100) + " ORDER BY 1, 2"
    yield "compound_wide", " UNION ALL ".join(["SELECT * FROM wide"] * 100)
    yield (
        "compound_joined",
        "SELECT 1 FROM ("
        + " UNION ALL ".join(["SELECT c1 FROM wide"] * 60)
        + ") a, wide b, wide c WHERE a.c1 = b.c2 AND b.c1 = c.c2",
    )
    yield "scalars", "SELECT " + _joined("(SELECT max(c1) FROM wide WHERE c2 = {})", 900, "+")
    yield (
        "exists_chain",
        "SELECT 1 WHERE " + _joined("EXISTS (SELECT 1 FROM wide WHERE c1 = {})", 450, " AND "),
    )
    yield (
        "transitive",
        (
            "SELECT 1 FROM "
            + _joined("wide w{}", 40)
            + " WHERE "
            + _joined("w{}.c1 = w0.c1 AND w{}.c1 = 5", 40, " AND ")
        ),
    )
    yield (
        "star_join",
        (
            "SELECT 1 FROM wide f, "
            + _joined("wide d{}", 40)
            + " WHERE "
            + _joined("f.c{} = d{}.c4", 40, " AND ")
        ),
    )
    yield (
        "row_compare",
        "SELECT 1 FROM wide WHERE " + _joined("(c1, c2, c3) > (1, 2, {})", 200, " AND "),
    )
    yield "collations", "SELECT 1 FROM body ORDER BY " + _joined("t COLLATE NOCASE || {}", 300)
    yield "not_nots", "SELECT " + "NOT " * 450 + "1"
    yield "brackets", "SELECT " + "(" * 90 + "1" + ")" * 90
    yield "long_like_escape", f"SELECT t LIKE '{'%x' * 60}' ESCAPE 'x' FROM body"
    yield "literal", f"SELECT {_joined(chr(39) + 'a' * 9000 + chr(39), 10, '||')}"
    yield "deep_scalars", "SELECT " + "(SELECT " * 20 + "1" + ")" * 20
    yield "deep_in", "SELECT 1 WHERE 1 IN " + "(SELECT 1 WHERE 1 IN " * 12 + "(1)" + ")" * 12


def _in_recursion(expression: str, source: str) -> str:
    """An expression of `x`, which changes, worked out for ever."""
    return (
        f"WITH RECURSIVE c(x, n) AS (SELECT 1, 0 UNION ALL SELECT x + 1, {expression} "
        f"FROM c, {source}) SELECT count(n) FROM c"
    )


def steps() -> Iterator[tuple[str, str]]:
    """Work without end, of every sort."""
    crosses = _joined("wide w{}", 6)
    long = "(SELECT printf('%.60000c', 'a') AS t, printf('%.30000c', 'a') AS u)"
    yield "plain", ENDLESS + "SELECT count(*) FROM c"
    yield "cross", f"SELECT count(*) FROM {crosses}"
    yield "cross_sorted", f"SELECT w0.c1 FROM {crosses} ORDER BY w1.c2, w2.c3"
    yield "cross_distinct", f"SELECT DISTINCT w0.k, w1.k, w2.k FROM {crosses}"
    yield "cross_in", f"SELECT count(*) FROM {crosses} WHERE w0.k IN (SELECT k + w1.k FROM wide)"
    yield (
        "correlated",
        "SELECT count(*) FROM wide a WHERE (SELECT count(*) FROM wide b, wide c WHERE b.c1 > a.c1)",
    )
    yield (
        "frames",
        ENDLESS
        + (
            "SELECT sum(x) OVER (ORDER BY x GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE TIES) "
            "FROM (SELECT x FROM c LIMIT 20000)"
        ),
    )
    yield (
        "range_frames",
        ENDLESS
        + (
            "SELECT sum(x) OVER (ORDER BY x RANGE BETWEEN 5000 PRECEDING AND 5000 FOLLOWING) "
            "FROM (SELECT x FROM c LIMIT 50000)"
        ),
    )
    yield "percentiles", ENDLESS + "SELECT avg(x), total(x), group_concat(x % 2) FROM c"
    yield "compares", _in_recursion("t || 'x' > t || x", long)
    yield "nocase", _in_recursion("t COLLATE NOCASE = upper(t)", long)
    yield "casts", _in_recursion("CAST(replace(t, 'a', '1') AS INT)", long)
    yield "lengths", _in_recursion("length(t || x)", long)
    yield (
        "sorted_twice",
        ENDLESS + "SELECT x FROM (SELECT x FROM c LIMIT 900000) ORDER BY x % 1000, -x",
    )
    yield (
        "sorted_texts",
        ENDLESS + "SELECT x FROM (SELECT x FROM c LIMIT 700000) ORDER BY 'abcdefgh' || x",
    )
    yield "sorted_nocase", "SELECT a.k FROM body a, body b ORDER BY (a.t || b.k) COLLATE NOCASE"
    yield (
        "sorted_long",
        ENDLESS
        + f"SELECT x FROM {long}, (SELECT x FROM c LIMIT 1200) ORDER BY t || x COLLATE NOCASE",
    )
    yield (
        "recursive_join",
        "WITH RECURSIVE q(x) AS (SELECT 1 UNION SELECT a.k FROM wide a, q) SELECT count(*) FROM q, q b, q c",
    )
    yield (
        "mandelbrot",
        (
            "WITH RECURSIVE m(i, x, y) AS (SELECT 0, 0.1, 0.1 UNION ALL "
            "SELECT i + 1, x * x - y * y, 2 * x * y FROM m) SELECT max(x) FROM m"
        ),
    )
    yield (
        "auto_index",
        "SELECT count(*) FROM (SELECT c5 + k AS v FROM wide) a, (SELECT c6 + k AS v FROM wide) b, wide c WHERE a.v = b.v",
    )
    yield (
        "big_in",
        ENDLESS + "SELECT count(*) FROM c WHERE x IN (SELECT a.k * b.k FROM wide a, wide b)",
    )
    yield "sums_of_text", _in_recursion("replace(t, 'a', '1')", long)
    yield "patterns", _in_recursion("t LIKE '%' || u", long)
    yield (
        "patterns_line",
        f"SELECT {_joined(f't LIKE {chr(39)}%{chr(97) * 200}{{}}%{chr(39)}', 190, '+')} FROM {long}",
    )
    yield (
        "patterns_body",
        f"SELECT count(*) FROM body WHERE {_joined(f't LIKE {chr(39)}%{chr(97) * 200}{{}}b%{chr(39)}', 100, ' OR ')}",
    )
    yield (
        "patterns_loop",
        _in_recursion(f"t || x LIKE '%{'a' * 240}b%'", long),
    )
    yield "body_loop", ENDLESS + f"SELECT count(*) FROM body, c WHERE t LIKE '%{'a' * 240}b%'"
    yield "unions", " UNION ".join([ENDLESS_PART.format(i) for i in range(20)])


ENDLESS_PART = "SELECT * FROM (WITH RECURSIVE c{0}(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c{0}) SELECT x FROM c{0} LIMIT 50000)"


def full_text() -> Iterator[tuple[str, str]]:
    """Searches of a full-text table; skipped where the file has none."""
    yield "terms", f"SELECT count(*) FROM docs WHERE docs MATCH '{_joined('a', 5000, ' OR ')}'"
    yield "ands", f"SELECT count(*) FROM docs WHERE docs MATCH '{_joined('cat', 5000, ' AND ')}'"
    yield "phrase", f"SELECT count(*) FROM docs WHERE docs MATCH '\"{_joined('a', 5000, ' ')}\"'"
    yield (
        "near",
        f"SELECT count(*) FROM docs WHERE docs MATCH 'NEAR({_joined('a', 4000, ' ')}, 9999)'",
    )
    yield "brackets", f"SELECT count(*) FROM docs WHERE docs MATCH '{'(' * 3000}cat{')' * 3000}'"
    yield "prefix", f"SELECT count(*) FROM docs WHERE docs MATCH '{_joined('n*', 5000, ' OR ')}'"
    yield "nots", f"SELECT count(*) FROM docs WHERE docs MATCH '{_joined('a', 3000, ' NOT ')}'"
    yield "joined", "SELECT count(*) FROM " + _joined("docs d{}", 8) + " WHERE d0.docs MATCH 'cat'"
    yield "in_a_loop", ENDLESS + "SELECT count(*) FROM c, docs WHERE docs MATCH 'cat OR ' || x"


def all_statements() -> list[Hostile]:
    """All of them."""
    kinds = (formats, functions, json, memory, rows, written_out, planner, steps, full_text)
    return [Hostile(kind.__name__, name, sql) for kind in kinds for name, sql in kind()]
