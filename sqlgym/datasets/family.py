"""The family of SQL tasks: facts, splits and second verdicts for the commands.

The facts that tasks are counted by are the database, the hardness and the shape of the result; what
a training has not seen of a task may be the task, its database, or the shape of its SQL; a task is
shown with its gold SQL and result; a recorded answer is judged a second time; and tasks are
written for database files that have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from sqlgym.tasks.hardness import hardness
from toolgym.errors import TaskRefused
from toolgym.family import Origin, SynthesisOrder, TaskFamily
from toolgym.tasks import TaskSet
from toolgym.workers import Progress

_USUAL = ("train", "dev", "test")
UNANSWERABLE = "no answer"
SHAPES = ("one value", "one row", "one column", "a table")


class SqlTaskFamily(TaskFamily):
    """Questions about databases."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {
        "hardness": ("easy", "medium", "hard", "extra", "unknown"),
        "result": (*SHAPES, UNANSWERABLE),
    }
    kinds: ClassVar[tuple[str, ...]] = ("tasks", "databases", "shapes")

    def splits(self, dataset: Any) -> tuple[str, ...]:
        """The splits of a data set that has a name or a path.

        Raises:
            ConfigurationError: There is no such data set.
        """
        from sqlgym.datasets.bundled import DATASETS, dataset_folder, spider_layout, unknown_dataset
        from sqlgym.datasets.synthesised import SPLITS, bare_databases

        path = dataset_folder(dataset) if dataset in DATASETS else Path(dataset).expanduser()
        if path.suffix == ".jsonl":
            return (path.stem if path.stem in _USUAL else _USUAL[0],)
        if not path.exists():
            raise unknown_dataset(str(dataset))
        if bare_databases(path):
            return SPLITS[:-1]  # the last one is all of them
        return _splits_of_folder(spider_layout(path.resolve())) if path.is_dir() else ()

    def origin(self, dataset: Any) -> Origin:
        """Bundled data sets are licensed as this package; their facts have files with sources."""
        from sqlgym.datasets.bundled import DATASETS, databases_of_facts

        if not isinstance(dataset, str) or dataset not in DATASETS:
            return super().origin(dataset)
        made = "written and generated for toolgym"
        if dataset == "bundled":
            facts = ", ".join(databases_of_facts())
            made += f"; facts of the world in {facts}, their sources in the SOURCE.md of each"
        return Origin("Apache-2.0", made)

    def marks(self, task: Any, kind: str) -> frozenset[str]:
        """A task is its question and its SQL on its database; a shape is SQL without constants.

        Raises:
            ConfigurationError: There is no such kind.
        """
        if kind not in ("tasks", "shapes"):
            return super().marks(task, kind)
        from sqlgym.synthesis.canonical import canonical_sql
        from sqlgym.tasks.splits import plain_question, skeleton

        question = f"question {task.item} {plain_question(task.question)}"
        if not task.answerable:
            return frozenset((question,)) if kind == "tasks" else frozenset()
        if not task.gold_sql:  # an entry that cannot be used
            return frozenset()
        try:
            canonical = canonical_sql(task.gold_sql)
        except ValueError:
            canonical = task.gold_sql
        if kind == "shapes":
            return frozenset((skeleton(canonical),))
        return frozenset((question, f"sql {task.item} {canonical}"))

    def facts(self, task: Any, tasks: TaskSet[Any]) -> dict[str, str]:
        """Database, hardness (of the data set, else measured) and the shape of the result.

        Raises:
            TaskRefused: The task cannot be played.
        """
        from sqlgym.tasks.gold import gold_of

        if not task.answerable:
            return {"database": task.item, "hardness": level_of(task), "result": UNANSWERABLE}
        result = gold_of(task).result
        rows, columns = len(result.rows), len(result.columns)
        shape = SHAPES[(columns > 1) + 2 * (rows > 1)]
        return {"database": task.item, "hardness": level_of(task), "result": shape}

    def shown(self, task: Any) -> dict[str, str]:
        """The question, the gold SQL, its tables and what it returns if it can be played."""
        from sqlgym.database.render import show
        from sqlgym.tasks.gold import gold_of

        if task.problem is not None:  # an entry that could not be read has no database
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
            return {name: text for name, text in texts.items() if text}
        try:
            result = gold_of(task).result
        except TaskRefused:
            return {name: text for name, text in texts.items() if text}
        texts["tables"] = ", ".join(sorted(result.tables_read))
        texts["result"] = show(result.columns, result.rows, "table")
        return {name: text for name, text in texts.items() if text}

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """The gold SQL run by `sqlite3`, compared another way: `sqlgym.judging.recheck`."""
        from sqlgym.judging.recheck import recheck

        return recheck(env, task, turns)

    def synthesize(self, order: SynthesisOrder, progress: Progress | None = None) -> dict[str, Any]:
        """Write a folder in the Spider layout for database files; see
        `sqlgym.datasets.synthesis_export`.

        Raises:
            ConfigurationError: A source is no database, the folder is there already, or there is no
                task.
            EnvironmentFault: The folder cannot be written.
        """
        from sqlgym.datasets.synthesis_export import write_folder

        return write_folder(order, progress)

    def invent(
        self, out: Path, n: int, first: int = 0, progress: Progress | None = None
    ) -> tuple[Path, ...]:
        """Write invented databases; see `sqlgym.invention`.

        Raises:
            ConfigurationError: One is there already.
            EnvironmentFault: The folder cannot be written.
        """
        from sqlgym.invention import invent_databases

        return invent_databases(out, n, first, progress)


class QueryTaskFamily(SqlTaskFamily):
    """Questions about databases whose answer is a query, judged on several instances."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {
        **SqlTaskFamily.orders,
        "instances": ("judged", "unjudged"),
    }

    def facts(self, task: Any, tasks: TaskSet[Any]) -> dict[str, str]:
        """The facts of `SqlTaskFamily`, and whether any instance can judge the gold."""
        from sqlgym.tasks.suites import suite_for

        facts = super().facts(task, tasks)
        if not task.answerable:
            return facts
        can_judge = suite_for(tasks, task).can_judge(task.gold_sql)
        return {**facts, "instances": "judged" if can_judge else "unjudged"}

    def recheck(self, env: Any, task: Any, turns: Sequence[Mapping[str, Any]]) -> bool | None:
        """As `SqlTaskFamily.recheck`, and on the instances of the database with `match="suite"`."""
        from sqlgym.judging.recheck import recheck
        from sqlgym.tasks.suites import suite_for

        by_suite = task.answerable and getattr(env, "match", "") == "suite"
        files = suite_for(env.tasks, task).files if by_suite else ()
        return recheck(env, task, turns, files)


def _splits_of_folder(folder: Path) -> tuple[str, ...]:
    """The splits with a JSON or JSONL file, those in BIRD's parts of the folder included."""
    from sqlgym.datasets.spider import splits_of

    parts = [part for part in sorted(folder.iterdir()) if part.is_dir()]
    inside = [name for part in parts for name in splits_of(part) if part.name.startswith(name)]
    lines = [path.stem for path in sorted(folder.glob("*.jsonl"))]
    return tuple(dict.fromkeys([*splits_of(folder), *lines, *inside]))


def level_of(task: Any) -> str:
    """The hardness that the data set tells, else the measured one; "unknown" if it has none."""
    if task.hardness:
        return str(task.hardness)
    try:
        return hardness(task.gold_sql)
    except ValueError:
        return "unknown"
