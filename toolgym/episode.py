"""The state of one episode: turns, ledger of gains and costs, and `info`.

All mutable state of an episode is in one `Episode` object. `reset` creates a new one, so episodes
share no state.
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
    """The `info` of `reset` and of every `step`. Its keys and types are always the same.

    Only `reward_parts` is a dict, because vector environments merge dicts by key.
    """

    task_id: str
    """Id of the current task."""
    call: ToolCall | None
    """The last call of the action; None if the action contains no call."""
    calls: tuple[ToolCall, ...]
    """All calls in the action, in order."""
    repairs: tuple[str, ...]
    """Codes of all repairs made to the action."""
    error: ToolError | None
    """The first error in the action."""
    reward_parts: dict[str, float]
    """The components of the current score. They add up to `score`."""
    score: float
    """The current score: 0 after `reset`, and NaN only after a fault."""
    correct: bool
    """Whether the correct answer was given."""
    scored: bool
    """Whether the episode has a score; False only after a fault."""
    steps_left: int
    """Number of calls that the agent has left."""
    mistake: NotRequired[str]
    """`refused_answerable` if the agent claimed that an answerable question has no answer,
    `answered_unanswerable` if it answered an unanswerable question, and otherwise an empty string.
    Present only in environments with unanswerable questions.
    """
    unjudged: NotRequired[bool]
    """Whether the answer is correct but could not be checked on other data. Present only in
    environments that check answers on several databases, such as `sqlgym/TextToSQL-v0`.
    """


_NOTICE: Final = re.compile(r"\n\((?:\d+ calls? left|no calls left: the episode is over)\)\Z")


def budget_notice(steps_left: int) -> str:
    """Return the last line of an observation, which states the number of calls left.

    >>> budget_notice(3), budget_notice(1)
    ('\\n(3 calls left)', '\\n(1 call left)')
    """
    if steps_left == 0:
        return "\n(no calls left: the episode is over)"
    return f"\n({steps_left} call{'s' * (steps_left > 1)} left)"


def without_notice(observation: str) -> str:
    """Return an observation without the line that `budget_notice` added, if any.

    >>> without_notice("count\\n42\\n(3 calls left)")
    'count\\n42'
    """
    return _NOTICE.sub("", observation)


def info_to_json(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return an `info` as plain data for JSON: calls and errors as dicts, nan as None.

    >>> error = ToolError("unknown_tool", "There is no tool 'look'.")
    >>> info_to_json({"call": ToolCall("look", {"at": 1}), "error": error})["call"]
    {'name': 'look', 'arguments': {'at': 1}, 'repairs': [], 'error': None}
    """
    text = json.dumps(info, default=functools.partial(to_jsonable_python, fallback=vars))
    plain: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return plain


class Outcome(NamedTuple):
    """The outcome of an episode: correctness and progress, without the costs of calls.

    A group whose rollouts all have the same outcome provides no learning signal.
    """

    correct: bool
    progress_bin: int


class Turn(NamedTuple):
    """One turn of an episode: an action and its results.

    Attributes:
        action: The action as given, with lone surrogates in strings replaced.
        calls: The calls found in the action.
        results: The result of each call, as shown to the agent. If the action contains no call, the
            list contains only the error message.
        observation: The joined results, followed by a notice of the number of calls left.
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
        """Whether the turn contains calls, all of which were bound to tools without errors."""
        return bool(self.calls) and all(call.error is None for call in self.calls)


class ModelUsage(NamedTuple):
    """Usage of the language models that the environment itself calls during an episode.

    Cached replies count like any other reply, so that the usage of an episode does not depend on
    earlier episodes. The amount actually paid to a server may be lower.

    Attributes:
        calls: Number of calls.
        tokens_in: Number of prompt tokens.
        tokens_out: Number of generated tokens.
        dollars: Cost of the calls in dollars; None if a price is unknown.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float | None = 0.0


@dataclass
class Episode:
    """The mutable state of one episode.

    Attributes:
        env_usage: Usage of the models that the environment called; None if it called no model.
        over: Whether the episode has ended.
        seen: Fingerprints of the calls that were executed.
        failed: The text and the error code of each failed call.
        fault: The fault that made the episode unscored, or "".
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
    env_usage: ModelUsage | None = None

    @property
    def terminated(self) -> bool:
        """Whether the episode ended with the terminal call."""
        return self.over and self.ledger.answered

    @property
    def truncated(self) -> bool:
        """Whether the episode ended without an answer."""
        return self.over and not self.ledger.answered

    @property
    def outcome(self) -> Outcome:
        """The outcome of the episode so far, with the progress rounded to a bin."""
        bins = self.ledger.config.bins
        return Outcome(self.ledger.correct, round(self.ledger.progress * bins))

    def fail(self, fault: EnvironmentFault | str) -> None:
        """End the episode without a score, and store the reason."""
        self.ledger.faulted = self.over = True
        self.fault = encodable(str(fault))

    def use_models(
        self, calls: int, tokens_in: int, tokens_out: int, dollars: float | None
    ) -> None:
        """Record the environment's calls to models; the arguments are fields of `ModelUsage`."""
        used = self.env_usage or ModelUsage()
        total = None if dollars is None or used.dollars is None else used.dollars + dollars
        self.env_usage = ModelUsage(
            used.calls + calls, used.tokens_in + tokens_in, used.tokens_out + tokens_out, total
        )

    def finish(self) -> float:
        """Close the episode if it is still open, and return its score (nan after a fault)."""
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
        """Return the `info` of a turn, or of `reset`, as a new dict.

        Args:
            calls: The calls of the turn; empty for `reset`.
            errors: The error of each call, or None.
            score: The running score; if None, the score is computed from the ledger.
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
