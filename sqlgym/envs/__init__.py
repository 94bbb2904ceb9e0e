"""The environments in which an agent answers with a value (`explore`) or a query (`text_to_sql`).

The module `expert` contains the experts, which solve the tasks of both environments with the gold
SQL.
"""
