"""The tables and sentences of a report: results, settings, gains, seeds together.

Each function returns plain text and rows; the page's template escapes and styles them.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolgym.intervals import LEAST_SEEDS, average
from toolgym.report.numbers import is_drawable, number_text
from toolgym.report.view import Measured, Record, RunView, interval
from toolgym.statistics import Share, Table, cell_text

NOTHING = "\N{EN DASH}"


@dataclass(frozen=True)
class Result:
    """One evaluation as text: a row of the summary table."""

    label: str
    style: int
    on: str
    when: str
    accuracy: str
    interval: str
    validity: str
    score: str
    episodes: str


@dataclass(frozen=True)
class Setting:
    """One row of the settings: a dotted key and its value in each run."""

    key: str
    values: list[str]

    @property
    def differs(self) -> bool:
        """The runs do not agree on it."""
        return len(set(self.values)) > 1

    @property
    def is_partial(self) -> bool:
        """Some of the runs do not have it at all."""
        return NOTHING in self.values

    def is_told_by(self, other: Setting) -> bool:
        """Another row says the same under a longer key."""
        return other.key.endswith(f".{self.key}") and other.values == self.values


def results(runs: Sequence[RunView]) -> list[list[tuple[Result, Result]]]:
    """For each run its evaluations, each before and after."""
    when = {True: "evaluated", False: "after"}
    return [
        [
            (
                _result(run, on, "before", on.before),
                _result(run, on, when[run.is_evaluation], on.after),
            )
            for on in run.evaluations
        ]
        for run in runs
    ]


def measured_on(runs: Sequence[RunView]) -> str:
    """A sentence or two on the tasks of the accuracies."""
    if all(run.is_evaluation for run in runs):
        return "Accuracy is the share of right episodes, with its 95 % interval."
    kinds = {each.is_held_out for run in runs for each in run.evaluations}
    clauses = {
        True: "no task of it was trained on",
        False: "where nothing was held out, it is the accuracy on what was trained on",
        None: "where a run does not say what its tasks were, they may have been trained on",
    }
    sentence = "; ".join(text for kind, text in clauses.items() if kind in kinds)
    if kinds == {False}:
        sentence = "nothing was held out, so it is the accuracy on what was trained on"
    if kinds == {None}:
        sentence = "the run does not say whether its tasks were trained on"
    sampled = any(each.is_sampled for run in runs for each in run.evaluations)
    how = "greedy, or sampled as in training where that is said" if sampled else "greedy"
    return f"Accuracy is {how}, with its 95 % interval; {sentence}."


def _result(run: RunView, on: Measured, when: str, figures: Record) -> Result:
    shares = [share(end) for end in interval(figures) or ()]
    score = figures.get("mean_score")
    episodes = figures.get("episodes")
    return Result(
        label=run.label,
        style=run.style,
        on=on.name,
        when=when,
        accuracy=share(figures.get("accuracy")),
        interval=f"{shares[0].removesuffix(' %')} to {shares[1]}" if shares else "",
        validity=share(figures.get("validity")),
        score=number_text(score, 0.001, "number") if is_drawable(score) else NOTHING,
        episodes=f"{episodes:,}" if isinstance(episodes, int) else NOTHING,
    )


def share(value: object) -> str:
    """A share in percent with one decimal; a dash for what is none.

    >>> share(0.4167), share(None)
    ('41.7 %', '\N{EN DASH}')
    """
    return number_text(value, 0.001, "share") if is_drawable(value) else NOTHING


def headline(run: RunView) -> str:
    """The headline of a run: model, environment, data, trainer and time, in one sentence."""
    if run.is_evaluation:
        policy, env_id = run.fact("policy") or "Several files", run.fact("env_id")
        return f"{policy} played {len(run.episodes_after):,} episodes of {env_id}."
    named = run.fact("model_title") or run.fact("model")
    model = named or "A model that the run does not name"
    env_id = run.fact("env_id") or "an environment that the run does not name"
    data = run.fact("dataset")
    trainer = run.fact("trainer")
    by = {"trl": "TRL", "reference": "the reference trainer"}.get(trainer, trainer)
    parts = [f"{model} was trained on {env_id}"]
    parts.append(f" (data set {data})" if data else "")
    parts.append(f" by {by}" if by else "")
    seconds = run.summary.get("seconds")
    parts.append(f" in {duration(seconds)}" if is_drawable(seconds) else "")
    sentence = "".join(parts)
    return sentence[:1].upper() + sentence[1:] + "."


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(42.3), duration(400), duration(7260)
    ('42 s', '6 min 40 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def gain(run: RunView) -> str:
    """The sentence on the gain: the run's own, or else what the intervals allow to say."""
    own = run.summary.get("gain")
    if own:
        return " ".join(str(part) for part in (own, run.summary.get("kept")) if part)
    if run.is_evaluation:
        figures = run.evaluations[0].after
        ends = " to ".join(share(end) for end in interval(figures) or ())
        return f"Accuracy {share(figures.get('accuracy'))}" + (f" (95 %: {ends})." if ends else ".")
    first = run.evaluations[0]
    before, after = first.before, first.after
    if not (is_drawable(before.get("accuracy")) and is_drawable(after.get("accuracy"))):
        return "Nothing can be said about a gain: there is no evaluation both before and after."
    on = f" on {first.name}" if first.name else ""
    moved = f"Accuracy{on} went from {share(before['accuracy'])} to {share(after['accuracy'])}."
    earlier, later = interval(before), interval(after)
    if earlier is None or later is None:
        return f"{moved} Without intervals nothing says whether that is more than chance."
    if later[0] > earlier[1] or later[1] < earlier[0]:
        return f"{moved} The 95 % intervals do not overlap."
    return f"{moved} The 95 % intervals overlap, so this may be chance."


