"""Running and scoring episodes: one, a data set, or k tries at each task.

Episodes run in lock step, `batch` at a time, so that a language model acts for all of them in one
forward pass. Each becomes an `EpisodeRecord`, plain data that can be written as a line of JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.policies import Policy, Situation
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.tasks import seed_of

__all__ = ["EpisodeRecord", "Evaluation", "evaluate", "play", "run"]

Progress = Callable[[int, int], None]
"""Called with how many episodes are done and how many there are."""


def play(
    env: ToolEnv[Any] | str,
    policy: Policy,
    *,
    seed: int | None = None,
    task_id: str | None = None,
    **env_kwargs: Any,
) -> EpisodeRecord:
    """Play one episode to its end.

    Args:
        env: An environment, or the id of one to make.
        policy: Who acts.
        seed: Chooses the task.
        task_id: Asks for one task.
        env_kwargs: For the environment, when `env` is an id.

    Raises:
        EnvironmentFault: The machine failed during `reset`; a fault during the episode leaves it
            unscored instead.
    """
    made = registration.make(env, **env_kwargs) if isinstance(env, str) else env.unwrapped
    if not isinstance(made, ToolEnv):
        raise ConfigurationError(f"{env!r} has no tools: it is not a toolgym.ToolEnv.")
    options = {"task_id": task_id} if task_id is not None else None
    observation, _ = made.reset(seed=seed, options=options)
    situation = Situation(0, made, observation, seed or 0)
    env_id = made.spec.id if made.spec is not None else type(made).__name__
    while not made.episode.over:
        situation = _advance(situation, policy.act([situation])[0])
    return EpisodeRecord.of(made, env_id, seed or 0)


def _advance(situation: Situation, action: Any) -> Situation:
    """One step; a fault leaves the episode over and unscored."""
    try:
        observation, *_ = situation.env.step(action)
    except EnvironmentFault as fault:
        observation = str(fault)
    return Situation(situation.slot, situation.env, observation, situation.seed)


def _advance_all(situations: Sequence[Situation], actions: Sequence[Any]) -> list[Situation]:
    """One step of each; at the same time where a step waits for a server."""
    if len(situations) > 1 and any(situation.env.waits for situation in situations):
        with ThreadPoolExecutor(len(situations), "toolgym-step") as threads:
            return list(threads.map(_advance, situations, actions))
    return [_advance(s, action) for s, action in zip(situations, actions, strict=True)]


def run(
    env_id: str,
    policy: Policy,
    task_ids: Sequence[str],
    *,
    batch: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
    **env_kwargs: Any,
) -> Iterator[EpisodeRecord]:
    """Play the tasks in lock step, `batch` at a time, and yield the records in order.

    Args:
        task_ids: One episode each; an id may occur several times.
        batch: Episodes that are open together.
        seed: Episode i gets the number seed * 1,000,003 + i.
        progress: Called after each batch.
    """
    envs: list[ToolEnv[Any]] = []
    for start in range(0, len(task_ids), batch):
        chunk = task_ids[start : start + batch]
        while len(envs) < len(chunk):
            envs.append(registration.make(env_id, **env_kwargs))
        situations = []
        for offset, task_id in enumerate(chunk):
            slot = start + offset
            observation, _ = envs[offset].reset(seed=seed_of(task_id), options={"task_id": task_id})
            situations.append(Situation(slot, envs[offset], observation, seed * 1_000_003 + slot))
        opened = list(situations)
        while situations:
            moved = _advance_all(situations, policy.act(situations))
            situations = [s for s in moved if not s.env.episode.over]
        for situation in opened:
            yield EpisodeRecord.of(situation.env, env_id, situation.seed)
        if progress is not None:
            progress(start + len(chunk), len(task_ids))


def evaluate(
    env_id: str,
    policy: Policy,
    *,
    k: int = 1,
    n: int | None = None,
    batch: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
    **env_kwargs: Any,
) -> Evaluation:
    """Play every playable task, or n of them, k times each.

    Args:
        env_id: A registered environment.
        policy: Who acts.
        k: Tries per task, for pass@k.
        n: Tasks; None means all. Fewer are chosen by the seed.
        batch: Episodes that are open together.
        seed: Chooses the tasks and seeds the episodes.
        progress: Called with how many episodes are done and how many there are.
        env_kwargs: For `gym.make`.

    Raises:
        ConfigurationError: k or n is below 1, or the environment cannot be made, or no task is
        playable.
    """
    if k < 1 or batch < 1 or (n is not None and n < 1):
        raise ConfigurationError(f"k, n and batch must be at least 1, got {k=}, {n=}, {batch=}.")
    env = registration.make(env_id, **env_kwargs)
    chosen = env.tasks if n is None else env.tasks.shuffle(seed)
    playable = chosen.playable() if n is None else chosen.first_playable(n)
    if not len(playable):
        counted = Counter(refusal.code for refusal in env.tasks.refused.values())
        reasons = ", ".join(f"{n} {code}" for code, n in sorted(counted.items())) or "it is empty"
        raise ConfigurationError(f"no task of {env.tasks.name} is playable: {reasons}.")
    ids = [task_id for task_id in playable.ids for _ in range(k)]
    records = run(env_id, policy, ids, batch=batch, seed=seed, progress=progress, **env_kwargs)
    return Evaluation(tuple(records), k, tuple(_reasons(env)))


def _reasons(env: ToolEnv[Any]) -> list[dict[str, str]]:
    refusals = env.tasks.refused.values()
    return [{"task_id": r.task_id, "code": r.code, "reason": r.reason} for r in refusals]
