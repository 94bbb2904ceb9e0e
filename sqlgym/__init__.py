"""sqlgym: explore a hidden database through tools, and answer a question about it.

Importing this registers the environments with Gymnasium:

* `sqlgym/Explore-v0`: the answer is a value;
* `sqlgym/TextToSQL-v0`: the answer is a SQL query.

`load_tasks` reads a data set, `compare` judges a query and `check_answer` an answer, without an
episode.

`__toolgym__` marks this package as the one of the distribution `toolgym`; another distribution on
the package index is called sqlgym too, and `toolgym doctor` tells them apart by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium

from toolgym.lazy import names_from

if TYPE_CHECKING:
    from sqlgym.datasets.load import load_tasks
    from sqlgym.judging.judge import Verdict, check_answer, compare

__toolgym__ = True
DATA_SETS = ("bundled", "tiny")
"""Names of the data sets that come with the package, for whoever lists them without opening one."""
__all__ = ["Verdict", "check_answer", "compare", "load_tasks"]
_HOME = {  # imported when first used: `import sqlgym` stays quick
    "load_tasks": "sqlgym.datasets.load",
    "Verdict": "sqlgym.judging.judge",
    "check_answer": "sqlgym.judging.judge",
    "compare": "sqlgym.judging.judge",
}

gymnasium.register(id="sqlgym/Explore-v0", entry_point="sqlgym.envs.explore:ExploreEnv")
gymnasium.register(id="sqlgym/TextToSQL-v0", entry_point="sqlgym.envs.text_to_sql:TextToSQLEnv")

__getattr__ = names_from(__name__, _HOME)
