"""The transcripts of a report: evaluated episodes by task, in the order of the files.

A report of one training run shows the episodes of each task before and after training. A report of
several runs shows the last episode of each run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from toolgym.report.view import Record, RunView, is_drawable

ROOM: Final = 3_000_000
"""Approximate maximum number of characters of all episodes; larger pages take seconds to open."""
LONGEST: Final = 20_000
"""Maximum number of characters of a text."""
CORRECT, WRONG, SILENT, UNSCORED = "correct", "wrong answer", "no answer", "unscored (fault)"
GAINED, LOST, ERRORS = "wrong before, correct after", "correct before, wrong after", "tool error"
KINDS: Final = (CORRECT, WRONG, SILENT, UNSCORED, GAINED, LOST, ERRORS)
"""The options of the filter on the page."""


@dataclass(frozen=True)
class Turn:
    """A turn of an episode as strings.

    Attributes:
        calls: The calls, in the form `name(argument=value, ...)`.
        written: The text of the model; empty if it is only the calls.
        observation: The observation.
        reward: The reward with its sign; empty if there is none.
        codes: The codes of errors and repairs.
        is_failed: Whether there was an error.
    """

    calls: list[str]
    written: str
    observation: str
    reward: str
    codes: list[str]
    is_failed: bool


@dataclass(frozen=True)
class Episode:
    """An episode as strings.

    Attributes:
        title: The run, and the time of the evaluation, such as `before`.
        verdict: One of the first four of `KINDS`.
        score: The score with its sign; empty if there is none.
        parts: The parts of the reward that are not 0.
        turns: The turns.
    """

    title: str
    verdict: str
    score: str
    parts: str
    turns: list[Turn]

    @property
    def is_correct(self) -> bool:
        """Whether the answer is correct."""
        return self.verdict == CORRECT


@dataclass
class Task:
    """A task with its episodes.

    Attributes:
        task_id: The id of the task.
        question: The question of the task.
        episodes: The episodes that are shown.
        kinds: The filter options (`KINDS`) that the task matches.
    """

    task_id: str
    question: str = ""
    episodes: list[Episode] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Transcripts:
    """The tasks and episodes of a page.

    Attributes:
        tasks: The tasks that are shown.
        played: Number of tasks of the runs, including those that are not shown.
    """

    tasks: list[Task]
    played: int

    @property
    def kinds(self) -> list[str]:
        """The filter options that at least one task matches."""
        return [kind for kind in KINDS if any(kind in task.kinds for task in self.tasks)]


def transcripts(runs: Sequence[RunView]) -> Transcripts:
    """Return the tasks of the runs with their episodes, up to the maximum size of the page."""
    columns: list[tuple[str, Mapping[str, Record | None]]] = []
    for run in runs:
        whens = list(run.episodes.items())
        if len(runs) > 1:
            whens = [(f"{run.label}, {when}", by_task) for when, by_task in whens[-1:]]
        columns += whens
    played = list(dict.fromkeys(task_id for _, by_task in columns for task_id in by_task))
    tasks: list[Task] = []
    room = ROOM
    for task_id in played:
        task = Task(task_id)
        for title, by_task in columns:
            if (record := by_task.get(task_id)) is not None:
                task.question = task.question or _cut(record.get("question", ""))
                task.episodes.append(episode := _episode(title, record))
                task.kinds.add(episode.verdict)
                texts = [(*t.calls, t.written, t.observation) for t in episode.turns]
                room -= sum(500 + sum(map(len, each)) for each in texts)  # 500: the markup
                if any(turn.is_failed for turn in episode.turns):
                    task.kinds.add(ERRORS)
        if not task.episodes:
            continue
        was, *_, now = [task.episodes[0].is_correct, task.episodes[-1].is_correct]
        if len(runs) == 1 and was != now:
            task.kinds.add(GAINED if now else LOST)
        tasks.append(task)
        if room <= 0:
            break
    return Transcripts(tasks, len(played))


def _episode(title: str, record: Record) -> Episode:
    verdict = WRONG if record.get("answered") else SILENT
    verdict = CORRECT if record.get("correct") else verdict
    turns, parts = record.get("turns"), record.get("reward_parts")
    rewards = parts.items() if isinstance(parts, dict) else ()
    return Episode(
        title,
        UNSCORED if record.get("scored") is False else verdict,
        signed(record.get("score")),
        ", ".join(f"{key} {text}" for key, value in rewards if value and (text := signed(value))),
        [_turn(turn) for turn in turns or () if isinstance(turn, dict)]
        if isinstance(turns, list)
        else [],
    )


def _turn(turn: Record) -> Turn:
    calls, errors, repairs = (
        each if isinstance(each := turn.get(key), list) else []
        for key in ("calls", "errors", "repairs")
    )
    named = [call for call in calls if isinstance(call, dict)]
    plain = [{"name": c.get("name"), "arguments": c.get("arguments")} for c in named]
    action = turn.get("action") or ""
    codes = [str(e.get("code", "error") if isinstance(e, dict) else e) for e in errors if e]
    return Turn(
        calls=[_cut(call_text(call)) for call in calls],
        written="" if action == "\n".join(map(json.dumps, plain)) else _cut(action),
        observation=_cut(turn.get("observation", "")),
        reward=signed(turn.get("reward")),
        codes=[*codes, *(f"repaired: {code}" for code in repairs)],
        is_failed=bool(codes),
    )


def call_text(call: Any) -> str:
    """Return a recorded call in the form of a Python call.

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


def _cut(value: Any) -> str:
    text = str(value)
    rest = len(text) - LONGEST
    return text if rest <= 0 else f"{text[:LONGEST]}\n... {rest:,} more characters"


def signed(value: object) -> str:
    """Return a number with its sign and three decimals; "" for any other value.

    >>> signed(-0.01), signed(None)
    ('-0.010', '')
    """
    return f"{value:+.3f}" if is_drawable(value) else ""
