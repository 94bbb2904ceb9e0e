"""The environments: explore a database and answer with a value, or answer with a query.

Read `explore` first, then `text_to_sql`; `expert` plays both with the gold SQL.
"""
