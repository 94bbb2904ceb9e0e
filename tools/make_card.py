"""The statistics in the data card of the bundled tasks, counted from the data.

The card, `data/sql/README.md`, is written by hand but for what stands between its two marks: the
table of databases and the figures of each set.
"""

from collections import Counter
from pathlib import Path

from sqlgym.datasets import bundled, text_source
from sqlgym.datasets.layout import FolderSource
from tools.make_reference import table

ROOT = Path(__file__).resolve().parent.parent
CARD = ROOT / "data" / "sql" / "README.md"
BEGIN, END = "<!-- made by tools/make_docs.py -->", "<!-- end -->"
LEVELS = ("easy", "medium", "hard", "extra")
SPLITS = ("train", "dev", "test")


def card_page() -> str:
    """The text of the data card, its statistics made anew.

    Raises:
        RuntimeError: The card has lost its marks.
    """
    before, mark, rest = CARD.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise RuntimeError(f"{CARD} needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{statistics()}\n\n{END}{after}"


def statistics() -> str:
    """The tables of the sets."""
    older, newer, newest = (
        bundled.bundled_dir(name) for name in ("bundled", "bundled-2", "bundled-3")
    )
    source = bundled.read(newer)
    facts = set(text_source.entry_of(newer).facts)
    own = {one.db_id for one in bundled.read(older).databases}
    rows = [row for split in SPLITS for row in _rows(source, split, facts, own)]
    head = ("database", "split", "content", "set", "tables", "rows", "questions", *LEVELS)
    return f"{table(head, rows)}\n\n{_sums(source, bundled.read(newest), own)}"


def _rows(
    source: FolderSource, split: str, facts: set[str], own: set[str]
) -> list[tuple[str, ...]]:
    """One row for each database of a split."""
    databases = {one.db_id: one for one in source.databases}
    counted: dict[str, Counter[str]] = {}
    for entry in getattr(source, split):
        counted.setdefault(entry["db_id"], Counter())[entry["hardness"]] += 1
    rows = []
    for db_id, levels in sorted(counted.items()):
        tables = databases[db_id].tables
        numbers = [len(tables), sum(len(one.rows) for one in tables), levels.total()]
        numbers += [levels[level] for level in LEVELS]
        content = f"facts ([source](../sql2/{db_id}/SOURCE.md))" if db_id in facts else "made up"
        name = "both" if db_id in own else "`bundled-2`"
        rows.append((db_id, split, content, name, *(f"{number:,}" for number in numbers)))
    return rows


def _sums(source: FolderSource, newest: FolderSource, own: set[str]) -> str:
    """The figures of each set, by split."""
    head = ("set", "split", "databases", "questions", *LEVELS)
    rows = []
    sets = (("bundled", source, own), ("bundled-2", source, None), ("bundled-3", newest, None))
    for name, taken, members in sets:
        everything: list[str] = []
        for split in (*SPLITS, "all"):
            entries = [
                entry
                for part in (SPLITS if split == "all" else (split,))
                for entry in getattr(taken, part)
                if members is None or entry["db_id"] in members
            ]
            everything = [entry["hardness"] for entry in entries]
            if entries:
                numbers = [len({entry["db_id"] for entry in entries}), len(entries)]
                numbers += [everything.count(level) for level in LEVELS]
                rows.append((f"`{name}`", split, *(f"{number:,}" for number in numbers)))
    return table(head, rows)
