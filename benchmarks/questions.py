"""How the questions read that are written for databases: what a person would not have said.

Each SQLite file is used bare. A line of the table tells, for the tasks of one database, how many of
them quote a name, speak of records, mix two ways to write numbers, take a place in an order for a
quantity, name a row by its key, or join a table of which nothing but the key is used; how much more
often a table is asked about than the shapes that fit it explain; and how many are requests and
fragments, not questions. Below it stand the shapes that begin in the fewest ways.

    python benchmarks/questions.py FILE_OR_FOLDER [...] [--n 200] [--seed 0] [--out questions.json]
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sqlgym.database.database import open_database
from sqlgym.synthesis import SHAPES, SynthTask, synthesize
from sqlgym.synthesis.drafting import Draft, Unfit
from sqlgym.synthesis.language.lexicon import word_set
from sqlgym.synthesis.reading.profiling import profile
from sqlgym.synthesis.reading.world import Role, World

DRAFTS = 60
"""Drafts of each shape that tell which tables it fits."""
_QUOTED_NAME = re.compile(r'\b(?:column|table|records? in) "|for which "')
_RECORDS = re.compile(r"\brecords?\b(?! in \")")
_QUANTITY = re.compile(
    r"(?:avg|sum|min|max)\((?:T\d\.)?\"?(?:\w*_)?(?:line|pos|position|rank|seq|seq_no|seqno)\"?\)"
    r"|(?<![\w.])(?:T\d\.)?\"?(?:\w*_)?(?:line|pos|position|rank|seq|seq_no)\"? (?:[<>]|BETWEEN)",
    re.IGNORECASE,
)
_TEXT = re.compile(r"'(?:[^']|'')*'")
_COLUMN = re.compile(r"\b(T\d)\.(\"(?:[^\"]|\"\")*\"|\w+)")
_JOIN = re.compile(
    r" ON T\d\.(?:\"(?:[^\"]|\"\")*\"|\w+) = T\d\.(?:\"(?:[^\"]|\"\")*\"|\w+)", re.ASCII
)
_WORD_NUMBERS = re.compile(r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b")
_REQUESTS = word_set("""
    list give show find count name tell group look write return report i please
""")


def has_mixed_numbers(task: SynthTask) -> bool:
    """Whether a question writes its quantities in two ways."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", task.question)
    with_comma = re.search(r"\d,\d{3}\b", bare)
    plain = [n for n in re.findall(r"(?<![\w,.])\d{4,}(?![\w,])", bare) if len(n) > 4]
    small = re.search(r"(?<![\w,.:-])(?:[2-9]|1[0-2])(?![\w,.:-]| (?:of )?[A-Z])", bare)
    return bool((with_comma and plain) or (small and _WORD_NUMBERS.search(bare)))


def has_idle_join(task: SynthTask) -> bool:
    """Whether a joined table serves for nothing but the column that it is joined by."""
    sql = _TEXT.sub("''", task.sql)
    joined = defaultdict(set)
    for clause in _JOIN.findall(sql):
        for alias, column in _COLUMN.findall(clause):
            joined[alias].add(column.casefold())
    used = defaultdict(set)
    for alias, column in _COLUMN.findall(_JOIN.sub("", sql)):
        used[alias].add(column.casefold())
    for part in ("SELECT", "WHERE"):
        if part not in sql:
            return False
    return any(len(joined[a]) == 1 and used[a] and used[a] <= joined[a] for a in joined)


def names_a_key(task: SynthTask, world: World) -> bool:
    """Whether a question asks for a key or names a row by it."""
    keys = {
        field.noun.one
        for entity in world.entities
        if entity.name in task.tables
        for field in entity.fields
        if field.role in (Role.KEY, Role.REFERENCE)
    }
    text = task.question.casefold()
    if re.search(r"\b(?:with|of) the (?:number|code) \S*\d", text):
        return True
    plain = {noun.casefold() for noun in keys} - {"number", "code", "name", "title"} | {"id"}
    return any(re.search(rf"(?<!\w){re.escape(noun)}s?(?!\w)", text) for noun in plain)


