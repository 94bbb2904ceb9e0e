"""Running and scoring episodes: one, a data set, or k tries at each task.

Episodes run in lock step, `batch` at a time, so that a language model acts for all of them in one
forward pass. Each becomes an `EpisodeRecord`, plain data that can be written as a line of JSON.

An episode is a try at its task, and draws by the number of the try (`toolgym.tries`). Several
machines can play parts of the tasks, and `Evaluation.merged` puts the parts together. Or one
evaluation spreads its batches over the workers of a `Spread`, which gives the same records.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import gymnasium as gym

from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.policies import ByName, Metered, Policy, Situation, as_policy
from toolgym.records import EpisodeRecord, Evaluation
from toolgym.spread import HERE, Part, Progress, Spread, Tell
from toolgym.tasks import seed_of
from toolgym.tries import Try, seed_of_try, slots, tries_of

__all__ = ["EpisodeRecord", "Evaluation", "evaluate", "play", "run"]

AnyEnv = ToolEnv[Any] | gym.Env[Any, Any] | str
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
        batch: Episodes that are open together; they draw the same in whatever batch.
        seed: With the task and the number of the try, what an episode draws by.
        progress: Called when episodes end, with how many have and how many there are.
    """
    player = _Player(env, policy, seed, env_kwargs)
    parts = _batches(tries_of(task_ids), batch if isinstance(env, str) else 1)
    for records in HERE.map(player.play, parts, progress):
        yield from records


class _Player:
    """Plays batches of tries in lock step; what is made for one batch plays the next one too."""

    def __init__(
        self, env: AnyEnv, policy: AnyPolicy, seed: int, env_kwargs: Mapping[str, Any]
    ) -> None:
        self._envs, self.policy = [_made(env, env_kwargs)], as_policy(policy)
        self._env_id, self._env_kwargs = _id_of(self._envs[0]), env_kwargs
        self._seed, self._slots = seed, iter(slots())

    def play(self, tries: Sequence[Try], tell: Tell | None = None) -> list[EpisodeRecord]:
        """The records of a batch, in order; `tell` hears how many of its episodes are over."""
        while len(self._envs) < len(tries):
            self._envs.append(registration.make(self._env_id, **self._env_kwargs))
        opened = []
        for member, (task_id, number) in zip(self._envs, tries, strict=False):
            observation, _ = member.reset(seed=seed_of(task_id), options={"task_id": task_id})
            own = seed_of_try(self._seed, task_id, number)
            opened.append(Situation(next(self._slots), member, observation, own))
        situations = opened
        while situations:
            if tell is not None:
                tell(len(opened) - len(situations))
            moved = _advance_all(situations, self.policy.act(situations))
            situations = [s for s in moved if not s.env.episode.over]
        return [
            EpisodeRecord.of(situation.env.episode, self._env_id, situation.seed, number)
            for situation, (_, number) in zip(opened, tries, strict=True)
        ]


def _batches(tries: Sequence[Try], batch: int) -> list[Part[Sequence[Try]]]:
    """Tries as parts that are played in lock step, the same ones wherever they are played."""
    chunks = (tries[first : first + batch] for first in range(0, len(tries), batch))
    return [Part(_named(chunk), len(chunk), chunk) for chunk in chunks]


def _named(tries: Sequence[Try]) -> str:
    first, last = (f"try {each.number} of {each.task_id}" for each in (tries[0], tries[-1]))
    return first if len(tries) == 1 else f"{len(tries)} episodes from {first} to {last}"


class _Played(NamedTuple):
    """A batch that was played, and what the policy has used for it."""

    records: list[EpisodeRecord]
    usage: dict[str, Any]


def _sent(env: AnyEnv, policy: AnyPolicy, seed: int, env_kwargs: Mapping[str, Any]) -> bytes:
    """What a player is made of in another process.

    Raises:
        ConfigurationError: Some of it cannot be sent there.
    """
    named = ByName(policy) if isinstance(policy, str) else policy
    if not isinstance(env, str) or not isinstance(named, ByName):
        raise ConfigurationError(
            "other processes make environment and policy themselves: give the id of an environment"
            " and the name of a policy, such as 'expert' or toolgym.policies.ByName(...), and no"
            " object or function."
        )
    try:
        return pickle.dumps((env, named, seed, dict(env_kwargs)))
    except (pickle.PicklingError, TypeError, AttributeError) as problem:
        raise ConfigurationError(
            f"an option of {env} or of {named.name} cannot be sent to other processes: {problem}."
            " Give plain values, such as the path of a data set."
        ) from None


