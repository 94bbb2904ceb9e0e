"""`sqlgym/TextToSQL-v0`: the databases and tools of `sqlgym/Explore-v0`, with a query as the
answer.

The agent explores the database and submits a query. The query runs under the same guard and is
scored by its results on several instances of the database. A single instance would not be enough: a
query that selects constants, or rows by their row numbers, could return the gold result on it. With
`tools=("answer",)`, the prompt contains the schema and the agent writes the query in one turn, as
in the classic benchmark. This allows a comparison of the same model with and without exploration.

A query that fails is an incorrect answer and ends the episode, since otherwise an agent could test
its answers for free.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from sqlgym.database.description import create_statements
from sqlgym.database.limits import Limits
from sqlgym.database.render import Form
from sqlgym.datasets.family import QueryTaskFamily
from sqlgym.envs import expert
from sqlgym.envs.explore import CANNOT_ANSWER, ExploreEnv
from sqlgym.judging.judge import Match, check_match, compare, sound_query
from sqlgym.judging.results import Verdict
from sqlgym.judging.suite import Judged, Suite
from sqlgym.tasks.suites import suite_for
from sqlgym.tasks.task import SqlTask
from toolgym.errors import ConfigurationError, ToolError
from toolgym.rewards import RewardConfig
from toolgym.tasks import TaskSet
from toolgym.tools import Code, tool


class TextToSQLEnv(ExploreEnv):
    """Write the SQL query (SQLite) whose result answers a question about a database.

    All other arguments are those of `ExploreEnv`. If the data set has unanswerable tasks,
    `cannot_answer` is offered too and need not be in `tools`.

    Attributes:
        judged: The verdict on the last answer with its reason, and the number of instances that can
            reject a wrong query. The reason begins with "suite: " if another instance rejected the
            answer. Before an answer, `judged` is None. The verdict is intended for reports and is
            never shown to the agent.

    Args:
        match: "suite" compares results on several instances of the database. "sound" compares
            results only on the database itself. "spider" reproduces the verdicts of Spider's
            official evaluator. See `sqlgym.compare`. Instances are created for the gold queries of
            the data set. The instances of the first database are created when its first task is
            drawn. The instances of all other databases are created when a task of a second database
            is drawn.
        tools: Names of the offered tools, including `answer`; None offers all. Without `describe`,
            the prompt contains the schema.
        schema_first: Whether the schema precedes the question. Prompts about the same database then
            share a prefix, which speeds up inference servers with prefix caching and supervised
            training steps.

    Raises:
        ConfigurationError: The data set or split does not exist, or an argument is invalid.

    >>> import gymnasium as gym, sqlgym
    >>> env = gym.make("sqlgym/TextToSQL-v0", tools=("answer",))
    >>> "CREATE TABLE" in env.reset(seed=0)[0]
    True
    """

    family = QueryTaskFamily()

    def __init__(
        self,
        dataset: str | Path | TaskSet[SqlTask] = "bundled",
        split: str = "train",
        *,
        match: Match = "suite",
        tools: Sequence[str] | None = None,
        schema_first: bool = False,
        step_limit: int = 15,
        parsing: Literal["lenient", "strict"] = "lenient",
        rewards: RewardConfig | dict[str, Any] | None = None,
        databases: str | Path | None = None,
        synthesis: Mapping[str, Any] | None = None,
        limits: Limits | Mapping[str, float] | None = None,
        render: Form = "table",
        render_mode: str | None = None,
    ) -> None:
        check_match(match)
        self.match = match
        offered = None if tools is None else self._offered(tools)
        super().__init__(
            dataset,
            split,
            step_limit=step_limit,
            parsing=parsing,
            rewards=rewards,
            databases=databases,
            synthesis=synthesis,
            limits=limits,
            render=render,
            render_mode=render_mode,
        )
        self.schema_first = schema_first
        self.judged: Judged | None = None
        if offered is not None:
            more = [CANNOT_ANSWER.name] if self._may_refuse else []
            self.tools = {name: self.tools[name] for name in [*offered, *more]}

    def begin(self, task: SqlTask) -> str:
        """Return the question with information about the database."""
        asked = super().begin(task)
        self.judged = None
        if self.match == "suite":
            self.episode.ledger.unjudged = False
            if task.answerable:  # made now, so that no call of the agent has to wait
                self._suite()
        return asked

    def _arranged(self, question: str) -> str:
        """Return the question with the table names, or with the schema if `describe` is not
        offered.
        """
        if "describe" in self.tools:
            parts = [question, self._table_names()]
            return "\n".join(reversed(parts) if self.schema_first else parts)
        schema = create_statements(self._schema)
        if self.schema_first:
            return f"{schema}\n{question}"
        return f"{question}\n{self._table_names()}\n{schema}"

    def expert(self) -> Generator[Any, str, None]:
        """Describe the tables of the gold SQL, run the SQL, and submit it."""
        return expert.write_sql(self)

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """Return a call that succeeds on the database of this episode."""
        if tool_name == "answer":
            return {"name": "answer", "arguments": super().example_call("query")["arguments"]}
        return super().example_call(tool_name)

    def budget_line(self) -> str:
        """Return the line about the remaining calls, or a fixed line if `answer` is the only
        tool.
        """
        if all(spec.terminal for spec in self.tools.values()):
            return "Answer with one call: it ends the episode."
        return super().budget_line()

    @tool(terminal=True, aliases=("final_answer", "submit"))
    def answer(self, sql: Annotated[str, Code("sql")]) -> str:  # type: ignore[override]
        """Submit the SQL query whose result answers the question, and end the episode.

        Args:
            sql: One SELECT statement (SQLite).
        """
        is_answerable = self.task.answerable
        try:
            result = self._opened.query(sql)
        except ToolError as error:
            self.judged = Judged(Verdict(False, f"error: {error.code}: {error.message}"), 0)
            message = f"The query fails: {error.message} That was the answer: the episode is over."
            return self.submit(False, message, "" if is_answerable else "answered_unanswerable")
        if not is_answerable:
            return self.submit(False, mistake="answered_unanswerable")
        self._approach(result)
        gold, gold_sql = self._gold_answer(), self.task.gold_sql
        if self.match == "spider":
            self.judged = Judged(compare(self._opened, gold_sql, sql, "spider"), 0)
        else:
            verdict = sound_query(gold.result, gold_sql, result, sql, gold.answer.runs)
            self.judged = Judged(verdict, 0)
            if self.match == "suite" and verdict.equal:
                self.judged = self._suite().judge(gold_sql, sql)
                self.episode.ledger.unjudged = (
                    self.judged.verdict.equal and not self.judged.instances
                )
        return self.submit(self.judged.verdict.equal)

    def _suite(self) -> Suite:
        return suite_for(self.tasks, self.task, self._opened.limits)

    def _offered(self, tools: Sequence[str]) -> list[str]:
        """Return the names of the offered tools, in the order of the class."""
        names = [tools] if isinstance(tools, str) else tools
        if (
            not isinstance(names, Sequence)
            or "answer" not in names
            or any(name not in [*self.tools] for name in names)
        ):
            raise ConfigurationError(
                f'tools must name some of {", ".join(self.tools)}, including "answer",'
                f" got {tools!r}."
            )
        return [name for name in self.tools if name in names]
