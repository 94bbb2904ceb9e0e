"""SQL tasks: a question, a database, and the SQL whose result is the gold answer.

Structure is checked when a data set is loaded; the gold SQL of a task is run when the task is first
drawn, under the same guard and limits as the agent's own queries, so that a data set of two million
questions starts at once. A task whose gold cannot be a fair answer is refused, with the reason.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlgym.answers import GoldAnswer, refusal
from sqlgym.bundled import DATASETS, dataset_folder
from sqlgym.database import Database, QueryResult, open_database
from sqlgym.results import is_ordered
from sqlgym.schema import ForeignKey
from sqlgym.spider import SpiderQuestion, load_spider
from toolgym.errors import ConfigurationError, TaskRefused, ToolError
from toolgym.tasks import Task, TaskSet

REFUSALS: dict[str, str] = {
    "empty_gold": "The gold SQL finds no rows: anything that finds nothing would be right.",
    "null_gold": "The gold SQL finds nothing but NULL.",
    "constant_gold": "The gold SQL reads no table.",
    "result_too_large": "The gold result does not fit into an observation.",
    "gold_...": "The gold SQL fails, with the code of the error (`gold_sql_error`, ...).",
    "not_an_object": "The entry of the data set is not a JSON object.",
    "missing_key": "The entry lacks its question, its SQL or its database.",
    "duplicate_id": "Another entry has the same id.",
    "unknown_database": "There is no such database in the folder.",
    "not_a_database": "The database file is not SQLite.",
}
"""The codes of why a task is refused, for the documentation."""


@dataclass(frozen=True)
class SqlTask(Task):
    """A question about a database; `item` is the database's id.

    Attributes:
        gold_sql: The SQL whose result is the answer.
        database: The SQLite file.
        hardness: Spider's level, where the data set tells it.
        evidence: What BIRD calls external knowledge; shown with the question.
        foreign_keys: References that `tables.json` tells and the file does not declare.
    """

    gold_sql: str = ""
    database: Path = Path()
    hardness: str | None = None
    evidence: str = ""
    foreign_keys: tuple[ForeignKey, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Gold:
    """The right answer of a task.

    Attributes:
        result: What the gold SQL returned.
        answer: The same as a typed value to compare answers with.
        ordered: The gold SQL orders at top level, so order counts.
    """

    result: QueryResult
    answer: GoldAnswer
    ordered: bool


def load_tasks(dataset: str | Path, split: str) -> TaskSet[SqlTask]:
    """The tasks of one split.

    Args:
        dataset: "bundled", "tiny", or a folder in the Spider (or BIRD) layout.
        split: "train" or "dev", or "test" where the folder has it.

    Raises:
        ConfigurationError: The folder or the split is not there, or cannot be read.
    """
    if isinstance(dataset, str) and dataset in DATASETS:
        return _load(dataset_folder(dataset), split, dataset)
    folder = Path(dataset).expanduser()
    if not folder.is_dir():
        raise ConfigurationError(
            f"there is no data set {str(dataset)!r}: it is neither a folder nor one of"
            f" {', '.join(sorted(DATASETS))}."
        )
    return _load(folder.resolve(), split, str(dataset))


@functools.lru_cache(maxsize=32)
def _load(folder: Path, split: str, name: str) -> TaskSet[SqlTask]:
    """One shared set per folder and split, since every copy of an environment asks for it."""
    loaded = load_spider(folder, split)
    problems = {
        problem.id: TaskRefused(problem.id, problem.code, problem.reason)
        for problem in loaded.problems
    }
    keys = loaded.foreign_keys
    tasks = [_task(question, keys.get(question.db_id, ())) for question in loaded.questions]
    return TaskSet(tasks, name=f"{name} ({split})", verify=_verify, refused=problems)


def _task(question: SpiderQuestion, foreign_keys: tuple[ForeignKey, ...]) -> SqlTask:
    return SqlTask(
        id=question.id,
        question=question.question,
        item=question.db_id,
        gold_sql=question.query,
        database=question.database,
        hardness=question.hardness,
        evidence=question.evidence,
        foreign_keys=foreign_keys,
    )


def _verify(task: SqlTask) -> None:
    gold_of(task)


@functools.lru_cache(maxsize=4096)
def gold_of(task: SqlTask) -> Gold:
    """Run the gold SQL of a task.

    Raises:
        TaskRefused: It fails, or its result cannot be a fair answer.
        EnvironmentFault: The database file is missing or damaged.
    """
    database: Database = open_database(task.database)
    try:
        result = database.query(task.gold_sql)
    except ToolError as error:
        raise TaskRefused(
            task.id, f"gold_{error.code}", f"its gold SQL fails: {error.message}"
        ) from None
    if not result.tables_read:
        raise TaskRefused(task.id, "constant_gold", "its gold SQL reads no table.")
    reason = refusal(result)
    if reason is not None:
        raise TaskRefused(task.id, *reason)
    ordered = is_ordered(task.gold_sql)
    result = replace(result)  # its own object: the cached one is what observations are made of
    return Gold(result, GoldAnswer.of(result.columns, result.rows, ordered), ordered)
