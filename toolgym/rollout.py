"""`play` and `evaluate`: play one episode, or k attempts at each task of a data set.

Episodes run in lock step, `batch` at a time, so that a language model acts for all of them in one
forward pass. Each episode becomes an `EpisodeRecord`, plain data that can be written as a line of
JSON. Wrapped environments are stepped through their wrappers.

An episode is a numbered attempt at its task, and its random numbers depend only on the seed, the
task and this number (`toolgym.tries`). Therefore the batches can be distributed to worker processes
(`toolgym.workers`), and the tasks to several machines. `Evaluation.merged` merges the parts, and
the records are the same as in a single evaluation.
"""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium as gym

from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.episode import Episode
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.lazy import lazy
from toolgym.policies import ByName, Policy, Situation, as_policy
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.tasks import TaskSet
from toolgym.tries import Try, seed_of_try, tries_of
from toolgym.workers import Map, Progress

__all__ = ["EpisodeRecord", "Evaluation", "evaluate", "play"]

AnyEnv = gym.Env[Any, Any] | Callable[..., gym.Env[Any, Any]] | str
AnyPolicy = Policy | ByName | Callable[[str], Any] | str


def play(
    env: AnyEnv,
    policy: AnyPolicy,
    *,
    seed: int | None = None,
    task_id: str | None = None,
    number: int = 0,
    **env_kwargs: Any,
) -> EpisodeRecord:
    """Play one episode.

    Args:
        env: An environment, which may be wrapped, or the id, class or function to create one.
        policy: A policy, a function from an observation to an action, or a name such as `expert`.
        seed: Seed of the task, the environment and the policy.
        task_id: The task to play, instead of the task that the seed determines.
        number: Number of the attempt at the task, starting from 0. The number affects the random
            numbers of the policy and, with `task_id`, those of the environment.
        env_kwargs: Arguments of the environment.

    Raises:
        EnvironmentFault: An infrastructure error occurred during `reset`. A fault during the
            episode is not raised; the record is then unscored.
    """
    made, actor = _make(env, env_kwargs), as_policy(policy)
    options = {"task_id": task_id} if task_id is not None else None
    inner = _inner(made)
    begin = seed if task_id is None else seed_of_try(seed or 0, task_id, number)
    observation, _ = made.reset(seed=begin, options=options)
    own = seed_of_try(seed or 0, inner.episode.task.id, number)
    playing = _Playing(made, Situation(inner, observation, own), inner.episode)
    while not playing.episode.over:
        playing = _advance(playing, actor.act([playing.situation])[0])
    return EpisodeRecord.of(playing.episode, _id_of(inner), own, number)


class _Playing(NamedTuple):
    """An episode in progress: the environment, which may be wrapped, and the policy's situation."""

    env: gym.Env[Any, Any]
    situation: Situation
    episode: Episode


