"""`environment_factory`: an environment class for TRL, made from an environment id.

TRL creates one object per rollout and uses it as follows:

- Every public method is a tool. The model sees its signature and docstring.
- `reset(**row)` begins an episode and returns the text that is appended to the prompt.
- `get_reward()` ends the episode. TRL excludes a rollout whose reward is None.
- An exception in a tool becomes a message to the model. An exception in `reset` or `get_reward`
  ends the run.

The generated class shows the model the strict schema of each tool but accepts any arguments. The
class catches all faults of the environment: a rollout with a fault gets a neutral message and the
reward None. Faults are counted in `_tally`, and `adapters.trl.callbacks.FaultStop` ends a run with
too many faults.

With `parsing="strict"`, a call whose arguments do not bind raises an exception, as a plain Python
function would. This option makes it possible to compare lenient and strict parsing.

`AsyncGRPOTrainer` pickles the class to send it to a spawned process. In that process, the class is
created again from the environment's id and arguments (`_pickled`), and its faults are counted
separately.
"""

from __future__ import annotations

import copyreg
import functools
import inspect
import logging
import math
import operator
import pickle
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, TypeVar
from weakref import WeakValueDictionary

import gymnasium as gym
from pydantic.fields import FieldInfo

from toolgym import registration
from toolgym.calls import Parsing
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, ToolgymError
from toolgym.messages import turn_messages
from toolgym.tools import ToolSpec
from toolgym.tries import seed_of_try

# TRL shows a model the result of `transformers.utils.get_json_schema` on a method: types from
# `__annotations__`, required arguments from `__signature__`, texts from a Google docstring. The
# method itself accepts any arguments, since a model may send arguments that the signature does not
# have. A literal `**kwargs` would be shown to the model as an argument, so signature and
# implementation are separate.

_TYPES: Final = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def tool_method(spec: ToolSpec) -> Callable[..., str]:
    """Return a method with the tool's name, types and documentation that accepts any arguments.

    The method calls `self._call(name, args, kwargs)`.
    """

    def method(self: Any, /, *args: Any, **kwargs: Any) -> str:
        text: str = self._call(spec.name, args, kwargs)
        return text

    fields, schema = spec.arguments.model_fields, spec.parameters
    named = schema.get("$defs", {})
    kinds = {name: json_type(each, named) for name, each in schema["properties"].items()}
    method.__name__ = spec.name
    method.__qualname__ = f"RolloutEnvironment.{spec.name}"
    method.__doc__ = docstring(spec)
    method.__annotations__ = kinds
    method.__signature__ = _signature(fields, kinds)  # type: ignore[attr-defined]
    return method


def docstring(spec: ToolSpec) -> str:
    """Return the description and `Args` of a tool, one line per argument, in Google's layout."""
    fields = spec.arguments.model_fields.items()
    lines = [f"    {name}: {' '.join((info.description or name).split())}" for name, info in fields]
    return "\n".join([spec.description, "", "Args:", *lines]) if lines else spec.description


