"""`sqlgym/Explore-v0`: a question about a database that can only be seen through four tools.

The agent describes and samples tables, runs read-only SQL, and submits a value. The SQL is hostile
by assumption: it runs on a guarded connection (`sqlgym.database`), and what it may cost is bounded.
The value is compared by type (`sqlgym.answers`), never by substring.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any, Literal

from sqlgym import expert
from sqlgym.answers import matches
from sqlgym.database import Database, open_database
from sqlgym.progress import Exploration
from sqlgym.results import render
from sqlgym.schema import Schema
from sqlgym.sqlite_file import quoted
from sqlgym.tasks import SqlTask, gold_of, load_tasks
from toolgym.env import ToolEnv
from toolgym.rewards import RewardConfig
from toolgym.tasks import TaskSet
from toolgym.tools import Code, tool

_SAMPLED_ROWS = 3
_NAMED_TABLES = 80


class ExploreEnv(ToolEnv[SqlTask]):
    """Answer a question about a database that you can only see through its tools.

    Args:
        dataset: "bundled", "tiny", a folder in the Spider layout, or a `TaskSet` of `SqlTask`s.
        split: "train", "dev", or what else the folder has.
        step_limit: Calls that an episode allows; `answer` is free.
        parsing: "lenient" or "strict"; see `toolgym.ToolEnv`.
        rewards: Weights of the score; see `toolgym.RewardConfig`.
        render_mode: None or "ansi".

    Raises:
        ConfigurationError: There is no such data set or split, or an argument is out of range.

    >>> import gymnasium as gym, sqlgym
    >>> env = gym.make("sqlgym/Explore-v0")
    >>> observation, info = env.reset(seed=0)
    """

    def __init__(
        self,
        dataset: str | Path | TaskSet[SqlTask] = "bundled",
        split: str = "train",
        *,
        step_limit: int = 15,
        parsing: Literal["lenient", "strict"] = "lenient",
        rewards: RewardConfig | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        tasks = dataset if isinstance(dataset, TaskSet) else load_tasks(dataset, split)
        super().__init__(
            tasks,
            step_limit=step_limit,
            parsing=parsing,
            rewards=rewards,
            render_mode=render_mode,
        )
        self._schema: Schema
        self._exploration: Exploration

    def begin(self, task: SqlTask) -> str:
        """The question, what BIRD adds to it, and the names of the tables."""
        self._schema = Schema.of(self._database(task)).complemented(task.foreign_keys)
        self._exploration = Exploration(gold_of(task))
        names = [table.name for table in self._schema.tables]
        more = f" and {len(names) - _NAMED_TABLES} more" if len(names) > _NAMED_TABLES else ""
        evidence = f"\nEvidence: {task.evidence}" if task.evidence else ""
        return f"{task.question}{evidence}\nTables: {', '.join(names[:_NAMED_TABLES])}{more}"

    def expert(self) -> Generator[Any, str, None]:
        """Look at the gold's tables, run the gold SQL, and read the answer off the observation."""
        return expert.explore(self)

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """A call that works on this episode's database."""
        table = self._schema.tables[0].name
        arguments: dict[str, dict[str, Any]] = {
            "describe": {"table_name": table},
            "sample": {"table_name": table},
            "query": {"sql": f"SELECT COUNT(*) FROM {quoted(table)}"},
            "answer": {"value": 42},
        }
        return {"name": tool_name, "arguments": arguments[tool_name]}

    @tool
    def describe(self, table_name: str) -> str:
        """List the columns of one table with their types and keys.

        Args:
            table_name: A table of this database.
        """
        table = self._schema.find(table_name)
        self.reach(self._exploration.saw([table.name]))
        return self._schema.describe_table(table)

    @tool
    def sample(self, table_name: str) -> str:
        """Show the first rows of one table.

        Args:
            table_name: A table of this database.
        """
        table = self._schema.find(table_name)
        result = self._database().query(f"SELECT * FROM {quoted(table.name)} LIMIT {_SAMPLED_ROWS}")
        self.reach(self._exploration.saw([table.name]))
        return render(result.columns, result.rows)

    @tool
    def query(self, sql: Annotated[str, Code("sql")]) -> str:
        """Run one SELECT statement (SQLite) and show its result.

        Args:
            sql: The statement. It can only read.
        """
        result = self._database().query(sql)
        self.reach(self._exploration.got(result))
        return render(result.columns, result.rows, truncated=result.truncated)

    @tool(terminal=True, aliases=("final_answer", "submit"))
    def answer(self, value: str | int | float | bool | list[Any]) -> str:
        """Submit the answer and end the episode.

        Args:
            value: A number, a text, or a list; for a table a list of rows.
        """
        return self.submit(matches(gold_of(self.task).answer, value).equal)

    def _database(self, task: SqlTask | None = None) -> Database:
        return open_database((task or self.task).database)
