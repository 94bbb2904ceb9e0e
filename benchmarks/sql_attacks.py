"""Measures how often queries that hard-code a known answer are accepted.

An agent that explores a database can find the result of the gold query and write a query that
returns these values, as constants or by row numbers. `match="suite"` rejects such queries, because
their results are wrong on other instances of the database.

    python benchmarks/sql_attacks.py [--dataset bundled] [--split dev]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from sqlgym.database.database import Database, open_database
from sqlgym.database.sqlite_file import quoted
from sqlgym.datasets.load import load_tasks
from sqlgym.envs.text_to_sql import TextToSQLEnv
from sqlgym.tasks.gold import gold_of
from sqlgym.tasks.task import SqlTask
from toolgym.errors import TaskRefused, ToolError
from toolgym.tasks import TaskSet

Attack = Callable[[Database, Sequence[Sequence[Any]]], str | None]
MATCHES = ("sound", "suite")
SEARCHED = 5_000
"""Maximum rows of a table that are searched."""


def constants(database: Database, rows: Sequence[Sequence[Any]]) -> str | None:
    """Return a query of constants that also reads a table."""
    table = quoted(database.schema.tables[0].name)
    texts = [", ".join(f"{_literal(v)} AS c{i}" for i, v in enumerate(row)) for row in rows]
    selects = [f"SELECT * FROM (SELECT {text} FROM {table} LIMIT 1)" for text in texts]
    return " UNION ALL ".join(selects)


def row_numbers(database: Database, rows: Sequence[Sequence[Any]]) -> str | None:
    """Return a query that reads each value by a row number; None if a value is in no table."""
    selects = []
    for row in rows:
        cells = [_cell(database, value) for value in row]
        if None in cells:
            return None
        selects.append(f"SELECT {', '.join(map(str, cells))}")
    return " UNION ALL ".join(selects)


def _cell(database: Database, value: Any) -> str | None:
    for table in database.schema.tables:
        for column in table.columns:
            name, of = quoted(column.name), quoted(table.name)
            found = (
                f"SELECT rowid FROM {of} WHERE rowid <= {SEARCHED} AND {name} IS {_literal(value)}"
            )
            try:
                numbers = database.query(f"{found} LIMIT 1").rows
            except ToolError:  # the table has no row numbers
                continue
            if numbers:
                return f"(SELECT {name} FROM {of} WHERE rowid = {numbers[0][0]})"
    return None


def whole_rows(database: Database, rows: Sequence[Sequence[Any]]) -> str | None:
    """Return a query that selects rows of one table by number; None if no table has the values."""
    for table in database.schema.tables:
        names = [quoted(column.name) for column in table.columns]
        of = quoted(table.name)
        try:
            held = database.query(f"SELECT rowid, {', '.join(names)} FROM {of}").rows
        except ToolError:
            continue
        columns = [set(values) for values in zip(*held, strict=True)]
        places = [
            [at for at, values in enumerate(columns) if at and set(wanted) <= values]
            for wanted in zip(*rows, strict=True)
        ]
        if not all(places):
            continue
        chosen = [each[0] for each in places]
        by_values = {tuple(row[at] for at in chosen): row[0] for row in held}
        numbers = [by_values.get(tuple(row)) for row in rows]
        if None in numbers or len(set(numbers)) < len(numbers):
            continue
        shown = ", ".join(names[at - 1] for at in chosen)
        wanted = ", ".join(map(str, numbers))
        order = " ".join(f"WHEN {number} THEN {place}" for place, number in enumerate(numbers))
        return f"SELECT {shown} FROM {of} WHERE rowid IN ({wanted}) ORDER BY CASE rowid {order} END"
    return None


ATTACKS: dict[str, Attack] = {
    "constants": constants,
    "numbers of rows": whole_rows,
    "numbers of rows, by cell": row_numbers,
}


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else repr(value)


def succeeds(env: TextToSQLEnv, task: SqlTask, attack: Attack) -> tuple[bool, bool]:
    """Return whether an attack is accepted, and whether no other instance could be used."""
    rows = gold_of(task).result.rows
    sql = attack(open_database(task.database), rows) if len(rows) <= 40 else None
    if sql is None:
        return False, False
    env.reset(options={"task_id": task.id})
    *_, info = env.step({"name": "answer", "arguments": {"sql": sql}})
    return info["correct"], info.get("unjudged", False)


def measure(tasks: TaskSet[SqlTask], most: int) -> Counter[str]:
    """Count accepted attacks by kind and comparison, over the first playable tasks."""
    counts: Counter[str] = Counter()
    envs = {match: TextToSQLEnv(tasks, match=match) for match in MATCHES}
    for task in tasks:
        try:
            gold_of(task)
        except TaskRefused:
            continue
        counts["tasks"] += 1
        for name, attack in ATTACKS.items():
            for match, env in envs.items():
                right, unjudged = succeeds(env, task, attack)
                counts[f"{name}: {match}"] += right
                counts[f"{name}: unjudged"] += unjudged
        if counts["tasks"] >= most:
            break
    return counts


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description="Count accepted queries that hard-code the answer."
    )
    parser.add_argument("--dataset", default="bundled")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--tasks", type=int, default=100_000, help="tasks at most")
    options = parser.parse_args()
    for name, count in measure(load_tasks(options.dataset, options.split), options.tasks).items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    main()
