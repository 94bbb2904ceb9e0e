"""The rows that a question is about: a table, conditions, and the words for them.

Examples of the words are "singers with an age of more than 30", "employees whose salary is at least
4000 and whose department's city is Oslo" and, for a junction table, "singers of the concert Super
Bootcamp".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlgym.synthesis import conditions, english, roles, spoken_values
from sqlgym.synthesis.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query
from sqlgym.synthesis.schema import Bridge, Entity, Field, Link, Role, identifier, literal


@dataclass(frozen=True)
class Rows:
    """Rows of a table.

    Attributes:
        source: The text after FROM.
        alias: Alias of the table in `source`; "" if it is the only table.
        tables: Names of all tables in `source`.
        after: The conditions as words after the noun, with a leading space.
        distinct_key: Column to count instead of rows, if a row may occur twice; else "".
    """

    entity: Entity
    source: str
    alias: str
    tables: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    after: str = ""
    distinct_key: str = ""

    @property
    def where(self) -> tuple[str, ...]:
        """The conditions in SQL."""
        return tuple(each.sql for each in self.conditions)

    @property
    def many(self) -> str:
        """The rows as a noun phrase without an article."""
        return self.entity.noun.many + self.after

    @property
    def all(self) -> str:
        """The rows as a noun phrase with "all" or "the"."""
        return f"{'the' if self.after else 'all'} {self.many}"

    def free(self, fields: Sequence[Field]) -> list[Field]:
        """Return the columns that no condition restricts."""
        used = {name for each in self.conditions for name in each.columns}
        return [f for f in fields if f.name not in used and f.noun.one not in self.after]

    def columns(self, fields: Sequence[Field]) -> tuple[str, ...]:
        """Return columns of the rows in SQL."""
        return tuple(field.sql(self.alias) for field in fields)

    def query(self, *select: str, **clauses: Any) -> Query:
        """Return a query over the rows."""
        return Query(select, self.source, self.where, **clauses)

    def candidate(self, question: str, query: Query, **facts: Any) -> Candidate:
        """Return a candidate about the rows."""
        return proven(question, query, self.tables, self.conditions, self.distinct_key, **facts)


def proven(
    question: str,
    query: Query,
    tables: Sequence[str],
    found: Sequence[Condition] = (),
    distinct_key: str = "",
    **facts: Any,
) -> Candidate:
    """Return a candidate whose conditions must all have an effect and allow only one
    interpretation.

    Args:
        found: The conditions of the query.
        distinct_key: Column to count instead of rows; the result must be the same.
    """
    sql = query.sql()
    readings = [sql.replace(each.sql, other) for each in found for other in each.readings]
    if distinct_key and "count(*)" in sql:
        readings.append(sql.replace("count(*)", f"count(DISTINCT {distinct_key})"))
    facts["readings"] = (*readings, *facts.get("readings", ()))
    facts["contrasts"] = (*query.weaker(), *facts.get("contrasts", ()))
    return Candidate(question, sql, tuple(dict.fromkeys(tables)), **facts)


def compound(question: str, word: str, sides: Sequence[Query], tables: Sequence[str]) -> Candidate:
    """Return a candidate with INTERSECT or EXCEPT, whose result must differ from that of each
    side.
    """
    alone = [replace(side, distinct=True).sql() for side in sides]
    sql = f" {word} ".join(side.sql() for side in sides)
    contrasts = tuple(alone[: 1 + (word == "INTERSECT")])
    return Candidate(question, sql, tuple(tables), contrasts)


def entity_of(draft: Draft, fits: Callable[[Entity], Any] = bool) -> Entity:
    """Return an eligible table that is not a junction table (a table whose rows only link other
    rows).
    """
    links = {bridge.left.child.name for bridge in draft.world.bridges}
    return draft.pick(
        entity
        for entity in draft.world.entities
        if not entity.is_link
        and entity.name not in links
        and any(field.role is not Role.OTHER for field in entity.fields)
        and fits(entity)
    )


def is_said(link: Link) -> bool:
    """Return whether a question can name the role of the parent table."""
    return not link.role.startswith('"') and link.role != link.child.noun.one


def role_of(link: Link) -> str:
    """Return the role of the parent for the child: "stadium", "manager"."""
    return link.parent.noun.one if link.is_plain else link.role


def chain_of(draft: Draft, links: Sequence[Link], chance: float) -> list[Link]:
    """Draw one of the given links, sometimes followed by a link of its parent."""
    first = draft.pick(links)
    further = [
        link
        for link in draft.world.links
        if link.child is first.parent
        and link.parent not in (first.child, first.parent)
        and is_said(link)
    ]
    return [first, draft.pick(further)] if further and draft.chance(chance) else [first]


def joined(chain: Sequence[Link], tables: list[str]) -> str:
    """Return the joins from T1 along a chain of links, and add their tables to `tables`."""
    text, below = "", "T1"
    for link in chain:
        new = f"T{len(tables) + 1}"
        text += f" JOIN {link.parent.sql} AS {new} ON {link.on(below, new)}"
        tables.append(link.parent.name)
        below = new
    return text


def rows_of(
    draft: Draft,
    fits: Callable[[Entity], Any] = bool,
    own: Sequence[int] = (0, 1, 1),
    parents: int = 0,
) -> Rows:
    """Return random rows.

    Args:
        fits: Returns whether a table is eligible.
        own: Possible numbers of conditions on the table itself.
        parents: Number of conditions on rows that the table refers to.
    """
    links = [link for link in draft.world.links if is_said(link)]
    entity = entity_of(draft, lambda e: sum(k.child is e for k in links) >= parents and fits(e))
    alias = "T1" if parents else ""
    source, tables = entity.sql + " AS T1" * bool(parents), [entity.name]
    found: list[Condition] = []
    skipped: list[str] = []
    for _ in range(draft.pick(own)):
        found.append(conditions.condition(draft, entity, alias, skipped))
        skipped += found[-1].columns
    for _ in range(parents):
        near = [k for k in links if k.child is entity and k.column not in skipped]
        chain = chain_of(draft, near, 0.3)
        source += joined(chain, tables)
        found.append(_on_owner(draft, chain, f"T{len(tables)}"))
        skipped.append(chain[0].column)
    said = conditions.after(draft, found)
    return Rows(entity, source, alias, tuple(tables), tuple(found), said)


def _on_owner(draft: Draft, chain: Sequence[Link], alias: str) -> Condition:
    """Convert a condition on the last row of a chain of references into one on the first child."""
    end, role = chain[-1].parent, role_of(chain[-1])
    owner = role if len(chain) == 1 else f"{english.possessive(role_of(chain[0]))} {role}"
    if end.label and end.label.is_name and draft.chance(0.5):
        row = named_row(draft, end)
        short = f"of {row.said}" if len(chain) == 1 and chain[0].is_plain else ""
        return Condition(row.sql(alias), f"{owner} is {row.name}", short=short)
    found = conditions.condition(draft, end, alias)
    draft.unless(len(chain) > 1 and not found.has)  # avoid nested genitives
    return Condition(found.sql, found.of(owner), readings=found.readings)


def members(draft: Draft) -> Rows:
    """Return rows that a junction table links to a named row."""
    bridge = bridge_of(draft, lambda b: b.right.parent.label and b.right.parent.label.is_name)
    own, other = bridge.left.parent, bridge.right.parent
    row = named_row(draft, other)
    source = f"{own.sql} AS T1{junction(bridge)}"
    found = Condition(row.sql("T3"), "", short=f"of {row.said}")
    tables = (own.name, bridge.left.child.name, other.name)
    key = f"T2.{identifier(bridge.left.column)}"
    return Rows(own, source, "T1", tables, (found,), f" of {row.said}", key)


def bridge_of(draft: Draft, fits: Callable[[Bridge], Any] = bool) -> Bridge:
    """Return a junction that is the only relation between its two tables."""
    return draft.pick(b for b in draft.world.bridges if b.is_only_way and fits(b))


def junction(bridge: Bridge) -> str:
    """Return the joins from the left table T1 through the junction T2 to the right table T3."""
    return (
        f" JOIN {bridge.left.child.sql} AS T2 ON {bridge.left.on('T2', 'T1')}"
        f" JOIN {bridge.right.parent.sql} AS T3 ON {bridge.right.on('T2', 'T3')}"
    )


@dataclass(frozen=True)
class Named:
    """One row with its label.

    Attributes:
        name: The label in words: "Joe Sharp".
        said: The row in words: "the singer Joe Sharp".
    """

    fields: tuple[Field, ...]
    cells: tuple[Any, ...]
    name: str
    said: str

    def sql(self, alias: str = "") -> str:
        """Return the condition that selects the row."""
        pairs = zip(self.fields, self.cells, strict=True)
        return " AND ".join(f"{field.sql(alias)} = {literal(cell)}" for field, cell in pairs)


def named_row(draft: Draft, entity: Entity) -> Named:
    """Return a row with a label that is unique regardless of case, or rarely a row with only a
    key.
    """
    label = draft.pick(filter(None, [entity.label]))
    draft.unless(not label.is_said and draft.chance(0.9))
    cells = draft.pick(label.rows)
    folded = [str(cell).casefold().strip() for cell in cells]
    twins = sum([str(c).casefold().strip() for c in row] == folded for row in label.rows)
    draft.unless(twins > 1 or any(c is None or not roles.is_typable(c) for c in cells))
    name = spoken_values.quoted_text(" ".join(map(str, cells)))
    one = f"the {entity.noun.one} " * (not name.casefold().startswith(f"{entity.noun.one} "))
    if not label.is_name:
        name, one = name.strip("'"), f"the {entity.noun.one} with the {label.fields[0].noun.one} "
    return Named(label.fields, cells, name, one + name)


def label_of(draft: Draft, entity: Entity) -> tuple[Field, ...]:
    """Return the columns by which rows are listed: a name, or rarely a key."""
    label = entity.label
    if label and label.is_said:
        return label.fields
    for field in entity.having(Role.NAME):
        if field.is_full:
            return (field,)
    some_are_named = any(e.label and e.label.is_said for e in draft.world.entities)
    draft.unless(not label or label.fields[0].role is Role.REFERENCE)
    draft.unless(some_are_named and draft.chance(0.7))
    return label.fields if label else ()


def outputs(entity: Entity) -> list[Field]:
    """Return columns that a question may ask for in addition to the label."""
    label = entity.label.fields if entity.label else ()
    shown = (Role.QUANTITY, Role.YEAR, Role.DATE, Role.CATEGORY, Role.NAME, Role.TEXT)
    return [f for f in entity.having(*shown) if f not in label and f.is_full]


def listing(draft: Draft, entity: Entity, where: Sequence[str] = ()) -> tuple[Field, ...]:
    """Return the label, sometimes with a column that the conditions do not restrict to one
    value.
    """
    label, fixed = label_of(draft, entity), " ".join(where)
    others = [f for f in outputs(entity) if f not in label and f"{f.sql()} = " not in fixed]
    extra = draft.pick((0, 0, 1))
    return (*label, *draft.rng.sample(others, min(extra, len(others))))
