"""Measures wrong queries that `match="suite"` accepts, correct ones that it rejects, and its cost.

Wrong queries are gold queries with one or two random edits of tokens. An edited query is wrong if
its result differs from that of the gold on any of `--proofs` large instances, which are made with
another seed and for its own literals. Otherwise it counts as equivalent. Correct queries are
rewritten gold queries (aliases, BETWEEN as two comparisons, IN as OR, swapped joins, ...).

    python benchmarks/sql_suite.py [--dataset bundled] [--golds 12] [--wrong 12] [--proofs 40]

`--golds` is a number per database, and `--wrong` a number per gold query.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlglot import TokenType, exp

from sqlgym.database.database import Database, open_database
from sqlgym.database.parsing import parse, tokens_of
from sqlgym.datasets.load import load_tasks
from sqlgym.judging.instances import gold_values, instance_rows
from sqlgym.judging.results import sound
from sqlgym.judging.source_rows import NoInstance, Source, read_source, write_instance
from sqlgym.judging.suite import GoldRun, Suite, gold_run, judge_on, suite_of
from toolgym.errors import ConfigurationError, ToolError

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
AGGREGATES = ("count", "sum", "avg", "min", "max")
PROOF_ROWS = 1_500


class Edits:
    """Random edits of the tokens of a gold."""

    def __init__(self, source: Source, draw: random.Random) -> None:
        self._source, self._draw = source, draw
        self._columns = sorted({c.name for table in source.tables for c in table.columns})
        self._lower = {name.lower() for name in self._columns}

    def wrong(self, sql: str) -> str:
        """Return a query with one or two edits."""
        for _ in range(self._draw.choice((1, 1, 2))):
            tokens = tokens_of(sql)
            choices = [
                (token.start, token.end + 1, new)
                for place, token in enumerate(tokens)
                for new in self._others(sql[token.start : token.end + 1], token, tokens, place)
            ]
            if choices:
                start, end, new = self._draw.choice(choices)
                sql = f"{sql[:start]}{new}{sql[end:]}"
        return sql

    def _others(self, text: str, token: Any, tokens: Sequence[Any], place: int) -> list[str]:
        draw, lower = self._draw, text.lower()
        following = tokens[place + 1].text if place + 1 < len(tokens) else ""
        if token.token_type is TokenType.NUMBER:
            number = float(text) if "." in text else int(text)
            return [str(number + 1), str(max(0, number - 1)), str(number * 2)]
        if token.token_type is TokenType.STRING:
            column = draw.choice(draw.choice(self._source.tables).columns)
            values = [v for v in column.values if isinstance(v, str)] or ["x"]
            near = text[1:-1][:-2] or "x"
            return [_quoted(draw.choice(values)), _quoted(near), _quoted(text[1:-1].lower())]
        if text in OPERATORS or text == "!=":
            return [operator for operator in OPERATORS if operator != text]
        if lower in AGGREGATES and following == "(":
            return [name for name in AGGREGATES if name != lower]
        if lower in self._lower and following != "(":
            return draw.sample(self._columns, min(3, len(self._columns)))
        others = {
            "and": ["OR"], "or": ["AND"], "distinct": [""], "not": [""], "desc": ["ASC", ""],
            "asc": ["DESC"], "union": ["INTERSECT", "EXCEPT"], "intersect": ["UNION"],
            "except": ["INTERSECT"], "*": [f"DISTINCT {draw.choice(self._columns)}"],
            "left": [""], "where": ["WHERE NOT "], "having": ["HAVING NOT "],
            "join": ["LEFT JOIN"], "select": ["SELECT DISTINCT"], "is": ["IS NOT"],
        }  # fmt: skip
        return others.get(lower, [])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# Correct queries ----------------------------------------------------------------------------------


def rewritten(sql: str, source: Source) -> Iterator[tuple[str, str]]:
    """Yield queries that are equivalent to a gold query, with the name of the change."""
    for name, change in REWRITINGS.items():
        tree = parse(sql)
        before = tree.sql(dialect="sqlite")
        new = change(tree, source)
        if new is not None and (text := new.sql(dialect="sqlite")) != before:
            yield name, text


def _each(kind: Any, change: Callable[[Any], exp.Expr | None]) -> Any:
    def work(tree: exp.Expr, source: Source) -> exp.Expr:
        def one(node: exp.Expr) -> exp.Expr:
            return (change(node) or node) if isinstance(node, kind) else node

        return tree.transform(one)

    return work


def _between(node: Any) -> exp.Expr:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
    return exp.Paren(this=exp.And(this=low, expression=exp.LTE(
        this=node.this, expression=node.args["high"])))  # fmt: skip


def _in_as_or(node: Any) -> exp.Expr | None:
    if not node.expressions:
        return None
    return exp.Paren(this=exp.or_(*(exp.EQ(this=node.this.copy(), expression=each)
                                    for each in node.expressions)))  # fmt: skip


def _turned(node: Any) -> exp.Expr:
    turned = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}
    return turned.get(type(node), type(node))(this=node.expression, expression=node.this)


def _integer_bound(node: Any) -> exp.Expr:
    opposite = {exp.GT: exp.LTE, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.LTE: exp.GT}[type(node)]
    inner = opposite(this=node.this, expression=node.expression)
    return exp.Not(this=exp.Paren(this=inner))


def _aliases(tree: exp.Expr, source: Source) -> exp.Expr | None:
    """Add an alias to the only table of a query, and qualify its columns."""
    tables = list(tree.find_all(exp.Table))
    if len(tables) != 1 or len(list(tree.find_all(exp.Select))) != 1 or tables[0].alias:
        return None
    table = source.table(tables[0].name)
    named = {each.alias for each in tree.find_all(exp.Alias)}
    for column in tree.find_all(exp.Column):
        known = table is not None and table.place(column.name) is not None
        if known and column.name not in named:
            column.set("table", exp.to_identifier("x1"))
    tables[0].set("alias", exp.TableAlias(this=exp.to_identifier("x1")))
    return tree


def _count_key(tree: exp.Expr, source: Source) -> exp.Expr | None:
    """Replace `count(*)` by a count of the first table's key, without outer joins."""
    selects = list(tree.find_all(exp.Select))
    if len(selects) != 1 or any(join.side for join in tree.find_all(exp.Join)):
        return None
    origin = tree.find(exp.From)
    table = source.table(origin.this.name) if origin is not None else None
    if origin is None or table is None or not table.keys or len(table.keys[0]) != 1:
        return None
    key = exp.column(table.columns[table.keys[0][0]].name, table=origin.this.alias_or_name)
    for count in tree.find_all(exp.Count):
        if isinstance(count.this, exp.Star):
            count.set("this", key.copy())
    return tree


