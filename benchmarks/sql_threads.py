"""Measures steps of `sqlgym/Explore-v0` in N threads and in one.

One thread and N threads take the same number of steps, in turn and in shuffled order, in one
process. A ratio compares neighboring measurements; the table has its median and quartiles over the
rounds. No statement is cached. "by lists": each thread plays some environments to the end. "by
steps": a pool runs each step, as in a trainer. One thread "by steps" shows the cost of the pool.

    python benchmarks/sql_threads.py [--dataset bundled] [--rounds 9] [--threads 1,4,8,32]
        [--work short,mixed,long]

Other load on the machine makes ratios of the time noisier, so the load is printed. The processor
time per step is more stable.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, NamedTuple

from toolgym import ToolEnv, registration

ENVS = 32
LONG_EACH = 16  # steps per long step in mixed work
LONG = """WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000)
SELECT max(x) FROM c"""
_fresh = count()


class Cost(NamedTuple):
    """Elapsed seconds and processor seconds of one step."""

    clock: float
    processor: float


def action(sql: str) -> str:
    """Return a call of `query` as a model writes it, with a statement that is not cached."""
    told = f"{sql.rstrip('; ')} -- {next(_fresh)}"
    return json.dumps({"name": "query", "arguments": {"sql": told}})


def actions(envs: Sequence[ToolEnv[Any]], work: str, each: int) -> list[list[str]]:
    """Return `each` actions for each environment; fewer if they are long."""
    golds = [env.task.gold_sql for env in envs]
    if work == "short":
        return [[action(gold) for _ in range(each)] for gold in golds]
    if work == "long":
        return [[action(LONG)] for _ in golds]
    few = max(4, each // 4)
    return [
        [action(gold if (place + turn) % LONG_EACH else LONG) for turn in range(few)]
        for place, gold in enumerate(golds)
    ]


class Players:
    """Environments and pools of threads that step them."""

    def __init__(self, dataset: str) -> None:
        self.envs = [
            registration.make("sqlgym/Explore-v0", dataset=dataset, split="dev", step_limit=10**6)
            for _ in range(ENVS)
        ]
        tasks = list(self.envs[0].tasks.playable())
        for env, task in zip(self.envs, random.Random(0).choices(tasks, k=ENVS), strict=True):
            env.reset(options={"task_id": task.id})
        self._pools: dict[int, ThreadPoolExecutor] = {}

    def cost(self, work: str, each: int, threads: int, by_steps: bool = False) -> Cost:
        """Return the cost of a step. One thread is the current one, or by steps a pool of one."""
        asked = actions(self.envs, work, each)
        pool = self._pool(threads)
        clock, processor = time.perf_counter(), time.process_time()
        if threads == 1 and not by_steps:
            self._play(range(ENVS), asked)
        elif by_steps:
            for turn in range(len(asked[0])):
                list(pool.map(lambda e, a: e.step(a), self.envs, [told[turn] for told in asked]))
        else:
            shares = [range(first, ENVS, threads) for first in range(threads)]
            list(pool.map(lambda share: self._play(share, asked), shares))
        steps = sum(map(len, asked))
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        return Cost(clock / steps, processor / steps)

    def _play(self, share: Sequence[int], asked: list[list[str]]) -> None:
        for place in share:
            for told in asked[place]:
                self.envs[place].step(told)

    def _pool(self, threads: int) -> ThreadPoolExecutor:
        """Return a pool whose threads have started."""
        if threads not in self._pools:
            self._pools[threads] = ThreadPoolExecutor(threads)
            list(self._pools[threads].map(time.sleep, [0.02] * threads))
        return self._pools[threads]


def compare(
    players: Players, work: str, by_steps: bool, ways: list[int], rounds: int, each: int
) -> tuple[Cost, dict[int, list[Cost]]]:
    """Measure each way, and return its ratios to the measurements before and after it."""
    draw, alone = random.Random(0), []
    ratios: dict[int, list[Cost]] = {way: [] for way in ways}
    players.cost(work, each, 1)
    before = players.cost(work, each, 1)
    for _ in range(rounds):
        for way in draw.sample(ways, len(ways)):
            found = players.cost(work, each, way, by_steps)
            after = players.cost(work, each, 1)
            clock, processor = ((a + b) / 2 for a, b in zip(before, after, strict=True))
            ratios[way].append(Cost(clock / found.clock, found.processor / processor))
            alone.append(before := after)
    return Cost(*(statistics.median(side) for side in zip(*alone, strict=True))), ratios


def show(ways: list[int], ratios: dict[int, list[Cost]]) -> None:
    """Print a line for each way."""
    for way in ways:
        clock = [ratio.clock for ratio in ratios[way]]
        low, middle, high = statistics.quantiles(clock, n=4)
        processor = statistics.median(ratio.processor for ratio in ratios[way])
        print(
            f"  {way:>3} threads   {middle:5.2f} times the steps"
            f"   ({low:.2f} to {high:.2f})   {processor:5.2f} times the processor time",
            flush=True,
        )


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="bundled", help="a name, or a folder")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--each", type=int, default=20, help="steps of each environment")
    parser.add_argument("--threads", default="1,4,8,32")
    parser.add_argument("--work", default="short,mixed,long")
    options = parser.parse_args()
    players = Players(options.dataset)
    ways = [int(n) for n in options.threads.split(",")]
    print(f"SQLite {sqlite3.sqlite_version}, {options.dataset}, {os.cpu_count()} processors")
    for work in options.work.split(","):
        for by_steps in (False, True) if work == "short" else (False,):
            alone, ratios = compare(players, work, by_steps, ways, options.rounds, options.each)
            load = f"load {os.getloadavg()[0]:.1f}"
            print(
                f"{work}, {'by steps' if by_steps else 'by lists'}: one after another"
                f" {1 / alone.clock:,.0f} steps/s, {alone.processor * 1e6:,.0f} µs each; {load}"
            )
            show(ways, ratios)


if __name__ == "__main__":
    main()
