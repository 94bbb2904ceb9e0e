"""References between tables: declared, or inferred from names and values; and as links.

A name proposes and the values decide. `singer_id` proposes `singer.singer_id` or `singer.id`,
`manager_id` a table of people, `campus` the table `Campuses`; kept is what refers to a unique
column that holds every value, up to `CHECKED` of them. Tables are compared by their singular words.

A link says who refers to whom, and as what: `employee.manager_id` makes a manager of an employee,
`concert.stadium_id` simply gives a concert its stadium. Where two ways lead from one table to
another, each is told by its role, so that no question leaves open which is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from sqlgym.database.database import Database
from sqlgym.database.schema import Column, ForeignKey, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis import english, lexicon
from sqlgym.synthesis.nouns import Noun, quoted_table
from sqlgym.synthesis.parts import is_plain, is_readable, words_of
from sqlgym.synthesis.schema import Bridge, Entity, Field, Link, Role
from toolgym.errors import ToolError

CHECKED = 500
"""Different values of a column that are looked up in the table that it may refer to."""
_ENDINGS = (("ID",), ("code",), ("number",), ("key",), ("reference",), ("ref",))
_COUNTED = frozenset(["max", "min", "maximum", "minimum", "total", "count", "average", "expected"])
"""Words of numbers of things."""
_CHIEFS = frozenset(
    ["manager", "supervisor", "boss", "head", "mentor", "advisor", "adviser", "chief"]
)
_STAFF = ("employee", "staff", "person", "teacher", "professor", "faculty", "instructor")


def declared_keys(database: Database, tables: list[Table]) -> list[ForeignKey]:
    """The declared references to a unique column of one of these tables."""
    names = {table.name: table for table in tables}
    keys = []
    for table in tables:
        for key in table.foreign_keys:
            target = names.get(key.to_table)
            if target is None or not target.column(key.to_column) or not table.column(key.column):
                continue
            if is_unique(database, target, key.to_column):
                keys.append(key)
    return keys


def inferred_keys(
    database: Database, tables: list[Table], declared: list[ForeignKey]
) -> Iterator[ForeignKey]:
    """References that names propose and values confirm, in the order of the tables."""
    referring = {(key.table, key.column) for key in declared}
    pairs = {(key.table, key.to_table) for key in declared}
    targets = [(table, key) for table in tables for key in _keys(database, table)]
    for table in tables:
        for column in table.columns:
            if (table.name, column.name) in referring:
                continue
            for target, key in targets:
                if not _proposes(table, column, target, key):
                    continue
                mutual = (target.name, table.name) in pairs and column.primary_key
                if not mutual and _holds(database, table, column, target, key):
                    pairs.add((table.name, target.name))
                    yield ForeignKey(table.name, column.name, target.name, key.name)
                    break


def is_unique(database: Database, table: Table, column: str) -> bool:
    """Whether no two rows share a value of a column; False where that takes too long to tell."""
    keys = [c.name for c in table.columns if c.primary_key]
    if keys == [column]:
        return True
    name = quoted(column)
    try:
        (row,) = database.query(
            f"SELECT count({name}) - count(DISTINCT {name}), count({name})"
            f" FROM {quoted(table.name)}"
        ).rows
    except ToolError:
        return False
    return bool(row[0] == 0 and row[1] > 0)


def table_words(table: str) -> tuple[str, ...]:
    """The words of a table's name, the last one in the singular, without "tbl" and the like."""
    words = list(words_of(table))
    while len(words) > 1 and words[0] in lexicon.ENTITY_PREFIXES:
        words.pop(0)
    while len(words) > 1 and words[-1] in lexicon.ENTITY_SUFFIXES | {"data", "info"}:
        words.pop()
    if words:
        words[-1] = english.singular(words[-1])
    return tuple(words)


def _keys(database: Database, table: Table) -> list[Column]:
    """Columns that may be referred to: the primary key, or else the first that looks like one."""
    primary = [column for column in table.columns if column.primary_key]
    if len(primary) == 1:
        return primary
    if primary:
        return []
    own = table_words(table.name)
    for column in table.columns[:3]:
        words = words_of(column.name)
        is_own = len(words) == 1 or words[:-1] == own[-len(words) + 1 :]
        if words[-1:] in _ENDINGS and is_own and is_unique(database, table, column.name):
            return [column]
    return []


