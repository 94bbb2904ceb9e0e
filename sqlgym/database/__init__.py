"""One SQLite database as an agent sees it: opened read-only, guarded, limited, described.

Read `database` first, then `guard` and `limits` (what a statement may do, and for how long), then
`schema` and `description` (what is told of the tables). `functions` bounds the functions of SQL,
`dialect` and `diagnosis` explain a statement that failed, and `render` shows
rows as text.
"""

from sqlgym.database.database import Database, open_database

__all__ = ["Database", "open_database"]
