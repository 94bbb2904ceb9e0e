"""`RunView`: the content of a run folder for the report, with empty values for missing parts.

A run may have been interrupted at any point, and its files may contain any JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeGuard

from toolgym.runs.episodes import is_evaluation
from toolgym.runs.files import read_object
from toolgym.runs.run import EVALUATION, Run
from toolgym.sanitize import visible

LONGEST_LABEL: Final = 60
PREFLIGHT: Final = "preflight.json"
NOTHING: Final = "\N{EN DASH}"
STEP_NAMES: Final = {
    "grpo": "GRPO step",
    "selection": "GRPO step",
    "sft": "SFT step",
}
Record = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """An evaluation of a run.

    Attributes:
        name: The name, such as `unseen databases`.
        how: Notes on how the evaluation was done: whether its tasks were held out from training,
            and how the model's outputs were decoded.
        figures: The results, by the keys `before` and `after`, or `evaluated`.
    """

    name: str
    how: list[str]
    figures: dict[str, Record]


@dataclass(frozen=True)
class RunView:
    """A run in a report.

    Attributes:
        label: The name of the run, with a number if there are several runs.
        config: The content of `config.json`.
        summary: The content of `summary.json`; empty if the file does not exist.
        records: The lines of `metrics.jsonl`.
        episodes: The evaluated episodes by `before`, `after` or `evaluated`, and by task id; None
            for tasks that are not shown.
        preflight: The content of `preflight.json`; empty if the file does not exist.
        notes: Sentences about lines that could not be read.
        state: A sentence on the progress of an incomplete run; "" for a complete run.
        is_refused: Whether the preflight check rejected the model.
    """

    label: str
    config: Record
    summary: Record
    records: list[Record]
    episodes: dict[str, dict[str, Record | None]]
    preflight: Record
    notes: list[str]
    state: str
    is_refused: bool

    @property
    def is_evaluation(self) -> bool:
        """Whether this is an evaluation by `toolgym eval` rather than a training run."""
        return is_evaluation(self.config)

    @property
    def findings(self) -> list[Record]:
        """The findings of the preflight check, each with `check`, `reason` and `advice`."""
        found = self.preflight.get("findings")
        return [each for each in (found if isinstance(found, list) else ()) if _record(each)]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Names and values that describe the run, such as its environment and its model."""
        values = {**self.config, **{k: v for k, v in self.summary.items() if v is not None}}
        values["model"] = values.get("model_title") or values.get("model")
        seconds = self.summary.get("seconds")
        if is_drawable(seconds) and 0 <= seconds < 1e9:
            values["time"] = timedelta(seconds=round(seconds))
        keys = {"env_id": "environment", "dataset": "data set", "policy": "policy"}
        keys |= {key: key for key in ("model", "trainer", "control", "time")}
        return [
            (name, str(values[key]))
            for key, name in keys.items()
            if values.get(key) not in (None, "")
        ]

    @property
    def evaluations(self) -> list[Measured]:
        """All evaluations that have results."""
        listed = self.summary.get("evaluations")
        whens = (
            {"after": "evaluated"} if self.is_evaluation else {"before": "before", "after": "after"}
        )
        found = []
        for each in listed if isinstance(listed, list) else [self.summary]:
            each = _record(each)
            held_out, temperature = each.get("held_out"), each.get("temperature")
            how = []
            if isinstance(held_out, bool):
                how.append("held out" if held_out else "trained on these tasks")
            if is_drawable(temperature):
                sampled = f"sampled at temperature {temperature:g}"
                how.append(sampled if temperature else "greedy")
            figures = {
                name: numbers
                for when, name in whens.items()
                if (numbers := _record(each.get(when)))
            }
            if figures:
                found.append(Measured(str(each.get("name") or ""), how, figures))
        return found


def is_drawable(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number that can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e150


def percent(value: object) -> str:
    """Return a share in percent with one decimal; a dash for any other value.

    >>> percent(0.4167), percent(None)
    ('41.7\\xa0%', '\N{EN DASH}')
    """
    return f"{100 * value:.1f}\N{NO-BREAK SPACE}%" if is_drawable(value) else NOTHING


def interval(figures: Record) -> tuple[float, float] | None:
    """Return the 95 % interval of an evaluation's accuracy, or None."""
    match figures.get("interval"):
        case [low, high] if is_drawable(low) and is_drawable(high):
            return low, high
    return None


def views(runs: Sequence[Run], limit: int) -> list[RunView]:
    """Read the runs, with the episodes of the first `limit` tasks of all runs."""
    shown: set[str] = set()
    names = [f"{n}. {run.name}" if len(runs) > 1 else run.name for n, run in enumerate(runs, 1)]
    labels = (visible(name)[:LONGEST_LABEL] for name in names)
    return [_view(run, label, shown, limit) for run, label in zip(runs, labels, strict=True)]


def _view(run: Run, label: str, shown: set[str], limit: int) -> RunView:
    status = run.status
    whens = {"before": "before", "after": "after", EVALUATION: "evaluated"}
    episodes: dict[str, dict[str, Record | None]] = {}
    for rollout in run.rollouts():
        if rollout["phase"] in whens:
            task_id = str(rollout.get("task_id", ""))
            if len(shown) < limit:
                shown.add(task_id)
            by_task = episodes.setdefault(whens[rollout["phase"]], {})
            by_task.setdefault(task_id, rollout if task_id in shown else None)
    records = run.metrics()
    preflight = run.path / PREFLIGHT
    return RunView(
        label=label,
        config=run.config,
        summary=run.summary,
        records=records,
        episodes=episodes,
        preflight=read_object(preflight) if preflight.is_file() else {},
        notes=[] if status == "running" else run.notes,  # the last line is being written
        state=run.state,
        is_refused=status == "refused",
    )


def _record(value: Any) -> Record:
    return value if isinstance(value, dict) else {}
