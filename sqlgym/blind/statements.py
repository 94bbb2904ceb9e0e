"""What a gold query does, as facts: rows, conditions, columns, groups, order, limit.

The SQL is parsed by sqlglot and taken apart. A `Block` is one SELECT; a query is one, or two with a
set operation between them. Casts are looked through, `strftime('%Y-%m', d) = '2018-02'` and
`d LIKE '2018-02-%'` are both a month, and a pair of conditions on a first and a last name is one on
a whole name. What is not understood raises `Unreadable`: it is never passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.blind.names import parts_of
from sqlgym.blind.words import singular
from sqlgym.database.parsing import careful, parse
from sqlgym.database.schema import ForeignKey, Schema

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Avg: "avg",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Count: "count",
}


class Unreadable(Exception):
    """A part of a statement that has no reading here; the message names it."""


@dataclass(frozen=True)
class Source:
    """One table of a block: its alias, the table, and the reference that it is joined by."""

    alias: str
    table: str


@dataclass(frozen=True)
class ColumnUse:
    """A column of a source; `part` is "%Y" or "%m" where only that much of a date is used."""

    source: Source
    column: str
    part: str = ""


@dataclass(frozen=True)
class Value:
    """What is selected or ordered by: a column, an aggregation of one, or a number of rows."""

    use: ColumnUse | None
    function: str = ""
    distinct: bool = False


@dataclass(frozen=True)
class SqlCondition:
    """One comparison; `inner` is the block of a sub-query, `alternative` marks a side of OR."""

    sign: str
    left: Value
    values: tuple[str, ...] = ()
    inner: Block | None = None
    alternative: bool = False
    second: ColumnUse | None = None
    textual: bool = True


@dataclass
class Join:
    """A join along a reference; `reference` is None if there is none such."""

    child: Source
    parent: Source
    reference: ForeignKey | None


@dataclass
class Block:
    """One SELECT."""

    sources: list[Source] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    selected: list[Value] = field(default_factory=list)
    conditions: list[SqlCondition] = field(default_factory=list)
    groups: list[ColumnUse] = field(default_factory=list)
    having: list[SqlCondition] = field(default_factory=list)
    order: list[tuple[Value, str]] = field(default_factory=list)
    limit: int | None = None
    distinct: bool = False


@dataclass
class Query:
    """A block, or two with a set operation (union, intersect, except) between them."""

    first: Block
    operation: str = ""
    second: Block | None = None

    def blocks(self) -> Iterator[Block]:
        """All blocks, sub-queries after what holds them."""
        for block in (self.first, self.second):
            if block is not None:
                yield from _nested(block)


def _nested(block: Block) -> Iterator[Block]:
    yield block
    for condition in (*block.conditions, *block.having):
        if condition.inner is not None:
            yield from _nested(condition.inner)


def query_of(sql: str, schema: Schema, references: list[ForeignKey]) -> Query:
    """The facts of a statement.

    Raises:
        Unreadable: It is no SQL, names what the schema lacks, or does what is not read here.
    """
    try:
        tree = parse(sql)
    except (SqlglotError, ValueError) as error:
        raise Unreadable("no SQL") from error
    reader = _Reader(schema, references)
    try:
        return careful(lambda: _query(tree, reader))
    except SqlglotError as error:
        raise Unreadable("too deep") from error


def _query(tree: exp.Expr, reader: _Reader) -> Query:
    for kind, name in ((exp.Union, "union"), (exp.Intersect, "intersect"), (exp.Except, "except")):
        if isinstance(tree, kind):
            if tree.args.get("order") or tree.args.get("limit") or not tree.args.get("distinct"):
                raise Unreadable("an ordered or repeated set operation")
            return Query(reader.block(tree.this), name, reader.block(tree.expression))
    return Query(reader.block(tree))


_READ = frozenset(
    (
        "expressions",
        "from",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "distinct",
        "kind",
    )
)


class _Reader:
    def __init__(self, schema: Schema, references: list[ForeignKey]) -> None:
        self.schema, self.references = schema, references

    def block(self, tree: exp.Expr) -> Block:
        if not isinstance(tree, exp.Select):
            raise Unreadable(type(tree).__name__)
        extra = [name for name, value in tree.args.items() if value and name not in _READ]
        if extra:
            raise Unreadable(f"clause {extra[0]}")
        block = Block(distinct=tree.args.get("distinct") is not None)
        self._sources(tree, block)
        block.selected = [self.value(e.unalias(), block) for e in tree.expressions]
        where, having = tree.args.get("where"), tree.args.get("having")
        if where:
            block.conditions = _whole_names(list(self.conditions(where.this, block)))
        if having:
            block.having = list(self.conditions(having.this, block))
        group, order, limit = tree.args.get("group"), tree.args.get("order"), tree.args.get("limit")
        if group:
            block.groups = [self.use(e, block) for e in group.expressions]
        if order:
            for ordered in order.expressions:
                direction = "desc" if ordered.args.get("desc") else "asc"
                block.order.append((self.value(ordered.this, block), direction))
        if limit:
            if not isinstance(limit.expression, exp.Literal) or limit.args.get("offset"):
                raise Unreadable("limit")
            if not str(limit.expression.this).isdecimal() or len(str(limit.expression.this)) > 9:
                raise Unreadable("limit")
            block.limit = int(limit.expression.this)
        return block

    def _sources(self, tree: exp.Select, block: Block) -> None:
        start = tree.args.get("from") or tree.args.get("from_")
        if start is None:
            raise Unreadable("no FROM")
        self._source(start.this, block)
        for join in tree.args.get("joins") or ():
            source = self._source(join.this, block)
            if (
                join.args.get("side")
                or join.args.get("kind") not in (None, "", "INNER")
                or not join.args.get("on")
            ):
                raise Unreadable("join")
            on = join.args["on"]
            if not isinstance(on, exp.EQ):
                raise Unreadable("join condition")
            left, right = self.use(on.this, block), self.use(on.expression, block)
            if source not in (left.source, right.source) or left.source == right.source:
                raise Unreadable("join condition")
            block.joins.append(self._join(left, right))

    def _source(self, tree: exp.Expr, block: Block) -> Source:
        if not isinstance(tree, exp.Table):
            raise Unreadable("a table that is a query")
        table = self.schema.get(tree.name)
        if table is None:
            raise Unreadable(f"table {tree.name[:40]!r}")
        source = Source(tree.alias or table.name, table.name)
        block.sources.append(source)
        return source

    def _join(self, left: ColumnUse, right: ColumnUse) -> Join:
        for child, parent in ((left, right), (right, left)):
            for key in self.references:
                if (key.table, key.column, key.to_table, key.to_column) == (
                    child.source.table,
                    child.column,
                    parent.source.table,
                    parent.column,
                ):
                    return Join(child.source, parent.source, key)
        return Join(left.source, right.source, None)

    def use(self, tree: exp.Expr, block: Block) -> ColumnUse:
        tree = _bare(tree)
        if isinstance(tree, (exp.TimeToStr, exp.Anonymous)):
            return self._part(tree, block)
        if not isinstance(tree, exp.Column):
            raise Unreadable(type(tree).__name__)
        for source in block.sources:
            if tree.table and tree.table.lower() != source.alias.lower():
                continue
            table = self.schema.get(source.table)
            column = table.column(tree.name) if table else None
            if column is not None:
                return ColumnUse(source, column.name)
        raise Unreadable(f"column {tree.name[:40]!r}")

    def _part(self, tree: exp.Expr, block: Block) -> ColumnUse:
        if isinstance(tree, exp.TimeToStr):
            form, inner = tree.args["format"], tree.this
        elif tree.name.lower() == "strftime" and len(tree.expressions) == 2:
            form, inner = tree.expressions
        else:
            raise Unreadable(tree.name[:40])
        while isinstance(inner, (exp.TsOrDsToTimestamp, exp.TsOrDsToDate, exp.Cast)):
            inner = inner.this
        plain = self.use(inner, block)
        written = form.this if isinstance(form, exp.Literal) else ""
        if written not in ("%Y", "%m", "%Y-%m"):
            raise Unreadable("date format")
        return ColumnUse(plain.source, plain.column, written)

    def value(self, tree: exp.Expr, block: Block) -> Value:
        tree = _bare(tree)
        for kind, name in _FUNCTIONS.items():
            if isinstance(tree, kind):
                inner, distinct = tree.this, False
                if isinstance(inner, exp.Distinct):
                    if len(inner.expressions) != 1:
                        raise Unreadable("distinct")
                    inner, distinct = inner.expressions[0], True
                if isinstance(inner, exp.Star):
                    return Value(None, name)
                return Value(self.use(inner, block), name, distinct)
        return Value(self.use(tree, block))

    def conditions(
        self, tree: exp.Expr, block: Block, alternative: bool = False
    ) -> Iterator[SqlCondition]:
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.And):
            if alternative:
                raise Unreadable("AND under OR")
            yield from self.conditions(tree.this, block)
            yield from self.conditions(tree.expression, block)
        elif isinstance(tree, exp.Or):
            yield from self.conditions(tree.this, block, True)
            yield from self.conditions(tree.expression, block, True)
        else:
            yield self._condition(tree, block, alternative)

    def _condition(self, tree: exp.Expr, block: Block, alternative: bool) -> SqlCondition:
        negated = isinstance(tree, exp.Not)
        if negated:
            tree = tree.this
        if isinstance(tree, exp.Is):
            if not isinstance(tree.expression, exp.Null):
                raise Unreadable("IS")
            sign = "known" if negated else "null"
            return SqlCondition(sign, self.value(tree.this, block), alternative=alternative)
        if isinstance(tree, exp.In):
            return self._membership(tree, block, negated, alternative)
        if isinstance(tree, exp.Between) and not negated:
            values = (_literal(tree.args["low"]), _literal(tree.args["high"]))
            return SqlCondition(
                "between", self.value(tree.this, block), values, alternative=alternative
            )
        if isinstance(tree, exp.Like):
            return self._like(tree, block, negated, alternative)
        sign = _SIGNS.get(type(tree), "")
        if not sign or negated:
            raise Unreadable(type(tree).__name__)
        left, right = tree.this, tree.expression
        if isinstance(_bare(left), exp.Literal):
            left, right, sign = right, left, _TURNED.get(sign, sign)
        if isinstance(_bare(right), exp.Subquery):
            inner = self.block(_bare(right).this)
            return SqlCondition(sign, self.value(left, block), (), inner, alternative)
        textual = isinstance(right, exp.Literal) and right.is_string
        return SqlCondition(
            sign, self.value(left, block), (_literal(right),), None, alternative, textual=textual
        )

    def _membership(
        self, tree: exp.In, block: Block, negated: bool, alternative: bool
    ) -> SqlCondition:
        sign = "not in" if negated else "in"
        query = tree.args.get("query")
        if query is not None:
            inner = self.block(query.this if isinstance(query, exp.Subquery) else query)
            return SqlCondition(sign, self.value(tree.this, block), (), inner, alternative)
        values = tuple(_literal(e) for e in tree.expressions)
        return SqlCondition(sign, self.value(tree.this, block), values, None, alternative)

    def _like(self, tree: exp.Like, block: Block, negated: bool, alternative: bool) -> SqlCondition:
        pattern = _literal(tree.expression)
        left = self.value(tree.this, block)
        body = pattern.strip("%")
        if negated or "%" in body or "_" in body or not body:
            raise Unreadable("LIKE")
        if (
            pattern == body + "%"
            and len(body) in (5, 8)
            and body[-1] == "-"
            and body[:4].isdecimal()
        ):
            if left.use is None:
                raise Unreadable("LIKE")
            part = "%Y" if len(body) == 5 else "%Y-%m"
            use = ColumnUse(left.use.source, left.use.column, part)
            return SqlCondition("=", Value(use), (body[:-1],), None, alternative)
        sign = {
            body + "%": "prefix",
            "%" + body: "suffix",
            "%" + body + "%": "contains",
            body: "=",
        }.get(pattern, "")
        if not sign:
            raise Unreadable("LIKE")
        return SqlCondition(sign, left, (body,), None, alternative)


def _bare(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, (exp.Cast, exp.Paren)):
        tree = tree.this
    return tree


def _literal(tree: exp.Expr) -> str:
    tree = _bare(tree)
    if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
        return "-" + str(tree.this.this)
    if not isinstance(tree, exp.Literal):
        raise Unreadable("a comparison with what is no value")
    return str(tree.this)


def _whole_names(conditions: list[SqlCondition]) -> list[SqlCondition]:
    """First and last name, both given, as one condition on a whole name."""
    plain = [
        c for c in conditions if c.sign == "=" and c.values and c.left.use and not c.alternative
    ]
    by_end: dict[str, SqlCondition] = {}
    for condition in plain:
        use = condition.left.use
        name = use.column.lower() if use else ""
        for mark, kind in (
            ("first", "first"),
            ("fname", "first"),
            ("last", "last"),
            ("lname", "last"),
        ):
            if mark in name:
                by_end[kind] = condition
    first, last = by_end.get("first"), by_end.get("last")
    if not first or not last or not first.left.use or not last.left.use:
        return conditions
    if first.left.use.source != last.left.use.source:
        return conditions
    whole = SqlCondition(
        "=", first.left, (f"{first.values[0]} {last.values[0]}",), second=last.left.use
    )
    return [whole if c is first else c for c in conditions if c is not last]


def literals_of(query: Query) -> list[str]:
    """All text values of a query, the longest first."""
    found = {
        text
        for block in query.blocks()
        for condition in block.conditions
        for text in condition.values
        if condition.textual
    }
    return sorted(found, key=lambda text: (-len(text), text))


def name_columns(schema: Schema, table: str) -> list[str]:
    """The columns that a row of a table may be called by, the likeliest first.

    `name` and `title`, then such with the table's own words before them, then a column that is
    called as the table is.
    """
    known = schema.get(table)
    if known is None:
        return []
    own = {singular(p) for p in parts_of(table)}
    ranked = []
    for column in known.columns:
        parts = [singular(p) for p in parts_of(column.name)]
        rest = [p for p in parts if p not in own]
        if rest in (["name"], ["title"]):
            ranked.append((0, column.name))
        elif not rest and parts and "id" not in parts and "INT" not in column.type.upper():
            ranked.append((1, column.name))
        elif parts and parts[-1] in ("name", "title"):
            ranked.append((2, column.name))
    return [name for _, name in sorted(ranked, key=lambda r: r[0])]
