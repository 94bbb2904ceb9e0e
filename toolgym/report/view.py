"""A run as a report sees it: what is missing has an empty value, so nothing else can fail on it.

A run may have been interrupted anywhere, or written by a trainer that knows less than ours, so this
is the one place that asks whether a piece is there. All files are read once.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgym.errors import ConfigurationError
from toolgym.family import TaskFamily
from toolgym.registration import family_of
from toolgym.report.numbers import is_drawable
from toolgym.runs.episodes import is_evaluation
from toolgym.runs.run import EVALUATION, Run
from toolgym.statistics import Statistics

# The limits of a run's guards, as lines that a plot can show.
#
# A trainer's guards compare most metrics with the run's own first steps, so a threshold is no
# number of the config but has to be worked out from the run: the median of its first steps, times
# what the config says. Without a config no line is drawn: a threshold that nothing acted upon would
# mislead.


Thresholds = Mapping[str, Any]


@dataclass(frozen=True)
class Limit:
    """A value that a guard acts below or above.

    Attributes:
        name: What it is, as a reader knows it.
        value: In the units of the metric.
        since: The step from which it holds.
    """

    name: str
    value: float
    since: int


def thresholds(config: Any) -> Thresholds:
    """The guards' settings in a config, at whatever depth; empty where there are none.

    >>> thresholds({"settings": {"guards": {"entropy_floor": 0.1}}})
    {'entropy_floor': 0.1}
    """
    if not isinstance(config, Mapping):
        return {}
    own = config.get("guards")
    if isinstance(own, Mapping) and "entropy_floor" in own:
        return own
    return next((nested for inner in config.values() if (nested := thresholds(inner))), {})


def limits(
    key: str, steps: Sequence[int], values: Sequence[float | None], guards: Thresholds
) -> list[Limit]:
    """The limits of one metric in one run.

    Args:
        steps: Those that were logged.
        values: Of the metric, as many.
    """
    first, since = _first_steps(key, steps, values, guards.get("baseline_steps"))
    rule = {"entropy": _entropy, "validity": _validity, "kl": _kl}.get(key)
    if rule is None or not steps:
        return []
    switched_off = {name for name, actions in _actions(guards) if not actions}
    return [
        Limit(name, value, steps[0] if first is None or key == "kl" else since)
        for guard, name, value in rule(guards, first)
        if guard not in switched_off
    ]


def _first_steps(
    key: str, steps: Sequence[int], values: Sequence[float | None], count: Any
) -> tuple[float | None, int]:
    """The median of the first steps, and the step after them; None while there are too few."""
    # A step without a single valid turn is no measure of what was healthy.
    counted = [
        place for place, v in enumerate(values) if v is not None and (v or key != "validity")
    ]
    if not isinstance(count, int) or count < 1 or len(counted) < count:
        return None, 0
    last = counted[count - 1]
    median = statistics.median(v for place in counted[:count] if (v := values[place]) is not None)
    return median, steps[min(last + 1, len(steps) - 1)]


Found = Iterator[tuple[str, str, float]]
"""The guard's name, the limit's name and its value."""


def _entropy(guards: Thresholds, first: float | None) -> Found:
    floors = [*_times(guards, "entropy_floor", first), *_plain(guards, "entropy_floor_nats")]
    ceilings = [*_times(guards, "entropy_ceiling", first), *_plain(guards, "entropy_ceiling_nats")]
    if floors:
        yield "entropy_floor", "floor", max(floors)
    if ceilings:
        yield "entropy_ceiling", "ceiling", min(ceilings)


def _validity(guards: Thresholds, first: float | None) -> Found:
    for floor in _times(guards, "min_validity", first):
        yield "validity", "floor", floor


def _kl(guards: Thresholds, first: float | None) -> Found:
    for ceiling in _plain(guards, "kl_ceiling"):
        yield "kl", "ceiling", ceiling


def _times(guards: Thresholds, key: str, first: float | None) -> list[float]:
    return [] if first is None else [share * first for share in _plain(guards, key)]


def _plain(guards: Thresholds, key: str) -> list[float]:
    value = guards.get(key)
    return [float(value)] if is_drawable(value) else []


def _actions(guards: Thresholds) -> Iterator[tuple[str, Sequence[Any]]]:
    actions = guards.get("actions")
    if isinstance(actions, Mapping):
        for name, listed in actions.items():
            if isinstance(listed, Sequence):
                yield str(name), listed


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
    """One run in a report.

    Attributes:
        label: Its name in legends; different for each run of a report.
        config: Without the reproducibility record.
        reproducibility: That record; empty where there is none.
        summary: Empty where the run did not come to write one.
        records: Its metrics, all phases.
        episodes_before: The evaluation before the training.
        episodes_after: The evaluation after it, or the only one.
        notes: Sentences about what could not be read.
        written: What its environment's family counts of all rollouts; None where it counts nothing.
        is_going_on: A process was writing it when it was read.
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
    written: Statistics | None = None
    is_going_on: bool = False

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
        listed = self.summary.get("evaluations")
        measured = [
            Measured(
                str(each.get("name") or ""),
                each["held_out"] if isinstance(each.get("held_out"), bool) else None,
                _record(each.get("before")),
                _record(each.get("after")),
                bool(each.get("temperature")),
            )
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict)
        ]
        return measured or [Measured("", None, self.before, self.after)]

    @property
    def is_evaluation(self) -> bool:
        """Nothing was trained: it holds the episodes of `toolgym eval`."""
        return is_evaluation(self.config)

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
        if self.is_going_on:
            last = self.records[-1] if self.records else None
            reached = f": it is at {last['phase']} {last['step']}" if last else ""
            return f"A process is writing this run just now{reached}."
        if self.is_evaluation:
            played = len(self.episodes_after)
            return f"This evaluation has not come to its end: it holds {played} episodes."
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
        text = self.summary.get("diagnosis")
        return text if isinstance(text, str) else ""

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
        phase = "after" if rollout["phase"] == EVALUATION else rollout["phase"]
        if phase in evaluated:
            evaluated[phase].append(rollout)
    is_going_on = run.is_held
    return RunView(
        label=label,
        style=style,
        config=config,
        reproducibility=_record(run.config.get("reproducibility")),
        summary=run.summary,
        records=run.metrics(),
        episodes_before=evaluated["before"],
        episodes_after=evaluated["after"],
        notes=[] if is_going_on else run.notes,  # the last line is just being written
        written=_statistics(run, _family(run)),
        is_going_on=is_going_on,
    )


def _family(run: Run) -> TaskFamily:
    """That of the environment that was played; one that knows nothing if it is not installed."""
    first = next(run.rollouts(), {})
    env_id = run.config.get("env_id") or first.get("env_id")
    try:
        return family_of(str(env_id or ""))
    except ConfigurationError:
        return TaskFamily()


def _statistics(run: Run, family: TaskFamily) -> Statistics | None:
    if not family.counts or next(run.rollouts(), None) is None:
        return None
    return family.statistics(run.rollouts())


def _record(value: Any) -> Record:
    return value if isinstance(value, dict) else {}
