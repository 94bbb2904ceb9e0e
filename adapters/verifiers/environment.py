"""Tasks of an environment as a taskset of verifiers, and one episode as its `Env.run`.

The environment plays the user: what the model wrote goes to `ToolEnv.step` as it is, and the
observation is the next message. The tools are told in the system prompt and calls are read out of
the text, because the tools of verifiers lie behind MCP, where a name that is misspelt or JSON that
does not load never arrives.

The score is the one reward of a trace, and the figures of the episode are its metrics. A fault of
the machine is raised: the trace and the episode are marked as failed and have no reward. A limit of
verifiers (turns, tokens, time) ends the episode without an answer, and it is scored as such.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import verifiers.v1 as vf
from pydantic import Field

from toolgym import policies, registration, rollout
from toolgym.env import ToolEnv
from toolgym.errors import EnvironmentFault
from toolgym.messages import system_prompt, tools_in_words
from toolgym.records import EpisodeRecord
from toolgym.tasks import seed_of

REWARD: Final = "score"
FAULT: Final = "The environment failed, and this episode is not scored; the log says what failed."
_logger = logging.getLogger(__name__)


class EpisodeConfig(vf.TasksetConfig):  # type: ignore[misc, unused-ignore]
    """Which environment, and how it is made."""

    env_id: str = "sqlgym/Explore-v0"
    """A registered environment."""
    env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment, such as dataset, split and step_limit."""
    n: int | None = Field(None, ge=1)
    """Tasks to load; without it all that can be played, each of which is verified first."""
    seed: int = 0
    """Chooses the `n` tasks, the same ones as `toolgym eval` takes."""


class EpisodeData(vf.TaskData):  # type: ignore[misc, unused-ignore]
    """A task on the wire: nothing that tells the gold."""

    env_id: str
    env_kwargs: dict[str, Any]
    task_id: str


class EpisodeTask(vf.Task[EpisodeData, vf.State, vf.TaskConfig]):  # type: ignore[misc, unused-ignore]
    """A task, whose episode `EpisodeEnv` plays and scores."""

    @property
    def key(self) -> str:
        """The id of the task, which never changes."""
        return f"{self.data.env_id}/{self.data.task_id}"

    async def validate(self, runtime: Any) -> bool | None:
        """Whether the environment's expert solves it."""
        return await asyncio.to_thread(expert_solves, self.data)


def expert_solves(data: EpisodeData) -> bool:
    """Whether the expert, who only sees what an agent is shown, answers rightly."""
    task_id, given = data.task_id, data.env_kwargs
    return rollout.play(data.env_id, policies.ExpertPolicy(), task_id=task_id, **given).correct


class Episodes:
    """The tasks of an environment that can be played, each with its prompt.

    A taskset is this and `vf.Taskset[EpisodeTask, Config]`, where `Config` is an `EpisodeConfig`
    with the defaults of a package: verifiers reads its options off that very base.
    """

    config: EpisodeConfig

    def load(self) -> Iterator[EpisodeTask]:
        """The tasks, in the order of `toolgym eval`."""
        config = self.config
        env = registration.make(config.env_id, **config.env_kwargs)
        tasks = env.tasks
        chosen = (
            tasks.playable()
            if config.n is None
            else tasks.shuffle(config.seed).first_playable(config.n)
        )
        for task in chosen:
            opened(env, task.id)
            data = EpisodeData(
                id=task.id,
                name=task.id,
                prompt=env.user_prompt(),
                system_prompt=f"{system_prompt(env)}\n\n{tools_in_words(env.tools)}",
                env_id=config.env_id,
                env_kwargs=config.env_kwargs,
                task_id=task.id,
            )
            yield EpisodeTask(data, config.task)


def opened(env: ToolEnv[Any], task_id: str) -> ToolEnv[Any]:
    """The environment, at the beginning of an episode of this task."""
    env.reset(seed=seed_of(task_id), options={"task_id": task_id})
    return env


class EpisodeEnvConfig(vf.EnvConfig):  # type: ignore[misc, unused-ignore]
    """One agent, on this machine: all that it does is to write messages."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class EpisodeEnv(vf.Env[EpisodeEnvConfig]):  # type: ignore[misc, unused-ignore]
    """Plays the user of one agent: the environment answers what the model wrote."""

    async def run(self, task: Any, agents: Any) -> None:
        """Play one episode, and record what it was worth.

        Raises:
            EnvError: The machine failed.
        """
        data = task.data
        env: ToolEnv[Any] | None = None
        async with agents.agent.interaction(task) as talk:
            try:
                env = await asyncio.to_thread(registration.make, data.env_id, **data.env_kwargs)
                await asyncio.to_thread(opened, env, data.task_id)
                await converse(env, talk)
            except EnvironmentFault as fault:
                # The text may name files of this machine, and traces may be sent to a hub.
                _logger.error("an episode of %s is not scored: %s", data.env_id, fault)
                if env is not None:
                    note(talk.trace, EpisodeRecord.of(env.episode, data.env_id))
                raise vf.EnvError(FAULT) from None
        if talk.trace.ok:
            note(talk.trace, EpisodeRecord.of(env.episode, data.env_id))
        else:
            talk.trace.record_metric("scored", 0.0)  # the model or the harness failed


async def converse(env: ToolEnv[Any], talk: Any) -> None:
    """Let the model and the environment talk until the episode is over, or a limit is reached.

    Raises:
        EnvironmentFault: The machine failed.
    """
    said = await talk.turn()
    while not said.terminated:
        await asyncio.to_thread(env.step, written(said))
        if env.episode.over:
            return
        said = await talk.turn(env.episode.turns[-1].observation)


def written(said: Any) -> str:
    """What the model wrote, to the last blank."""
    texts = [message.content for message in said.messages if message.role == "assistant"]
    return next((text for text in reversed(texts) if isinstance(text, str)), "")


def note(trace: Any, record: EpisodeRecord) -> None:
    """Record an episode on its trace: the reward, the figures, and the whole of it."""
    if record.scored:
        trace.record_reward(REWARD, record.score)
        trace.record_metrics(record.figures())
        trace.record_metrics({f"part/{name}": v for name, v in record.reward_parts.items()})
    else:
        trace.record_metric("scored", 0.0)
    trace.info["episode"] = replace(record, fault=FAULT if record.fault else "").to_json()
