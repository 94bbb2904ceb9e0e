"""Tasks: a question with its gold query, its hardness, and the verdict on its gold.

Read `task` first, then `gold`, which keeps its verdicts between processes; `hardness` is Spider's
scale, `splits` holds out tasks, databases and shapes.
"""
