"""Which episodes a report shows, and each of them as a conversation that a person can read.

The choice follows a rule that is printed beside it, so that nobody picks the flattering ones: the
first task that was wrong before and right after, the first that was right both times, the first
that is wrong after; what is then missing of three is filled in the order of the file. The same
tasks are shown before and after where both evaluations played them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from toolgym.report.plots.axes import is_drawable
from toolgym.report.view import Record

SHOWN = 3
LONG_TEXT = (14, 1200)
"""Lines and characters beyond which an observation is folded."""
SIGNED = "+.3f"
Picture = Callable[[Mapping[str, Any]], str]
"""A recorded call as markup; empty for none."""


@dataclass(frozen=True)
class TurnView:
    """One turn.

    Attributes:
        calls: Each call as `name(argument=value, ...)`.
        written: What the model wrote, where that says more than the calls; else empty.
        observation: What came back.
        is_long: The observation is folded on the page.
        reward: With its sign; empty where the turn is unscored.
        is_loss: The reward is below zero.
        repairs: Codes.
        errors: Codes.
        pictures: Of those calls that the family draws.
    """

    calls: list[str]
    written: str
    observation: str
    is_long: bool
    reward: str
    is_loss: bool
    repairs: list[str]
    errors: list[str]
    pictures: list[Markup]


@dataclass(frozen=True)
class EpisodeView:
    """One episode; `score` is empty where a fault left it unscored."""

    verdict: str
    score: str
    turns: list[TurnView]
    parts: list[tuple[str, str]]


@dataclass(frozen=True)
class TaskView:
    """One task as it went before and after; None where it was not played."""

    task_id: str
    question: str
    story: str
    before: EpisodeView | None
    after: EpisodeView | None


def choose(
    before: Sequence[Record], after: Sequence[Record], picture: Picture = lambda call: ""
) -> list[TaskView]:
    """The tasks to show, at most three, as the module's docstring tells.

    Args:
        picture: How a call is drawn; nothing is drawn without it.
    """
    earlier, later = _by_task(before), _by_task(after)
    shared = [task for task in earlier if task in later]
    if not shared:
        alone = [TaskView(*_about(e), _view(e, picture), None) for e in before[:SHOWN]]
        return alone + [TaskView(*_about(e), None, _view(e, picture)) for e in after[:SHOWN]]
    rules: list[Callable[[bool, bool], bool]] = [
        lambda was, now: now and not was,
        lambda was, now: now and was,
        lambda was, now: not now,
        *[lambda was, now: True] * SHOWN,
    ]
    chosen: list[str] = []
    for rule in rules:
        fitting = (
            t for t in shared if t not in chosen and rule(_right(earlier[t]), _right(later[t]))
        )
        chosen.extend([task for task in [next(fitting, None)] if task is not None])
    return [_task(earlier[task], later[task], picture) for task in chosen[:SHOWN]]


def _by_task(episodes: Sequence[Record]) -> dict[str, Record]:
    by_task: dict[str, Record] = {}
    for episode in episodes:
        by_task.setdefault(str(episode.get("task_id", "")), episode)
    return by_task


def _right(episode: Record) -> bool:
    return bool(episode.get("correct"))


def _about(episode: Record) -> tuple[str, str, str]:
    story = "right" if _right(episode) else "wrong"
    return str(episode.get("task_id", "")), str(episode.get("question", "")), story


def _task(before: Record, after: Record, picture: Picture) -> TaskView:
    (task_id, question, was), (_, _, now) = _about(before), _about(after)
    story = f"{was} before and after" if was == now else f"{was} before, {now} after"
    return TaskView(task_id, question, story, _view(before, picture), _view(after, picture))


def _view(episode: Record, picture: Picture) -> EpisodeView:
    turns, parts = episode.get("turns"), episode.get("reward_parts")
    rewards = parts if isinstance(parts, dict) else {}
    return EpisodeView(
        verdict=_verdict(episode),
        score=signed(episode.get("score")),
        turns=[_turn(turn, picture) for turn in turns or [] if isinstance(turn, dict)],
        parts=[(str(key).replace("_", " "), signed(v)) for key, v in rewards.items() if v != 0],
    )


def _verdict(episode: Record) -> str:
    if episode.get("scored") is False:
        return "unscored: the machine failed"
    if _right(episode):
        return "right"
    return "wrong answer" if episode.get("answered") else "no answer"


def _turn(turn: Record, picture: Picture) -> TurnView:
    made = turn.get("calls") or []
    calls = [call_text(call) for call in made]
    pictures = [Markup(picture(call)) for call in made if isinstance(call, dict)]
    observation = str(turn.get("observation", ""))
    reward = turn.get("reward")
    lines, characters = LONG_TEXT
    return TurnView(
        calls=calls,
        written=_action_text(str(turn.get("action") or ""), made),
        observation=observation,
        is_long=observation.count("\n") >= lines or len(observation) > characters,
        reward=signed(reward),
        is_loss=is_drawable(reward) and reward < 0,
        repairs=[str(code) for code in turn.get("repairs") or []],
        errors=[_code(error) for error in turn.get("errors") or [] if error],
        pictures=[drawn for drawn in pictures if drawn],
    )


def call_text(call: Any) -> str:
    """A recorded call in the form of a Python call.

    >>> call_text({"name": "query", "arguments": {"sql": "SELECT 1", "limit": 5}})
    'query(sql="SELECT 1", limit=5)'
    """
    if not isinstance(call, dict):
        return str(call)
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        return f"{call.get('name')}({'' if arguments is None else arguments})"
    inside = (f"{k}={json.dumps(value, ensure_ascii=False)}" for k, value in arguments.items())
    return f"{call.get('name')}({', '.join(inside)})"


def _action_text(action: str, calls: list[Any]) -> str:
    """The action's text, unless it is just the calls written down as JSON."""
    plain = [
        {"name": call.get("name"), "arguments": call.get("arguments")}
        for call in calls
        if isinstance(call, dict)
    ]
    return "" if action == "\n".join(map(json.dumps, plain)) else action


def _code(error: Any) -> str:
    return str(error.get("code", "error")) if isinstance(error, dict) else str(error)


def signed(value: object) -> str:
    """A number with its sign and three decimals; empty for what is none.

    >>> signed(-0.01), signed(None)
    ('\N{MINUS SIGN}0.010', '')
    """
    if not is_drawable(value):
        return ""
    shown = format(math.copysign(0.0, 1.0) if abs(value) < 5e-4 else value, SIGNED)
    return shown.replace("-", "\N{MINUS SIGN}")