def _proposes(table: Table, column: Column, target: Table, key: Column) -> bool:
    words, key_words = words_of(column.name), words_of(key.name)
    own = table_words(target.name)
    if not words:
        return False
    stem = words[:-1] if words[-1:] in _ENDINGS else words
    if _COUNTED & set(words) or (stem == words and words and _is_many(words[-1], own)):
        return False  # `max_guests` counts guests, whichever numbers their keys are
    stem = (*stem[:-1], english.singular(stem[-1])) if stem else ()
    if table.name == target.name:
        chief = bool(stem) and (stem[-1] in _CHIEFS or stem[0] == "parent")
        return chief and column.name != key.name and words[-1] == "ID"
    if words == key_words and len(words) > 1:
        return not column.primary_key or not _is_own(table, column)
    if stem and own and stem[-len(own) :] == own:
        return words[-1:] in _ENDINGS or column.type.upper() == key.type.upper()
    chief = bool(stem) and stem[-1] in _CHIEFS and words[-1] == "ID"
    return chief and bool(own) and own[-1] in _STAFF


def _is_many(word: str, own: tuple[str, ...]) -> bool:
    """Whether a word is the plural of a table's: a reference has its singular."""
    return bool(own) and word != own[-1] and english.singular(word) == own[-1]


def _is_own(table: Table, column: Column) -> bool:
    """Whether a primary key is named after its own table."""
    own, words = table_words(table.name), words_of(column.name)
    return words[:-1] == own[-len(words) + 1 :] or len(words) == 1


def _holds(database: Database, table: Table, column: Column, target: Table, key: Column) -> bool:
    """Whether every value, of those looked at, is one of the key's, and there are some."""
    name, source = quoted(column.name), quoted(table.name)
    sql = (
        f"SELECT count(*), count(k) FROM (SELECT DISTINCT {name} AS v FROM {source}"
        f" WHERE {name} IS NOT NULL LIMIT {CHECKED}) LEFT JOIN"
        f" (SELECT {quoted(key.name)} AS k FROM {quoted(target.name)}) ON v = k"
    )
    try:
        ((looked_at, matched),) = database.query(sql).rows
    except ToolError:
        return False
    return bool(looked_at == matched and looked_at > (0 if table.name != target.name else 1))


_ENDS = {"from": "origin", "to": "destination"}
_ROLE_ENDINGS = frozenset(["ID", "code", "number", "key", "reference"])


def links_of(
    database: Database,
    entities: list[Entity],
    declared: list[ForeignKey],
    inferred: list[ForeignKey],
) -> list[Link]:
    """The links between entities, with their counts; a link that cannot be counted is left out."""
    by_name = {entity.name: entity for entity in entities}
    links = []
    for key in (*declared, *inferred):
        child, parent = by_name[key.table], by_name[key.to_table]
        counts = _counted(database, key)
        if counts is None or counts[2] == 0:
            continue
        role = _role(key, parent)
        single, childless, _, orphans = counts
        links.append(
            Link(
                child,
                parent,
                key.column,
                key.to_column,
                role or f'"{key.column}"',
                _is_same(role, parent.noun) and child is not parent,
                bool(single),
                childless,
                orphans,
                key in inferred,
                role != parent.noun.one and not (role and is_plain(key.column)),
            )
        )
    return links


def distinct_links(
    entities: list[Entity], links: list[Link]
) -> tuple[tuple[Link, ...], tuple[Bridge, ...]]:
    """Links that say which of several ways they are, and the bridges over junction tables."""
    pairs = Counter(frozenset((link.child.name, link.parent.name)) for link in links)
    unique = [
        replace(
            link,
            is_plain=link.is_plain and pairs[frozenset((link.child.name, link.parent.name))] == 1,
        )
        for link in links
    ]
    junctions = [entity for entity in entities if _is_junction(entity, unique)]
    bridges = []
    for entity in junctions:
        left, right = [link for link in unique if link.child.name == entity.name]
        bridges += [Bridge(left, right), Bridge(right, left)]
    ways = Counter(frozenset((b.left.parent.name, b.right.parent.name)) for b in bridges)
    ways.update(dict.fromkeys(pairs, 2))  # a direct reference is the plainer way
    return tuple(unique), tuple(
        bridge
        for bridge in bridges
        if ways[frozenset((bridge.left.parent.name, bridge.right.parent.name))] == 2
    )


