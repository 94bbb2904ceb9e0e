"""TRL's `environment_factory` from an environment id.

TRL makes one object per rollout and reads it like this: every public method is a tool, shown to the
model with its signature and docstring; `reset(**row)` begins an episode and returns what is added
to the prompt; `get_reward()` ends it. An exception in a tool becomes a message to the model, an
exception in `reset` or `get_reward` ends the run, and None as a reward leaves the rollout out. So
the class made here shows the model the strict schema of each tool, takes whatever arguments arrive,
and is one boundary: no fault of the environment gets through it. A rollout with a fault is told a
neutral sentence, earns None, and is counted in `_tally`, by which `adapters.trl.faults.FaultStop`
ends a run that has too many.

With `parsing="strict"` a call whose arguments do not bind raises instead, as a tool that is a plain
Python function would, so that the wall can be compared with its absence.
"""

from __future__ import annotations

import functools
import logging
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from adapters.trl.signatures import tool_method
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.forks import renew_in_child
from toolgym.messages import turn_messages, user_prompt
from toolgym.tasks import seed_of

T = TypeVar("T")
UNAVAILABLE = "The environment is not available. Stop here: this episode is not counted."
_logger = logging.getLogger(__name__)


class CallRefused(TypeError):
    """A call that strict parsing did not bind; its text is the environment's error."""


@dataclass(eq=False)
class Tally:
    """What became of the rollouts of one environment class.

    Attributes:
        rollouts: Episodes begun.
        faults: Those of them that a fault left unscored.
        latest: What the latest fault was; empty without any.
    """

    rollouts: int = 0
    faults: int = 0
    latest: str = ""

    def __post_init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Let go of a lock that a thread of the parent held."""
        self._lock = threading.Lock()

    def blame(self, what: str) -> None:
        """Count a fault; the tools of different rollouts run in different threads."""
        with self._lock:
            self.faults += 1
            self.latest = what


class RolloutEnvironment:
    """One rollout's environment as TRL sees it; `environment_factory` adds the tools."""

    _env_id: ClassVar[str]
    _env_kwargs: ClassVar[Mapping[str, Any]]
    _spare: ClassVar[list[ToolEnv[Any]]]
    _tally: ClassVar[Tally]

    def __init__(self) -> None:
        self._env: ToolEnv[Any] | None = None
        self._begun = 0
        self._is_open = False
        self._is_unfinished = False
        self._fault = "reset() was not called."

    def reset(self, /, **row: Any) -> str:
        """Begin the episode of a data set's row.

        Args:
            row: All its columns. `task_id` chooses the task, else `seed`; without both, the n-th
                episode of every instance has the same task, so that a group still shares one
                question. What an environment draws besides is the same in the whole group too, by
                `seed`, else by the task.

        Returns:
            The user's message, for TRL to add to the prompt.
        """
        self._begun += 1
        self._tally.rollouts += 1
        self._is_open, self._is_unfinished, self._fault = False, False, ""
        return self._guarded(functools.partial(self._begin, row), UNAVAILABLE)

    def get_reward(self) -> float | None:
        """Close the episode: its score, or None where a fault left it unscored."""
        if self._fault:
            return None
        score = self._guarded(lambda: self._playing.finish(), math.nan)
        if not math.isfinite(score):
            self._blame("the episode was left unscored.")
            return None
        return score

    # Nothing below is public: TRL would offer it to the model.

    @property
    def _playing(self) -> ToolEnv[Any]:
        if self._env is None:
            self._env = self._spare.pop() if self._spare else self._made()
        return self._env

    @classmethod
    def _sample(cls) -> ToolEnv[Any]:
        """An environment to look at, which a rollout will play in later."""
        if not cls._spare:
            cls._spare.append(cls._made())
        return cls._spare[0]

    @classmethod
    def _made(cls) -> ToolEnv[Any]:
        return registration.make(cls._env_id, **cls._env_kwargs)

    def _begin(self, row: Mapping[str, Any]) -> str:
        task_id, seed = row.get("task_id"), row.get("seed")
        if task_id is not None:
            chance = seed_of(str(task_id)) if seed is None else int(seed)
            self._playing.reset(seed=chance, options={"task_id": task_id})
        else:
            self._playing.reset(seed=self._begun if seed is None else int(seed))
        self._is_open = True
        return _separator(row.get("prompt")) + user_prompt(self._playing)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """One tool call as TRL makes it: always a text, except that strict parsing raises."""
        if self._fault:
            return UNAVAILABLE
        text = self._guarded(lambda: self._playing.call(name, *args, **kwargs), UNAVAILABLE)
        if not self._fault and self._playing.parsing == "strict":
            (call,) = self._playing.episode.turns[-1].calls
            if call.error is not None:
                raise CallRefused(text)
        return text

    def _say(self, action: Any) -> list[str]:
        """A whole message of the model's: what each call in it returned, in order."""
        if not self._fault:
            self._guarded(lambda: self._playing.step(action), None)
        if self._fault:
            return [UNAVAILABLE]
        return [told["content"] for told in turn_messages(self._playing.episode.turns[-1])[1:]]

    def _is_over(self) -> bool:
        return bool(self._fault) or self._playing.episode.over

    def _played(self) -> ToolEnv[Any] | None:
        """The environment with this rollout's episode; None where `reset` could not begin one."""
        return self._env if self._is_open else None

    def _guarded(self, action: Callable[[], T], otherwise: T) -> T:
        """Run something of the environment's; whatever it raises is a fault of this rollout."""
        try:
            return action()
        except Exception as problem:  # noqa: BLE001 - the boundary: TRL would crash, or blame the model
            self._blame(f"{type(problem).__name__}: {problem}")
            return otherwise

    def _blame(self, what: str) -> None:
        self._fault = what
        self._tally.blame(what)
        _logger.warning("a rollout of %s is left out: %s", self._env_id, what)


