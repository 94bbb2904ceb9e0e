"""Exception types by responsible party: agent, environment, caller.

* The agent's mistake is a `ToolError`: an unknown table, a missing argument, text without a call.
  It is data, not a crash. `ToolEnv.step` turns it into an observation that says what went wrong,
  what to do, and a whole call that would work in this episode, puts the same record into
  `info["error"]`, and charges the reward's price for it. `code` is stable: reward parts, dashboards
  and tests key on it.
* The machine's or our own fault is an `EnvironmentFault`: a database file that vanished, a full
  disk, a tool that raised something nobody foresaw. It is never scored as the agent's mistake: the
  episode becomes unscored (its score is nan), and the exception passes through `step` to the
  caller, who decides.
* A task that cannot be played fairly (its gold answer is empty, or too large to be read) is
  `TaskRefused`, with the reason. `reset` goes on to the next task, unless that very task was asked
  for.
* What the caller did wrong (a weight out of range, an unknown split) is a `ValueError` or a
  `ConfigurationError`, with the cure in its text.

One boundary converts (`toolgym.env`); everything else lets pass. All survive a pickle, so they
cross process borders of vector environments; those written for the agent compare by value.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


class ToolError(Exception):
    """A call the agent got wrong, told so that its next call can be right.

    Args:
        code: Stable identifier, lower_snake_case; listed in the documentation.
        message: What is wrong, one sentence.
        hint: What to do about it, one sentence; may be empty.
        example: A whole call that works, `{"name": ..., "arguments": {...}}`; may be empty.

    >>> print(ToolError("unknown_table", "There is no table 'sing'.", "Did you mean 'singer'?"))
    error[unknown_table]: There is no table 'sing'. Did you mean 'singer'?
    """

    def __init__(
        self, code: str, message: str, hint: str = "", example: dict[str, Any] | None = None
    ) -> None:
        super().__init__(code, message, hint, example or {})  # all four, or it is lost in a pickle
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


class EnvironmentFault(Exception):
    """The machine, or this package, failed; the agent did nothing wrong.

    Args:
        message: What failed, naming the file or resource.
        hint: The next step for the person who runs this; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class TaskRefused(Exception):
    """A task that cannot be played fairly, with the reason.

    Args:
        code: Stable reason, such as `empty_gold` or `result_too_large`.
        reason: One sentence.
    """

    def __init__(self, task_id: str, code: str, reason: str) -> None:
        super().__init__(task_id, code, reason)
        self.task_id = task_id
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        return f"task {self.task_id!r} is refused [{self.code}]: {self.reason}"


class ConfigurationError(ValueError):
    """The caller asked for something that cannot be; the message names the cure."""


def refused_fields(problem: ValidationError, whole: str = "settings") -> str:
    """The refused fields of some settings, in one line: each with what is wrong with it.

    Args:
        problem: What it raised.
        whole: What is named where no field alone is to blame; may be empty.
    """
    lines = []
    for error in problem.errors():
        place = ".".join(map(str, error["loc"])) or whole
        lines.append(": ".join(filter(None, (place, error["msg"].removeprefix("Value error, ")))))
    return "; ".join(lines)


class NoTasks(ConfigurationError):
    """A split of a data set has no tasks."""