def with_distinct_nouns(entities: list[Entity], keys: list[ForeignKey]) -> list[Entity]:
    """Tables whose nouns would mislead are spoken of by the names of the tables.

    These are nouns that collide. A row that is named by nothing but what its table links is a
    link: one of `book_authors` is neither a book nor an author.
    """
    nouns = {entity.name: entity.noun for entity in entities}
    counts = Counter(entity.noun.one.lower() for entity in entities)
    words = {entity.name: set(entity.noun.one.split(" ")) for entity in entities}
    result = []
    for entity in entities:
        order = [key.to_table for key in keys if key.table == entity.name]
        linked = {table for table in order if table != entity.name}
        borrowed = set[str]().union(*(words[name] for name in linked))
        is_owned = any(words[entity.name] <= words[name] for name in linked)
        is_borrowed = words[entity.name] <= borrowed and not is_owned
        is_bare = not entity.noun.is_readable and len(_own_fields(entity)) <= 2
        if len(linked) > 1 and (is_borrowed or is_bare):
            ends = [nouns[table] for table in dict.fromkeys(order) if table != entity.name]
            entity = replace(entity, noun=_link_noun(entity, ends))
        elif counts[entity.noun.one.lower()] > 1:
            entity = replace(entity, noun=quoted_table(entity.name))
        result.append(entity)
    counts = Counter(entity.noun.one.lower() for entity in result)
    return [
        replace(entity, noun=quoted_table(entity.name))
        if counts[entity.noun.one.lower()] > 1
        else entity
        for entity in result
    ]


def _link_noun(entity: Entity, ends: list[Noun]) -> Noun:
    """Of a row that links others: "book-author link"."""
    if len(ends) != 2 or not all(noun.is_readable for noun in ends):
        return quoted_table(entity.name)
    pair = "-".join(noun.one for noun in ends)
    return Noun(f"{pair} link", f"{pair} links")


def _is_junction(entity: Entity, links: list[Link]) -> bool:
    """Two references to two tables, and hardly anything of its own."""
    own = [link for link in links if link.child.name == entity.name]
    if len(own) != 2 or own[0].parent.name == own[1].parent.name:
        return False
    if any(link.parent.name == entity.name for link in links):
        return False
    others = _own_fields(entity)
    return (len(others) <= 2 and entity.label is None) or len(others) == 0


def _own_fields(entity: Entity) -> list[Field]:
    """What a row says besides what it links, and when."""
    return [f for f in entity.fields if f.role not in (Role.REFERENCE, Role.KEY, Role.DATE)]


def _role(key: ForeignKey, parent: Entity) -> str:
    """What the referring column calls the parent; "" if it cannot be read."""
    if key.column.lower() == key.to_column.lower():  # `atomic_number` is no role of an element
        return parent.noun.one
    words = list(words_of(key.column))
    if not is_readable(key.column):
        return parent.noun.one if words[-1:] == ["ID"] and len(words) < 3 else ""
    while len(words) > 1 and words[-1] in _ROLE_ENDINGS:
        words.pop()
    if not words or words == ["ID"] or len(words[0]) == 1:
        return parent.noun.one
    if len(words) > 1 and words[0] in _ENDS:
        words[0] = _ENDS[words[0]]
    own = parent.noun.one.split(" ")
    before = words[: -len(own)]
    if words[-len(own) :] == own and before and before[-1] in lexicon.PERSONS | _CHIEFS:
        words = before  # `manager_employee_id` is of a manager
    role = " ".join(words)
    if lexicon.PREPOSITIONS & set(words):
        return ""
    return parent.noun.one if _is_same(role, parent.noun) else role


def _is_same(role: str, noun: Noun) -> bool:
    """Whether a role is the parent's own noun, or the end or the start of it."""
    role, one = (text.replace("isation", "ization") for text in (role, noun.one))
    words, own = role.split(" "), one.split(" ")
    return own[-len(words) :] == words or own[: len(words)] == words


def _counted(database: Database, key: ForeignKey) -> tuple[int, int, int, int] | None:
    """Whether parents have one child at most, childless parents, children with one, orphans."""
    child, parent = quoted(key.table), quoted(key.to_table)
    column, target = quoted(key.column), quoted(key.to_column)
    sqls = (
        f"SELECT count({column}) = count(DISTINCT {column}) FROM {child}",
        f"SELECT count(*) FROM {parent} WHERE {target} NOT IN"
        f" (SELECT {column} FROM {child} WHERE {column} IS NOT NULL)",
        f"SELECT count(*) FROM {child} WHERE {column} IN (SELECT {target} FROM {parent})",
        f"SELECT count({column}) FROM {child} WHERE {column} NOT IN"
        f" (SELECT {target} FROM {parent} WHERE {target} IS NOT NULL)",
    )
    try:
        single, childless, linked, orphans = (int(database.query(sql).rows[0][0]) for sql in sqls)
    except ToolError:
        return None
    return single, childless, linked, orphans
