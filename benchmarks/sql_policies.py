"""Measures the scores of policies that do not try to answer, in the environments of `sqlgym`.

Each policy plays every playable task of a folder in the Spider layout eight times. The table has a
histogram of the scores of incorrect episodes, their maximum, the number of correct episodes, and
the share of groups of eight with equal correctness and with equal outcomes (correctness and bin of
the progress). A deterministic policy has only groups with equal outcomes. `sloppy`, the expert with
mistakes of demonstrations, is included for comparison.

    python benchmarks/sql_policies.py FOLDER [--env sqlgym/Explore-v0] [--split dev] [--group 8]
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Any

from toolgym import ToolEnv, policies, registration, rollout

Play = Generator[Any, str, None]
STOP = None
"""Value that a play yields to stop without an answer."""


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a parsed call."""
    return {"name": name, "arguments": arguments}


def answer(env: ToolEnv[Any], value: Any, sql: str) -> dict[str, Any]:
    """Return an answer of the type that the environment takes."""
    takes_sql = "sql" in env.tools["answer"].arguments.model_fields
    return call("answer", sql=sql) if takes_sql else call("answer", value=value)


def tables(observation: str) -> list[str]:
    """Return the tables that the first observation lists."""
    line = next(line for line in observation.splitlines() if line.startswith("Tables: "))
    return line.removeprefix("Tables: ").split(", ")


def greedy_dump(env: ToolEnv[Any], asked: str) -> Play:
    """Describe and dump every table, and submit the last dump."""
    text, sql = "", "SELECT 1"
    names = tables(asked)[:6]
    for name in names:
        yield call("describe", table_name=name)
    for name in names:
        sql = f'SELECT * FROM "{name}"'
        text = yield call("query", sql=sql)
    yield answer(env, text, sql)


def constant_query(env: ToolEnv[Any], asked: str) -> Play:
    """Query a constant and submit it."""
    yield call("query", sql="SELECT 3")
    yield answer(env, 3, "SELECT 3")


def repeat_forever(env: ToolEnv[Any], asked: str) -> Play:
    """Repeat a valid query until the budget is spent."""
    while True:
        yield call("query", sql=f'SELECT COUNT(*) FROM "{tables(asked)[0]}"')


def stop_early(env: ToolEnv[Any], asked: str) -> Play:
    """Describe one table and stop."""
    yield call("describe", table_name=tables(asked)[0])
    yield STOP


def say_nothing(env: ToolEnv[Any], asked: str) -> Play:
    """Stop at once."""
    yield STOP


def gold_leak(env: ToolEnv[Any], asked: str) -> Play:
    """Provoke each kind of error, run the suggested calls, and submit their results.

    It searches the places where a gold could leak: hints, examples, SQLite's tables, the task's id.
    """
    provoked = [
        call("answer"),
        call("query"),
        call("query", sql="SELECT gold FROM answer"),
        call("query", sql=f'SELECT answer FROM "{tables(asked)[0]}"'),
        call("query", sql="SELECT * FROM sqlite_master"),
        call("describe", table_name="gold"),
        "What is the gold SQL?",
    ]
    sql, text = "SELECT 1", ""
    for action in provoked:
        observation = yield action
        found = re.search(r"This works: (\{.*\})", observation)
        working = json.loads(found[1]) if found else {}
        if working.get("name") == "query":
            sql = working["arguments"]["sql"]
            text = yield working
        elif working.get("name") == "answer":
            sql = working["arguments"].get("sql", sql)
    yield answer(env, text.rpartition("\n")[2], sql)


PLAYS: dict[str, Callable[[ToolEnv[Any], str], Play]] = {
    play.__name__: play
    for play in (
        greedy_dump,
        constant_query,
        repeat_forever,
        stop_early,
        say_nothing,
        gold_leak,
    )
}


def play_once(env: ToolEnv[Any], play: Play, observation: str) -> list[str]:
    """Play an episode until its end or until the play stops, and return the observations."""
    seen = [observation]
    action = next(play)
    while action is not STOP:
        seen.append(env.step(action)[0])
        if env.episode.over:
            break
        action = play.send(seen[-1])
    env.finish()
    return seen


def scores_of(
    env_id: str, name: str, group: int, n: int | None = None, **env_kwargs: Any
) -> Iterator[tuple[str, float, bool, int]]:
    """Return task, score, correctness and progress bin of every episode of a policy.

    Args:
        env_id: The environment.
        name: One of `PLAYS`, or a policy of toolgym: "random", "sloppy", "expert".
        group: Episodes per task.
        n: Number of tasks; None: all.
        env_kwargs: Arguments of the environment.
    """
    env = registration.make(env_id, **env_kwargs)
    playable = env.tasks.playable() if n is None else env.tasks.first_playable(n)
    for number, task_id in enumerate(playable.ids):
        for member in range(group):
            if name in PLAYS:
                observation, _ = env.reset(options={"task_id": task_id})
                play_once(env, PLAYS[name](env, observation), observation)
            else:
                policy = _policy(name, number * group + member)
                rollout.play(env, policy, task_id=task_id)
            yield task_id, env.finish(), *env.outcome


def _policy(name: str, seed: int) -> policies.Policy:
    if name == "sloppy":
        from adapters.training.models.demonstrations import NoisyDemonstrator

        return NoisyDemonstrator(seed)
    return policies.load(name, seed=seed)


def tied(outcomes: dict[str, list[Any]]) -> float:
    """Return the share of groups whose members have equal outcomes."""
    return sum(len(set(group)) == 1 for group in outcomes.values()) / len(outcomes)


def report(env_id: str, group: int, **env_kwargs: Any) -> Iterator[str]:
    """Yield the lines of the table."""
    edges = [round(-0.25 + 0.05 * i, 2) for i in range(14)]
    yield f"{env_id}, groups of {group}; incorrect scores in steps of 0.05 from {edges[0]}"
    heads = f"{'best wrong':>10} {'tie: right':>10} {'outcome':>8}  histogram"
    yield f"{'policy':<15} {'right':>6} {heads}"
    for name in [*PLAYS, "random", "sloppy", "expert"]:
        by_right: dict[str, list[Any]] = {}
        by_outcome: dict[str, list[Any]] = {}
        wrong: list[float] = []
        for task_id, score, right, progress in scores_of(env_id, name, group, **env_kwargs):
            by_right.setdefault(task_id, []).append(right)
            by_outcome.setdefault(task_id, []).append((right, progress))
            wrong += [] if right else [score]
        counted = Counter(int((score + 0.25) / 0.05 + 1e-9) for score in wrong)
        bars = " ".join(str(counted[i]) for i in range(len(edges)))
        episodes = len(by_right) * group
        best = f"{max(wrong):.3f}" if wrong else "-"
        yield (
            f"{name:<15} {1 - len(wrong) / episodes:>6.1%} {best:>10} {tied(by_right):>10.1%}"
            f" {tied(by_outcome):>8.1%}  {bars}"
        )


def main() -> None:
    """Play and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--env", default="sqlgym/Explore-v0")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--group", type=int, default=8)
    options = parser.parse_args()
    for line in report(options.env, options.group, dataset=options.folder, split=options.split):
        print(line, flush=True)


if __name__ == "__main__":
    main()
