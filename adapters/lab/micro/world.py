"""The score of a text of the micro-model: that of the real episode, or the old system's.

The episode is `aflowgym/Compose-v0` with the simulated backend, made as any user makes it: the text
is run as a workflow, what it leaves is submitted. One text on one task with the same luck always
comes to the same, so it is played once per process.

| levels | what was reached, as the old system paid it         |
| ------ | --------------------------------------------------- |
| 1.0    | a right solution                                    |
| 0.7    | a wrong one, nearly right (progress 0.8 and more)   |
| 0.4    | a wrong one, nearer than nothing (0.6 and 0.7)      |
| 0.2    | a wrong one                                         |
| 0.0    | a workflow that left nothing, or no workflow at all |

The old system paid correctness in these five levels; which nearness gets which is our reading. It
also ran a workflow of its own where a text was none, and paid that: `fallback` names one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from adapters.lab.micro.tokens import ITEMS, KINDS
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.records import EpisodeRecord

ENVIRONMENT: Final = "aflowgym/Compose-v0"
LUCK: Final = 4
"""How many draws of the operators there are for one task."""
TASKS: Final = len(KINDS) * ITEMS

Rewards = Literal["score", "levels"]


class Ending(NamedTuple):
    """The end of one episode.

    Attributes:
        score: Of the episode.
        correct: The solution is right.
        progress: The best state that was reached, 0 to 1.
    """

    score: float
    correct: bool
    progress: float

    @property
    def valid(self) -> bool:
        """Whether the text is a workflow that could be run."""
        return self.progress >= 0.3

    @property
    def level(self) -> float:
        """The reward of the old system; see the module."""
        if self.correct:
            return 1.0
        steps = ((0.8, 0.7), (0.6, 0.4), (0.5, 0.2))
        return next((paid for reached, paid in steps if self.progress >= reached), 0.0)


Play = Callable[[str, int, int], Ending]
"""From a text, a task and its luck to an ending: `play`, or what an experiment has instead."""


def reward(
    ending: Ending, task: int, luck: int, rewards: Rewards, fallback: str | None = None
) -> float:
    """The reward of a rollout.

    Args:
        ending: Of its episode.
        task: Its position, see `tokens.prompt_tokens`.
        luck: See `play`.
        rewards: The score of the episode, or the old levels.
        fallback: The workflow that is paid in place of a text that is none; None pays such a text
            what it earns.
    """
    paid = ending if ending.valid or fallback is None else play(fallback, task, luck)
    return paid.level if rewards == "levels" else paid.score


@functools.lru_cache(maxsize=200_000)
def play(text: str, task: int, luck: int) -> Ending:
    """Run a text on a task and submit what it leaves.

    Args:
        text: A workflow, or not.
        task: Its position.
        luck: Which draws the operators have, below `LUCK`.
    """
    env = _played(text, task, luck)
    outcome = env.outcome
    return Ending(env.finish(), outcome.correct, env.episode.ledger.progress)


@functools.lru_cache(maxsize=200_000)
def second_verdict(text: str, task: int, luck: int) -> bool | None:
    """Whether that episode was right by the second rule of its family, as an audit asks it.

    Arguments as of `play`; None where the rule cannot tell.
    """
    env = _played(text, task, luck)
    turns = EpisodeRecord.of(env.episode, ENVIRONMENT).turns
    return env.family.recheck(env, env.task, turns)


def _played(text: str, task: int, luck: int) -> ToolEnv[Any]:
    """The environment at the end of an episode."""
    env = _environment()
    env.reset(seed=luck, options={"task_id": _task_ids()[task]})
    env.step({"name": "run_workflow", "arguments": {"dsl": text}})
    env.step({"name": "answer", "arguments": {}})
    return env


@functools.cache
def _environment() -> ToolEnv[Any]:
    return registration.make(ENVIRONMENT, dataset="tiny")


@functools.cache
def _task_ids() -> tuple[str, ...]:
    """The first tasks of each kind that the data set has."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    tasks = _environment().tasks
    for task_id in tasks.ids:
        kept = found[tasks.require(task_id).kind]
        if len(kept) < ITEMS:
            kept.append(task_id)
        if all(len(each) == ITEMS for each in found.values()):
            break
    return tuple(task_id for each in found.values() for task_id in each)
