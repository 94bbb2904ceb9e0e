"""Benchmarks `sqlgym/Explore-v0`, compared with raw `sqlite3` and with skyrl-gym.

The compared sides take turns in one process, and medians are compared, so the ratios hardly depend
on the machine. Each timed query is new to the environment (through a comment), unless its row says
"cached".

    python benchmarks/sql_env.py [--dataset bundled] [--queries 60] [--only steps,rival,live,vector]

The part `rival` needs `skyrl-gym==0.4.0` (`pip install -e '.[bench]'`), and is skipped without it.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym

from sqlgym.database.database import open_database
from sqlgym.tasks.task import SqlTask
from toolgym import ToolEnv, registration

ENV_ID = "sqlgym/Explore-v0"
GROUP = 8  # rollouts of one task with the same queries
CALLERS = 32
LIVE = 10_000
_fresh = count()


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def new(sql: str) -> str:
    """Return the statement with a new comment, so that it is not cached."""
    return f"{sql.rstrip('; ')} -- {next(_fresh)}"


def action(sql: str) -> str:
    """Return a call of `query` as a model writes it."""
    return json.dumps({"name": "query", "arguments": {"sql": sql}})


def row(name: str, value: float, unit: str, note: str = "", holds: bool | None = None) -> None:
    """Print one line of the table."""
    verdict = {True: "yes", False: "NO", None: ""}[holds]
    print(f"{name:<52} {value:>10,.2f} {unit:<3} {note:<44} {verdict}", flush=True)


def make(dataset: str) -> ToolEnv[SqlTask]:
    """Return an environment with a budget that is large enough for a benchmark."""
    return registration.make(ENV_ID, dataset=dataset, split="dev", step_limit=10**6)


def chosen_tasks(dataset: str, n: int) -> list[SqlTask]:
    """Return tasks with the gold queries that are timed."""
    playable = list(make(dataset).tasks.playable())
    return random.Random(0).sample(playable, min(n, len(playable)))


def raw_connection(task: SqlTask) -> sqlite3.Connection:
    """Open the database with `sqlite3` alone."""
    return sqlite3.connect(f"{task.database.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def fetch(execute: Callable[[str], sqlite3.Cursor], sql: str) -> list[Any]:
    """Return all rows of a statement."""
    return execute(sql).fetchall()


# One step ----------------------------------------------------------------------------------------


def time_steps(dataset: str, tasks: Sequence[SqlTask], rounds: int = 60) -> None:
    """Time steps and raw `sqlite3` in turn, with the same statements in each round."""
    env, excess, steps, raws = make(dataset), [], [], []
    for task in tasks:
        env.reset(options={"task_id": task.id})
        raw = raw_connection(task).execute
        pairs = []
        for _ in range(rounds):
            sql, told = new(task.gold_sql), action(new(task.gold_sql))
            floor, step = seconds(partial(fetch, raw, sql)), seconds(partial(env.step, told))
            pairs.append((floor, step))
        floor, step = (statistics.median(side) * 1e6 for side in zip(*pairs, strict=True))
        raws.append(floor)
        steps.append(step)
        excess.append(step - 1.5 * floor)
    row("raw sqlite3, execute and fetch", statistics.median(raws), "µs", "median query")
    row("step, result not cached", statistics.median(steps), "µs", "median query")
    over = statistics.median(excess)
    row("  beyond 1.5 times raw", over, "µs", "at most 60, median query", over <= 60)
    row(
        "  queries within 1.5 times raw + 60 µs",
        100 * sum(e <= 60 for e in excess) / len(excess),
        "%",
    )


def time_cached_steps(dataset: str, tasks: Sequence[SqlTask]) -> None:
    """Time cached steps and raw `sqlite3`, for queries that take more than 0.2 ms."""
    env, ratios, cached = make(dataset), [], []
    for task in {task.database: task for task in tasks}.values():
        env.reset(options={"task_id": task.id})
        raw = raw_connection(task).execute
        for table in open_database(task.database).schema.names[:8]:
            sql = f'SELECT a.*, b.* FROM "{table}" AS a, "{table}" AS b LIMIT 2000'
            floor = statistics.median(seconds(partial(fetch, raw, sql)) for _ in range(9))
            if floor < 0.2e-3:
                continue
            env.step(action(sql))
            told = action(sql)
            step = statistics.median(seconds(partial(env.step, told)) for _ in range(9))
            ratios.append(floor / step)
            cached.append(step * 1e6)
    row("cached step, queries of more than 0.2 ms raw", statistics.median(cached), "µs")
    worst = min(ratios)
    row("  times faster than raw, the slowest of them", worst, "x", "more than 1", worst > 1)


def time_resets(dataset: str) -> None:
    """Time `reset` of tasks that were played before."""
    env = make(dataset)
    for seed in range(200):
        env.reset(seed=seed)
    times = [seconds(partial(env.reset, seed=seed)) for seed in range(200)]
    row("reset", statistics.median(times) * 1e6, "µs", "a task played before")


# skyrl-gym ---------------------------------------------------------------------------------------


class Ours:
    """Environments of this package behind the interface of the comparison."""

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset

    def rollout(self, task: SqlTask) -> Callable[[str], object]:
        """Begin an episode and return its step function."""
        env = make(self._dataset)
        env.reset(options={"task_id": task.id})
        return env.step

    def written(self, sql: str) -> str:
        """Return the message of a model that runs a query."""
        return action(sql)


class Rival:
    """skyrl-gym's SQL environment on the same files."""

    def __init__(self, folder: Path) -> None:
        from skyrl_gym.envs.sql.env import SQLEnv

        self._make, self._folder = SQLEnv, folder

    def rollout(self, task: SqlTask) -> Callable[[str], object]:
        """Begin an episode and return its step function."""
        beside = self._folder / "spider" / "database"
        if not beside.exists():
            beside.parent.mkdir(exist_ok=True)
            beside.symlink_to(task.database.parent.parent, target_is_directory=True)
        gold = {"ground_truth": task.gold_sql}
        extras = {"db_id": task.item, "reward_spec": gold, "data": "spider", "max_turns": 10**6}
        env = self._make(SimpleNamespace(db_path=str(self._folder)), extras)
        step: Callable[[str], object] = env.step
        return step

    def written(self, sql: str) -> str:
        """Return the message of a model that runs a query."""
        return f"<sql>{sql}</sql>"


