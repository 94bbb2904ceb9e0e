"""Tasks: questions with their gold queries, hardness, and verdicts on gold queries.

`task` defines a task, and `gold` runs and caches its gold SQL. `hardness` computes Spider's levels,
and `splits` holds out tasks, databases and SQL shapes.
"""
