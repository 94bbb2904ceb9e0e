"""Which episodes a report shows, and each of them as a conversation that a person can read.

The first ones are chosen by a rule that is printed beside them, so that nobody picks the flattering
ones: the first task that was wrong before and right after, the first that was right both times, the
first that is wrong after; what is then missing of three is filled in the order of the file. The
other tasks follow in that order, folded, as many as were asked for. Where several runs played a
task, their episodes stand side by side.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolgym.report.numbers import is_drawable
from toolgym.report.view import Record, RunView

SHOWN: Final = 3
ROOM: Final = 3_000_000
"""Characters of all episodes of a page, about; a page beyond that takes seconds to open."""
LONG_TEXT = (14, 1200)
"""Lines and characters beyond which an observation is folded."""
SIGNED = "+.3f"


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
    """

    calls: list[str]
    written: str
    observation: str
    is_long: bool
    reward: str
    is_loss: bool
    repairs: list[str]
    errors: list[str]


@dataclass(frozen=True)
class EpisodeView:
    """One episode.

    Attributes:
        score: Empty where a fault left it unscored.
        codes: Of all its errors, each once.
        size: Characters of it.
    """

    verdict: str
    score: str
    turns: list[TurnView]
    parts: list[tuple[str, str]]
    codes: list[str]
    size: int


@dataclass(frozen=True)
class Column:
    """One episode of a task beside others; `episode` is None where the run did not play it then."""

    run: RunView
    when: Literal["before", "after", "evaluated"]
    episode: EpisodeView | None


@dataclass(frozen=True)
class TaskView:
    """One task as it was played.

    Attributes:
        anchor: The name of its place on the page, the same each time the page is made.
        story: How it went, in words.
        is_chosen: It is one of those that the rule chose.
    """

    anchor: str
    task_id: str
    question: str
    story: str
    columns: list[Column]
    is_chosen: bool

    @property
    def turns(self) -> int:
        """Turns of its longest episode."""
        return max((len(c.episode.turns) for c in self.columns if c.episode), default=0)


@dataclass(frozen=True)
class Transcripts:
    """The episodes of a page.

    Attributes:
        played: How many tasks the runs played in all.
        codes: The error codes that occur in them.
        verdicts: The ends that occur in them.
    """

    tasks: list[TaskView]
    played: int
    codes: list[str]
    verdicts: list[str]


def transcripts(runs: Sequence[RunView], limit: int) -> Transcripts:
    """The tasks of a page with their episodes.

    Args:
        runs: Whose evaluations; the rule is that of the first that has any.
        limit: Tasks at most; those that the rule chose are shown in any case.
    """
    sides = [(_by_task(run.episodes_before), _by_task(run.episodes_after)) for run in runs]
    chosen = next((c for c in (choose(*side) for side in sides) if c), [])
    every = list(dict.fromkeys(task for side in sides for episodes in side for task in episodes))
    tasks: list[TaskView] = []
    room = ROOM
    for task in [*chosen, *(task for task in every if task not in chosen)]:
        if task not in chosen and (len(tasks) >= limit or room <= 0):
            break
        tasks.append(_task(task, runs, sides, is_chosen=task in chosen))
        room -= sum(column.episode.size for column in tasks[-1].columns if column.episode)
    shown = [c.episode for task in tasks for c in task.columns if c.episode is not None]
    codes = sorted({code for episode in shown for code in episode.codes})
    verdicts = [name for name in VERDICTS if any(name == each.verdict for each in shown)]
    return Transcripts(tasks, len(every), codes, verdicts)


Episodes = Mapping[str, Record]
"""By task."""


def choose(before: Episodes, after: Episodes) -> list[str]:
    """The tasks that the rule of the module's docstring chooses, at most three.

    Without a task that was played both before and after, the first ones of each.
    """
    shared = [task for task in before if task in after]
    if not shared:
        return list(dict.fromkeys([*list(before)[:SHOWN], *list(after)[:SHOWN]]))
    rules: list[Callable[[bool, bool], bool]] = [
        lambda was, now: now and not was,
        lambda was, now: now and was,
        lambda was, now: not now,
        *[lambda was, now: True] * SHOWN,
    ]
    chosen: list[str] = []
    for rule in rules:
        fitting = (
            task
            for task in shared
            if task not in chosen and rule(_right(before[task]), _right(after[task]))
        )
        chosen.extend([task for task in [next(fitting, None)] if task is not None])
    return chosen[:SHOWN]


def _by_task(episodes: Sequence[Record]) -> dict[str, Record]:
    by_task: dict[str, Record] = {}
    for episode in episodes:
        by_task.setdefault(str(episode.get("task_id", "")), episode)
    return by_task


def _right(episode: Record) -> bool:
    return bool(episode.get("correct"))


def _task(
    task_id: str,
    runs: Sequence[RunView],
    sides: Sequence[tuple[Episodes, Episodes]],
    *,
    is_chosen: bool,
) -> TaskView:
    """One task with the episodes of each run that played it."""
    columns, stories, question = [], [], ""
    for run, (before, after) in zip(runs, sides, strict=True):
        pair = (before.get(task_id), after.get(task_id))
        played = [episode for episode in pair if episode is not None]
        if not played:
            continue
        question = question or str(played[0].get("question", ""))
        stories.append(f"{run.label}: {_story(*pair)}" if len(runs) > 1 else _story(*pair))
        for when, episode in zip(("before", "after"), pair, strict=True):
            if run.is_evaluation and when == "before":
                continue
            name: Any = "evaluated" if run.is_evaluation else when
            view = None if episode is None else _view(episode)
            columns.append(Column(run, name, view))
    return TaskView(_anchor(task_id), task_id, question, "; ".join(stories), columns, is_chosen)


def _anchor(task_id: str) -> str:
    """A name for a place on the page; ids of tasks may hold anything."""
    text = task_id.encode("utf-8", errors="surrogatepass")
    return f"task-{hashlib.sha256(text).hexdigest()[:10]}"


def _story(before: Record | None, after: Record | None) -> str:
    was, now = (None if e is None else "right" if _right(e) else "wrong" for e in (before, after))
    if was is None or now is None:
        return str(was or now)
    return f"{was} before and after" if was == now else f"{was} before, {now} after"


def _view(episode: Record) -> EpisodeView:
    turns, parts = episode.get("turns"), episode.get("reward_parts")
    rewards = parts if isinstance(parts, dict) else {}
    views = [_turn(turn) for turn in turns or [] if isinstance(turn, dict)]
    return EpisodeView(
        verdict=_verdict(episode),
        score=signed(episode.get("score")),
        turns=views,
        parts=[(str(key).replace("_", " "), signed(v)) for key, v in rewards.items() if v != 0],
        codes=sorted({code for turn in views for code in turn.errors}),
        size=sum(_size(turn) for turn in views),
    )


VERDICTS: Final = ("right", "wrong answer", "no answer", "unscored: the machine failed")


def _verdict(episode: Record) -> str:
    right, wrong, silent, unscored = VERDICTS
    if episode.get("scored") is False:
        return unscored
    if _right(episode):
        return right
    return wrong if episode.get("answered") else silent


def _size(turn: TurnView) -> int:
    """Characters of a turn, about."""
    texts = (*turn.calls, turn.written, turn.observation)
    return 600 + sum(map(len, texts))  # markup around it


def _turn(turn: Record) -> TurnView:
    made = turn.get("calls") or []
    calls = [call_text(call) for call in made]
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
