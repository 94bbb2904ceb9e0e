"""How far one call of `sqlgym/Explore-v0` is above its floor, which is raw `sqlite3`.

Everything is timed side by side in one process, several rounds each in turn, and the best round
counts; the ratio in the last column is what matters, the microseconds depend on the machine.

    python benchmarks/environment.py [--rounds 5] [--calls 500]
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Callable

from toolgym import parse_calls, registration, render_call
from toolgym.calls import ToolCall

SQL = "SELECT name, beds FROM wards WHERE floor = {}"


def best_of(rounds: int, contestants: dict[str, Callable[[], int]]) -> dict[str, float]:
    """Seconds per call of each contestant's best round; rounds go round robin."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            calls = run()
            best[name] = min(best[name], (time.perf_counter() - start) / calls)
    return best


def contestants(calls: int) -> dict[str, Callable[[], int]]:
    """What is compared: name -> a function that makes `calls` calls and returns how many."""
    env = registration.make("sqlgym/Explore-v0", step_limit=10**6)
    env.reset(options={"task_id": "hospital_wards-001"})
    raw = sqlite3.connect(f"file:{env.task.database}?mode=ro", uri=True)
    fresh = iter(range(10**9))

    def floor() -> int:
        for _ in range(calls):
            raw.execute(SQL.format(next(fresh))).fetchall()
        return calls

    def guarded() -> int:
        for _ in range(calls):
            env.query(SQL.format(next(fresh)))
        return calls

    def cached() -> int:
        for _ in range(calls):
            env.step(ToolCall("query", {"sql": SQL.format(5)}))
        return calls

    def from_text() -> int:
        for _ in range(calls):
            env.step(render_call("query", {"sql": SQL.format(next(fresh))}))
        return calls

    def parsing() -> int:
        for _ in range(calls):
            parse_calls(render_call("query", {"sql": SQL.format(next(fresh))}), env.tools)
        return calls

    def resetting() -> int:
        for seed in range(calls):
            env.reset(seed=seed)
        return calls

    return {
        "raw sqlite3, the floor": floor,
        "env.query(...), a new query": guarded,
        "env.step(text), a new query": from_text,
        "env.step(call), the group's cache": cached,
        "parse_calls(text) alone": parsing,
        "env.reset(seed)": resetting,
    }


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=500)
    options = parser.parse_args()
    best = best_of(options.rounds, contestants(options.calls))
    floor = next(iter(best.values()))
    for name, seconds in best.items():
        print(f"{name:<36} {seconds * 1e6:9.1f} µs {seconds / floor:8.1f} x")


if __name__ == "__main__":
    main()
