"""sqlgym: environments in which an agent explores a hidden database and answers a question about
it.

Importing this package registers two environments with Gymnasium:

* `sqlgym/Explore-v0`: the answer is a value;
* `sqlgym/TextToSQL-v0`: the answer is an SQL query.

`load_tasks` loads a data set. Outside an episode, `compare` checks a query and `check_answer`
checks a value.

Another distribution on the package index is also called sqlgym. `__toolgym__` marks this package as
part of the distribution `toolgym`, and `toolgym doctor` checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium

from toolgym.lazy import lazy_names

if TYPE_CHECKING:
    from sqlgym.datasets.load import load_tasks as load_tasks
    from sqlgym.judging.judge import Verdict as Verdict
    from sqlgym.judging.judge import check_answer as check_answer
    from sqlgym.judging.judge import compare as compare
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "sqlgym.datasets.load": "load_tasks",
            "sqlgym.judging.judge": "Verdict check_answer compare",
        },
    )

__toolgym__ = True
DATA_SETS = ("bundled", "tiny")
"""Names of the data sets in the package."""

gymnasium.register(id="sqlgym/Explore-v0", entry_point="sqlgym.envs.explore:ExploreEnv")
gymnasium.register(id="sqlgym/TextToSQL-v0", entry_point="sqlgym.envs.text_to_sql:TextToSQLEnv")
