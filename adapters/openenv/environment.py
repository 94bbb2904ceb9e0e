"""One session: the episodes that one WebSocket plays, one after the other.

A message goes to `ToolEnv.step` as the client sent it. What the agent got wrong is in the
observation. A mistake of the client (no such task, a step before a reset) is an error of OpenEnv,
whose text is ours. A fault of the machine ends the episode: `done`, no reward, `scored` false and a
neutral sentence, for its own text may name files, and goes to the log.

OpenEnv makes one such object for each session, and for each question about tasks, so it is cheap
until the first reset.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Final
from uuid import uuid4

from fastapi import HTTPException
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.openenv.catalogue import Catalogue, NoSuchTask
from adapters.openenv.models import ToolgymAction, ToolgymObservation, ToolgymState
from toolgym.env import ToolEnv
from toolgym.episode import Turn
from toolgym.errors import EnvironmentFault, TaskRefused, ToolgymError
from toolgym.messages import prompt_messages, turn_messages
from toolgym.records import EpisodeRecord

FAULT: Final = (
    "The environment failed, and this episode is not scored. Leave it out and begin another one;"
    " the log of the server says what failed."
)
WANTED: Final = (
    "reset takes task_id (a text), or split (a text) and index (a number), or seed (a number),"
    " and episode_id (a text)."
)
RESET_FIRST: Final = "There is no episode yet: reset first."
CLOSED: Final = "This episode is over: reset begins another one."
MOST_AFTER_END: Final = 50
"""Messages behind the end that are answered; each of them is kept in the transcript."""
_logger = logging.getLogger(__name__)


class Mistake(ToolgymError):
    """A client asked for something that cannot be; OpenEnv sends it the text."""


class Wanted(BaseModel):
    """What a client may say when it begins an episode."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task_id: str | None = Field(None, max_length=1000)
    split: str | None = Field(None, max_length=1000)
    index: int | None = Field(None, ge=0)
    seed: int | None = Field(None, ge=0, lt=2**31)
    episode_id: str | None = Field(None, max_length=255)


