"""Runs the hostile programs in a sandbox of its own, as whoever starts it: a script for a test.

    python sandbox_driver.py PORT SECRET TASKS [few | gate | slow]

It needs the standard library only: the packages are entered without what their `__init__` imports.
It prints one JSON object: what each program got, what was left, and the level.
"""

import json
import os
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (
    "aflowgym",
    "aflowgym.answers",
    "aflowgym.operators",
    "aflowgym.sandbox",
    "toolgym",
    "toolgym.calls",
    "tests",
    "tests.aflowgym",
    "tests.aflowgym.sandbox",
)
for name in FOLDERS:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [str(ROOT.joinpath(*name.split(".")))]

from aflowgym.sandbox.base import Limits  # noqa: E402
from aflowgym.sandbox.walled import WalledSandbox  # noqa: E402
from tests.aflowgym.sandbox.hostile_programs import FEW, GATE, PROGRAMS, SLOW  # noqa: E402

LIMITS = Limits(cpu_seconds=1, seconds=10.0, memory_mb=256)
PAUSE = "import time\ndef f(): time.sleep(0.5)"


class Job(NamedTuple):
    task: None
    program: str
    function: str = "f"
    calls: tuple[tuple[str, str], ...] = (("()", "{}"),)
    setup: str = ""


def processes(word: str) -> set[int]:
    """The processes below this one, and those with a word in their command line."""
    parents, found = {}, set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rsplit(")")[-1].split()[1]
                )
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return (found | below) - {os.getpid()}


def main() -> None:
    port, secret, tasks = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        outside = os.path.join(folder, "OUT")
        told = {"SECRET": secret, "OUTSIDE": outside, "PORT": port, "PARENT": str(os.getpid())}
        told |= {"TASKS": tasks, "FOLDER": folder}

        def source(text: str) -> str:
            for word, meaning in told.items():
                text = text.replace(word, meaning)
            return text

        got = {}
        sandbox = WalledSandbox(2, LIMITS)
        with sandbox, ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: sandbox.run(Job(None, PAUSE)), range(2)))  # starts both workers
            before = processes(folder)
            # Another program of the same workers knows what is looked for in their memory.
            sandbox.run(Job(None, "kept = 'expected-' 'marker'\ndef f(): return kept"))
            names = {"few": FEW, "gate": GATE, "slow": SLOW}.get(sys.argv[-1])
            if names is None:
                names = {program.name for program in PROGRAMS} - SLOW
            chosen = [program for program in PROGRAMS if program.name in names]
            outcomes = pool.map(lambda p: sandbox.run(Job(None, source(p.source)))[0], chosen)
            for program, outcome in zip(chosen, outcomes, strict=True):
                got[program.name] = outcome.error or f"value {outcome.value}"
            left = [str(path) for path in Path(folder).rglob("*") if path.is_file()]
            left += [str(path) for path in Path(folder).glob("*/*")]
            changed = sorted(processes(folder) ^ before)
        after = [str(path) for path in Path(folder).iterdir()]
        survivors = sorted(processes(folder))
    json.dump(
        {
            "got": got,
            "left": left,
            "changed": changed,
            "after": after,
            "survivors": survivors,
            "level": sandbox.level.kind,
            "uid": os.getuid(),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