Trace = list[tuple[Callable[[str], object], list[str]]]


def group_trace(side: Any, tasks: Iterable[SqlTask], shared: bool) -> Trace:
    """Return `GROUP` rollouts per task with four queries each; `shared`: the same queries."""
    trace: Trace = []
    for task in tasks:
        texts = [side.written(new(task.gold_sql)) for _ in range(4)]
        for _ in range(GROUP):
            own = [side.written(new(task.gold_sql)) for _ in range(4)]
            trace.append((side.rollout(task), texts if shared else own))
    return trace


def step_times(trace: Trace, callers: int) -> list[float]:
    """Return the seconds of each step of a trace; with several callers, only their mean."""
    asked = sum(len(texts) for _, texts in trace)

    def play(rollout: tuple[Callable[[str], object], list[str]]) -> list[float]:
        return [seconds(partial(rollout[0], text)) for text in rollout[1]]

    if callers == 1:
        return [taken for rollout in trace for taken in play(rollout)]
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(time.sleep, [0.01] * callers))  # the threads have started
        return [seconds(lambda: list(pool.map(play, trace))) / asked]


def typical_rate(rounds: list[list[float]]) -> float:
    """Return steps per second, from the median over rounds of each step of the trace."""
    return len(rounds[0]) / sum(statistics.median(times) for times in zip(*rounds, strict=True))


def time_rival(dataset: str, tasks: Sequence[SqlTask], rounds: int = 5) -> None:
    """Compare the steps per second of both sides."""
    if importlib.util.find_spec("skyrl_gym") is None:
        print("skipped: skyrl-gym is not installed (pip install -e '.[bench]')")
        return
    with tempfile.TemporaryDirectory() as folder:
        ours, rival = Ours(dataset), Rival(Path(folder))
        for side in (ours, rival):
            step_times(group_trace(side, tasks, shared=True), 1)  # warm-up of both sides
        for callers, least_new, least_cached in ((1, 6, 25), (CALLERS, 5, 25)):
            asked = list(tasks) * (1 if callers == 1 else 3)  # long enough for all callers
            for shared, least in ((False, least_new), (True, least_cached)):
                played = [
                    [step_times(group_trace(s, asked, shared), callers) for s in (ours, rival)]
                    for _ in range(rounds)
                ]
                mine, other = (typical_rate(list(side)) for side in zip(*played, strict=True))
                kind = "a group's trace, default cache" if shared else "nothing cached"
                who = "one thread" if callers == 1 else f"{callers} callers"
                row(f"{who}, {kind}", mine, "/s", f"skyrl-gym 0.4.0: {other:,.0f} /s")
                row(
                    "  times as fast", mine / other, "x", f"at least {least}", mine / other >= least
                )