def json_type(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    """Return the type from which TRL's schema reader makes a JSON schema.

    Args:
        schema: The JSON schema of an argument. Parts that no type can express become `Any`.
        named: The schemas that `schema` refers to, by name (`$defs`).
    """
    schema = named.get(schema.get("$ref", "").rpartition("/")[2], schema)
    if "anyOf" in schema:
        kinds = [json_type(each, named) for each in schema["anyOf"]]
        return functools.reduce(operator.or_, kinds)
    if choices := schema.get("enum") or ("const" in schema and [schema["const"]]):
        return Literal[tuple(choices)]
    if "items" in schema:
        return list[json_type(schema["items"], named)]  # type: ignore[misc]
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        return dict[str, json_type(values, named)]  # type: ignore[misc]
    return _TYPES.get(schema.get("type", ""), Any)


def _signature(fields: dict[str, FieldInfo], kinds: dict[str, Any]) -> inspect.Signature:
    """Return the parameters after `self`. They are keyword-only from the first optional one on."""
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    optional = False
    for name, info in fields.items():
        optional = optional or not info.is_required()
        kind = (
            inspect.Parameter.KEYWORD_ONLY if optional else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        default = inspect.Parameter.empty
        if not info.is_required():
            default = info.get_default(call_default_factory=True)
        annotation = kinds[name]
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    return inspect.Signature(parameters)


T = TypeVar("T")
MESSAGE = "message"
"""Name of the argument that holds a `WrittenMessage`."""
UNAVAILABLE = "The environment is not available. Stop here: this episode is not counted."
_logger = logging.getLogger(__name__)


class CallRefused(ToolgymError, TypeError):
    """Exception for a call that strict parsing could not bind, with the environment's message."""


@dataclass
class FaultTally:
    """Counts of the rollouts and faults of one environment class.

    Attributes:
        rollouts: Number of episodes begun.
        faults: Messages of the faults. Each fault left one episode unscored.
    """

    rollouts: int = 0
    faults: list[str] = field(default_factory=list)


class WrittenMessage(str):
    """A complete model message, passed as an argument in place of a call's own arguments.

    Only `response_reading` creates such objects. Arguments that a model writes never have this
    type.

    Attributes:
        action: The message as `ToolEnv.step` takes it.
        place: Index of the call in the message. The first call passes the entire message to the
            environment.
    """

    action: Any
    place: int


class EnvironmentClass(type):
    """Metaclass of the classes from `environment_factory`, which are pickled with `_pickled`."""


class RolloutEnvironment(metaclass=EnvironmentClass):
    """The environment of one rollout, without the tools, which `environment_factory` adds."""

    _key: ClassVar[str]
    _env_id: ClassVar[str]
    _env_kwargs: ClassVar[Mapping[str, Any]]
    _tools: ClassVar[Mapping[str, ToolSpec]]
    _parsing: ClassVar[Parsing]
    _spare: ClassVar[list[ToolEnv[Any]]]
    _tally: ClassVar[FaultTally]

    def __init__(self) -> None:
        self._env: ToolEnv[Any] | None = None
        self._results: list[str] = []
        self._begun = 0
        self._fault = "reset() was not called."

    def reset(self, /, **row: Any) -> str:
        """Begin the episode for a row of the data set.

        The task is chosen by `task_id`, or else by `seed`. If neither is given, the n-th episode of
        every instance has the same task, so the members of a group share one question. The other
        random draws of the environment are determined by `seed`, or else by the task and the
        episode number n. Therefore the draws are the same within a group and change when the task
        is played again.

        Args:
            row: All columns of the row.

        Returns:
            The user's message, which TRL appends to the prompt.
        """
        self._begun += 1
        self._tally.rollouts += 1
        self._fault = ""
        return self._guarded(functools.partial(self._begin, row), UNAVAILABLE)

    def get_reward(self) -> float | None:
        """Close the episode and return its score, or None if a fault left it unscored."""
        if self._fault:
            return None
        score = self._guarded(lambda: self._playing.finish(), math.nan)
        if not math.isfinite(score):
            self._blame("the episode was left unscored.")
            return None
        return score

    # Everything below is private, because TRL would offer public methods to the model.

    @property
    def _playing(self) -> ToolEnv[Any]:
        if self._env is None:
            make = functools.partial(registration.make, self._env_id, **self._env_kwargs)
            self._env = self._spare.pop() if self._spare else make()
        return self._env

    def _begin(self, row: Mapping[str, Any]) -> str:
        task_id, seed = row.get("task_id"), row.get("seed")
        if task_id is not None:
            task_id = self._playing.tasks.playable_from(str(task_id)).id
            chance = seed_of_try(0, task_id, self._begun) if seed is None else int(seed)
            self._playing.reset(seed=chance, options={"task_id": task_id})
        else:
            self._playing.reset(seed=self._begun if seed is None else int(seed))
        return _separator(row.get("prompt")) + self._playing.user_prompt()

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return the result of a tool call as text, or raise an exception if parsing is strict."""
        written = kwargs.get(MESSAGE)
        if isinstance(written, WrittenMessage):
            if not written.place:
                self._results = self._play_message(written.action)
            return self._results[min(written.place, len(self._results) - 1)]
        if self._fault:
            return UNAVAILABLE
        text = self._guarded(lambda: self._playing.call(name, *args, **kwargs), UNAVAILABLE)
        if not self._fault and self._playing.parsing == "strict":
            (call,) = self._playing.episode.turns[-1].calls
            if call.error is not None:
                raise CallRefused(text)
        return text

    def _play_message(self, action: Any) -> list[str]:
        """Return the results of the calls in one message of the model, in order."""
        if not self._fault:
            self._guarded(lambda: self._playing.step(action), None)
        if self._fault:
            return [UNAVAILABLE]
        return [result["content"] for result in turn_messages(self._playing.episode.turns[-1])[1:]]

    def _guarded(self, action: Callable[[], T], otherwise: T) -> T:
        """Run an action of the environment. Any exception counts as a fault of this rollout."""
        try:
            return action()
        except Exception as problem:  # noqa: BLE001 - the boundary: TRL would crash, or blame the model
            self._blame(f"{type(problem).__name__}: {problem}")
            return otherwise

    def _blame(self, what: str) -> None:
        self._fault = what
        self._tally.faults.append(what)
        _logger.warning("a rollout of %s is excluded: %s", self._env_id, what)


def environment_factory(env_id: str, **env_kwargs: Any) -> type[RolloutEnvironment]:
    """Return a class for `GRPOTrainer(environment_factory=...)` and `AsyncGRPOTrainer`.

    Args:
        env_id: Id of a registered `ToolEnv`.
        env_kwargs: Arguments for `gym.make`. Pass the same arguments to `training_dataset`.
            `AsyncGRPOTrainer` requires that the arguments can be pickled.

    Returns:
        A class without constructor arguments that has the tools of the environment. The name of the
        class is derived from the environment's id, and TRL logs the reward under this name. If a
        run has
        several classes for the same id, change their `__name__`.

    Raises:
        ConfigurationError: If there is no such environment, it cannot be made with these arguments,
            or TRL could not offer one of its tools.
    """
    return _make_class(uuid.uuid4().hex, env_id, env_kwargs)


_classes: WeakValueDictionary[str, type[RolloutEnvironment]] = WeakValueDictionary()
"""Classes by key. TRL compares the types of environments, so each process has one class per key."""


def _make_class(key: str, env_id: str, env_kwargs: Mapping[str, Any]) -> type[RolloutEnvironment]:
    env = registration.make(env_id, **env_kwargs)
    hidden = [name for name in env.tools if name in ("reset", "get_reward") or name.startswith("_")]
    if hidden:
        raise ConfigurationError(f"TRL cannot offer {hidden} of {env_id}: rename these tools.")
    members: dict[str, Any] = {name: tool_method(spec) for name, spec in env.tools.items()}
    members |= {
        "__doc__": f"{env_id} for TRL: {len(members)} tools, `reset` and `get_reward`.",
        "__module__": __name__,
        "_key": key,
        "_env_id": env_id,
        "_env_kwargs": dict(env_kwargs),
        "_tools": env.tools,
        "_parsing": env.parsing,
        "_spare": [env],
        "_tally": FaultTally(),
    }
    made: Any = EnvironmentClass(_class_name(env_id), (RolloutEnvironment,), members)
    return _classes.setdefault(key, made)


def _pickled(made: Any) -> str | tuple[Any, ...]:
    """Return how pickle restores a class of `environment_factory`, or the name of any other class.

    Raises:
        ConfigurationError: If an argument or the entry point of the environment cannot be pickled.
    """
    if "_key" not in vars(made):
        return str(made.__qualname__)
    env_id, registered = made._env_id, None
    if ":" not in env_id:  # the other process may not have imported the module that registers it
        spec = registration.spec_of(env_id)
        registered = {"entry_point": spec.entry_point, "kwargs": spec.kwargs}
    state = (made._key, made.__name__, env_id, made._env_kwargs, registered)
    try:
        pickle.dumps(state)
    except Exception as problem:  # pickle and the methods of a value may raise any exception
        raise ConfigurationError(
            f"{env_id} cannot be pickled for another process ({problem}). Pass arguments that can"
            " be pickled, and register a class or function of a module, or use the id MODULE:ID."
        ) from problem
    return _unpickled, state


def _unpickled(
    key: str,
    name: str,
    env_id: str,
    env_kwargs: Mapping[str, Any],
    registered: Mapping[str, Any] | None,
) -> type[RolloutEnvironment]:
    """Return the class with this key, which is made if the process does not have it yet."""
    known = _classes.get(key)
    if known is not None:
        return known
    if registered is not None:
        try:
            registration.spec_of(env_id)
        except ConfigurationError:
            gym.register(id=env_id, **registered)
    made = _make_class(key, env_id, env_kwargs)
    made.__name__ = name
    return made


copyreg.pickle(EnvironmentClass, _pickled)


def _class_name(env_id: str) -> str:
    """Return the name of the class for an id: `ExploreEnvironment` for `sqlgym/Explore-v0`."""
    words = re.findall(r"[A-Za-z0-9]+", re.sub(r"-v\d+$", "", env_id.rpartition("/")[2]))
    return (
        "".join(word[:1].upper() + word[1:] for word in words).lstrip("0123456789") + "Environment"
    )


def _separator(prompt: Any) -> str:
    """Return the separator between the last message of a prompt and the question.

    TRL appends the text of `reset` to the last message directly, so a message with text needs a
    line break.

    Args:
        prompt: The column `prompt` of the row.
    """
    if not isinstance(prompt, list) or not prompt or not isinstance(prompt[-1], Mapping):
        return ""
    text = prompt[-1].get("content")
    return "\n" if isinstance(text, str) and text and not text[-1].isspace() else ""