def environment_factory(env_id: str, **env_kwargs: Any) -> type[RolloutEnvironment]:
    """A class for `GRPOTrainer(environment_factory=...)`.

    Args:
        env_id: A registered `ToolEnv`.
        env_kwargs: For `gym.make`; give `training_dataset` the same.

    Returns:
        A class without constructor arguments. Its tools are the environment's; its name is that of
        the environment's id, and TRL logs the reward under it.

    Raises:
        ConfigurationError: There is no such environment, it cannot be made with these arguments, or
            TRL could not offer one of its tools.
    """
    env = registration.make(env_id, **env_kwargs)
    hidden = [name for name in env.tools if name in ("reset", "get_reward") or name.startswith("_")]
    if hidden:
        raise ConfigurationError(f"TRL cannot offer {hidden} of {env_id}: rename these tools.")
    members: dict[str, Any] = {name: tool_method(spec) for name, spec in env.tools.items()}
    members |= {
        "__doc__": f"{env_id} for TRL: {len(members)} tools, `reset` and `get_reward`.",
        "__module__": __name__,
        "_env_id": env_id,
        "_env_kwargs": dict(env_kwargs),
        "_spare": [env],
        "_tally": Tally(),
    }
    return type(_class_name(env_id), (RolloutEnvironment,), members)


def _class_name(env_id: str) -> str:
    """`sqlgym/Explore-v0` becomes `ExploreEnvironment`."""
    words = re.findall(r"[A-Za-z0-9]+", re.sub(r"-v\d+$", "", env_id.rpartition("/")[2]))
    return (
        "".join(word[:1].upper() + word[1:] for word in words).lstrip("0123456789") + "Environment"
    )


def _separator(prompt: Any) -> str:
    """TRL glues what `reset` returns to the last message; a text that stands there needs a break.

    Args:
        prompt: The row's column of that name.
    """
    if not isinstance(prompt, list) or not prompt or not isinstance(prompt[-1], Mapping):
        return ""
    text = prompt[-1].get("content")
    return "\n" if isinstance(text, str) and text and not text[-1].isspace() else ""