def _other_way_round(tree: exp.Expr, source: Source) -> exp.Expr | None:
    """Swap the first two tables of an inner join."""
    joins = tree.args.get("joins") or []
    origin = tree.args.get("from_") or tree.args.get("from")
    if not joins or joins[0].side or not joins[0].args.get("on") or tree.find(exp.Star):
        return None
    first, second = origin.this.copy(), joins[0].this.copy()
    origin.set("this", second)
    joins[0].set("this", first)
    return tree


def _as_where(tree: exp.Expr, source: Source) -> exp.Expr | None:
    """Move the conditions of inner joins to WHERE."""
    joins = tree.args.get("joins") or []
    if not joins or any(join.side or not join.args.get("on") for join in joins):
        return None
    for join in joins:
        tree = tree.where(join.args["on"])  # type: ignore[attr-defined]
    for join in tree.args["joins"]:
        join.set("on", None)
        join.set("kind", "CROSS")
    return tree


def _parent_in(tree: exp.Expr, source: Source) -> exp.Expr | None:
    """Replace the join of a parent that only has a condition by IN."""
    joins = tree.args.get("joins") or []
    on = joins[0].args.get("on") if len(joins) == 1 and not joins[0].side else None
    where = tree.args.get("where")
    if not isinstance(on, exp.EQ) or where is None or tree.find(exp.Subquery):
        return None
    name = joins[0].alias_or_name
    table = source.table(joins[0].this.name)
    sides = {side.table: side for side in (on.this, on.expression) if isinstance(side, exp.Column)}
    own = sides.pop(name, None)
    if own is None or table is None or len(sides) != 1:
        return None
    if (table.place(own.name),) not in table.keys:
        return None
    outside = [c for c in tree.find_all(exp.Column) if c.table in (name, "") and c not in on.walk()]
    if any(c.find_ancestor(exp.Where) is None for c in outside):
        return None
    if any(c.table != name for c in where.find_all(exp.Column)):
        return None
    inner = exp.select(own.copy()).from_(joins[0].this.copy()).where(where.this.copy())
    tree.set("joins", None)
    condition = exp.In(this=next(iter(sides.values())).copy(), query=exp.Subquery(this=inner))
    tree.set("where", exp.Where(this=condition))
    return tree


