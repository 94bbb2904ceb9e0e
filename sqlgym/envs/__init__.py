"""The environments: explore a database and answer with a value (`explore`) or a query
(`text_to_sql`).

`expert` contains the experts that solve both with the gold SQL.
"""