def unfair_shares(tasks: list[SynthTask], world: World) -> tuple[float, str]:
    """The largest ratio of a table's share of the questions to its share of the shapes."""
    fits: dict[str, set[str]] = defaultdict(set)
    draft = Draft(world, random.Random("shares"))
    for name, shape in SHAPES.items():
        for _ in range(DRAFTS):
            try:
                for table in shape(draft).tables:
                    fits[table].add(name)
            except Unfit:
                continue
    asked = Counter(table for task in tasks for table in task.tables)
    total, shapes = asked.total(), sum(map(len, fits.values()))
    ratios = {t: n / total / (len(fits[t]) / shapes) for t, n in asked.items() if fits[t]}
    most = max(ratios, key=lambda table: ratios[table])
    return ratios[most], most


def kind_of(question: str) -> str:
    """Whether a question is one, a request, or a fragment."""
    if "?" in question:
        return "question"
    first = question.split(" ")[0].strip(",:").casefold()
    asks = re.search(r"[,:;.] (?:list|give|show|find|count|name|tell|write) ", question.casefold())
    return "request" if first in _REQUESTS or asks else "fragment"


def opening(question: str) -> str:
    """How a question begins: its first two words and its last sign."""
    return " ".join(question.split(" ")[:2]).casefold() + question[-1]


def files(paths: list[Path]) -> list[Path]:
    """The database files that are named, or lie in the folders that are."""
    found = [path for path in paths if path.is_file()]
    for folder in paths:
        found += [f for f in folder.rglob("*") if f.suffix in (".sqlite", ".db", ".sqlite3")]
    return sorted({path.stem: path for path in found}.values(), key=lambda path: path.stem)


COLUMNS = ("quoted", "records", "mixed", "ordinal", "key", "idle join")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where the tasks are written, as JSON")
    chosen = parser.parse_args()
    table = Table("database", "tasks", *COLUMNS, "share", "of", "request", "fragment")
    openings: dict[str, Counter[str]] = defaultdict(Counter)
    written, totals = {}, Counter[str]()
    for path in files(chosen.paths):
        world = profile(open_database(path))
        tasks = list(synthesize(path, n=chosen.n, seed=chosen.seed).tasks)
        written[path.stem] = [
            {"question": t.question, "sql": t.sql, "shape": t.shape, "tables": t.tables}
            for t in tasks
        ]
        counts = {
            "quoted": sum(bool(_QUOTED_NAME.search(t.question)) for t in tasks),
            "records": sum(bool(_RECORDS.search(t.question)) for t in tasks),
            "mixed": sum(map(has_mixed_numbers, tasks)),
            "ordinal": sum(bool(_QUANTITY.search(t.sql)) for t in tasks),
            "key": sum(names_a_key(t, world) for t in tasks),
            "idle join": sum(map(has_idle_join, tasks)),
        }
        kinds = Counter(kind_of(task.question) for task in tasks)
        ratio, most = unfair_shares(tasks, world)
        totals.update(counts)
        totals.update({"tasks": len(tasks), "unfair": ratio > 2, **kinds})
        cells = [str(counts[name]) for name in COLUMNS]
        others = (f"{ratio:.1f}", most, str(kinds["request"]), str(kinds["fragment"]))
        table.add_row(path.stem, str(len(tasks)), *cells, *others)
        for task in tasks:
            openings[task.shape][opening(task.question)] += 1
    cells = [f"{100 * totals[name] / totals['tasks']:.1f} %" for name in COLUMNS]
    kinds_ = [f"{100 * totals[k] / totals['tasks']:.0f} %" for k in ("request", "fragment")]
    table.add_row("all", str(totals["tasks"]), *cells, f"{totals['unfair']} over 2", "", *kinds_)
    console = Console(width=130)
    console.print(table)
    few = sorted(openings, key=lambda name: len(openings[name]))[:12]
    console.print("fewest openings:", {name: len(openings[name]) for name in few})
    if chosen.out:
        chosen.out.write_text(json.dumps(written, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
