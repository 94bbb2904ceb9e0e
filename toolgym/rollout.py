"""Running and scoring episodes: one, a data set, or k tries at each task.

Episodes run in lock step, `batch` at a time, so that a language model acts for all of them in one
forward pass. Each becomes an `EpisodeRecord`, plain data that can be written as a line of JSON.

An episode is a try at its task, and draws by the number of the try (`toolgym.tries`): several
machines can play parts of one measurement, and `Evaluation.merged` puts their parts together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym

from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.policies import Policy, Situation, as_policy
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.tasks import TaskSet, seed_of
from toolgym.tries import Shard, seed_of_try, slots, tries_of

__all__ = ["EpisodeRecord", "Evaluation", "evaluate", "play", "run"]

AnyEnv = ToolEnv[Any] | gym.Env[Any, Any] | str
AnyPolicy = Policy | Callable[[str], Any] | str
Progress = Callable[[int, int], None]
"""Called with how many episodes are done and how many there are."""


def play(
    env: AnyEnv,
    policy: AnyPolicy,
    *,
    seed: int | None = None,
    task_id: str | None = None,
    number: int = 0,
    **env_kwargs: Any,
) -> EpisodeRecord:
    """Play one episode to its end.

    Args:
        env: An environment, or the id of one to make.
        policy: What acts: a policy, a function from an observation to an action, or a name.
        seed: Chooses the task, and with it and `number` the policy's draws.
        task_id: Asks for one task.
        number: Which try at the task it is, from 0.
        env_kwargs: For the environment, when `env` is an id.

    Raises:
        EnvironmentFault: The machine failed during `reset`; a fault during the episode leaves it
            unscored instead.
    """
    made, actor = _made(env, env_kwargs), as_policy(policy)
    options = {"task_id": task_id} if task_id is not None else None
    observation, _ = made.reset(seed=seed, options=options)
    own = seed_of_try(seed or 0, made.episode.task.id, number)
    situation = Situation(slots()[0], made, observation, own)
    while not made.episode.over:
        situation = _advance(situation, actor.act([situation])[0])
    return EpisodeRecord.of(made.episode, _id_of(made), own, number)


def _made(env: AnyEnv, env_kwargs: Mapping[str, Any]) -> ToolEnv[Any]:
    """The environment that was given, without its wrappers, or the one of this id.

    Raises:
        ConfigurationError: It has no tools, or cannot be made, or arguments were given for one that
            is made already.
    """
    if isinstance(env, str):
        return registration.make(env, **env_kwargs)
    made = getattr(env, "unwrapped", env)
    if not isinstance(made, ToolEnv):
        raise ConfigurationError(f"{env!r} has no tools: it is not a toolgym.ToolEnv.")
    if env_kwargs:
        raise ConfigurationError(
            f"{min(env_kwargs)!r} is an argument for making an environment, and this one is made"
            " already: give its id, or leave the argument out."
        )
    return made


def _id_of(env: ToolEnv[Any]) -> str:
    return env.spec.id if env.spec is not None else type(env).__name__


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
    env: AnyEnv,
    policy: AnyPolicy,
    task_ids: Sequence[str],
    *,
    start: int = 0,
    batch: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
    **env_kwargs: Any,
) -> Iterator[EpisodeRecord]:
    """Play the tasks in lock step, `batch` at a time, and yield the records in order.

    Args:
        env: The id of the environment; or one that is made, which plays one episode after another.
        policy: What acts: a policy, a function from an observation to an action, or a name.
        task_ids: One episode each. An id may occur several times: each time is the next try at it.
        start: The number of the first try at each task.
        batch: Episodes that are open together; they draw the same in whatever batch.
        seed: With the task and the number of the try, what an episode draws by.
        progress: Called after each batch.
    """
    tries, own_slots, actor = tries_of(task_ids, start), slots(), as_policy(policy)
    envs = [_made(env, env_kwargs)]
    env_id, batch = _id_of(envs[0]), batch if isinstance(env, str) else 1
    for first in range(0, len(tries), batch):
        chunk = tries[first : first + batch]
        while len(envs) < len(chunk):
            envs.append(registration.make(env_id, **env_kwargs))
        opened = []
        for place, (member, (task_id, number)) in enumerate(zip(envs, chunk, strict=False), first):
            observation, _ = member.reset(seed=seed_of(task_id), options={"task_id": task_id})
            own = seed_of_try(seed, task_id, number)
            opened.append(Situation(own_slots[place], member, observation, own))
        situations = opened
        while situations:
            moved = _advance_all(situations, actor.act(situations))
            situations = [s for s in moved if not s.env.episode.over]
        for situation, (_, number) in zip(opened, chunk, strict=True):
            yield EpisodeRecord.of(situation.env.episode, env_id, situation.seed, number)
        if progress is not None:
            progress(first + len(chunk), len(tries))


def evaluate(
    env: AnyEnv,
    policy: AnyPolicy,
    *,
    k: int = 1,
    n: int | None = None,
    start: int = 0,
    shard: tuple[int, int] = (1, 1),
    batch: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
    on_episode: Callable[[EpisodeRecord], None] | None = None,
    **env_kwargs: Any,
) -> Evaluation:
    """Play every playable task, or n of them, k times each.

    Args:
        env: The id of a registered environment; or one that is made, which plays one episode after
            another.
        policy: What acts: a policy, a function from an observation to an action, or a name such as
            `expert`.
        k: Tries per task, for pass@k.
        n: Tasks; None means all. Fewer are chosen by the seed.
        start: The number of the first try at each task; a shard by tries goes on where another one
            ends.
        shard: Which part of the tasks to play, from 1, and of how many parts.
        batch: Episodes that are open together.
        seed: Chooses the tasks and seeds the episodes.
        progress: Called with how many episodes are done and how many there are.
        on_episode: Called with each record once its batch is over, as for writing it down.
        env_kwargs: For `gym.make`.

    Raises:
        ConfigurationError: k or n is below 1, or start below 0, or there is no such shard, or the
        environment cannot be made, or no task is playable.
    """
    if min(k, batch, 1 if n is None else n) < 1 or start < 0:
        raise ConfigurationError(
            f"k, n and batch must be at least 1, start at least 0, got {k=}, {n=}, {batch=},"
            f" {start=}."
        )
    part = Shard(*shard).checked()
    made, actor = _made(env, env_kwargs), as_policy(policy)
    chosen = made.tasks if n is None else made.tasks.shuffle(seed).first_playable(n)
    playable = chosen[part.bounds(len(chosen))].playable()
    if not len(playable):
        raise ConfigurationError(_nothing_to_play(made.tasks, chosen, part))
    ids = [task_id for task_id in playable.ids for _ in range(k)]
    how: dict[str, Any] = {"batch": batch, "seed": seed, "progress": progress}
    records = []
    for record in run(env, actor, ids, start=start, **how, **env_kwargs):
        records.append(record)
        if on_episode is not None:
            on_episode(record)
    return Evaluation(tuple(records), k, tuple(_reasons(made)))


def _nothing_to_play(tasks: TaskSet[Any], chosen: TaskSet[Any], part: Shard) -> str:
    if len(chosen) and part.of > 1:
        return (
            f"no task of shard {part.number}/{part.of} of {tasks.name} is playable: there are"
            f" {len(chosen)} tasks; cut them into fewer shards."
        )
    counted = Counter(refusal.code for refusal in tasks.refused.values())
    reasons = ", ".join(f"{n} {code}" for code, n in sorted(counted.items())) or "it is empty"
    return f"no task of {tasks.name} is playable: {reasons}."


def _reasons(env: ToolEnv[Any]) -> list[dict[str, str]]:
    refusals = env.tasks.refused.values()
    return [{"task_id": r.task_id, "code": r.code, "reason": r.reason} for r in refusals]
