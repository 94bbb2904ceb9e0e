"""The tasks of a recipe, as one folder: those of a data set, and more that are written for it.

    FOLDER/train_others.json     the data set's own training tasks
    FOLDER/train_spider.json     those written for the same databases, and for invented ones
    FOLDER/dev.json              what it is evaluated on, on other databases
    FOLDER/database/             copies of all of them
    FOLDER/plan.json             what it is made of; written last

It is a folder in the layout that every environment of the family reads, made under a temporary name
and moved to its place by one rename. The family invents databases and writes the tasks
(`TaskFamily.invent`, `TaskFamily.synthesize`); what asks for the same as one of the data set's own
is left out.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapters.training.runs.recipes import Recipe
from adapters.training.runs.settings import TrainSettings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.family import SynthesisOrder, TaskFamily
from toolgym.long_work import tell
from toolgym.processes import processes, usable_cores
from toolgym.runs.files import object_text, plain, read_object, replace_file
from toolgym.spread import Part, Tell

if TYPE_CHECKING:
    from adapters.training.runs.progress import ProgressListener

PLAN: Final = "plan.json"
_TRAINED, _MEASURED = "train", "dev"


def make_tasks(recipe: Recipe, folder: Path) -> str:
    """The data set of a recipe, made first if it is not there.

    Returns:
        The name of the data set, or the folder where more tasks were written for it.

    Raises:
        ConfigurationError: Other tasks lie in the folder, or the data set cannot be had.
        EnvironmentFault: The folder cannot be written.
    """
    plan = recipe.tasks
    if not plan.more and not plan.invented:
        return plan.dataset
    record = {"env_id": recipe.env_id, **dataclasses.asdict(plan)}
    if (folder / PLAN).is_file():
        if read_object(folder / PLAN) != plain(record, PLAN):
            raise ConfigurationError(
                f"{folder} holds the tasks of another plan: name another --out."
            )
        return str(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{folder.name}-", dir=folder.parent, ignore_cleanup_errors=True
        ) as name:
            built = Path(name) / "built"
            _write(recipe, built)
            replace_file(built / PLAN, [object_text(plain(record, PLAN))])
            built.rename(folder)
    except OSError as problem:
        raise EnvironmentFault(f"{folder} cannot be written: {problem}.") from problem
    return str(folder)


def _write(recipe: Recipe, folder: Path) -> None:
    plan = recipe.tasks
    sets = {
        split: registration.make(
            recipe.env_id, **{**recipe.env_kwargs, "dataset": plan.dataset, "split": split}
        )
        for split in (_TRAINED, _MEASURED)
    }
    trained, measured = (list(env.tasks) for env in sets.values())
    files = {task.item: Path(task.database) for task in trained}
    if shared := sorted(files.keys() & {task.item for task in measured}):
        raise ConfigurationError(
            f"{plan.dataset} is trained and measured on {', '.join(shared)}: a recipe needs a data"
            " set whose evaluation has databases of its own."
        )
    family, written = sets[_TRAINED].family, list[dict[str, Any]]()
    databases = folder / "database"
    databases.mkdir(parents=True)
    if plan.more:
        sources = [files[item] for item in sorted(files)]
        written += _written(family, sources, plan.more, plan.seed, databases)
    if plan.invented:
        with tempfile.TemporaryDirectory(prefix=".invented-", dir=folder.parent) as name:
            sources = list(family.invent(Path(name), plan.invented))
            if shared := sorted({source.stem for source in sources} & files.keys()):
                raise ConfigurationError(f"{plan.dataset} has a database {shared[0]} of its own.")
            written += _written(family, sources, plan.of_each, plan.seed, databases)
    _write_json(folder / "train_spider.json", list(_new(written, trained)))
    _write_json(folder / "train_others.json", [_entry(task) for task in trained])
    _write_json(folder / f"{_MEASURED}.json", [_entry(task) for task in measured])
    for item, file in sorted(files.items() | {(t.item, Path(t.database)) for t in measured}):
        place = databases / item / f"{item}.sqlite"
        if not place.exists():
            place.parent.mkdir()
            shutil.copyfile(file, place)


def _written(
    family: TaskFamily, sources: Sequence[Path], n: int, seed: int, databases: Path
) -> list[dict[str, Any]]:
    """The tasks that are written for some databases, which are copied."""
    tell("tasks written", 0, n * len(sources))
    with tempfile.TemporaryDirectory(prefix=".written-", dir=databases.parent) as name:
        out = Path(name) / "out"
        with processes(usable_cores()) as spread:
            options = {"n": n, "seed": seed}
            order = SynthesisOrder(tuple(sources), out, {_TRAINED: 1.0}, options, spread=spread)
            family.synthesize(order, lambda done, total: tell("tasks written", done, total))
        tell("tasks written", n * len(sources), n * len(sources))  # there may be fewer
        for place in sorted((out / "database").iterdir()):
            place.rename(databases / place.name)
        entries: list[dict[str, Any]] = json.loads((out / "train_spider.json").read_bytes())
    return entries


def _new(written: Sequence[dict[str, Any]], known: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The entries that no known task is the same as, by id, question or query."""
    taken: set[Any] = {task.id for task in known}
    taken |= {(task.item, text) for task in known for text in (task.question, task.gold_sql)}
    for entry in written:
        own = {entry["id"], (entry["db_id"], entry["question"]), (entry["db_id"], entry["query"])}
        if not own & taken:
            yield entry


def _entry(task: Any) -> dict[str, Any]:
    """A task as an entry of a file in Spider's layout."""
    return {
        "id": task.id,
        "db_id": task.item,
        "question": task.question,
        "query": task.gold_sql,
        "hardness": task.hardness,
    }


def _write_json(file: Path, entries: Sequence[dict[str, Any]]) -> None:
    file.write_text(json.dumps(entries, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def make_databases_ready(settings: TrainSettings, watch: ProgressListener) -> None:
    """Begin one task of each database, so that what is made once for one is made before it counts.

    That is the instances on which `match="suite"` judges; they are kept in the cache. Each core
    takes databases as long as there are any.

    Raises:
        ConfigurationError: The environment cannot be made.
        PartLost: The system ended a process.
    """
    firsts = [
        (kwargs, registration.make(settings.env_id, **kwargs).tasks)
        for kwargs in (settings.training_kwargs, settings.evaluation_kwargs)
    ]
    with processes(usable_cores()) as spread:
        for kwargs, tasks in firsts:
            chosen: dict[str, str] = {}
            for task in tasks:
                if task.item not in chosen and tasks.refusal_of(task) is None:
                    chosen[task.item] = task.id
            parts = [Part(item, 1, task_id) for item, task_id in chosen.items()]
            begin = functools.partial(_begin_task, settings.env_id, json.dumps(kwargs))
            with watch.phase(f"databases ({tasks.name})", len(parts)) as advance:
                for _ in spread.map(begin, parts, lambda done, total: advance(done, "")):
                    pass


def _begin_task(env_id: str, kwargs: str, task_id: str, tell: Tell | None) -> None:
    _environment(env_id, kwargs).reset(options={"task_id": task_id})


@functools.lru_cache(maxsize=2)
def _environment(env_id: str, kwargs: str) -> ToolEnv[Any]:
    return registration.make(env_id, **json.loads(kwargs))
