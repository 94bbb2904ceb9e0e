"""`sqlgym/Explore-v0`: answer a question about a database that is visible only through tools.

The agent describes and samples tables, runs read-only SQL, and submits a value. All SQL is treated
as untrusted and runs on a guarded connection (`sqlgym.database.database`) with bounded cost. The
submitted value is compared by type (`sqlgym.judging.answers`), never by substring.

The progress of an exploration is a number from 0 to 1. The progress depends on the last query:

    progress = agreement * closeness

The agreement is the number of columns that both the query and the gold query read, divided by the
number of columns that either reads. SQLite's authorizer reports these columns. The closeness is the
product of the F1 score of the result columns and the F1 score of the result rows. To make progress,
a query thus has to read the columns of the gold query and few others, and to return rows of the
gold result. A query for a constant makes no progress, and a query for an entire table makes little
progress. Only the last query counts, not the best one, so an agent gains nothing by trying every
value of a condition. `describe` and `sample` make no progress by themselves.

A data set may contain questions that its databases cannot answer (`SqlTask.answerable`). The
environment then has one more tool, `cannot_answer`. A call of this tool is correct for unanswerable
questions and incorrect for all others. No progress is measured for unanswerable questions.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from weakref import WeakKeyDictionary

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.database.description import describe_table, list_tables, remind
from sqlgym.database.limits import Limits
from sqlgym.database.render import FORMS, MAX_CHARS, Form, show
from sqlgym.database.schema import Schema, Table, bare_name
from sqlgym.database.sqlite_file import quoted
from sqlgym.datasets.family import SqlTaskFamily
from sqlgym.datasets.load import load_tasks
from sqlgym.envs import expert
from sqlgym.judging.answers import matches
from sqlgym.judging.judge import Match
from sqlgym.judging.results import overlap
from sqlgym.tasks.gold import Gold, gold_of, verified_by
from sqlgym.tasks.task import SqlTask
from toolgym.calls import ToolCall
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, ToolError
from toolgym.rewards import RewardConfig
from toolgym.sanitize import unescape_control_tokens
from toolgym.tasks import TaskSet
from toolgym.tools import Code, read_spec, tool

NEGLIGIBLE = 0.02
"""If the sizes of two results bound their closeness below this value, they are not compared."""


def progress(gold: Gold, result: QueryResult) -> float:
    """Return the progress of a query toward the gold result, from 0 to 1. The progress is cached
    for the rollouts of a group.
    """
    known: float | None = result.memo.get(gold)
    if known is not None:
        return known
    wanted, read = gold.result.columns_read, result.columns_read
    agreement = 1.0 if wanted == read else len(wanted & read) / len(wanted | read)
    closeness = 0.0
    if gold.result.rows == result.rows:
        closeness = 1.0
    elif agreement:
        # The sizes of the results are an upper bound of their closeness.
        bound = 1.0
        for sizes in zip(
            *((len(r.rows), len(r.columns)) for r in (gold.result, result)), strict=True
        ):
            bound *= 2 * min(sizes) / sum(sizes)
        if bound >= NEGLIGIBLE:
            closeness = overlap(gold.result.rows, result.rows)
    return result.memoize(gold, agreement * closeness)


_SAMPLED_ROWS = 3
_SAMPLED_FROM = 10_000  # the steps of a row grow with the number of rows before it
_NAMED_TABLES = 80
_LOOKED_AT = 500  # tasks of a large set that are searched for unanswerable ones
_KNOWN: WeakKeyDictionary[TaskSet[SqlTask], bool] = WeakKeyDictionary()


def has_unanswerable(tasks: TaskSet[SqlTask]) -> bool:
    """Return whether a task set contains unanswerable tasks. At most 500 tasks of a large set are
    checked.
    """
    if tasks not in _KNOWN:
        places = range(0, len(tasks), -(-len(tasks) // _LOOKED_AT) or 1)
        _KNOWN[tasks] = any(not tasks[place].answerable for place in places)
    return _KNOWN[tasks]


def cannot_answer(env: ToolEnv[SqlTask]) -> str:
    """Say that this database has no answer to the question, and end the episode."""
    is_right = not env.task.answerable
    return env.submit(is_right, mistake="" if is_right else "refused_answerable")


CANNOT_ANSWER = read_spec(cannot_answer, terminal=True)
"""This tool is a function instead of a method because only environments whose data set has
unanswerable tasks offer it.
"""


class ExploreEnv(ToolEnv[SqlTask]):
    """Answer a question about a database that you can only see through its tools.

    Args:
        dataset: "bundled", "tiny", a path (also of an SQLite file), or a `TaskSet`; see
            `sqlgym.load_tasks`.
        split: "train", "dev", or another split of the data set. "dev-tasks", "dev-databases" and
            "dev-shapes" select the tasks of "dev" whose task, database or SQL shape does not occur
            in "train".
        step_limit: Maximum number of calls in an episode; `answer` is not counted.
        parsing: "lenient" or "strict"; see `toolgym.ToolEnv`.
        rewards: Weights of the score; see `toolgym.RewardConfig`.
        databases: A folder with the databases, if they are not in the folder of the questions.
        synthesis: Options for writing tasks for a database without questions: `n`, `seed`,
            `hardness`, `tables`, `variants`.
        limits: Limits of each statement as a mapping, such as `{"steps": 2_000_000_000}` for
            databases of BIRD's size; see `sqlgym.database.limits.Limits`.
        render: Format of the results, "table" or "json".
        render_mode: None or "ansi".

    Raises:
        ConfigurationError: The data set or split does not exist, or an argument is invalid.

    >>> import gymnasium as gym, sqlgym
    >>> env = gym.make("sqlgym/Explore-v0")
    >>> observation, info = env.reset(seed=0)
    """

    family = SqlTaskFamily()
    match: Match = "sound"

    def __init__(
        self,
        dataset: str | Path | TaskSet[SqlTask] = "bundled",
        split: str = "train",
        *,
        step_limit: int = 15,
        parsing: Literal["lenient", "strict"] = "lenient",
        rewards: RewardConfig | dict[str, Any] | None = None,
        databases: str | Path | None = None,
        synthesis: Mapping[str, Any] | None = None,
        limits: Limits | Mapping[str, float] | None = None,
        render: Form = "table",
        render_mode: str | None = None,
    ) -> None:
        if render not in FORMS:
            raise ConfigurationError(f'render must be "table" or "json", got {render!r}.')
        tasks = dataset
        if not isinstance(tasks, TaskSet):
            tasks = load_tasks(tasks, split, databases=databases, synthesis=synthesis)
        self.limits = Limits.of(limits)
        super().__init__(
            verified_by(tasks, self.limits, self.match),
            step_limit=step_limit,
            parsing=parsing,
            rewards=rewards,
            render_mode=render_mode,
        )
        self._form = render
        self._may_refuse = has_unanswerable(tasks)
        if self._may_refuse:
            self.tools = {**self.tools, CANNOT_ANSWER.name: CANNOT_ANSWER}
        self._opened: Database
        self._schema: Schema
        self._gold: Gold | None = None

    def begin(self, task: SqlTask) -> str:
        """Return the question, BIRD's evidence if there is any, and the names of the tables."""
        self._opened = open_database(task.database, self.limits)
        self._schema = self._opened.schema.with_references(task.foreign_keys)
        self._gold = None
        if self._may_refuse:
            self.episode.ledger.mistake = ""
        elif not task.answerable:
            raise ConfigurationError(
                f"task {task.id!r} is unanswerable, but the agent is not offered `cannot_answer`:"
                f" {_LOOKED_AT:,} tasks of this large set were checked, and all are answerable."
                " Put an unanswerable task first in the file; the first task is always checked."
            )
        evidence = f"\nEvidence: {task.evidence}" if task.evidence else ""
        return self._arranged(f"{task.question}{evidence}")

    def _arranged(self, question: str) -> str:
        """Return the question with information about the database."""
        return f"{question}\n{self._table_names()}"

    def _table_names(self) -> str:
        """Return a line with the names of at most eighty tables."""
        names = [table.name for table in self._schema.tables]
        more = f" and {len(names) - _NAMED_TABLES} more" if len(names) > _NAMED_TABLES else ""
        return f"Tables: {', '.join(names[:_NAMED_TABLES])}{more}"

    def expert(self) -> Generator[Any, str, None]:
        """Describe the tables of the gold SQL, run the SQL, and read the answer from the
        observation.
        """
        return expert.explore(self)

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """Return a call that succeeds on the database of this episode."""
        table = self._schema.tables[0].name
        arguments: dict[str, dict[str, Any]] = {
            "describe": {"table_name": table},
            "sample": {"table_name": table},
            "query": {"sql": f"SELECT * FROM {quoted(table)} LIMIT 1"},
            "answer": {"value": 42},
            "cannot_answer": {},
        }
        return {"name": tool_name, "arguments": arguments[tool_name]}

    def second_hint(self, call: ToolCall, error: ToolError) -> str:
        """Return the columns of the tables that the call or its error mentions, and all table
        names.
        """
        if call.error is not None:
            return super().second_hint(call, error)
        named = [*call.arguments.values(), *error.example.get("arguments", {}).values()]
        text = unescape_control_tokens(" ".join(map(str, named)))
        return remind(text, self._schema, self._opened if "describe" in self.tools else None)

    @tool
    def describe(self, table_name: str) -> str:
        """List the columns of one table with their types and keys.

        Args:
            table_name: A table of this database; "" lists them all.
        """
        if bare_name(table_name) in ("", "*") and self._schema.get(table_name) is None:
            return list_tables(self._schema, self._opened)
        table = self._schema.find(table_name)
        return describe_table(table, self._schema, self._opened)

    @tool
    def sample(self, table_name: str) -> str:
        """Show some rows of one table.

        Args:
            table_name: A table of this database.
        """
        table = self._schema.find(table_name)
        return self._shown(self._opened.query(self._sampling(table)), MAX_CHARS // 2)

    @tool
    def query(self, sql: Annotated[str, Code("sql")]) -> str:
        """Run one SELECT statement (SQLite) and show its result.

        Args:
            sql: The statement. It can only read.
        """
        result = self._opened.query(sql)
        self._approach(result)
        return self._shown(result)

    @tool(terminal=True, aliases=("final_answer", "submit"))
    def answer(self, value: str | int | float | bool | list[Any]) -> str:
        """Submit the answer and end the episode.

        Args:
            value: A number, a text, or a list; for a table a list of rows.
        """
        if not self.task.answerable:
            return self.submit(False, mistake="answered_unanswerable")
        return self.submit(matches(self._gold_answer().answer, value).equal)

    def _gold_answer(self) -> Gold:
        """Return the gold answer of the task, which is computed once per episode."""
        if self._gold is None:
            self._gold = gold_of(self.task, self.limits, self.match)
        return self._gold

    def _approach(self, result: QueryResult) -> None:
        """Record the progress of a query if the question is answerable."""
        if self.task.answerable:
            self.reach(progress(self._gold_answer(), result), best=False)

    def _sampling(self, table: Table) -> str:
        """Return a query for a few rows of a table. Within a task, the query is always the same."""
        source = quoted(table.name)
        rows = self._opened.count(table.name) or 0
        if rows <= _SAMPLED_ROWS:
            return f"SELECT * FROM {source} LIMIT {_SAMPLED_ROWS}"
        draw = random.Random(f"toolgym-sample-{self.task.id}-{table.name}")
        places = sorted(draw.sample(range(min(rows, _SAMPLED_FROM)), _SAMPLED_ROWS))
        return " UNION ALL ".join(
            f"SELECT * FROM (SELECT * FROM {source} LIMIT 1 OFFSET {place})" for place in places
        )

    def _shown(self, result: QueryResult, max_chars: int = MAX_CHARS) -> str:
        """Return a result as text, which is cached for all users of the result."""
        key = self._form, max_chars
        text: str | None = result.memo.get(key)
        if text is None:
            columns, rows = result.columns, result.rows
            text = show(columns, rows, self._form, max_chars, result.truncated)
            result.memoize(key, text)
        return text