def _wrapped(tree: exp.Expr, source: Source) -> exp.Expr | None:
    if tree.args.get("order") is not None:
        return None
    return exp.select("*").from_(exp.Subquery(this=tree, alias="q"))  # type: ignore[call-overload,no-any-return]


def _table_expression(tree: exp.Expr, source: Source) -> exp.Expr | None:
    if tree.args.get("order") is not None or tree.find(exp.With):
        return None
    return exp.select("*").from_("q").with_("q", as_=tree)  # type: ignore[no-any-return]


def _distinct_as_group(tree: exp.Expr, source: Source) -> exp.Expr | None:
    if tree.args.get("distinct") is None or tree.args.get("group") or tree.args.get("limit"):
        return None
    if not all(isinstance(each, exp.Column) for each in tree.expressions):
        return None
    tree.set("distinct", None)
    tree.set("group", exp.Group(expressions=[each.copy() for each in tree.expressions]))
    return tree


def _distinct_with_key(tree: exp.Expr, source: Source) -> exp.Expr | None:
    """Add DISTINCT to a query that selects a key of its only table."""
    if len(list(tree.find_all(exp.Table))) != 1 or not isinstance(tree, exp.Select):
        return None
    table = source.table(next(tree.find_all(exp.Table)).name)
    places = [table.place(e.name) for e in tree.expressions if isinstance(e, exp.Column) and table]
    if table is None or tree.args.get("group") or tree.find(exp.AggFunc):
        return None
    if not any(place is not None and table.columns[place].is_fresh for place in places):
        return None
    return tree.distinct()


def _extremum(tree: exp.Expr, source: Source) -> exp.Expr | None:
    """Replace `ORDER BY x DESC LIMIT 1` by `x = (SELECT max(x) ...)`, for one table."""
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if order is None or limit is None or len(order.expressions) != 1 or tree.args.get("group"):
        return None
    key = order.expressions[0]
    if limit.expression.sql() != "1" or not isinstance(key.this, exp.Column):
        return None
    if len(list(tree.find_all(exp.Table))) != 1 or tree.args.get("offset"):
        return None
    descends = bool(key.args.get("desc"))
    table = source.table(next(tree.find_all(exp.Table)).name)
    place = table.place(key.this.name) if table else None
    if table is None or place is None or (table.columns[place].has_nulls and not descends):
        return None
    for part in ("order", "limit"):
        tree.set(part, None)
    inner = tree.copy()
    kind = exp.Max if descends else exp.Min
    inner.set("expressions", [kind(this=key.this.copy())])
    return tree.where(exp.EQ(this=key.this, expression=exp.Subquery(this=inner)))  # type: ignore[attr-defined,no-any-return]


def _average(node: Any) -> exp.Expr | None:
    if isinstance(node.this, exp.Distinct):
        return None
    total = exp.Mul(this=exp.Sum(this=node.this.copy()), expression=exp.Literal.number("1.0"))
    return exp.Paren(this=exp.Div(this=total, expression=exp.Count(this=node.this.copy())))


def _by_place(tree: exp.Expr, source: Source) -> exp.Expr | None:
    order = tree.args.get("order")
    if order is None or not isinstance(tree, exp.Select):
        return None
    shown = [each.unalias().sql() for each in tree.expressions]
    for key in order.expressions:
        if key.this.sql() in shown:
            key.set("this", exp.Literal.number(shown.index(key.this.sql()) + 1))
    return tree


