"""References as links that a question can speak of: who refers to whom, and as what.

`employee.manager_id` makes a manager of an employee, `concert.stadium_id` simply gives a concert
its stadium. Where two ways lead from one table to another, each is told by its role, so that no
question leaves open which is meant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sqlgym.database.database import Database
from sqlgym.database.schema import ForeignKey
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis.language import lexicon
from sqlgym.synthesis.language.naming import is_readable, words_of
from sqlgym.synthesis.language.nouns import Noun
from sqlgym.synthesis.reading.world import Bridge, Entity, Link, Role
from toolgym.errors import ToolError

_ENDS = {"from": "origin", "to": "destination"}
_ENDINGS = frozenset(["ID", "code", "number", "key", "reference"])


def links_of(
    database: Database, entities: list[Entity], known: list[ForeignKey], guessed: list[ForeignKey]
) -> list[Link]:
    """The links between entities, with their counts; a link that cannot be counted is left out."""
    by_name = {entity.name: entity for entity in entities}
    links = []
    for key in (*known, *guessed):
        child, parent = by_name[key.table], by_name[key.to_table]
        counted = _counted(database, key)
        if counted is None or counted[2] == 0:
            continue
        role = _role(key, parent)
        single, childless, _, orphans = counted
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
                key in guessed,
            )
        )
    return links


def finished(
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

    These are nouns that collide, and those that name nothing but what a table links: a row of
    `book_authors` is neither a book nor an author.
    """
    counted = Counter(entity.noun.one.lower() for entity in entities)
    words = {entity.name: set(entity.noun.one.split(" ")) for entity in entities}
    result = []
    for entity in entities:
        linked = {key.to_table for key in keys if key.table == entity.name} - {entity.name}
        borrowed = set[str]().union(*(words[name] for name in linked))
        is_borrowed = len(linked) > 1 and words[entity.name] <= borrowed
        if counted[entity.noun.one.lower()] > 1 or is_borrowed:
            shown = entity.name.replace('"', '""')
            noun = Noun(f'record in "{shown}"', f'records in "{shown}"', False)
            entity = replace(entity, noun=noun)
        result.append(entity)
    return result


def _is_junction(entity: Entity, links: list[Link]) -> bool:
    """Two references to two tables, and hardly anything of its own."""
    own = [link for link in links if link.child.name == entity.name]
    if len(own) != 2 or own[0].parent.name == own[1].parent.name:
        return False
    if any(link.parent.name == entity.name for link in links):
        return False
    others = [f for f in entity.fields if f.role not in (Role.REFERENCE, Role.KEY, Role.DATE)]
    return (len(others) <= 2 and entity.label is None) or len(others) == 0


def _role(key: ForeignKey, parent: Entity) -> str:
    """What the referring column calls the parent; "" if it cannot be read."""
    if key.column.lower() == key.to_column.lower():  # `atomic_number` is no role of an element
        return parent.noun.one
    words = list(words_of(key.column))
    if not is_readable(key.column):
        return parent.noun.one if words[-1:] == ["ID"] and len(words) < 3 else ""
    while len(words) > 1 and words[-1] in _ENDINGS:
        words.pop()
    if not words or words == ["ID"] or len(words[0]) == 1:
        return parent.noun.one
    if len(words) > 1 and words[0] in _ENDS:
        words[0] = _ENDS[words[0]]
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
