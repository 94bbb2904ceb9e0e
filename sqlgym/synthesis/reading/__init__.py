"""The reading of a database: entities, links between them, roles of columns.

Read `world` first, which is what the rest of the synthesis sees; `profiling` counts values, and
`roles` gives them a meaning.
"""
