"""References between tables, declared or inferred from names and values, and the links they form.

An inferred reference is suggested by a name and confirmed by the values. `singer_id` suggests
`singer.singer_id` or `singer.id`, `manager_id` in a table of employees suggests an employee, and
`campus` suggests the table `Campuses`. A suggested reference is accepted if the target column is
unique and contains up to `CHECKED` values of the referring column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlgym.database.database import Database
from sqlgym.database.schema import Column, ForeignKey, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis import english
from sqlgym.synthesis.lexicon import PREPOSITIONS, is_readable, word_set, words_of
from sqlgym.synthesis.nouns import quoted_table, table_words
from sqlgym.synthesis.roles import Role
from sqlgym.synthesis.schema import Bridge, Entity, Field, Link
from toolgym.errors import ToolError

CHECKED = 500
"""Maximum number of distinct values that are looked up in the target column."""
_ENDINGS = word_set("ID code number key reference ref")
_NO_REFERENCES = word_set("max min maximum minimum total count average expected")
_CHIEFS = word_set("manager supervisor boss head mentor advisor chief parent")
_ENDS = {"from": "origin", "to": "destination"}


def numbers_of(database: Database, sql: str) -> tuple[int, ...] | None:
    """Return the first row of a counting query, or None if it exceeds the budget of a query."""
    try:
        return tuple(int(value) for value in database.query(sql).rows[0])
    except ToolError:
        return None


def is_unique(database: Database, table: Table, column: str) -> bool:
    """Return whether a column is unique; False if counting takes too long."""
    if [c.name for c in table.columns if c.primary_key] == [column]:
        return True
    name = quoted(column)
    sql = f"SELECT count({name}), count(DISTINCT {name}) FROM {quoted(table.name)}"
    counts = numbers_of(database, sql)
    return counts is not None and counts[0] == counts[1] > 0


def declared_keys(database: Database, tables: Sequence[Table]) -> list[ForeignKey]:
    """Return the declared references to unique columns of these tables."""
    by_name = {table.name: table for table in tables}
    return [
        key
        for table in tables
        for key in table.foreign_keys
        if key.to_table in by_name
        and table.column(key.column)
        and by_name[key.to_table].column(key.to_column)
        and is_unique(database, by_name[key.to_table], key.to_column)
    ]


def inferred_keys(
    database: Database, tables: Sequence[Table], declared: Sequence[ForeignKey]
) -> Iterator[ForeignKey]:
    """Return the references that names suggest and values confirm, in the order of the tables."""
    referring = {(key.table, key.column) for key in declared}
    pairs = {(key.table, key.to_table) for key in declared}
    targets = [(table, key) for table in tables for key in _key_of(database, table)]
    for table in tables:
        for column in table.columns:
            if (table.name, column.name) in referring:
                continue
            for target, key in targets:
                is_mutual = (target.name, table.name) in pairs and column.primary_key
                if is_mutual or not _proposes(table, column, target, key):
                    continue
                least = 2 if table.name == target.name else 1
                if holds(database, table.name, column.name, target.name, key.name, least):
                    pairs.add((table.name, target.name))
                    yield ForeignKey(table.name, column.name, target.name, key.name)
                    break


def _key_of(database: Database, table: Table) -> list[Column]:
    """Return a single-column primary key, or else one of the first columns, if named like a key."""
    primary = [column for column in table.columns if column.primary_key]
    if primary:
        return primary if len(primary) == 1 else []
    for column in table.columns[:3]:
        if is_key_name(column.name, table) and is_unique(database, table, column.name):
            return [column]
    return []


def is_key_name(column: str, table: Table) -> bool:
    """Return whether a column is named like the key of its table: `id`, `singer_id`."""
    words, own = words_of(column), table_words(table.name)
    is_own = len(words) == 1 or words[:-1] == own[-len(words) + 1 :]
    return bool(words) and words[-1] in _ENDINGS and is_own


def _proposes(table: Table, column: Column, target: Table, key: Column) -> bool:
    words, own = words_of(column.name), table_words(target.name)
    if not words or _NO_REFERENCES & set(words):
        return False
    has_ending = words[-1] in _ENDINGS
    stem = words[:-1] if has_ending else words
    if table.name == target.name:
        return has_ending and bool(_CHIEFS & {*stem[:1], *stem[-1:]}) and column.name != key.name
    if words == words_of(key.name) and len(words) > 1:
        return not column.primary_key or not is_key_name(column.name, table)
    is_named = bool(own) and stem[-len(own) :] == own
    return is_named and (has_ending or column.type.upper() == key.type.upper())


def holds(
    database: Database, table: str, column: str, target: str, key: str, least: int = 1
) -> bool:
    """Return whether a key contains all checked values of a column. The minimum number of checked
    values is `least`.
    """
    name = quoted(column)
    counts = numbers_of(
        database,
        f"SELECT count(*), count(k) FROM (SELECT DISTINCT {name} AS v FROM {quoted(table)}"
        f" WHERE {name} IS NOT NULL LIMIT {CHECKED}) LEFT JOIN"
        f" (SELECT {quoted(key)} AS k FROM {quoted(target)}) ON v = k",
    )
    return counts is not None and counts[0] == counts[1] >= least


def with_links_marked(entities: Sequence[Entity], keys: Sequence[ForeignKey]) -> list[Entity]:
    """Return the entities with link tables marked and without duplicate nouns.

    For example, a row of the link table `book_authors` is neither a book nor an author. A link
    table refers to other tables, no table refers to it, and its rows have no name or no other
    columns.
    """
    words = {entity.name: set(table_words(entity.name)) - PREPOSITIONS for entity in entities}
    referred = {key.to_table for key in keys}
    nouns = Counter(entity.noun.one.lower() for entity in entities)
    marked = []
    for entity in entities:
        linked = {key.to_table for key in keys if key.table == entity.name} - {entity.name}
        mine = words[entity.name]
        others = [words[name] for name in words if name != entity.name]
        is_borrowed = mine <= set[str]().union(*others) and not any(mine <= each for each in others)
        is_bare = is_borrowed or not entity.noun.is_readable or not own_fields(entity)
        is_named = entity.label is not None and entity.label.is_name
        needed = 1 if is_borrowed and entity.key is None else 2
        is_link = entity.name not in referred and not is_named and is_bare
        entity = replace(entity, is_link=is_link and len(linked) >= needed)
        if nouns[entity.noun.one.lower()] > 1:
            entity = replace(entity, noun=quoted_table(entity.name))
        marked.append(entity)
    return marked


def own_fields(entity: Entity) -> list[Field]:
    """Return the columns of a table other than keys, references and dates."""
    return [f for f in entity.fields if f.role not in (Role.REFERENCE, Role.KEY, Role.DATE)]


def links_of(
    database: Database,
    entities: Sequence[Entity],
    declared: Sequence[ForeignKey],
    inferred: Sequence[ForeignKey],
) -> tuple[Link, ...]:
    """Return the links between entities, without those that have the same role."""
    by_name = {entity.name: entity for entity in entities}
    links = []
    for key in (*declared, *inferred):
        child, parent = by_name.get(key.table), by_name.get(key.to_table)
        if child is None or parent is None:
            continue
        counts = _counted(database, key, parent.rows)
        if counts is not None:
            role = _role(key, parent)
            is_plain = role == parent.noun.one and child is not parent
            ends = (child, parent, key.column, key.to_column)
            links.append(Link(*ends, role, is_plain, *counts, key in inferred))
    pairs = Counter(frozenset((link.child.name, link.parent.name)) for link in links)
    for i, link in enumerate(links):
        noun, both = link.parent.noun.one, frozenset((link.child.name, link.parent.name))
        if link.role.endswith(f" {noun}") and pairs[both] == 1 and len(both) == 2:
            links[i] = replace(link, role=noun, is_plain=True)  # `owner_deed` of a plot is its deed
    ways = Counter((link.child.name, link.parent.name, link.role) for link in links)
    return tuple(
        replace(
            link,
            is_plain=link.is_plain and pairs[frozenset((link.child.name, link.parent.name))] == 1,
        )
        for link in links
        if ways[link.child.name, link.parent.name, link.role] == 1
        and not (link.child is link.parent and link.role == link.parent.noun.one)
    )


def _role(key: ForeignKey, parent: Entity) -> str:
    """Return the role of the parent from the referring column, or else the noun of the parent."""
    own = parent.noun.one
    words = list(words_of(key.column))
    if key.column.lower() == key.to_column.lower() or not is_readable(key.column):
        return own
    while len(words) > 1 and words[-1] in _ENDINGS:
        words.pop()
    if words[-1] in _NO_ROLES or len(words[-1]) == 1:  # not a noun: `fixed_by`, `player_2`
        return '"'
    if words[0] == "ID" or len(words[0]) == 1:
        return own
    words[0] = _ENDS.get(words[0], words[0])
    nouns = own.split(" ")
    is_same = nouns[-len(words) :] == words or nouns[: len(words)] == words
    if not is_same and (words[-1].endswith("ing") or english.is_participle(words[-1])):
        return '"'  # `citing_id`
    return own if is_same or PREPOSITIONS & set(words) else " ".join(words)


_NO_ROLES = word_set("by from for one two three")


def _counted(database: Database, key: ForeignKey, parents: int) -> tuple[bool, int] | None:
    """Return whether parents have at most one child, and the number of parents without one.

    Returns:
        None if no child has a parent. If counting takes too long, the number is assumed to be 1.
    """
    child, parent = quoted(key.table), quoted(key.to_table)
    column, target = quoted(key.column), quoted(key.to_column)
    children = numbers_of(
        database, f"SELECT count({column}), count(DISTINCT {column}) FROM {child}"
    )
    used = numbers_of(
        database, f"SELECT count(*) FROM {parent} WHERE {target} IN (SELECT {column} FROM {child})"
    )
    if used == (0,):
        return None
    is_single = children is not None and children[0] == children[1]
    return is_single, parents - used[0] if used else 1


_ROLES = word_set("role type status kind function capacity")
"""Columns of a junction table that describe how two rows are linked."""


def bridges_of(entities: Sequence[Entity], links: Sequence[Link]) -> tuple[Bridge, ...]:
    """Return the many-to-many relations (`Bridge`) through junction tables.

    A junction table has two links to two tables, no table refers to it, and it has few other
    columns.
    """
    bridges = []
    for entity in entities:
        own = [link for link in links if link.child is entity]
        is_parent = any(link.parent is entity for link in links)
        is_named = entity.label is not None and entity.label.is_name
        if len(own) != 2 or own[0].parent is own[1].parent or is_parent or is_named:
            continue
        has_role = any(_ROLES & set(field.noun.one.split(" ")) for field in entity.fields)
        if not has_role and (entity.is_link or len(own_fields(entity)) <= 2):
            left, right = (_referring(link.parent, entity, links) for link in own)
            bridges.append(Bridge(own[0], own[1], is_only_way=left.isdisjoint(right)))
    pairs = [frozenset((b.left.parent.name, b.right.parent.name)) for b in bridges]
    ways = Counter(pairs + [frozenset((link.child.name, link.parent.name)) for link in links])
    clear = [b for b, pair in zip(bridges, pairs, strict=True) if ways[pair] == 1]
    return tuple(each for b in clear for each in (b, replace(b, left=b.right, right=b.left)))


def _referring(parent: Entity, junction: Entity, links: Sequence[Link]) -> set[str]:
    """Return a table and all tables that refer to it directly or indirectly, except by
    junctions.
    """
    found, new = set(), {parent.name}
    while new:
        found |= new
        new = {link.child.name for link in links if link.is_plain and link.parent.name in new}
        new -= found | {junction.name}
    return found
