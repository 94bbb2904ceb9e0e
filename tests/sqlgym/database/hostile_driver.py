"""Runs hostile statements, each in a child of a small process, and prints what each took.

    python hostile_driver.py FILE [KIND_NAME ...]

One line of JSON for each: its kind and name, the code that it got (`rows` for a result), the peak
of its memory over what it began with in MiB, and its processor time in seconds. A plain statement
is measured again and again, since a machine is not always as fast.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

from sqlgym.database.database import Database
from tests.sqlgym.database.hostile_statements import all_statements
from toolgym.errors import EnvironmentFault, ToolError

MOST_SECONDS, MOST_BYTES = 60, 4 << 30
_STATM = Path("/proc/self/statm")


def outcome(path: str, sql: str, told: int) -> None:
    """Run a statement in the child, and write its code and the two figures."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    pages = int(_STATM.read_text().split()[0]) if _STATM.exists() else 0
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    database = Database(path)
    database.query("SELECT count(*) FROM singer")
    _ = database.schema
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        code = f"rows {len(database.query(sql).rows)}"
    except ToolError as error:
        code = error.code
    except EnvironmentFault as fault:
        code = "deadline" if "processor time" in str(fault) else f"fault: {fault}"
    after = resource.getrusage(resource.RUSAGE_SELF)
    memory = (after.ru_maxrss - before.ru_maxrss) / 1024
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    os.write(told, json.dumps([code, round(memory, 1), round(seconds, 3)]).encode())


def measure(path: str, sql: str) -> tuple[str, float, float]:
    """What became of one statement; a child that died has its signal for a code."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            outcome(path, sql, writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    _, status, used = os.wait4(child, 0)
    if told:
        code, memory, seconds = json.loads(told)
        return code, memory, seconds
    return f"died {status}", used.ru_maxrss / 1024, used.ru_utime + used.ru_stime


def main(path: str, *wanted: str) -> None:
    """All statements, or the ones of these kinds or kind.names."""
    statements = all_statements()
    plain = next(each for each in statements if each.name == "plain")
    chosen = [
        each
        for each in statements
        if not wanted or each.kind in wanted or f"{each.kind}.{each.name}" in wanted
    ]
    for start in range(0, len(chosen), 20):
        for kind, name, sql in [*chosen[start : start + 20], *[plain] * (len(chosen) > 20)]:
            code, memory, seconds = measure(path, sql)
            line = {"name": f"{kind}.{name}", "got": code, "mib": memory, "seconds": seconds}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
