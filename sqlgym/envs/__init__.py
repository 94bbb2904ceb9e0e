"""The environments: a database that is explored by tools, or one query that is written at once.

Read `explore` first, then `text_to_sql`; `expert` plays both.
"""