def _make(env: AnyEnv, env_kwargs: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """Create an environment from an id, a class or a function.

    An environment is returned unchanged.

    Raises:
        ConfigurationError: The environment has no tools or cannot be created, or arguments were
            given for an existing environment.
    """
    if isinstance(env, str):
        return registration.make(env, **env_kwargs)
    if isinstance(env, gym.Env) and env_kwargs:
        raise ConfigurationError(
            f"{min(env_kwargs)!r} is an argument for creating an environment, but this one already"
            " exists: pass its id or its class, or remove the argument."
        )
    try:
        made = env if isinstance(env, gym.Env) else env(**env_kwargs)
    except TypeError as problem:
        raise ConfigurationError(
            f"no environment can be created from {env!r}: {problem}. Pass an environment, an id"
            " such as sqlgym/Explore-v0, or a class with its arguments by name."
        ) from problem
    _inner(made)
    return made


def _inner(env: gym.Env[Any, Any]) -> ToolEnv[Any]:
    """Return the innermost environment, without wrappers.

    Raises:
        ConfigurationError: The environment is not a `ToolEnv`.
    """
    inner = getattr(env, "unwrapped", env)
    if not isinstance(inner, ToolEnv):
        raise ConfigurationError(f"{env!r} has no tools: it is not a toolgym.ToolEnv.")
    return inner


def _id_of(env: ToolEnv[Any]) -> str:
    return env.spec.id if env.spec is not None else type(env).__name__


def _advance(playing: _Playing, action: Any) -> _Playing:
    """Take one step. After a fault, the episode is over and unscored.

    Raises:
        ConfigurationError: The environment has started another episode before the end of this one.
    """
    env, situation, episode = playing
    if situation.env.episode is not episode:
        raise ConfigurationError(
            f"{env!r} began another episode before the end of this one; use one per episode."
        )
    played = len(episode.turns)
    try:
        if isinstance(action, EnvironmentFault):
            raise action  # wrappers are skipped for a fault
        observation, _, terminated, truncated, _ = env.step(action)
    except EnvironmentFault as fault:  # also raised by a wrapper
        episode.fail(fault)
        return playing._replace(situation=replace(situation, observation=str(fault)))
    # A wrapper may have changed the observation, ended the episode, or given the answer itself.
    for turn in episode.turns[played:]:
        if isinstance(observation, str) and observation != turn.observation:
            results = ("",) * (len(turn.results) - 1) + (observation,)
            episode.turns[-1] = turn._replace(observation=observation, results=results)
    if terminated or truncated:
        episode.finish()
    return playing._replace(situation=replace(situation, observation=observation))


def _advance_all(playing: Sequence[_Playing], actions: Sequence[Any]) -> list[_Playing]:
    """Take one step in each episode, using threads if the tools of an environment wait for
    servers."""
    pairs = list(zip(playing, actions, strict=True))
    if len(playing) > 1 and any(each.situation.env.waits for each in playing):
        with ThreadPoolExecutor(len(playing), "toolgym-step") as threads:
            return list(threads.map(lambda pair: _advance(*pair), pairs))
    return [_advance(*pair) for pair in pairs]


class _Batch(NamedTuple):
    """The records of a batch, and the usage of the policy in this batch."""

    records: list[EpisodeRecord]
    usage: dict[str, Any]


class _Player:
    """Plays batches of attempts in lock step, with the same environments and policy for all
    batches.

    A pickle contains only the arguments, from which each process creates its own player.

    Attributes:
        on_progress: Called in this process with the number of finished episodes of the current
            batch.
    """

    def __init__(
        self, env: AnyEnv, policy: AnyPolicy, seed: int, env_kwargs: Mapping[str, Any]
    ) -> None:
        self._arguments = (env, policy, seed, dict(env_kwargs))
        self.envs = [_make(env, env_kwargs)]
        self.on_progress: Callable[[int], None] | None = None
        self._lock = threading.Lock()

    @lazy
    def policy(self) -> Policy:
        return as_policy(self._arguments[1])

    def play(self, tries: Sequence[Try]) -> _Batch:
        """Run a batch of attempts. The records are in the order of the attempts."""
        with self._lock:  # the `map` of a thread pool calls this from several threads
            env, _, seed, env_kwargs = self._arguments
            usage: Callable[[], dict[str, Any]] = getattr(self.policy, "usage", dict)
            before = usage()
            while len(self.envs) < len(tries):
                made = _make(env, env_kwargs)
                if any(_inner(made) is _inner(other) for other in self.envs):
                    raise ConfigurationError(
                        f"{env!r} returned the same environment twice: it must create a new one in"
                        " each call. Alternatively, pass the environment itself."
                    )
                self.envs.append(made)
            opened = []
            for member, (task_id, number) in zip(self.envs, tries, strict=False):
                own = seed_of_try(seed, task_id, number)
                observation, _ = member.reset(seed=own, options={"task_id": task_id})
                inner = _inner(member)
                opened.append(_Playing(member, Situation(inner, observation, own), inner.episode))
            playing = opened
            while playing:
                if self.on_progress is not None:
                    self.on_progress(len(opened) - len(playing))
                moved = _advance_all(playing, self.policy.act([each.situation for each in playing]))
                playing = [each for each in moved if not each.episode.over]
            env_id = _id_of(opened[0].situation.env)
            records = [
                EpisodeRecord.of(episode, env_id, situation.seed, number)
                for (_, situation, episode), (_, number) in zip(opened, tries, strict=True)
            ]
            used = {name: _less(after, before.get(name, 0)) for name, after in usage().items()}
            return _Batch(records, used)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        env, policy, _, _ = self._arguments
        named = isinstance(policy, ByName | str)
        try:
            if isinstance(env, gym.Env) or not named:
                raise TypeError("it is an object of this process")
            return _player_of, (pickle.dumps(self._arguments),)
        except (pickle.PicklingError, TypeError, AttributeError) as problem:
            raise ConfigurationError(
                f"{'the policy' if not named else 'the environment'} or one of its options cannot"
                f" be sent to other processes: {problem}. Pass the id or class of an environment,"
                " the name of a policy such as 'expert' or toolgym.policies.ByName(...), and plain"
                " values as options, such as the path of a data set."
            ) from None


def _less(after: Any, before: Any) -> Any:
    return None if after is None or before is None else after - before


@functools.lru_cache(maxsize=1)
def _player_of(arguments: bytes) -> _Player:
    """Return the player of an evaluation in a worker process. All batches of the evaluation share
    one player.
    """
    return _Player(*pickle.loads(arguments))


def evaluate(
    env: AnyEnv,
    policy: AnyPolicy,
    *,
    k: int = 1,
    n: int | None = None,
    task_ids: Sequence[str] | None = None,
    shard: tuple[int, int] = (1, 1),
    batch: int = 64,
    seed: int = 0,
    map: Map = map,
    progress: Progress | None = None,
    on_episode: Callable[[EpisodeRecord], None] | None = None,
    **env_kwargs: Any,
) -> Evaluation:
    """Run k episodes for each playable task, or for each of n playable tasks.

    Args:
        env: The id of a registered environment, or a class or function that creates one. If an
            environment object is given, episodes run one after another.
        policy: A policy, a function from an observation to an action, or a name such as `expert`.
        k: Number of attempts per task, for pass@k.
        n: Number of tasks to draw at random with the seed; None means all tasks.
        task_ids: The tasks to play, in this order, instead of all tasks or `n` of them.
        shard: The part of the tasks to play: its number, starting from 1, and the total number of
            parts.
        batch: Number of episodes that run in lock step.
        seed: Seed for drawing the tasks and for the episodes.
        map: Function that runs the batches. Python's `map` runs them in this process.
            `toolgym.workers.worker_processes` provides a `map` that uses other processes, which
            requires the environment and the policy to be given by name.
        progress: Called with the number of finished episodes and the total.
        on_episode: Called with each record, in order, when its batch is finished.
        env_kwargs: Arguments of the environments.

    Raises:
        ConfigurationError: k, n or batch is below 1, the shard does not exist, the environment
            cannot be created, no task is playable, or an argument cannot be sent to other
            processes.
        WorkerLost: A worker process ended while it ran a batch.
    """
    if min(k, batch, 1 if n is None else n) < 1:
        raise ConfigurationError(f"k, n and batch must be at least 1, got {k=}, {n=}, {batch=}.")
    number, of = shard
    if not 1 <= number <= of:
        raise ConfigurationError(
            f"there is no shard {number}/{of}: the shards are 1/{of} to {of}/{of}."
        )
    player = _Player(env, policy, seed, env_kwargs)
    tasks = _inner(player.envs[0]).tasks
    chosen: Sequence[Any] = task_ids if task_ids is not None else tasks
    if task_ids is None and n is not None:
        chosen = tasks.shuffle(seed).first_playable(n)
    total = len(chosen)
    part = chosen[total * (number - 1) // of : total * number // of]
    ids = part.playable().ids if isinstance(part, TaskSet) else list(part)
    if not ids and total and of > 1:
        raise ConfigurationError(
            f"no task of shard {number}/{of} of {tasks.name} is playable: there are"
            f" {total} tasks; cut them into fewer shards."
        )
    if not ids:
        raise ConfigurationError(tasks.nothing_playable())
    tries = tries_of(task_id for task_id in ids for _ in range(k))
    # an environment object can play only one episode at a time
    size = 1 if isinstance(env, gym.Env) else batch
    batches = [tries[first : first + size] for first in range(0, len(tries), size)]
    records: list[EpisodeRecord] = []
    usage: dict[str, Any] = {}
    if progress is not None:
        player.on_progress = lambda ended: progress(len(records) + ended, len(tries))
    for played in map(player.play, batches):
        for name, used in played.usage.items():
            before = usage.get(name, 0)
            usage[name] = None if used is None or before is None else before + used
        records += played.records
        if progress is not None:
            progress(len(records), len(tries))
        if on_episode is not None:
            for record in played.records:
                on_episode(record)
    refused = tuple(refusal.to_json() for refusal in tasks.refused.values())
    return Evaluation(tuple(records), k, refused, usage)
