"""What the judge of questions finds in questions that were written, and which faults it sees.

For each database, tasks are written by `sqlgym.synthesis` and judged by `sqlgym.blind`, which
shares no module with it. The table tells how many it cannot read, and how many do not agree, by
finding. Then faults are seeded
into the gold SQL of questions that agree, one of each kind that fits a query, and the second table
tells how many of each kind are caught. All is fixed by the seed.

    python benchmarks/blind.py FILE_OR_FOLDER [...] [--n 300] [--seed 0] [--faults 1000] [--show 20]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.blind_faults import Fault, faults_of
from sqlgym.blind import Verdict, judge
from sqlgym.database import Database, open_database
from sqlgym.synthesis import SynthTask, synthesize


@dataclass
class Count:
    """Faults of one kind: how many were made, and how many were caught."""

    made: int = 0
    caught: int = 0
    missed: list[tuple[str, str]] = field(default_factory=list)


def judged(path: Path, n: int, seed: int) -> Iterator[tuple[SynthTask, Verdict]]:
    """The tasks of a database, each with its verdict."""
    database = open_database(path)
    for task in synthesize(path, n=n, seed=seed).tasks:
        yield task, judge(task.question, task.sql, database)


def caught(tasks: Iterable[tuple[SynthTask, Database]], most: int, seed: int) -> dict[str, Count]:
    """How many of `most` faults the judge sees, by kind; a question gives one of each kind."""
    draw = random.Random(seed)
    counts: dict[str, Count] = {}
    for task, database in tasks:
        for fault in faults_of(task.sql, database, draw):
            if sum(count.made for count in counts.values()) >= most:
                return counts
            _try(task, fault, database, counts.setdefault(fault.kind, Count()))
    return counts


def _try(task: SynthTask, fault: Fault, database: Database, count: Count) -> None:
    count.made += 1
    if judge(task.question, fault.sql, database).agrees:
        count.missed.append((task.question, fault.sql))
    else:
        count.caught += 1


COLUMNS = ("tasks", "unreadable", "mismatches")


def files(paths: list[Path]) -> list[Path]:
    """The database files that are named, or lie in the folders that are."""
    found = [path for path in paths if path.is_file()]
    for folder in paths:
        found += [f for f in folder.rglob("*") if f.suffix in (".sqlite", ".db", ".sqlite3")]
    return sorted(set(found), key=lambda path: (path.stem, str(path)))


def main() -> None:
    """Write, judge, seed faults, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--show", type=int, default=20, help="mismatches and misses to print")
    chosen = parser.parse_args()
    console = Console(width=130)
    table = Table("database", "tasks", "unreadable", "mismatches", "findings")
    agreed, mismatches, totals = [], [], Counter[str]()
    for path in files(chosen.paths):
        kinds, counts = Counter[str](), Counter[str]()
        for task, verdict in judged(path, chosen.n, chosen.seed):
            counts["tasks"] += 1
            if verdict.agrees:
                agreed.append((task, open_database(path)))
            elif verdict.findings[0].kind == "unreadable":
                counts["unreadable"] += 1
            else:
                counts["mismatches"] += 1
                kinds.update({finding.kind for finding in verdict.findings})
                mismatches.append((path.stem, task, verdict))
        totals.update(counts)
        found = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        table.add_row(path.stem, *(str(counts[name]) for name in COLUMNS), found)
    table.add_row("all", *(str(totals[name]) for name in COLUMNS), "")
    console.print(table)
    for name, task, verdict in mismatches[: chosen.show]:
        console.print(
            f"{name}: {task.question}\n    {task.sql}\n    {verdict.findings}", markup=False
        )
    _print_faults(console, agreed, chosen)


def _print_faults(
    console: Console, agreed: list[tuple[SynthTask, Database]], chosen: argparse.Namespace
) -> None:
    random.Random(chosen.seed).shuffle(agreed)
    counts = caught(agreed, chosen.faults, chosen.seed)
    table = Table("fault", "made", "caught", "%")
    made = sum(count.made for count in counts.values())
    right = sum(count.caught for count in counts.values())
    for kind, count in counts.items():
        table.add_row(
            kind, str(count.made), str(count.caught), f"{100 * count.caught / count.made:.1f}"
        )
    if made:
        table.add_row("all", str(made), str(right), f"{100 * right / made:.1f}")
    console.print(table)
    for question, sql in [miss for count in counts.values() for miss in count.missed][
        : chosen.show
    ]:
        console.print(f"{question}\n    {sql}", markup=False)


if __name__ == "__main__":
    main()
