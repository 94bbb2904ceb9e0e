"""`SqlTaskFamily`: statistics, splits and other services for SQL tasks, used by the commands.

Tasks are counted by database, hardness and shape of the result. A task can be new to a training run
in three ways: the task itself, its database, or the shape of its SQL is new. See
`toolgym.family.TaskFamily`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from sqlgym import DATA_SETS
from sqlgym.database.render import show
from sqlgym.datasets.bundled import bundled_dir, locate
from sqlgym.datasets.spider import splits_of
from sqlgym.datasets.synthesized import SPLITS, bare_databases
from sqlgym.datasets.writing import write_synthesis
from sqlgym.invention import invent_databases
from sqlgym.tasks.gold import gold_of
from sqlgym.tasks.hardness import hardness
from sqlgym.tasks.splits import plain_question, skeleton
from sqlgym.tasks.suites import suite_for
from toolgym.errors import TaskRefused
from toolgym.family import Ask, Origin, SynthesisOrder, TaskFamily
from toolgym.tasks import TaskSet
from toolgym.workers import Progress

UNANSWERABLE = "no answer"
SHAPES = ("one value", "one row", "one column", "a table")


class SqlTaskFamily(TaskFamily):
    """Task family of questions about databases."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {
        "hardness": ("easy", "medium", "hard", "extra", "unknown"),
        "result": (*SHAPES, UNANSWERABLE),
    }
    kinds: ClassVar[tuple[str, ...]] = ("tasks", "databases", "shapes")

    def splits(self, dataset: Any) -> tuple[str, ...]:
        """Return the splits of the data set with this name or path, or () for other files.

        Raises:
            ConfigurationError: The data set does not exist.
        """
        path = locate(dataset)
        if path.suffix == ".jsonl":
            return (path.stem if path.stem in ("train", "dev", "test") else "train",)
        if bare_databases(path):
            return SPLITS[:-1]  # without `all`, which repeats the tasks of the other splits
        return tuple(splits_of(path)) if path.is_dir() else ()

    def origin(self, dataset: Any) -> Origin:
        """Return the license of this package and the sources for the bundled data sets."""
        if dataset not in DATA_SETS:
            return super().origin(dataset)
        notes = sorted(bundled_dir().glob(f"{dataset}/database/*/SOURCE.md"))
        made, named = "written and generated for toolgym", ", ".join(n.parent.name for n in notes)
        if notes:
            made += f"; facts of the world in {named}, their sources in the SOURCE.md of each"
        return Origin("Apache-2.0", made)

    def marks(self, task: Any, kind: str) -> frozenset[str]:
        """Return the keys by which a task is compared with the tasks of a training run.

        Depending on the kind, the keys contain the question, the SQL and the database, or only the
        database, or only the shape of the SQL. The shape is the canonical SQL without its literals.

        Raises:
            ConfigurationError: The kind does not exist.
        """
        if kind not in ("tasks", "shapes"):
            return super().marks(task, kind)
        from sqlgym.synthesis.canonical import canonical_sql  # slow to import

        asked = {f"question {task.item} {plain_question(task.question)}"}
        if not task.answerable:
            return frozenset(asked if kind == "tasks" else ())
        if not task.gold_sql:  # an entry that cannot be used
            return frozenset()
        try:
            canonical = canonical_sql(task.gold_sql)
        except ValueError:
            canonical = task.gold_sql
        if kind == "shapes":
            return frozenset((skeleton(canonical),))
        return frozenset((*asked, f"sql {task.item} {canonical}"))

    def facts(self, task: Any, tasks: TaskSet[Any]) -> dict[str, str]:
        """Return the database, the hardness, and the shape of the result of a task.

        If the data set states no hardness, the hardness is computed.

        Raises:
            TaskRefused: The task cannot be played.
        """
        shape = UNANSWERABLE
        if task.answerable:
            result = gold_of(task).result
            shape = SHAPES[(len(result.columns) > 1) + 2 * (len(result.rows) > 1)]
        return {"database": task.item, "hardness": level_of(task), "result": shape}

    def shown(self, task: Any) -> dict[str, str]:
        """Return the question, the gold SQL, its tables, and its result if the task is usable."""
        if task.problem is not None:  # an unreadable entry has no database
            return {}
        texts = {
            "question": task.question,
            "evidence": task.evidence,
            "database": f"{task.item} ({task.database})",
            "hardness": level_of(task),
            **{str(name): str(value) for name, value in task.extra.items()},
            "gold SQL": task.gold_sql,
        }
        if not task.answerable:
            texts["right answer"] = "cannot_answer"
        else:
            try:
                result = gold_of(task).result
                texts["tables"] = ", ".join(sorted(result.tables_read))
                texts["result"] = show(result.columns, result.rows, "table")
            except TaskRefused:
                pass  # the command shows the reason
        return {name: text for name, text in texts.items() if text}

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """Check a query with `sqlgym.judging.recheck`, which runs the gold SQL itself.

        With `match="suite"`, the query also runs on the instances of the database.
        """
        from sqlgym.judging.recheck import recheck  # slow to import

        by_suite = task.answerable and getattr(env, "match", "") == "suite"
        files = suite_for(env.tasks, task).files if by_suite else ()
        return recheck(env, task, turns, files)

    def synthesize(self, order: SynthesisOrder, progress: Progress | None = None) -> dict[str, Any]:
        """Write tasks for databases; see `sqlgym.datasets.writing.write_synthesis`."""
        return write_synthesis(order, progress)

    def invent(
        self, out: Path, n: int, first: int = 0, progress: Progress | None = None
    ) -> tuple[Path, ...]:
        """Write invented databases; see `sqlgym.invention`."""
        return invent_databases(out, n, first, progress)

    def rephrase(
        self,
        source: Path,
        out: Path,
        ask: Ask,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Write a data set with rephrased questions; see `sqlgym.datasets.rephrased`."""
        from sqlgym.datasets.rephrased import rephrase_folder  # slow to import

        return rephrase_folder(source, out, ask, overwrite, progress)


class QueryTaskFamily(SqlTaskFamily):
    """Task family of questions that are answered with a query, which is scored on several
    instances.
    """

    orders: ClassVar[Mapping[str, Sequence[str]]] = {
        **SqlTaskFamily.orders,
        "instances": ("judged", "unjudged"),
    }

    def facts(self, task: Any, tasks: TaskSet[Any]) -> dict[str, str]:
        """Return the same facts as `SqlTaskFamily`, and whether instances of the database can
        reject queries.
        """
        facts = super().facts(task, tasks)
        if not task.answerable:
            return facts
        can_judge = suite_for(tasks, task).can_judge(task.gold_sql)
        return {**facts, "instances": "judged" if can_judge else "unjudged"}


def level_of(task: Any) -> str:
    """Return the hardness stated by the data set, or else the computed hardness or "unknown"."""
    try:
        return str(task.hardness or hardness(task.gold_sql))
    except ValueError:
        return "unknown"
