"""A session: the episodes that are played over one WebSocket, one after another.

`ToolEnv.step` receives each message as the client sent it, and mistakes of the agent are reported
in the observation. A mistake of the client (an unknown task, a step before a reset) is reported as
an OpenEnv error. An infrastructure error ends the episode with `done`, no reward, and `scored`
false. The error message is only logged, because it can contain file names.

OpenEnv makes one such object per session and one per query about tasks, so an object loads nothing
before its first reset.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Final
from uuid import uuid4

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata, State
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.openenv.catalogue import Catalogue, Mistake
from adapters.openenv.models import ToolgymAction, ToolgymObservation
from toolgym.env import ToolEnv
from toolgym.episode import Turn
from toolgym.errors import TaskRefused
from toolgym.messages import prompt_messages, system_prompt, turn_messages
from toolgym.records import EpisodeRecord

FAULT: Final = (
    "The environment failed, and this episode is not scored. Leave it out and begin another one;"
    " the log of the server says what failed."
)
WANTED: Final = (
    "reset takes task_id (a text), or split (a text) and index (a number), or seed (a number),"
    " and episode_id (a text)."
)
RESET_FIRST: Final = "There is no episode: reset first."
CLOSED: Final = "This session was closed: connect again."
OVER: Final = "This episode is over: reset begins another one."
MOST_AFTER_END: Final = 50
"""Number of messages after the end of an episode that are answered and kept in the transcript."""
MOST_LISTED: Final = 10_000
"""Maximum number of tasks in one list. All tasks can be retrieved by their index."""
_logger = logging.getLogger(__name__)


class Wanted(BaseModel):
    """Options that a client can set for a new episode."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task_id: str | None = Field(None, max_length=1000)
    split: str | None = Field(None, max_length=1000)
    index: int | None = Field(None, ge=0)
    seed: int | None = Field(None, ge=0, lt=2**31)
    episode_id: str | None = Field(None, max_length=255)


class ToolgymEnvironment(Environment[ToolgymAction, ToolgymObservation, State]):  # type: ignore[misc, unused-ignore]
    """A `ToolEnv` with OpenEnv's interface.

    Args:
        catalogue: The tasks and their environments.
        on_close: Function that is called with the record of each episode that ends or is abandoned.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True  # otherwise OpenEnv would accept only one session

    def __init__(self, catalogue: Catalogue, on_close: Callable[[EpisodeRecord], None]) -> None:
        super().__init__()
        self._catalogue, self._on_close = catalogue, on_close
        self._env: ToolEnv[Any] | None = None
        self._split = self._episode_id = ""
        self._is_open = self._is_closed = False

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> ToolgymObservation:
        """Begin an episode, after closing the previous one.

        Raises:
            Mistake: If there is no such task, the task is refused, or the request has unknown
                options.
        """
        if self._is_closed:  # OpenEnv no longer counts this session
            raise Mistake(CLOSED)
        try:
            wanted = Wanted(seed=seed, episode_id=episode_id, **kwargs)
        except ValidationError:
            raise Mistake(WANTED) from None
        catalogue, task_id = self._catalogue, wanted.task_id
        split = wanted.split or catalogue.split
        if task_id is not None:
            split = catalogue.split_of(task_id, wanted.split)
        elif wanted.index is not None:
            task_id = catalogue.task_id(split, wanted.index)
        catalogue.tasks(split)
        self._leave()
        self._episode_id = wanted.episode_id or str(uuid4())
        try:
            if self._env is None or split != self._split:
                self._env, self._split = catalogue.environment(split), split
            env = self._env
            options = None if task_id is None else {"task_id": task_id}
            env.reset(seed=wanted.seed, options=options)
        except TaskRefused as refused:
            why = f"The task {refused.task_id!r} is refused [{refused.code}]."
            raise Mistake(why) from None
        except Exception as fault:  # noqa: BLE001 - OpenEnv would send its text to the client
            return self._unscored("", fault)
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

    def step(
        self, action: ToolgymAction, timeout_s: float | None = None, **kwargs: Any
    ) -> ToolgymObservation:
        """Run the calls of one message of the model.

        Raises:
            Mistake: If there is no episode, or too many messages were sent after its end.
        """
        env = self._env
        if env is None or not self._is_open:
            raise Mistake(CLOSED if self._is_closed else RESET_FIRST)
        episode = env.episode
        if episode.fault:
            return self._unscored(episode.task.id)
        if action.finish:
            before = episode.ledger.score()
            return self._seen(env, None, env.finish() - before)
        if len(episode.turns) >= env.step_limit + MOST_AFTER_END:
            raise Mistake(OVER)
        message: Any = action.text
        if action.tool_calls:
            message = {"content": action.text, "tool_calls": action.tool_calls}
        try:
            env.step(message)
        except Exception as fault:  # noqa: BLE001 - OpenEnv would send its text to the client
            if not episode.fault:
                episode.fail(f"{type(fault).__name__}: {fault}")
            return self._unscored(episode.task.id, fault)
        turn = episode.turns[-1]
        return self._seen(env, turn, turn.reward)

    def _seen(self, env: ToolEnv[Any], turn: Turn | None, reward: float) -> ToolgymObservation:
        """Return the observation after a message, with the score if the episode is over."""
        episode, ledger = env.episode, env.episode.ledger
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
            seen.truncated = not ledger.answered
            seen.score, seen.correct = episode.finish(), ledger.correct
            parts = ledger.parts().items()
            seen.reward_parts = {name: value for name, value in parts if math.isfinite(value)}
        return seen

    def _unscored(self, task_id: str, fault: Exception | None = None) -> ToolgymObservation:
        """Log a fault and return the observation after it."""
        if fault is not None:
            env_id = self._catalogue.env_id
            _logger.error("an episode of %s is not scored: %s", env_id, fault, exc_info=fault)
        return ToolgymObservation(text=FAULT, task_id=task_id, done=True, reward=None, scored=False)

    def _leave(self) -> None:
        """Close the episode and pass its record to `on_close`."""
        if self._is_open and self._env is not None:
            self._is_open = False
            self._on_close(EpisodeRecord.of(self._env.episode, self._catalogue.env_id))

    def close(self) -> None:
        """Close the episode and the session."""
        self._leave()
        self._is_closed = True
        if self._env is not None:
            self._env.close()
            self._env = None

    @property
    def state(self) -> State:
        """The id and task of the episode, the number of messages, and whether it is over."""
        if not self._is_open or self._env is None:
            return State(step_count=0)
        episode = self._env.episode
        return State(
            episode_id=self._episode_id,
            step_count=len(episode.turns),
            task_id=episode.task.id,
            over=episode.over,
        )

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the name, description and version of the environment."""
        return EnvironmentMetadata(
            name=self._catalogue.env_id,
            description=system_prompt(self._catalogue.first),
            version=version("toolgym"),
        )

    # The tasks, in OpenEnv's interface `TaskProvider`.

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return self._catalogue.splits

    def num_tasks(self, split: str) -> int:
        """Return the number of tasks of a split."""
        return len(self._catalogue.tasks(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Return one task as its id and its index."""
        return {"id": self._catalogue.task_id(split, index), "index": index}

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Return the first tasks of a split."""
        return self.get_task_range(split)

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the tasks between two indices, as in a slice."""
        places = range(self.num_tasks(split))[start:stop][:MOST_LISTED]
        return [self.get_task(split, place) for place in places]