# Many at once ------------------------------------------------------------------------------------


def time_live(dataset: str) -> None:
    """Measure ten thousand live environments over the databases of the data set."""
    sets = [registration.make(ENV_ID, dataset=dataset, split=s).tasks for s in ("train", "dev")]
    tasks = [task for each in sets for task in each.playable()]
    envs = [registration.make(ENV_ID, dataset=sets[n % 2]) for n in range(LIVE)]

    def reset_all() -> None:
        for seed, env in enumerate(envs):
            env.reset(seed=seed)

    reset_all()
    took = seconds(reset_all)
    for number, env in enumerate(envs):
        env.step(action(f"SELECT {number % 100}"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    databases = len({task.database for task in tasks})
    row(
        f"reset of {LIVE:,} live environments",
        took,
        "s",
        f"{databases} databases; under 5",
        took < 5,
    )
    row("  memory of the process at its peak", peak, "MiB", "under 1,024", peak < 1024)


LONG = """WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200000)
SELECT max(x) FROM c"""


def time_vector(dataset: str, tasks: Sequence[SqlTask]) -> None:
    """Compare steps one after another, as in `gym.make_vec`, with steps in threads."""
    envs = [make(dataset) for _ in range(CALLERS)]
    for env, task in zip(envs, list(tasks) * CALLERS, strict=False):
        env.reset(options={"task_id": task.id})
    vector = gym.make_vec(ENV_ID, num_envs=CALLERS, dataset=dataset, split="dev", step_limit=10**6)
    vector.reset(seed=0)
    queries = [env.task.gold_sql for env in envs]
    ways: dict[str, Callable[[list[str]], object]] = {
        "gym.make_vec": lambda actions: vector.step(tuple(actions)),
        "one after another": lambda actions: [
            e.step(a) for e, a in zip(envs, actions, strict=True)
        ],
    }
    with ExitStack() as stack:
        for threads in (CALLERS, 4, 1):  # a pool of one thread shows the overhead of the pool
            pool = stack.enter_context(ThreadPoolExecutor(threads))
            ways[f"a pool of {threads}"] = partial(by_pool, pool, envs)
        time_ways("the data set's queries", ways, queries, 30)
        time_ways("long queries", ways, [LONG] * CALLERS, 3)
    vector.close()


def by_pool(pool: ThreadPoolExecutor, envs: Sequence[Any], actions: list[str]) -> object:
    """Step each environment once in a pool."""
    return list(pool.map(lambda env, action: env.step(action), envs, actions))


def time_ways(
    name: str, ways: dict[str, Callable[[list[str]], object]], asked: list[str], rounds: int
) -> None:
    """Time the same queries in each way, in turn."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, play in ways.items():
            actions = [action(new(sql)) for sql in asked]
            found[way].append(seconds(partial(play, actions)))
    serial = statistics.median(found["one after another"])
    for way, times in found.items():
        taken = statistics.median(times)
        row(
            f"{name}, {way}", len(asked) / taken, "/s", f"{serial / taken:.2f} of one after another"
        )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="bundled", help="a name, or a folder")
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--only", default="steps,rival,vector,live")
    options = parser.parse_args()
    tasks = chosen_tasks(options.dataset, options.queries)
    parts: dict[str, Callable[[], None]] = {
        "steps": lambda: time_steps(options.dataset, tasks),
        "cached": lambda: time_cached_steps(options.dataset, tasks),
        "resets": lambda: time_resets(options.dataset),
        "rival": lambda: time_rival(options.dataset, tasks[:20]),
        "vector": lambda: time_vector(options.dataset, tasks),
        "live": lambda: time_live(options.dataset),
    }
    print(
        f"SQLite {sqlite3.sqlite_version}, {options.dataset}, {len(tasks)} queries of its dev split"
    )
    for name, measure in parts.items():
        if name in options.only or (name in ("cached", "resets") and "steps" in options.only):
            gc.collect()
            measure()


if __name__ == "__main__":
    main()
