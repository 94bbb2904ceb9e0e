"""What the rows of a table are called by in an answer: a name if it is unique, else the key.

First and last name count as one name. A label never has a NULL and never two rows the same, so an
answer that gives it is well defined.
"""

from __future__ import annotations

from sqlgym.database import Database
from sqlgym.sqlite_file import quoted
from sqlgym.synthesis import lexicon, roles
from sqlgym.synthesis.naming import words_of
from sqlgym.synthesis.world import Entity, Field, Label, Role
from toolgym.errors import ToolError

_LAST_NAMES = ("last name", "surname", "family name")
_ENDINGS = frozenset(["ID", "code", "number", "key"])


def named(column: str, table_words: tuple[str, ...]) -> bool:
    """Whether a column is named like the key of its table: `id`, `singer_id`."""
    words = words_of(column)
    if not words or words[-1] not in _ENDINGS:
        return False
    return len(words) == 1 or words[:-1] == table_words[-len(words) + 1 :]


def label_of(database: Database, entity: Entity) -> Label | None:
    """The label of a table's rows; None if they cannot be told apart."""
    full = _full_name(entity)
    if full and _is_unique_together(database, entity, full):
        return Label(full, True)
    names = [field for field in entity.fields if _can_be_name(field)]
    own = [field for field in names if _is_own(field, entity) and field.is_unique]
    if own:
        return Label((own[0],), True)
    if not full and len(names) == 1 and names[0].is_unique and not _is_of_another(names[0]):
        return Label((names[0],), False)
    texts = [field for field in entity.fields if field.role is Role.TEXT and _says_what(field)]
    if texts and not names:
        return Label((texts[0],), False)
    key = entity.key
    if key is not None and key.is_unique and not key.nulls:
        return Label((key,), False)
    unique = [f for f in entity.fields if f.role is Role.CODE and f.is_unique and not f.nulls]
    return Label((unique[0],), False) if unique else None


def _can_be_name(field: Field) -> bool:
    return field.role is Role.NAME and field.is_full


def _is_own(field: Field, entity: Entity) -> bool:
    """Whether a name is that of the row, not of something else in it (`manager_name`)."""
    words = field.noun.one.split(" ")
    plain = len(words) == 1 and words[0] in ("name", "title")
    of_table = entity.noun.one.endswith(field.noun.one)
    return plain or of_table or words[0] in ("full", "common", "official", "display")


def _is_of_another(field: Field) -> bool:
    words = field.noun.one.split(" ")
    return words[0] in lexicon.PERSONS or words[0] in ("first", "last", "middle", "user", "login")


def _says_what(field: Field) -> bool:
    """Whether a text is one short line, different in each row and no address or number."""
    clean = field.is_full and field.is_unique
    words = set(field.noun.one.split(" "))
    return (
        clean
        and field.noun.is_readable
        and not words & roles.NO_LABEL
        and all(len(value) <= 40 and roles.is_typable(value) for value in field.values)
    )


def _full_name(entity: Entity) -> tuple[Field, Field] | None:
    nouns = {field.noun.one: field for field in entity.fields}
    first = nouns.get("first name") or nouns.get("given name")
    last = next((nouns[name] for name in _LAST_NAMES if name in nouns), None)
    if first is None or last is None or first.nulls or last.nulls:
        return None
    both = (first, last)
    if any(f.has_blanks or any(map(roles.is_unclean, map(str, f.values))) for f in both):
        return None
    return both


def _is_unique_together(database: Database, entity: Entity, fields: tuple[Field, ...]) -> bool:
    names = ", ".join(quoted(field.name) for field in fields)
    source = quoted(entity.name)
    try:
        found = database.query(
            f"SELECT count(*) FROM (SELECT 1 FROM {source} GROUP BY {names} HAVING count(*) > 1)"
        )
    except ToolError:
        return False
    return bool(found.rows[0][0] == 0)
