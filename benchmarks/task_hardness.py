"""How hard tasks are as measured: how often given policies have solved each of them.

The episodes are those that `toolgym eval --out` keeps, of one policy or of several, each task tried
once or often. Episodes that have no score are left out. A rate is given by level, by shape where
the tasks were written for a database, and in the file for each task. A rate of few tries says
little, so each stands with its 95 % interval, which takes the tries of one task for independent.

    toolgym eval sqlgym/Explore-v0 --dataset my.db --split dev --policy random --k 4 --out a.jsonl
    python benchmarks/task_hardness.py a.jsonl --dataset my.db --split dev [--out rates.json]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import sqlgym
from toolgym.intervals import wilson_interval
from toolgym.records import EpisodeRecord
from toolgym.runs.episodes import read_episodes


def solved(records: Iterable[EpisodeRecord]) -> dict[str, tuple[int, int]]:
    """For each task how often it was solved, and how often it was tried."""
    right, tried = Counter[str](), Counter[str]()
    for record in records:
        if record.scored:
            tried[record.task_id] += 1
            right[record.task_id] += record.correct
    return {task: (right[task], tries) for task, tries in tried.items()}


def by_kind(
    counts: dict[str, tuple[int, int]], tasks: dict[str, Any]
) -> dict[str, list[tuple[int, int, int]]]:
    """Tasks, solved tries and tries by level and by shape; tasks of other sets are left out."""
    sums: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for task_id, (right, tries) in counts.items():
        task = tasks.get(task_id)
        if task is not None:
            shape = task.extra.get("shape")
            kinds = [f"level {task.hardness}", *([f"shape {shape}"] if shape else [])]
            for kind in kinds:
                sums[kind].append((1, right, tries))
    return sums


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, join, print.

    Args:
        arguments: Of the command line; None: those of this process.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("episodes", nargs="+", type=Path)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--split", default="dev")
    parser.add_argument(
        "--synthesis", default="{}", help="Its options as JSON, as of the episodes."
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    synthesis = json.loads(options.synthesis) or None
    found = sqlgym.load_tasks(options.dataset, options.split, synthesis=synthesis)
    tasks = {task.id: task for task in found}
    counts = solved(record for file in options.episodes for record in read_episodes(file))
    table = Table("", "tasks", "tries", "solved", "95 % interval")
    for kind, parts in sorted(by_kind(counts, tasks).items()):
        number, right, tries = (sum(part[place] for part in parts) for place in range(3))
        low, high = wilson_interval(right, tries)
        share = f"{100 * right / tries:.1f} %"
        table.add_row(
            kind, str(number), str(tries), share, f"{100 * low:.1f} to {100 * high:.1f} %"
        )
    Console().print(table)
    print(f"{len(counts.keys() - tasks.keys())} tasks of the episodes are not in the data set.")
    if options.out:
        rates = {
            task: {"solved": right, "tries": tries, "level": tasks[task].hardness}
            | {"shape": tasks[task].extra.get("shape", "")}
            for task, (right, tries) in sorted(counts.items())
            if task in tasks
        }
        options.out.write_text(json.dumps(rates, indent=1) + "\n")


if __name__ == "__main__":
    main()
