"""The tasks of an environment as a verifiers taskset, and an episode as a verifiers `Env.run`.

The environment acts as the user: `ToolEnv.step` receives each message of the model unchanged, and
the observation is the next user message. The system prompt describes the tools, and calls are read
from the text. The tools of verifiers are not used, because they are called over MCP, which rejects
a misspelled name or invalid JSON.

The score is the only reward of a trace, and the numbers of the episode are its metrics. An
infrastructure error is raised as an exception: the trace and the episode are marked as failed and
have no reward. If a limit of verifiers (turns, tokens, time) ends the episode, the episode is
scored as unanswered.
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
from toolgym.messages import system_prompt
from toolgym.records import EpisodeRecord

FAULT: Final = "The environment failed, and this episode is not scored; the log says what failed."
_logger = logging.getLogger(__name__)


class EpisodeConfig(vf.TasksetConfig):  # type: ignore[misc, unused-ignore]
    """Settings of the environment and its tasks."""

    env_id: str = "sqlgym/Explore-v0"
    """Id of a registered environment."""
    env_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the environment, such as `dataset`, `split` and `step_limit`."""
    n: int | None = Field(None, ge=1)
    """Number of tasks. None means all playable tasks, each of which is verified."""
    seed: int = 0
    """Seed for choosing `n` tasks. The chosen tasks are the same as in `toolgym eval`."""


class EpisodeData(vf.TaskData):  # type: ignore[misc, unused-ignore]
    """The data of a task, without the gold answer."""

    env_id: str
    env_kwargs: dict[str, Any]
    task_id: str


class EpisodeTask(vf.Task[EpisodeData, vf.State, vf.TaskConfig]):  # type: ignore[misc, unused-ignore]
    """A task whose episode is run and scored by `EpisodeEnv`."""

    @property
    def key(self) -> str:
        """The stable id of the task."""
        return f"{self.data.env_id}/{self.data.task_id}"

    async def validate(self, runtime: Any) -> bool | None:
        """Return whether the environment's expert solves the task."""
        data, expert = self.data, policies.ExpertPolicy()
        played = await asyncio.to_thread(
            rollout.play, data.env_id, expert, task_id=data.task_id, **data.env_kwargs
        )
        return played.correct


class Episodes:
    """The playable tasks of an environment, each with its prompt.

    A taskset derives from this class and from `vf.Taskset[EpisodeTask, Config]`. `Config` is a
    subclass of `EpisodeConfig` with the defaults of a package; verifiers reads the options from
    this class.
    """

    config: EpisodeConfig

    def load(self) -> Iterator[EpisodeTask]:
        """Yield the tasks, in the order of `toolgym eval`."""
        config = self.config
        env = registration.make(config.env_id, **config.env_kwargs)
        if config.n is None:
            chosen = env.tasks.playable()
        else:
            chosen = env.tasks.shuffle(config.seed).first_playable(config.n)
        for task in chosen:
            env.reset(options={"task_id": task.id})
            data = EpisodeData(
                id=task.id,
                name=task.id,
                prompt=env.user_prompt(),
                system_prompt=system_prompt(env, in_words=True),
                env_id=config.env_id,
                env_kwargs=config.env_kwargs,
                task_id=task.id,
            )
            yield EpisodeTask(data, config.task)


class EpisodeEnvConfig(vf.EnvConfig):  # type: ignore[misc, unused-ignore]
    """Settings of an agent that runs on this machine and only writes messages."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class EpisodeEnv(vf.Env[EpisodeEnvConfig]):  # type: ignore[misc, unused-ignore]
    """The user of one agent: the environment replies to the model's messages."""

    async def run(self, task: Any, agents: Any) -> None:
        """Play one episode, and record its reward and metrics.

        Raises:
            EnvError: If the environment failed.
        """
        data = task.data
        env: ToolEnv[Any] | None = None
        async with agents.agent.interaction(task) as talk:
            try:
                env = await asyncio.to_thread(registration.make, data.env_id, **data.env_kwargs)
                # verifiers numbers neither steps nor rollouts, so each rollout draws a new seed.
                await asyncio.to_thread(env.reset, options={"task_id": data.task_id})
                said = await talk.turn()
                while not said.terminated:
                    texts = [each.content for each in said.messages if each.role == "assistant"]
                    text = next((each for each in reversed(texts) if isinstance(each, str)), "")
                    await asyncio.to_thread(env.step, text)
                    if env.episode.over:
                        break
                    said = await talk.turn(env.episode.turns[-1].observation)
            except EnvironmentFault as fault:
                # The text may name files of this machine, and traces may be uploaded to a hub.
                _logger.error("an episode of %s is not scored: %s", data.env_id, fault)
                if env is not None:
                    _note(talk.trace, EpisodeRecord.of(env.episode, data.env_id))
                raise vf.EnvError(FAULT) from None
        if talk.trace.ok:
            _note(talk.trace, EpisodeRecord.of(env.episode, data.env_id))
        else:
            talk.trace.record_metric("scored", 0.0)  # the model or the harness failed


def _note(trace: Any, record: EpisodeRecord) -> None:
    """Record an episode on its trace: reward, metrics and complete record."""
    if record.scored:
        trace.record_reward("score", record.score)
        trace.record_metrics(record.figures())
        trace.record_metrics({f"part/{name}": v for name, v in record.reward_parts.items()})
    else:
        trace.record_metric("scored", 0.0)
    trace.info["episode"] = replace(record, fault=FAULT if record.fault else "").to_json()