_BOUNDS = (exp.GT, exp.GTE, exp.LT, exp.LTE)
REWRITINGS: dict[str, Callable[[exp.Expr, Source], exp.Expr | None]] = {
    "BETWEEN as two comparisons": _each(exp.Between, _between),
    "IN as OR": _each(exp.In, _in_as_or),
    "comparison turned round": _each((exp.EQ, *_BOUNDS), _turned),
    "NOT of the opposite": _each(_BOUNDS, _integer_bound),
    "conditions in another order": _each(
        exp.And, lambda n: exp.And(this=n.expression, expression=n.this)
    ),
    "alias": _aliases,
    "count of the key": _count_key,
    "join the other way round": _other_way_round,
    "join as WHERE": _as_where,
    "join as IN": _parent_in,
    "in a subquery": _wrapped,
    "in a table expression": _table_expression,
    "DISTINCT as GROUP BY": _distinct_as_group,
    "DISTINCT of a key": _distinct_with_key,
    "LIMIT 1 as extremum": _extremum,
    "average as quotient": _each(exp.Avg, _average),
    "ORDER BY a place": _by_place,
}


# Measuring ----------------------------------------------------------------------------------------


class Proofs:
    """Large instances that decide whether a query is wrong.

    With `declared`, only the constraints that the file declares hold on them.
    """

    def __init__(self, source: Source, folder: Path, golds: Sequence[str], count: int) -> None:
        self.databases: list[Database] = []
        planted = gold_values(golds)
        for number in range(count):
            rows = instance_rows(source, planted, f"proof-{number}", PROOF_ROWS)
            file = folder / f"{number}.sqlite"
            try:
                write_instance(source, rows, file)
            except NoInstance:
                file.unlink(missing_ok=True)
                continue
            self.databases.append(Database(file))

    def differ(self, gold: str, other: str) -> bool:
        """Return whether two queries have different results on any instance."""
        for database in self.databases:
            try:
                if database.query(gold).rows == database.query(other).rows:
                    continue
            except ToolError:
                pass
            run = gold_run(database, gold)
            verdict = judge_on(database, gold, run, other) if run is not None else None
            if verdict is not None and not verdict.equal:
                return True
        return False


def declared_only(source: Source) -> Source:
    """Return the source without undeclared constraints: NULLs and duplicates where allowed."""
    tables = []
    for table in source.tables:
        single = {key[0] for key in table.keys if len(key) == 1}
        columns = tuple(
            dataclasses.replace(
                column,
                has_nulls=not any(place in key for key in table.keys),
                is_fresh=place in single,
            )
            for place, column in enumerate(table.columns)
        )
        tables.append(dataclasses.replace(table, columns=columns))
    return dataclasses.replace(source, tables=tuple(tables))


