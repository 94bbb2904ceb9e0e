"""The SQLite database that an agent explores: read-only, guarded, limited, and described as text.

`database` runs statements and caches results. `guard`, `limits`, `memory`, `statement_size` and
`functions` bound the cost of a statement. `diagnosis` and `dialects` write the error message for a
statement that failed. `schema` and `description` describe tables, and `render` shows rows as
text.
"""

from sqlgym.database.database import Database, open_database

__all__ = ["Database", "open_database"]
