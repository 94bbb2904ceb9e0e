"""The questions that "bundled-3" adds, written by `sqlgym.synthesis` for the databases of the set.

They were made once, by the synthesis as it was then, and are data since: a published set does not
change. Of what the synthesis writes for a database, a question is taken only if no older set asks
the same, if it quotes no name and asks for no key, and if `sqlgym.blind` finds nothing wrong with
it: it reads the gold's meaning out of its words, or says that it cannot read such a query. The
levels get equal shares, and within a level the shapes take turns.

    python tools/generate_questions.py [OUT] [--each 100] [--seed 3] [--jobs 2]
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

from sqlgym.blind import judge
from sqlgym.database.database import open_database
from sqlgym.datasets import bundled
from sqlgym.synthesis import LEVELS, SynthTask, canonical_sql, synthesize
from sqlgym.tasks.splits import plain_question

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "data" / "sql3" / "questions"
FIRST = 201
"""The number of the first question that is added for a database."""
DRAWN = 8
"""Tasks that are written for each that is taken."""
_ODD = re.compile(
    r'column "|records? in "|\bIDs?\b|\bcodes?\b \S*\d|\w-\w+ links?\b|\b(figure|value)\b'
    r"|have their|\b(that have|that are) \w+ (whose|with)\b|mountain countr"
)


def questions_of(db_id: str, each: int, seed: int) -> tuple[str, list[SynthTask], Counter[str]]:
    """The questions that may be added for a database, and why others were left out."""
    folder = bundled.dataset_folder("bundled-2")
    older = [
        entry
        for split in ("train_spider", "dev", "test")
        for entry in json.loads((folder / f"{split}.json").read_text(encoding="utf-8"))
        if entry["db_id"] == db_id
    ]
    path = folder / "database" / db_id / f"{db_id}.sqlite"
    asked = {plain_question(entry["question"]) for entry in older}  # of this database
    known = {canonical_sql(entry["query"]) for entry in older}
    written = synthesize(path, n=each * DRAWN, seed=seed, variants=2).tasks
    database = open_database(path)
    left_out: Counter[str] = Counter()
    good = []
    for task in written:
        if task.canonical in known or plain_question(task.question) in asked:
            left_out["known"] += 1
        elif _ODD.search(task.question):
            left_out["odd"] += 1
        elif findings := {f.kind for f in judge(task.question, task.sql, database).findings}:
            if findings == {"unreadable"}:
                good.append(task)
            else:
                left_out["judge"] += 1
        else:
            good.append(task)
    return db_id, good, left_out


def entries_of(
    db_id: str, good: list[SynthTask], each: int, taken: set[str]
) -> list[dict[str, str]]:
    """The questions to add for a database, none of which is taken; they are then."""
    new = [task for task in good if plain_question(task.question) not in taken]
    chosen = [task for level in LEVELS for task in _by_turns(new, level, each // len(LEVELS))]
    taken.update(plain_question(task.question) for task in chosen)
    return [
        {
            "id": f"{db_id}-{number}",
            "db_id": db_id,
            "question": task.question,
            "query": task.sql,
            "hardness": task.hardness,
        }
        for number, task in enumerate(chosen, FIRST)
    ]


def _by_turns(tasks: list[SynthTask], level: str, most: int) -> Iterator[SynthTask]:
    """So many tasks of a level, from each shape in its turn."""
    by_shape: dict[str, list[SynthTask]] = defaultdict(list)
    for task in tasks:
        if task.hardness == level:
            by_shape[task.shape].append(task)
    turns = chain.from_iterable(zip_longest(*by_shape.values()))
    yield from [task for task in turns if task is not None][:most]


def main() -> None:
    """Write one file for each database."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", nargs="?", type=Path, default=OUT)
    parser.add_argument("--each", type=int, default=100, help="questions of a database, at most")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    db_ids = [one.db_id for one in bundled.read(bundled.bundled_dir("bundled-2")).databases]
    work = partial(questions_of, each=chosen.each, seed=chosen.seed)
    with ProcessPoolExecutor(chosen.jobs) as pool:
        taken: set[str] = set()  # "How many towns are there?" may fit two databases
        for db_id, good, left_out in pool.map(work, db_ids):
            entries = entries_of(db_id, good, chosen.each, taken)
            lines = ",\n".join(f" {json.dumps(entry, ensure_ascii=False)}" for entry in entries)
            text = f"[\n{lines}\n]\n"
            (chosen.out / f"{db_id}.json").write_text(text, encoding="utf-8")
            levels = Counter(entry["hardness"] for entry in entries)
            print(db_id, len(entries), dict(levels), "left out:", dict(left_out), flush=True)


if __name__ == "__main__":
    main()