class Counts(Counter[str]):
    """Counts, and examples of wrong queries that were accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.accepted: list[tuple[str, str]] = []
        self.refused: list[tuple[str, str, str, str]] = []
        self.sound: list[float] = []
        self.suite: list[float] = []
        self.making: list[float] = []


def _run(database: Database, gold: str) -> GoldRun:
    run = gold_run(database, gold)
    if run is None:
        raise ValueError(f"{gold} was chosen, but cannot be compared")
    return run


def measure_wrong(
    counts: Counts, pairs: Sequence[tuple[str, str]], path: Path, suite: Suite, proofs: int
) -> None:
    """Count wrong queries that one database accepts, and those that the suite accepts."""
    source, database = read_source(path), open_database(path)
    queries = [sql for pair in pairs for sql in pair]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as wider:
        rules = Proofs(source, Path(folder), queries, proofs)
        declared = Proofs(declared_only(source), Path(wider), queries, proofs)
        for gold, wrong in pairs:
            run = _run(database, gold)
            verdict = judge_on(database, gold, run, wrong)
            if verdict is None or verdict.reason.startswith("error"):
                continue
            counts["run"] += 1
            if not verdict.equal:
                counts["wrong"] += 1
                counts["wrong as declared"] += 1
                continue
            differs = rules.differ(gold, wrong)
            as_declared = differs or declared.differ(gold, wrong)
            accepted = suite.judge(gold, wrong).verdict.equal
            if not accepted and not differs:
                counts["told apart by the suite, not by a proof"] += 1
            counts["not told apart"] += not as_declared and accepted
            for name, is_wrong in (("", differs), (" as declared", as_declared)):
                is_wrong = is_wrong or not accepted
                counts[f"wrong{name}"] += is_wrong
                counts[f"sound accepts{name}"] += is_wrong
                counts[f"suite accepts{name}"] += is_wrong and accepted
            if accepted and differs:
                counts.accepted.append((gold, wrong))


def measure_right(counts: Counts, golds: Sequence[str], path: Path, suite: Suite) -> None:
    """Count rewritten gold queries that the suite rejects, and time both verdicts."""
    source, database = read_source(path), open_database(path)
    for gold in golds:
        run = _run(database, gold)
        suite.judge(gold, gold)
        for name, right in rewritten(gold, source):
            try:
                start = time.perf_counter()
                result = database.query(right)
                verdict = sound(run.result, result, run.runs)
                between = time.perf_counter()
            except ToolError:
                counts[f"does not run: {name}"] += 1
                continue
            if not verdict.equal:
                counts[f"refused by sound: {name}"] += 1
                continue
            judged = suite.judge(gold, right)
            counts.sound.append(between - start)
            counts.suite.append(time.perf_counter() - between)
            counts[f"right: {name}"] += 1
            counts["right"] += 1
            if not judged.verdict.equal:
                counts["right and refused"] += 1
                counts.refused.append((name, judged.verdict.reason, gold, right))


def measure(dataset: str, golds: int, wrong: int, proofs: int, seed: int) -> Counts:
    """Measure all databases of a data set."""
    counts = Counts()
    for path, queries in sorted(golds_of(dataset).items()):
        draw = random.Random(f"benchmark-{seed}-{path.stem}")
        begun = time.process_time()
        suite = suite_of(path, queries)
        counts.making.append(time.process_time() - begun)
        counts["instances"] += len(suite.files)
        counts["bytes"] += sum(file.stat().st_size for file in suite.files)
        database = open_database(path)
        fair = [sql for sql in queries if (r := gold_run(database, sql)) and r.result.rows]
        edits = Edits(read_source(path), draw)
        chosen = draw.sample(fair, min(golds, len(fair)))
        pairs = [(gold, text) for gold in chosen
                 for text in dict.fromkeys(edits.wrong(gold) for _ in range(wrong))
                 if text != gold]  # fmt: skip
        measure_wrong(counts, pairs, path, suite, proofs)
        measure_right(counts, chosen, path, suite)
        print(f"{path.stem}: {dict(counts)}", flush=True)
    return counts


def golds_of(dataset: str) -> dict[Path, list[str]]:
    """Return the gold queries of all splits of a data set, by database."""
    found: dict[Path, set[str]] = defaultdict(set)
    for split in ("train", "dev", "test"):
        try:
            tasks = load_tasks(dataset, split)
        except ConfigurationError:
            continue
        for task in tasks:
            found[task.database].add(task.gold_sql)
    return {path: sorted(queries) for path, queries in found.items()}


def show(counts: Counts) -> None:
    """Print the results."""
    for name in ("", " as declared"):
        total = counts[f"wrong{name}"]
        for judge in ("sound", "suite"):
            accepted = counts[f"{judge} accepts{name}"]
            print(f"wrong{name}: {judge} accepts {accepted} of {total} ({accepted / total:.2%})")
    print(f"never told apart: {counts['not told apart']} of {counts['run']}")
    print(f"right: the suite refuses {counts['right and refused']} of {counts['right']}")
    for part in sorted(name for name in counts if ": " in name):
        print(f"  {part}: {counts[part]}")
    for name, times in (("sound", counts.sound), ("suite more", counts.suite)):
        print(f"{name}: median {statistics.median(times) * 1e6:.0f} microseconds a verdict")
    print(f"making: median {statistics.median(counts.making):.1f} s, {counts['instances']} files")
    for pair in counts.accepted[:15]:
        print("accepted:", *pair, sep="\n    ")
    for case in counts.refused[:15]:
        print("refused:", *case, sep="\n    ")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description="Measure the errors and the cost of match='suite'."
    )
    parser.add_argument("--dataset", default="bundled")
    parser.add_argument("--golds", type=int, default=12)
    parser.add_argument("--wrong", type=int, default=12)
    parser.add_argument("--proofs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    show(measure(options.dataset, options.golds, options.wrong, options.proofs, options.seed))


if __name__ == "__main__":
    main()
