"""Measures how many tasks are generated for a database, how fast, and whether they are solved.

For each SQLite file, tasks are generated without the cache, and the expert plays each of them in
`sqlgym/Explore-v0`. The table has one line per file. Reasons for missing levels of hardness are
below the table.

    python benchmarks/synthesis.py FILE_OR_FOLDER [...] [--n 500] [--seed 0] [--least 150]

The exit status is 1 if a database has fewer than `--least` tasks, or if a task is not solved.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sqlgym.datasets.load import load_tasks
from sqlgym.synthesis import LEVELS, synthesize
from toolgym import ConfigurationError, policies, rollout

COLUMNS = ("database", "MB", "tables", "tasks", "seconds", *LEVELS, "templates", "expert")


@dataclass
class Line:
    """The results of one database."""

    cells: tuple[str, ...]
    remarks: tuple[str, ...]
    good: bool


def measure(path: Path, n: int, seed: int, least: int) -> Line:
    """Generate tasks for a database, and let the expert play them."""
    size = f"{path.stat().st_size / 1e6:.2f}"
    started = time.perf_counter()
    try:
        written = synthesize(path, n=n, seed=seed)
    except ConfigurationError as error:
        taken = f"{time.perf_counter() - started:.1f}"
        return Line((path.stem, size, "", "0", taken), (f"{path.stem}: {error}",), least == 0)
    taken = time.perf_counter() - started
    levels = Counter(task.hardness for task in written.tasks)
    solved, played = expert(path, n, seed)
    cells = (
        path.stem,
        size,
        str(len({table for task in written.tasks for table in task.tables})),
        str(len(written.tasks)),
        f"{taken:.1f}",
        *(str(levels[level]) for level in LEVELS),
        str(len(written.report.by_template)),
        f"{solved}/{played}",
    )
    remarks = [f"{path.stem}: {level}: {why}" for level, why in written.report.missing.items()]
    left = written.report.tables_left_out.items()
    remarks += [f"{path.stem}: left out {table}: {why}" for table, why in left]
    good = len(written.tasks) >= least and solved == played == len(written.tasks)
    return Line(cells, tuple(remarks), good)


def expert(path: Path, n: int, seed: int) -> tuple[int, int]:
    """Return the number of tasks that the expert solves, and the number of tasks."""
    options = {"dataset": str(path), "split": "all", "synthesis": {"n": n, "seed": seed}}
    tasks = load_tasks(path, "all", synthesis={"n": n, "seed": seed})
    played = rollout.evaluate("sqlgym/Explore-v0", policies.ExpertPolicy(), **options)
    return round(played.accuracy * played.episodes), len(tasks)


def files(paths: list[Path]) -> list[Path]:
    """Return the given database files and those in the given folders."""
    found = [path for path in paths if path.is_file()]
    for folder in paths:
        found += [f for f in folder.rglob("*") if f.suffix in (".sqlite", ".db", ".sqlite3")]
    return sorted(set(found), key=lambda path: path.stem)


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=int, default=150)
    chosen = parser.parse_args()
    table = Table(*COLUMNS)
    lines = []
    console = Console(width=130)
    with tempfile.TemporaryDirectory() as cache, console.status("") as status:
        os.environ["TOOLGYM_CACHE"] = cache
        for path in files(chosen.paths):
            status.update(path.stem)
            lines.append(measure(path, chosen.n, chosen.seed, chosen.least))
            table.add_row(*lines[-1].cells)
    console.print(table)
    for line in lines:
        for remark in line.remarks:
            console.print(remark, highlight=False)
    return 0 if lines and all(line.good for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
