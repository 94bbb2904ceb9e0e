"""One SQLite database as an agent sees it: opened read-only, guarded, limited, described.

`database` runs statements and caches results. `guard`, `limits`, `memory`, `statement_size` and
`functions` bound what a statement may do. `diagnosis` and `dialects` explain a statement that
failed, `schema` and `description` describe tables, and `render` shows rows as text.
"""

from sqlgym.database.database import Database, open_database

__all__ = ["Database", "open_database"]
