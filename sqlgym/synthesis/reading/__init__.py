"""What a database seems to be about: entities, links between them, what a column means.

Read `world` first, which is what the rest of the synthesis sees; `profiling` counts values, `roles`
and `entities` give them a meaning.
"""
