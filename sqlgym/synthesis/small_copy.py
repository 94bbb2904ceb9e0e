"""A small copy of a large database: drafts are tried on it first.

Most drafts are refused, and each costs several queries, which take a tenth of a second and more on
a table of a million rows. So a draft is first tried on a copy with some thousand rows of each large
table. What fails there is not asked of the file, and what it would cost there is known as well:
that grows with the rows. Each large table is read once or twice to make the copy.

The rows are chosen so that references lead somewhere: some rows of a table to which others refer,
then all rows that refer to one of them, then whatever else these refer to. They are rows of the
file, so what is said of single rows on the copy is true of the file too.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sqlgym.database.database import Database
from sqlgym.database.sqlite_file import quoted
from sqlgym.judging.source_rows import end_after, parents_first
from sqlgym.synthesis.schema import LARGE, Entity, Link, World
from toolgym.errors import EnvironmentFault

ROWS = 10_000
"""Rows of a large table that are copied, about."""
_LEAST = 100
"""Rows of a table to which others refer that are copied, at least."""
_STEPS = 4_000_000_000
"""Virtual-machine steps that making a copy may take."""


@dataclass
class SmallCopy:
    """A copy with some of the rows of a database.

    Attributes:
        times: How many times the rows of the copy the file has, by table.
        unlike: Tables that could not be made by their own words, and may compare texts differently.
    """

    database: Database
    times: dict[str, float]
    unlike: frozenset[str]
    folder: tempfile.TemporaryDirectory[str] = field(repr=False)

    def ticks(self, ticks: int, tables: tuple[str, ...]) -> float:
        """Ticks that a query takes on the file, from those that it takes on the copy."""
        return ticks * max((self.times.get(table, 1.0) for table in tables), default=1.0)

    def close(self) -> None:
        """Remove it."""
        self.database.close_idle()
        self.folder.cleanup()


def small_copy(original: Database, world: World) -> SmallCopy | None:
    """A copy of a database with a large table; None where there is none, or it cannot be made."""
    if all(entity.rows <= LARGE for entity in world.entities):
        return None
    folder = tempfile.TemporaryDirectory(prefix="toolgym-synthesis-")
    path = Path(folder.name, original.path.name)
    try:
        with closing(sqlite3.connect(path, isolation_level=None, uri=True)) as connection:
            times, unlike = _fill(connection, original.path, world)
        return SmallCopy(Database(path, original.limits), times, unlike, folder)
    except (OSError, sqlite3.Error, sqlite3.Warning, EnvironmentFault):
        folder.cleanup()
        return None


def _fill(
    connection: sqlite3.Connection, original: Path, world: World
) -> tuple[dict[str, float], frozenset[str]]:
    end_after(connection, _STEPS)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    uri = f"{original.absolute().as_uri()}?mode=ro&immutable=1"
    connection.execute("ATTACH ? AS original", (uri,))
    connection.execute("BEGIN")
    unlike = frozenset(e.name for e in world.entities if not _create(connection, e))
    entities = {entity.name: entity for entity in world.entities}
    parents: dict[str, set[str]] = {name: set() for name in entities}
    for link in world.links:
        parents[link.child.name].add(link.parent.name)
    order = [entities[name] for name in parents_first(parents)]
    for entity in order:
        _copy(connection, entity, _rows_of(connection, entity, world))
    for entity in reversed(order):
        for link in world.links:
            if link.child is entity and link.parent is not entity:
                _copy(connection, link.parent, _referred(link))
    connection.execute("COMMIT")
    times = {}
    for entity in world.entities:
        sql = f"SELECT count(*) FROM main.{quoted(entity.name)}"
        times[entity.name] = entity.rows / max(1, connection.execute(sql).fetchone()[0])
    return times, unlike


def _create(connection: sqlite3.Connection, entity: Entity) -> bool:
    """Make a table as the file does, by its own words; else one of its columns and its key.

    Returns:
        Whether it was made by its own words.
    """
    sql = "SELECT sql FROM original.sqlite_master WHERE type = 'table' AND name = ?"
    made = connection.execute(sql, (entity.name,)).fetchone()
    if made is not None and "virtual" not in made[0].lower()[:20]:
        try:
            connection.execute(made[0])
        except (sqlite3.Error, sqlite3.Warning):  # a function or a collation that is not known here
            pass
        else:
            return True
    info = connection.execute(f"PRAGMA original.table_xinfo({quoted(entity.name)})").fetchall()
    seen = [column for column in info if column[6] != 1]  # not what a virtual table hides
    columns = [f"{quoted(name)} {quoted(kind) if kind else ''}" for _, name, kind, *_ in seen]
    keys = {column[5]: column[1] for column in seen if column[5]}
    if keys:
        columns.append(f"PRIMARY KEY ({', '.join(quoted(keys[place]) for place in sorted(keys))})")
    connection.execute(f"CREATE TABLE main.{quoted(entity.name)} ({', '.join(columns)})")
    return False


def _copy(connection: sqlite3.Connection, entity: Entity, which: str) -> None:
    name = quoted(entity.name)
    info = connection.execute(f"PRAGMA main.table_xinfo({name})").fetchall()
    columns = ", ".join(quoted(column[1]) for column in info if not column[6])
    source = f"SELECT {columns} FROM original.{name} {which}"
    connection.execute(f"INSERT OR IGNORE INTO main.{name} ({columns}) {source}")


def _rows_of(connection: sqlite3.Connection, entity: Entity, world: World) -> str:
    """Which rows of a table are copied first, as the end of a query."""
    children = [link for link in world.links if link.parent is entity and link.child is not entity]
    crowd = max((link.child.rows for link in children), default=0)
    wanted = ROWS if crowd <= LARGE else max(_LEAST, ROWS * entity.rows // crowd)
    if entity.rows <= wanted:
        return ""
    whole = (link for link in world.links if link.child is entity and link.parent is not entity)
    chosen = max(
        (link for link in whole if _is_part(connection, link.parent)),
        key=lambda link: link.parent.rows,
        default=None,
    )
    if chosen is not None:
        return f"{_that_refer(chosen)} LIMIT {2 * ROWS}"
    return _spread(connection, entity, wanted)


def _is_part(connection: sqlite3.Connection, parent: Entity) -> bool:
    """Whether some rows of a table are copied, and not all."""
    sql = f"SELECT count(*) FROM main.{quoted(parent.name)}"
    return bool(0 < connection.execute(sql).fetchone()[0] < parent.rows)


def _that_refer(link: Link) -> str:
    target = f"SELECT {quoted(link.target)} FROM main.{quoted(link.parent.name)}"
    return f"WHERE {quoted(link.column)} IN ({target})"


def _referred(link: Link) -> str:
    column = f"SELECT {quoted(link.column)} FROM main.{quoted(link.child.name)}"
    known = f"SELECT {quoted(link.target)} FROM main.{quoted(link.parent.name)}"
    target = quoted(link.target)
    return f"WHERE {target} IN ({column}) AND {target} NOT IN ({known})"


def _spread(connection: sqlite3.Connection, entity: Entity, wanted: int) -> str:
    """So many rows from all over a table, if it has row numbers; else its first ones."""
    name = quoted(entity.name)
    try:
        sql = f"SELECT min(rowid), max(rowid) FROM original.{name}"
        first, last = connection.execute(sql).fetchone()
    except sqlite3.OperationalError:
        return f"LIMIT {wanted}"
    step = -(-(last - first + 1) // wanted)
    numbers = f"SELECT {first} UNION ALL SELECT n + {step} FROM places WHERE n + {step} <= {last}"
    return f"WHERE rowid IN (WITH RECURSIVE places(n) AS ({numbers}) SELECT n FROM places)"
