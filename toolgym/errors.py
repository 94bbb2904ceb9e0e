"""The exception types, by responsible party: agent, environment, data set or caller.

All exceptions, including those of `sqlgym`, `aflowgym` and `adapters`, are subclasses of
`ToolgymError`.

* `ToolError`: a mistake of the agent, such as an unknown table or a missing argument. Tools raise
  this exception. `ToolEnv.step` converts a `ToolError` to an observation, stores the error in
  `info["error"]` and charges a cost. A `ToolError` never propagates out of `step`. Metrics and
  tests can rely on its `code`, which is stable.
* `EnvironmentFault`: an infrastructure error or an error in this package, such as a missing
  database file. A fault propagates through `step` to the caller, and the episode is unscored (its
  score is nan).
* `TaskRefused`: a task that cannot be played, such as one with an empty gold answer. `reset` skips
  such a task unless it was selected by its id.
* `ConfigurationError`: an invalid argument passed by the caller; also a `ValueError`. The error
  message explains how to correct the argument.

All exceptions can be pickled, so they can be raised in the worker processes of vector environments.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import ValidationError


class ToolgymError(Exception):
    """Base class of all exceptions of the packages."""


class ToolError(ToolgymError):
    """A mistake that the agent made in a call, with a hint on how to correct it.

    Args:
        code: Stable identifier, lower_snake_case; listed in the documentation.
        message: The mistake in one sentence.
        hint: What the agent should do next, in one sentence; may be empty.
        example: A complete and valid call, as `{"name": ..., "arguments": {...}}`; may be empty.

    >>> print(ToolError("unknown_table", "There is no table 'sing'.", "Did you mean 'singer'?"))
    error[unknown_table]: There is no table 'sing'. Did you mean 'singer'?
    """

    def __init__(
        self, code: str, message: str, hint: str = "", example: dict[str, Any] | None = None
    ) -> None:
        # all four, because a pickle restores only these
        super().__init__(code, message, hint, example or {})
        self.code = code
        self.message = message
        self.hint = hint
        self.example: dict[str, Any] = example or {}

    def __str__(self) -> str:
        text = f"error[{self.code}]: {self.message}"
        if self.hint:
            text += f" {self.hint}"
        if self.example:
            text += f"\nThis works: {json.dumps(self.example, ensure_ascii=False)}"
        return text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolError) and self.args == other.args

    def __hash__(self) -> int:
        return hash((self.code, self.message, self.hint))


class EnvironmentFault(ToolgymError):
    """An infrastructure error or an error in this package, not a mistake of the agent.

    Args:
        message: Description of the failure, with the name of the file or resource.
        hint: What the user should do next; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class TaskRefused(ToolgymError):
    """A task that cannot be played, with the reason.

    Args:
        code: Stable identifier of the reason, such as `empty_gold` or `result_too_large`.
        reason: The reason in one sentence.
    """

    def __init__(self, task_id: str, code: str, reason: str) -> None:
        super().__init__(task_id, code, reason)
        self.task_id = task_id
        self.code = code
        self.reason = reason

    def to_json(self) -> dict[str, str]:
        """Return `task_id`, `code` and `reason` as plain data."""
        return dict(vars(self))

    def __str__(self) -> str:
        return f"task {self.task_id!r} is refused [{self.code}]: {self.reason}"


class ConfigurationError(ToolgymError, ValueError):
    """An invalid argument or setting passed by the caller.

    The error message explains how to correct it.
    """


_PLAIN_WORDS: Final = {
    "Input should be greater than or equal to": "must be at least",
    "Input should be less than or equal to": "must be at most",
    "Input should be a valid tuple": "must be a list",
    "Input should be a valid dictionary": "must be a mapping",
    "Input should be": "must be",
    "Extra inputs are not permitted": "unknown setting",
}


def refused_fields(problem: ValidationError, whole: str = "settings") -> str:
    """Return the invalid fields of a pydantic model in one line, each with the reason.

    Args:
        problem: The validation error.
        whole: The name to report in errors that do not concern a single field; may be empty.
    """
    lines = []
    for error in problem.errors():
        place = ".".join(map(str, error["loc"])) or whole
        lines.append(field_problem(place, error["msg"]))
    return "; ".join(lines)


def field_problem(place: str, message: str) -> str:
    """Return a pydantic error message about a field, reworded in plain English.

    Args:
        place: Name of the field; may be empty.
        message: The message of pydantic, such as "Input should be greater than or equal to 1".

    >>> field_problem("--steps", "Input should be greater than or equal to 1")
    '--steps must be at least 1'
    >>> field_problem("guards.fast", "Extra inputs are not permitted")
    'guards.fast: unknown setting'
    """
    reason = message.removeprefix("Value error, ")
    for theirs, ours in _PLAIN_WORDS.items():
        reason = reason.replace(theirs, ours)
    reason = reason.partition(", unable to parse")[0]
    return (f"{place} " if reason.startswith("must be ") else f"{place}: ") * bool(place) + reason


class NoTasks(ConfigurationError):
    """Raised if a split of a data set has no tasks."""
