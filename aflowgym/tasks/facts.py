"""What can be told of workflow tasks before anybody plays them: their splits, marks and facts.

The facts that tasks are counted by are the kind, the item (the family of problems, by which splits
are cut) and how much there is to go by: public tests, passages, hops. What a training has not seen
of a task may be the task, its family, or its kind, which is the shape of a problem for workflows. A
task is shown with its gold. What is played of it is told by `aflowgym.envs.family`, which knows
the environments' transcripts too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from aflowgym.tasks.task import KINDS
from toolgym.errors import ConfigurationError
from toolgym.family import TaskFamily

DATASETS: Final = ("bundled", "tiny")
SPLITS: Final = ("train", "dev", "test")
_FILES = (".jsonl", ".json")


class WorkflowTaskFacts(TaskFamily):
    """Problems for workflows, as their data sets tell them."""

    orders: ClassVar[Mapping[str, Sequence[str]]] = {"kind": KINDS}
    kinds: ClassVar[tuple[str, ...]] = ("tasks", "families", "shapes")

    def splits(self, dataset: Any) -> tuple[str, ...]:
        """The splits of a data set that has a name or a path.

        Raises:
            ConfigurationError: There is no such data set.
        """
        if isinstance(dataset, str) and dataset in DATASETS:
            return SPLITS
        path = Path(dataset).expanduser()
        if path.is_dir():
            found = {each.stem for each in path.iterdir() if each.suffix in _FILES}
            usual = [split for split in SPLITS if split in found]
            return (*usual, *sorted(found - set(usual)))
        if path.is_file():
            return (path.stem if path.stem in SPLITS else SPLITS[0],)
        known = ", ".join(map(repr, DATASETS))
        raise ConfigurationError(
            f"no data set {str(dataset)!r}; there are {known}, or give a path."
        )

    def marks(self, task: Any, kind: str) -> frozenset[str]:
        """A task is its question with its passages, whatever its draws; its shape is its kind.

        Raises:
            ConfigurationError: There is no such kind.
        """
        if kind == "shapes":
            return frozenset((task.kind,))
        if kind == "tasks":
            told = [" ".join(text.casefold().split()) for text in (task.question, *task.context)]
            return frozenset(("\n".join((task.item, *told)),))
        return super().marks(task, kind)

    def facts(self, task: Any) -> dict[str, str]:
        """Item, kind, and what there is to go by."""
        given = {
            "math": "a question",
            "code": f"{len(task.public_tests)} public tests",
            "qa": f"{task.hops} hops" if task.hops else "passages",
        }
        return {"item": task.item or "none", "kind": task.kind, "given": given[task.kind]}

    def shown(self, task: Any) -> dict[str, str]:
        """The question, the passages, the gold or the tests, and the wrong answers it knows of."""
        told = {
            "question": task.question,
            "kind": task.kind,
            "item": task.item,
            **{str(name): str(value) for name, value in task.extra.items()},
            "passages": "\n".join(task.context),
            "gold": " | ".join(filter(None, (task.gold, *task.aliases))),
            "public tests": "\n".join(map(_told, task.public_tests)),
            "tests": "\n".join(map(_told, task.tests)),
            "solution": task.solution,
            "wrong answers": "\n".join(task.distractors),
        }
        return {name: text for name, text in told.items() if text}


def _told(test: Any) -> str:
    keywords = "" if test.keywords == "{}" else f" {test.keywords}"
    sign = "is" if test.form == "is" else "=="
    return f"{test.function}{test.arguments}{keywords} {sign} {test.expected}"
