"""An episode: its turns, its ledger, and its `info`.

All mutable state of an episode is in one `Episode` object, made anew by `reset`, so two episodes
share nothing.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NotRequired, TypedDict

from pydantic_core import to_jsonable_python

from toolgym.calls import ToolCall
from toolgym.errors import EnvironmentFault, ToolError
from toolgym.rewards import Ledger
from toolgym.sanitize import encodable
from toolgym.tasks import Task


class Info(TypedDict):
    """The keys of `info`, there in `reset` and in every `step`, each always of one type.

    Only `reward_parts` is a dict: a vector environment merges dicts key by key.
    """

    task_id: str
    """The task being played."""
    call: ToolCall | None
    """The last call of the action; None where it held none."""
    calls: tuple[ToolCall, ...]
    """Every call that was found in the action, in order."""
    repairs: tuple[str, ...]
    """The codes of all repairs that the action needed."""
    error: ToolError | None
    """The first error in the action."""
    reward_parts: dict[str, float]
    """The parts of the running score; the values sum to it."""
    score: float
    """The running score, 0 at reset; nan only where a fault left the episode unscored."""
    correct: bool
    """The right answer was given."""
    scored: bool
    """False where a fault left the episode unscored."""
    steps_left: int
    """Calls that the budget still allows."""
    mistake: NotRequired[str]
    """Only in environments where questions may have no answer: "refused_answerable",
    "answered_unanswerable", or empty for neither."""
    unjudged: NotRequired[bool]
    """Only where answers are also judged on other data (`sqlgym/TextToSQL-v0`): the answer is
    right, and no other data can tell it from a wrong one."""


_NOTICE: Final = re.compile(r"\n\((?:\d+ calls? left|no calls left: the episode is over)\)\Z")


def budget_notice(steps_left: int) -> str:
    """The last line of an observation, with the number of calls left, after its line break.

    >>> budget_notice(3), budget_notice(1)
    ('\\n(3 calls left)', '\\n(1 call left)')
    """
    if steps_left == 0:
        return "\n(no calls left: the episode is over)"
    return f"\n({steps_left} call{'s' * (steps_left > 1)} left)"


def without_notice(observation: str) -> str:
    """An observation as its tool wrote it, without the line of `budget_notice`, if it has one.

    >>> without_notice("count\\n42\\n(3 calls left)")
    'count\\n42'
    """
    return _NOTICE.sub("", observation)


def info_to_json(info: Mapping[str, Any]) -> dict[str, Any]:
    """An `info` as plain data: calls and errors as objects, nan as null.

    >>> error = ToolError("unknown_tool", "There is no tool 'look'.")
    >>> info_to_json({"call": ToolCall("look", {"at": 1}), "error": error})["call"]
    {'name': 'look', 'arguments': {'at': 1}, 'repairs': [], 'error': None}
    """
    text = json.dumps(info, default=functools.partial(to_jsonable_python, fallback=vars))
    plain: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return plain


class Outcome(NamedTuple):
    """The outcome of an episode, without the costs of its calls.

    A group of rollouts that all have the same outcome is dead: their differences teach nothing.
    """

    correct: bool
    progress_bin: int


class Turn(NamedTuple):
    """One action and its results.

    Attributes:
        action: The action as it was given; lone surrogates in a text are replaced.
        calls: The calls found in it.
        results: The result of each call, as the agent reads it; one text if there was no call.
        observation: The whole observation.
        reward: The change of the score.
        errors: The error of each call, or None.
    """

    action: Any
    calls: tuple[ToolCall, ...]
    results: tuple[str, ...]
    observation: str
    reward: float
    errors: tuple[ToolError | None, ...]

    @property
    def valid(self) -> bool:
        """Every call was bound without an error; a turn without a call is not valid."""
        return bool(self.calls) and all(call.error is None for call in self.calls)


@dataclass
class Episode:
    """The mutable state of one episode.

    Attributes:
        seen: Fingerprints of the calls that were executed.
        failed: Words and error code of each failed call.
        fault: The fault that left it unscored; empty if none did.
    """

    task: Task
    ledger: Ledger
    steps_left: int
    question: str = ""
    over: bool = False
    turns: list[Turn] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)
    failed: set[tuple[Hashable, str]] = field(default_factory=set)
    fault: str = ""

    @property
    def terminated(self) -> bool:
        """The terminal call was executed."""
        return self.over and self.ledger.answered

    @property
    def truncated(self) -> bool:
        """It ended without an answer."""
        return self.over and not self.ledger.answered

    @property
    def outcome(self) -> Outcome:
        """Correct or not, and the bin of the progress."""
        bins = self.ledger.config.bins
        return Outcome(self.ledger.correct, round(self.ledger.progress * bins))

    def fail(self, fault: EnvironmentFault | str) -> None:
        """End the episode without a score, and keep the reason."""
        self.ledger.faulted = self.over = True
        self.fault = encodable(str(fault))

    def finish(self) -> float:
        """Close the episode if it is open, once, and return its score; nan after a fault."""
        if not self.over:
            self.over = True
            self.ledger.closed_unanswered = not self.ledger.answered
        return self.ledger.score()

    def info(
        self,
        calls: tuple[ToolCall, ...],
        errors: tuple[ToolError | None, ...],
        score: float | None = None,
    ) -> Info:
        """The info of a turn (or of `reset`: no calls, no errors); fresh objects every time.

        Args:
            errors: The error of each call, or None.
            score: The running score, if it is known already.
        """
        ledger = self.ledger
        repairs = [code for call in calls for code in call.repairs]
        mistakes = [error for error in errors if error is not None]
        info: Info = {
            "task_id": self.task.id,
            "call": calls[-1] if calls else None,
            "calls": calls,
            "repairs": tuple(repairs),
            "error": mistakes[0] if mistakes else None,
            "reward_parts": ledger.parts(),
            "score": ledger.score() if score is None else score,
            "correct": ledger.correct,
            "scored": not ledger.faulted,
            "steps_left": self.steps_left,
        }
        if ledger.mistake is not None:
            info["mistake"] = ledger.mistake
        if ledger.unjudged is not None:
            info["unjudged"] = ledger.unjudged
        return info
