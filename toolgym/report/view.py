"""A run as a report sees it: what is missing has an empty value, so nothing else can fail on it.

A run may have been interrupted anywhere, or written by a trainer that knows less than ours, so this
is the one place that asks whether a piece is there. All files are read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgym.errors import ConfigurationError
from toolgym.family import TaskFamily
from toolgym.registration import family_of
from toolgym.report.limits import Thresholds, thresholds
from toolgym.report.plots.axes import is_drawable
from toolgym.runs.run import Run
from toolgym.statistics import Statistics, recorded_kwargs

Record = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """One evaluation of a run, as its summary tells it.

    Attributes:
        name: What its tasks were to the training, such as `unseen databases`; empty where the run
            does not say.
        is_held_out: No task of it was trained on; None where the run does not say.
        before: The figures before the training; empty where there are none.
        after: The figures after it; empty where there are none.
        is_sampled: The model sampled, as in training; else it was greedy.
    """

    name: str
    is_held_out: bool | None
    before: Record
    after: Record
    is_sampled: bool = False


@dataclass(frozen=True)
class RunView:
    """What a report shows of one run.

    Attributes:
        label: Its name in legends; different for each run of a report.
        style: Number of its colour and dashes.
        config: Without the reproducibility record.
        reproducibility: That record; empty where there is none.
        summary: Empty where the run did not come to write one.
        records: Its metrics, all phases.
        episodes_before: The evaluation before the training.
        episodes_after: The evaluation after it.
        notes: Sentences about what could not be read.
        family: What its environment knows of its tasks.
        written: What that family counts of all rollouts; None where it counts nothing.
    """

    label: str
    style: int
    config: Record
    reproducibility: Record
    summary: Record
    records: list[Record]
    episodes_before: list[Record]
    episodes_after: list[Record]
    notes: list[str] = field(default_factory=list)
    family: TaskFamily = field(default_factory=TaskFamily)
    written: Statistics | None = None

    def metrics(self, phase: str) -> list[Record]:
        """The records of one phase."""
        return [record for record in self.records if record["phase"] == phase]

    @property
    def before(self) -> Record:
        """The evaluation before the training; empty where there is none."""
        return _record(self.summary.get("before"))

    @property
    def after(self) -> Record:
        """The evaluation after the training; empty where there is none."""
        return _record(self.summary.get("after"))

    @property
    def evaluations(self) -> list[Measured]:
        """All evaluations; one without a name where the summary does not tell them apart."""
        told = self.summary.get("evaluations")
        found = [
            Measured(
                str(each.get("name") or ""),
                each["held_out"] if isinstance(each.get("held_out"), bool) else None,
                _record(each.get("before")),
                _record(each.get("after")),
                bool(each.get("temperature")),
            )
            for each in (told if isinstance(told, list) else ())
            if isinstance(each, dict)
        ]
        return found or [Measured("", None, self.before, self.after)]

    @property
    def is_complete(self) -> bool:
        """The run came to its end and said so."""
        return bool(self.summary.get("status") == "complete")

    @property
    def guards(self) -> Thresholds:
        """The settings of its guards; empty where the config tells none."""
        return thresholds(self.config)

    @property
    def where_it_stands(self) -> str:
        """One sentence on how far an incomplete run came; empty for a complete one."""
        if self.is_complete:
            return ""
        last = self.records[-1] if self.records else None
        reached = f"its last step is {last['phase']} {last['step']}" if last else "it has no steps"
        if self.summary.get("status") == "stopped":
            return f"This run was stopped: {reached}."
        if self.summary.get("status") == "interrupted":
            return f"This run was interrupted: {reached}."
        return f"This run did not come to its end, or is still going on: {reached}."

    @property
    def diagnosis(self) -> str:
        """Why it was stopped and what to change; empty where it was not."""
        told = self.summary.get("diagnosis")
        return told if isinstance(told, str) else ""

    def fact(self, key: str) -> str:
        """A fact of the summary, or else of the config, as text; empty where neither has it."""
        for source in (self.summary, self.config):
            if source.get(key) not in (None, ""):
                return str(source[key])
        return ""


def interval(evaluation: Record) -> tuple[float, float] | None:
    """The 95 % interval of an evaluation's accuracy; None where it has none."""
    ends = evaluation.get("interval")
    if not isinstance(ends, list) or len(ends) != 2 or not all(map(is_drawable, ends)):
        return None
    return ends[0], ends[1]


def views(runs: Sequence[Run]) -> list[RunView]:
    """Read the runs, and give each a label of its own."""
    labels = [_label(run, run.summary, run.config) for run in runs]
    taken = Counter(labels)
    return [
        _view(
            run, f"{run.path.resolve().parent.name}/{label}" if taken[label] > 1 else label, number
        )
        for number, (run, label) in enumerate(zip(runs, labels, strict=True))
    ]


def _label(run: Run, summary: Record, config: Record) -> str:
    control = summary.get("control") or config.get("control")
    return f"{run.name} ({str(control).replace('-', ' ')})" if control else run.name


def _view(run: Run, label: str, style: int) -> RunView:
    config = {key: value for key, value in run.config.items() if key != "reproducibility"}
    evaluated: dict[str, list[Record]] = {"before": [], "after": []}
    for rollout in run.rollouts():
        if rollout["phase"] in evaluated:
            evaluated[rollout["phase"]].append(rollout)
    family = _family(run)
    return RunView(
        label=label,
        style=style,
        config=config,
        reproducibility=_record(run.config.get("reproducibility")),
        summary=run.summary,
        records=run.metrics(),
        episodes_before=evaluated["before"],
        episodes_after=evaluated["after"],
        notes=run.notes,
        family=family,
        written=_written(run, family),
    )


def _family(run: Run) -> TaskFamily:
    """That of the environment that was played; one that knows nothing if it is not installed."""
    first = next(run.rollouts(), {})
    env_id = run.config.get("env_id") or first.get("env_id")
    try:
        return family_of(str(env_id or ""))
    except ConfigurationError:
        return TaskFamily()


def _written(run: Run, family: TaskFamily) -> Statistics | None:
    if not family.counts or next(run.rollouts(), None) is None:
        return None
    return family.statistics(run.rollouts(), env_kwargs=recorded_kwargs(run.config))


def _record(value: Any) -> Record:
    return value if isinstance(value, dict) else {}