class ToolgymEnvironment(Environment[ToolgymAction, ToolgymObservation, ToolgymState]):  # type: ignore[misc, unused-ignore]
    """A tool environment as OpenEnv knows environments.

    Args:
        catalogue: The tasks, and what plays them.
        on_close: Is given the record of each episode that is left behind.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True  # or the second rollout of a group would be refused

    def __init__(
        self, catalogue: Catalogue, on_close: Callable[[EpisodeRecord], None] | None = None
    ) -> None:
        super().__init__()
        self._catalogue, self._on_close = catalogue, on_close
        self._env: ToolEnv[Any] | None = None
        self._split = ""
        self._episode_id = ""
        self._is_open = False

    # An episode -----------------------------------------------------------------------------------

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> ToolgymObservation:
        """Begin an episode; the one before is closed.

        Raises:
            Mistake: The client asked for something that is not to be chosen, or a refused task.
            NoSuchTask: There is no such task.
        """
        try:
            wanted = Wanted(seed=seed, episode_id=episode_id, **kwargs)
        except ValidationError:
            raise Mistake(WANTED) from None
        split, task_id = self._catalogue.chosen(wanted.split, wanted.index, wanted.task_id)
        self._leave()
        self._episode_id = wanted.episode_id or str(uuid4())
        try:
            env = self._begin(split, task_id, wanted.seed)
        except TaskRefused as refused:
            why = f"The task {refused.task_id!r} cannot be played fairly [{refused.code}]."
            raise Mistake(why) from None
        except Exception as fault:  # noqa: BLE001 - the boundary: OpenEnv would send the text on
            self._log(fault)
            return self._unscored("")
        self._is_open = True
        chat = prompt_messages(env)
        return ToolgymObservation(
            text=chat[-1]["content"],
            messages=chat,
            tools=env.tool_schemas(),
            task_id=env.task.id,
            steps_left=env.episode.steps_left,
            reward=0.0,
        )

    def _begin(self, split: str, task_id: str | None, seed: int | None) -> ToolEnv[Any]:
        if self._env is None or split != self._split:
            self._env, self._split = self._catalogue.environment(split), split
        self._env.reset(seed=seed, options=None if task_id is None else {"task_id": task_id})
        return self._env

    def step(
        self, action: ToolgymAction, timeout_s: float | None = None, **kwargs: Any
    ) -> ToolgymObservation:
        """Play one message of the model.

        Raises:
            Mistake: There is no episode, or it has been over for long.
        """
        env = self._playing()
        episode = env.episode
        if episode.fault:
            return self._unscored(episode.task.id)
        if action.finish:
            before = episode.ledger.score()
            return self._seen(env, None, env.finish() - before)
        if len(episode.turns) >= env.step_limit + MOST_AFTER_END:
            raise Mistake(CLOSED)
        message: Any = action.text
        if action.tool_calls:
            message = {"content": action.text, "tool_calls": action.tool_calls}
        try:
            env.step(message)
        except Exception as fault:  # noqa: BLE001 - the boundary: OpenEnv would send the text on
            self._log(fault)
            if not episode.fault:
                episode.fail(f"{type(fault).__name__}: {fault}")
            return self._unscored(episode.task.id)
        turn = episode.turns[-1]
        return self._seen(env, turn, turn.reward)

    def _playing(self) -> ToolEnv[Any]:
        if self._env is None or not self._is_open:
            raise Mistake(RESET_FIRST)
        return self._env

    def _seen(self, env: ToolEnv[Any], turn: Turn | None, reward: float) -> ToolgymObservation:
        """What a message is answered with; the score only when the episode is over."""
        episode = env.episode
        seen = ToolgymObservation(
            done=episode.over,
            reward=reward,
            task_id=episode.task.id,
            steps_left=episode.steps_left,
        )
        if turn is not None:
            seen.text, seen.messages = turn.observation, turn_messages(turn)[1:]
            seen.repairs = [code for call in turn.calls for code in call.repairs]
            seen.errors = [error.code for error in turn.errors if error is not None]
        if episode.over:
            ledger = episode.ledger
            seen.truncated = not ledger.answered
            seen.score, seen.correct = episode.finish(), ledger.correct
            parts = ledger.parts().items()
            seen.reward_parts = {name: value for name, value in parts if math.isfinite(value)}
        return seen

    def _log(self, fault: Exception) -> None:
        """Say what failed where the operator reads it; it may name files of this machine."""
        kind = "" if isinstance(fault, EnvironmentFault) else f"{type(fault).__name__}: "
        _logger.error("an episode of %s is not scored: %s%s", self._catalogue.env_id, kind, fault)

    def _unscored(self, task_id: str) -> ToolgymObservation:
        return ToolgymObservation(text=FAULT, task_id=task_id, done=True, reward=None, scored=False)

    def _leave(self) -> None:
        """Close the episode that is played, if there is one, and hand on its record."""
        if self._is_open and self._env is not None and self._on_close is not None:
            self._on_close(EpisodeRecord.of(self._env.episode, self._catalogue.env_id))
        self._is_open = False

    def close(self) -> None:
        """Close the episode; the session is over."""
        self._leave()
        if self._env is not None:
            self._env.close()
            self._env = None

    @property
    def state(self) -> ToolgymState:
        """Where the session is."""
        state = ToolgymState(
            episode_id=self._episode_id or None, step_count=0, env_id=self._catalogue.env_id
        )
        if self._is_open and self._env is not None:
            episode = self._env.episode
            state.step_count, state.task_id = len(episode.turns), episode.task.id
            state.steps_left, state.over = episode.steps_left, episode.over
        return state

    def get_metadata(self) -> EnvironmentMetadata:
        """What the environment is."""
        doc = (type(self._catalogue.first).__doc__ or "").strip()
        return EnvironmentMetadata(
            name=self._catalogue.env_id,
            description=" ".join(doc.partition("\n\n")[0].split()),
            version=version("toolgym"),
        )

    # The tasks: what OpenEnv calls a TaskProvider -------------------------------------------------

    def list_splits(self) -> list[str]:
        """Names of the splits."""
        return self._catalogue.splits

    def num_tasks(self, split: str) -> int:
        """The number of tasks of a split."""
        return len(self._asked(split))

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """The first tasks of a split, each as its id and its index."""
        return self.get_task_range(split)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """One task, as its id and its index.

        Raises:
            IndexError: The split has fewer tasks.
        """
        self._asked(split)
        try:
            return {"id": self._catalogue.task_id(split, index), "index": index}
        except NoSuchTask as problem:
            raise IndexError(str(problem)) from None

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """The tasks from one index to another."""
        self._asked(split)
        return list(self._catalogue.listed(split, start, stop))

    def _asked(self, split: str) -> Any:
        """The tasks of a split, or the answer 404."""
        try:
            return self._catalogue.tasks(split)
        except NoSuchTask as problem:
            raise HTTPException(404, str(problem)) from None