@functools.lru_cache(maxsize=1)
def _player_of(sent: bytes) -> _Player:
    """Made once in a process that plays several parts of one evaluation."""
    return _Player(*pickle.loads(sent))


def _play_sent(sent: bytes, tries: Sequence[Try], tell: Tell | None) -> _Played:
    """Play a batch in a process that has nothing yet."""
    player = _player_of(sent)
    meter = player.policy if isinstance(player.policy, Metered) else None
    before = meter.usage() if meter is not None else {}
    records = player.play(tries, tell)
    return _Played(records, _used(before, meter.usage()) if meter is not None else {})


def _used(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What was used in between; None where that is not known."""
    return {name: None if value is None else value - before[name] for name, value in after.items()}


def evaluate(
    env: AnyEnv,
    policy: AnyPolicy,
    *,
    k: int = 1,
    n: int | None = None,
    shard: tuple[int, int] = (1, 1),
    batch: int = 64,
    seed: int = 0,
    spread: Spread = HERE,
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
        shard: Which part of the tasks to play, from 1, and of how many parts.
        batch: Episodes that are open together.
        seed: Chooses the tasks and seeds the episodes.
        spread: Where the batches are played; other processes get environment and policy by name.
        progress: Called with how many episodes are done and how many there are.
        on_episode: Called with each record, in order, once its batch is over, as for writing it
            down.
        env_kwargs: For `gym.make`.

    Raises:
        ConfigurationError: k or n is below 1, or there is no such shard, or the environment cannot
            be made, or no task is playable, or something cannot be sent to other processes.
        PartLost: A worker of the spread was lost with a batch again and again.
    """
    if min(k, batch, 1 if n is None else n) < 1:
        raise ConfigurationError(f"k, n and batch must be at least 1, got {k=}, {n=}, {batch=}.")
    number, of = shard
    if not 1 <= number <= of:
        raise ConfigurationError(
            f"there is no shard {number}/{of}: they go from 1/{of} to {of}/{of}."
        )
    made = _made(env, env_kwargs)
    play = _playing(env, policy, seed, env_kwargs, spread)
    chosen = made.tasks if n is None else made.tasks.shuffle(seed).first_playable(n)
    total = len(chosen)
    playable = chosen[total * (number - 1) // of : total * number // of].playable()
    if not len(playable):
        if total and of > 1:
            raise ConfigurationError(
                f"no task of shard {number}/{of} of {made.tasks.name} is playable: there are"
                f" {total} tasks; cut them into fewer shards."
            )
        raise ConfigurationError(made.tasks.nothing_playable())
    ids = [task_id for task_id in playable.ids for _ in range(k)]
    parts = _batches(tries_of(ids), batch if isinstance(env, str) else 1)
    records = []
    for played in spread.map(play, parts, progress):
        if isinstance(policy, ByName):
            policy.count(played.usage)
        for record in played.records:
            records.append(record)
            if on_episode is not None:
                on_episode(record)
    return Evaluation(tuple(records), k, tuple(_reasons(made)))


def _playing(
    env: AnyEnv,
    policy: AnyPolicy,
    seed: int,
    env_kwargs: Mapping[str, Any],
    spread: Spread,
) -> Callable[[Sequence[Try], Tell | None], _Played]:
    """What plays a batch, here or in other processes."""
    if spread.sends:
        return functools.partial(_play_sent, _sent(env, policy, seed, env_kwargs))
    player = _Player(env, policy, seed, env_kwargs)
    return lambda tries, tell: _Played(player.play(tries, tell), {})


def _reasons(env: ToolEnv[Any]) -> list[dict[str, str]]:
    refusals = env.tasks.refused.values()
    return [{"task_id": r.task_id, "code": r.code, "reason": r.reason} for r in refusals]