def settings(records: Sequence[Mapping[str, Any]]) -> list[Setting]:
    """Configs side by side, nested ones by dotted keys, in the order in which keys first occur."""
    flat = [dict(_flat(record, "")) for record in records]
    keys = list(dict.fromkeys(key for record in flat for key in record))
    return [Setting(key, [record.get(key, NOTHING) for record in flat]) for key in keys]


def differences(runs: Sequence[RunView]) -> list[Setting]:
    """The settings and the circumstances on which the runs do not agree, each told once.

    A run folder keeps some facts twice, at the top and among the settings; the longer key stays.
    What only some of the runs have, as each trainer has settings of its own, comes last.
    """
    rows = settings([run.config for run in runs])
    rows += settings([run.reproducibility for run in runs])
    differing = [row for row in rows if row.differs]
    once = [row for row in differing if not any(row.is_told_by(other) for other in differing)]
    return sorted(once, key=lambda row: row.is_partial)


def _flat(record: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in record.items():
        if isinstance(value, dict) and value:
            rows.extend(_flat(value, f"{prefix}{key}."))
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            rows.append((f"{prefix}{key}", text))
    return rows


# The rows of a counted table as a page shows them: what is large, what small, what to the left.
#
# A share comes with its interval, which stands under it in smaller type.


def rows_of(table: Table) -> list[list[tuple[str, str, bool]]]:
    """Of each cell its text, the smaller text under it, and whether it stands to the left."""
    words = [table.is_text(column) for column in range(len(table.columns))]
    rows = []
    for row in table.rows:
        cells = []
        for cell, is_word in zip(row, words, strict=True):
            text, _, interval = (
                cell_text(cell).partition(" [")
                if isinstance(cell, Share)
                else (cell_text(cell), "", "")
            )
            cells.append((text, f"[{interval}" if interval else "", is_word))
        rows.append(cells)
    return rows


# Runs that differ in nothing but their seed, taken together.
#
# One run of a training says little about its settings: another seed moves the result by several
# points. So where a page shows several seeds of the same settings, one row tells what they reached
# together, and how far apart they lie.


SEED: Final = "seed"
_LONGEST: Final = 3  # settings that name a group; the table of differences has all


@dataclass(frozen=True)
class Together:
    """One row: what the seeds of the same settings reached.

    Attributes:
        name: What sets the group apart from the others, or the labels of its runs.
        styles: Numbers of its runs' colours.
        before: Mean accuracy before, from three runs on with its 95 % interval over seeds.
        after: The same after.
        gain: The same of what each run gained.
        each: The accuracies after, run by run.
    """

    name: str
    styles: tuple[int, ...]
    before: str
    after: str
    gain: str
    each: str


def together(runs: Sequence[RunView]) -> list[Together]:
    """A row for each set of runs that differ by their seed only; none where every run is alone."""
    groups: dict[str, list[RunView]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_without_seeds(run.config), sort_keys=True), []).append(run)
    if all(len(group) == 1 for group in groups.values()):
        return []
    names = _names([group[0] for group in groups.values()])
    return [row for pair in zip(names, groups.values(), strict=True) for row in _rows(*pair)]


def _without_seeds(value: Any) -> Any:
    """A config without its seeds, at any depth."""
    if isinstance(value, Mapping):
        return {key: _without_seeds(inner) for key, inner in value.items() if key != SEED}
    return value


def _names(first: Sequence[RunView]) -> list[str]:
    """The names of the groups: the settings on which they do not agree."""
    if len(first) == 1:
        return ["all runs"]
    rows = [row for row in settings([_without_seeds(run.config) for run in first]) if row.differs]
    rows = [row for row in rows if not any(row.is_told_by(other) for other in rows)]
    rows = [row for row in rows if not row.is_partial] or rows
    return [
        ", ".join(f"{row.key.rpartition('.')[2]} {row.values[place]}" for row in rows[:_LONGEST])
        for place in range(len(first))
    ]


def _rows(name: str, runs: Sequence[RunView]) -> Iterator[Together]:
    """A row for each evaluation that all of the runs have."""
    for evaluations in zip(*(run.evaluations for run in runs), strict=False):
        on = {each.name for each in evaluations}
        label = f"{name}, {on.pop()}" if len(on) == 1 and all(on) else name
        yield _row(label, runs, evaluations)


def _row(name: str, runs: Sequence[RunView], evaluations: Sequence[Measured]) -> Together:
    before = [_accuracy(each.before) for each in evaluations]
    after = [_accuracy(each.after) for each in evaluations]
    gains = [
        late - early
        for early, late in zip(before, after, strict=True)
        if early is not None and late is not None
    ]
    return Together(
        name=name,
        styles=tuple(run.style for run in runs),
        before=_mean([value for value in before if value is not None]),
        after=_mean([value for value in after if value is not None]),
        gain=_mean(gains, sign="+"),
        each=", ".join(NOTHING if value is None else _points(value) for value in after),
    )


def _accuracy(evaluation: Record) -> float | None:
    accuracy = evaluation.get("accuracy")
    return float(accuracy) if is_drawable(accuracy) else None


def _mean(values: Sequence[float], sign: str = "") -> str:
    """A mean in percent, with its interval where there are enough values for one."""
    if not values:
        return NOTHING
    mean = statistics.fmean(values)
    text = f"{sign if mean > 0 else ''}{_points(mean)} %"
    if len(values) < LEAST_SEEDS:
        return text
    found = average(values)
    return f"{text} [{_points(found.low)}, {_points(found.high)}]"


def _points(share: float) -> str:
    return number_text(share, 0.001, "share").removesuffix(" %")
