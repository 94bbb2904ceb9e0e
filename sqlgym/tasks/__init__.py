"""Tasks: a question with its gold query, its hardness, and the verdict on its gold.

Read `task` first, then `gold`, which keeps its verdicts between processes; `hardness` is Spider's
scale, `splits` holds out tasks, databases and shapes.
"""

from __future__ import annotations

from toolgym.lazy import names_from

# Pages of version 0.1.0 import it from here.
__getattr__ = names_from(__name__, {"load_tasks": "sqlgym"})
