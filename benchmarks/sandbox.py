"""Benchmarks the sandbox with a trivial program, compared with a plain `subprocess`.

The columns are the milliseconds of one job, run one after the other in one worker (median and 95th
percentile), and jobs per second with several workers, each used by one thread. `walled` is the
default: a forked child with seccomp and Landlock for each call. `subset` is `pydantic-monty`, if it
is installed. `subprocess` is `python -I -S -c PROGRAM` without protection.

    python benchmarks/sandbox.py [--jobs 500] [--workers 2] [--median 5] [--rate 250]

The exit status is 1 if `walled` is slower than `--median` milliseconds or `--rate` jobs per second.
The candidates take turns, so that other load of the machine affects all of them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from aflowgym.operators.context import Job
from aflowgym.sandbox import SandboxRefused, SubsetSandbox, WalledSandbox
from aflowgym.tasks.task import WorkflowTask

ROUNDS = 5
TASK = WorkflowTask(id="t", question="?", item="t", kind="code", entry_point="solve")
PROGRAM = "def solve():\n    return sum(i * i for i in range(1000))\n"
JOB = Job(TASK, PROGRAM, "solve")
EXPECTED = "332833500"


@dataclass
class Candidate:
    """A way to run programs, with its measurements."""

    name: str
    run: Callable[[], str]
    level: str
    share: float = 1.0
    times: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def alone(self, jobs: int) -> None:
        """Time jobs one after the other."""
        for _ in range(jobs):
            started = time.perf_counter()
            told = self.run()
            self.times.append(1000 * (time.perf_counter() - started))
            if told != EXPECTED:
                raise SystemExit(f"{self.name} gave {told!r}")

    def together(self, jobs: int, workers: int) -> None:
        """Time jobs of several threads."""
        with ThreadPoolExecutor(workers) as pool:
            started = time.perf_counter()
            list(pool.map(lambda _: self.run(), range(jobs)))
            self.rates.append(jobs / (time.perf_counter() - started))

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the cells of a line."""
        late = statistics.quantiles(self.times, n=20)[-1]
        median, rate = statistics.median(self.times), max(self.rates)
        return self.name, f"{median:.2f}", f"{late:.2f}", f"{rate:.0f}", self.level


def plain() -> str:
    """Run the program in a new process."""
    words = [sys.executable, "-I", "-S", "-c", f"{PROGRAM}print(solve())"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def candidates(workers: int, stack: ExitStack) -> list[Candidate]:
    """Return the candidates that work on this machine."""

    def runner(sandbox: WalledSandbox | SubsetSandbox) -> Callable[[], str]:
        stack.enter_context(sandbox)
        return lambda: sandbox.run(JOB)[0].value

    walled = WalledSandbox(workers)
    found = [Candidate("walled", runner(walled), walled.level.walls[1])]
    with suppress(SandboxRefused):
        found.append(Candidate("subset", runner(SubsetSandbox(workers)), "not all of Python"))
    return [*found, Candidate("subprocess", plain, "none", share=0.2)]


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--median", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=250.0)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        tried = candidates(chosen.workers, stack)
        for candidate in tried:
            candidate.together(2 * chosen.workers, chosen.workers)  # all workers have started
            candidate.rates.clear()
        for _ in range(ROUNDS):
            for candidate in tried:
                jobs = max(4, int(candidate.share * chosen.jobs / ROUNDS))
                candidate.alone(jobs)
                candidate.together(jobs, chosen.workers)
    table = Table("sandbox", "median ms", "p95 ms", f"jobs/s, {chosen.workers} workers", "walls")
    for candidate in tried:
        table.add_row(*candidate.cells)
    Console().print(table)
    walled = tried[0]
    fast = statistics.median(walled.times) < chosen.median
    return 0 if fast and max(walled.rates) >= chosen.rate else 1


if __name__ == "__main__":
    sys.exit(main())
