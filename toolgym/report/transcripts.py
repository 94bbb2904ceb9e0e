"""The evaluated episodes of a report as conversations, task by task in the order of the files.

A page of one training shows each task before and after it; a page of several runs shows what each
of them did last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from toolgym.report.view import Record, RunView, is_drawable

ROOM: Final = 3_000_000
"""Characters of all episodes of a page, about; a larger page takes seconds to open."""
LONGEST: Final = 20_000
"""Characters of one text that are shown."""
CORRECT, WRONG, SILENT, UNSCORED = "correct", "wrong answer", "no answer", "unscored (fault)"
GAINED, LOST, ERRORS = "wrong before, correct after", "correct before, wrong after", "tool error"
KINDS: Final = (CORRECT, WRONG, SILENT, UNSCORED, GAINED, LOST, ERRORS)
"""What the filter of the page can choose."""


@dataclass(frozen=True)
class Turn:
    """One turn.

    Attributes:
        calls: Each as `name(argument=value, ...)`.
        written: The text of the model, unless the calls say the same.
        observation: The answer of the environment.
        reward: Signed; empty if there is none.
        codes: The codes of its errors and repairs.
        is_failed: It had an error.
    """

    calls: list[str]
    written: str
    observation: str
    reward: str
    codes: list[str]
    is_failed: bool


@dataclass(frozen=True)
class Episode:
    """One episode.

    Attributes:
        title: The run and the time it was played at.
        verdict: One of the first four of `KINDS`.
        score: Signed; empty if it has none.
        parts: The parts of its reward that are not 0.
    """

    title: str
    verdict: str
    score: str
    parts: str
    turns: list[Turn]

    @property
    def is_correct(self) -> bool:
        """Its answer was right."""
        return self.verdict == CORRECT


@dataclass
class Task:
    """One task with the episodes that are shown of it.

    Attributes:
        kinds: Which of `KINDS` it is.
    """

    task_id: str
    question: str = ""
    episodes: list[Episode] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Transcripts:
    """The episodes of a page.

    Attributes:
        played: Number of tasks that the runs played; more than `tasks` if not all are shown.
    """

    tasks: list[Task]
    played: int

    @property
    def kinds(self) -> list[str]:
        """The kinds that occur."""
        return [kind for kind in KINDS if any(kind in task.kinds for task in self.tasks)]


def transcripts(runs: Sequence[RunView]) -> Transcripts:
    """The tasks of the runs with their episodes, as many as the page has room for."""
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


def _cut(value: Any) -> str:
    text = str(value)
    rest = len(text) - LONGEST
    return text if rest <= 0 else f"{text[:LONGEST]}\n... {rest:,} more characters"


def signed(value: object) -> str:
    """A number with its sign and three decimals; empty for anything else.

    >>> signed(-0.01), signed(None)
    ('-0.010', '')
    """
    return f"{value:+.3f}" if is_drawable(value) else ""
