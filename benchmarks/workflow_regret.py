"""How near the best a model came that was trained on `aflowgym/Compose-v0`, and who is as near.

Takes run folders of `toolgym train aflowgym/Compose-v0`, such as several seeds of one training, and
plays their evaluation tasks once more with the expert, with the novice (any typical workflow, as in
the warm-up) and with the random policy, which hardly writes a valid one. Everybody is measured
alike: by what the workflows are worth that rollouts ended with, luck taken out. Prints, for each
kind of task, the mean exact reward and the regret (best minus mean, with its 95 % interval)
before and after the training and of each policy, and the best, which is that of the stated family
(`aflowgym.optimum`) and not of the whole language; then the favourites, with their
shares of the valid workflows before and after.

    python benchmarks/workflow_regret.py RUN [RUN ...] [--top 10]
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from aflowgym.statistics.counts import Gathered, rank
from aflowgym.statistics.regret import Regret, regrets
from aflowgym.statistics.workflows import readings
from toolgym import policies, registration, rollout
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.runs.run import Run
from toolgym.statistics import Share, recorded_kwargs
from toolgym.tries import seed_of_try

COMPOSE = "aflowgym/Compose-v0"
EVALUATED = ("before", "after")
PLAYED = ("expert", "novice", "random")


def kwargs_of(run: Run) -> dict[str, Any]:
    """How the environment was made that a run was measured in.

    Raises:
        ConfigurationError: It is not a run of `aflowgym/Compose-v0`, or does not tell.
    """
    env_kwargs = recorded_kwargs(run.config)
    if run.config.get("env_id") != COMPOSE or env_kwargs is None:
        raise ConfigurationError(f"{run.path} is no run of `toolgym train {COMPOSE}`.")
    settings = run.config["settings"]
    split = settings.get("evaluation_split", settings.get("held_out"))  # as older runs call it
    return {**env_kwargs, **({"split": split} if split else {})}


def lines_of(run: Run, seed: int) -> Iterator[dict[str, Any]]:
    """The evaluations of a run, then the same tasks as the other policies play them.

    Args:
        run: Of `aflowgym/Compose-v0`.
        seed: Of the policies that draw.
    """
    tasks: dict[str, None] = {}
    for line in run.rollouts():
        if line["phase"] in EVALUATED:
            tasks[line["task_id"]] = None
            yield line
    for name in PLAYED:
        for record in _played(name, list(tasks), seed, kwargs_of(run)):
            yield {"phase": name, "step": None, **record.to_json()}


def _played(
    name: str, tasks: Sequence[str], seed: int, env_kwargs: dict[str, Any]
) -> Iterator[EpisodeRecord]:
    if name != "novice":
        policy = policies.load(name, seed=seed)
        yield from rollout.run(COMPOSE, policy, tasks, seed=seed, **env_kwargs)
        return
    env = registration.make(COMPOSE, **env_kwargs)
    for task_id in tasks:
        env.reset(options={"task_id": task_id})
        own = seed_of_try(seed, task_id, 0)
        play = env.novice(random.Random(own))
        if play is None:
            raise ConfigurationError(f"{COMPOSE} has no novice.")
        action = next(play)
        while not env.episode.over:
            observation = env.step(action)[0]
            action = None if env.episode.over else play.send(observation)
        yield EpisodeRecord.of(env.episode, COMPOSE, own, 0)


def gathered(runs: Sequence[Run]) -> Gathered:
    """All rollouts of all runs, counted."""
    return Gathered(readings(line for seed, run in enumerate(runs) for line in lines_of(run, seed)))


def regret_lines(told: Sequence[Regret]) -> Iterator[str]:
    """The table, line by line: two for each kind, reward and regret."""
    cells = {(each.kind, each.phase): each for each in told}
    phases = (*EVALUATED, *PLAYED)
    yield f"{'':<14}" + "".join(f"{phase:>22}" for phase in phases) + f"{'best*':>10}"
    for kind in dict.fromkeys(each.kind for each in told):
        found = [cells.get((kind, phase)) for phase in phases]
        best = next(each.best for each in told if each.kind == kind)
        rewards = [f"{each.reward.value:.3f}" if each else "-" for each in found]
        lost = [str(each.regret) if each else "-" for each in found]
        most = f"{best.expectation.reward:>10.3f}"
        yield f"{kind + ', reward':<14}" + "".join(f"{each:>22}" for each in rewards) + most
        yield f"{'  regret':<14}" + "".join(f"{each:>22}" for each in lost) + f"{0:>10.3f}"
    for kind in dict.fromkeys(each.kind for each in told):
        best = next(each.best for each in told if each.kind == kind)
        yield f"* the best of the stated family for {kind}: {best.workflow}"


def favourite_lines(found: Gathered, top: int) -> Iterator[str]:
    """The most frequent workflows before and after, line by line."""
    counts = {
        phase: found.by_phase[phase].counts if phase in found.by_phase else Counter[str]()
        for phase in EVALUATED
    }
    yield f"{'share before':>22}{'share after':>22}  workflow"
    for text, _ in rank(counts["before"] + counts["after"])[:top]:
        shares = (Share(each[text], each.total()) for each in counts.values())
        yield "".join(f"{share!s:>22}" for share in shares) + f"  {text}"


def report(paths: Sequence[str], top: int = 10) -> Iterator[str]:
    """All that is printed, line by line.

    Raises:
        ConfigurationError: One is no such run, or they were measured in different environments.
    """
    runs = [Run.open(path) for path in paths]
    env_kwargs = kwargs_of(runs[0])
    if any(kwargs_of(run) != env_kwargs for run in runs):
        raise ConfigurationError(
            "the runs were measured in different environments: give each alone."
        )
    found = gathered(runs)
    tally = ", ".join(f"{found.by_phase[phase].rollouts} {phase}" for phase in found.phases)
    yield f"{COMPOSE}, runs: {len(runs)}; rollouts: {tally}"
    yield from regret_lines(regrets(found, env_kwargs))
    yield ""
    yield from favourite_lines(found, top)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--top", type=int, default=10)
    options = parser.parse_args()
    try:
        for line in report(options.runs, options.top):
            print(line, flush=True)
    except ConfigurationError as problem:
        parser.error(str(problem))


if __name__ == "__main__":
    main()
