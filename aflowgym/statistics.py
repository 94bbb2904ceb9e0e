"""What the workflows of some rollouts look like: which are valid, which are liked, how varied.

The tables are those by which the collapse of a GRPO training on workflows was found: validity, the
most frequent patterns, operators, structures. To them come how varied the workflows are and how
that moved while the model was trained. Workflows are counted by their canonical text, so that two
spellings of one are one, and those that are not valid by the codes of their errors.

Everything is a function of the rollouts alone; ties are broken by text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from aflowgym.dsl import CODES, Limits
from aflowgym.dsl.checking import DEFAULT_LIMITS
from aflowgym.operators import OPERATORS, Registry
from aflowgym.statistics_pictures import favourites_chart, time_charts
from aflowgym.statistics_reading import STRUCTURES, Reading, Workflow, readings
from aflowgym.statistics_time import (
    Moment,
    by_kind,
    by_phase_of,
    diversity,
    entropy,
    moments,
    ranked,
)
from aflowgym.workflow_errors import WORKFLOW_ERRORS
from toolgym.calls import CALL_ERRORS
from toolgym.statistics import Cell, Rollout, Share, Statistics, Table

__all__ = [
    "STRUCTURES",
    "Moment",
    "Reading",
    "Workflow",
    "diversity",
    "entropy",
    "moments",
    "ranked",
    "readings",
    "workflow_statistics",
]

#: Why a workflow is not valid, or why none was written: code to meaning.
MEANINGS = {**CALL_ERRORS, **WORKFLOW_ERRORS, **CODES}


def workflow_statistics(
    rollouts: Iterable[Rollout],
    top: int = 10,
    *,
    operators: Registry = OPERATORS,
    limits: Limits = DEFAULT_LIMITS,
) -> Statistics:
    """The tables and charts on the workflows of some rollouts.

    Args:
        rollouts: Episode records of this package's environments, or lines of a run's
            `rollouts.jsonl`.
        top: Patterns to tell at most.
        operators: The operators that the agents could name.
        limits: How large a workflow could be.

    Returns:
        The tables `validity`, `errors`, `patterns`, `operators`, `structures`, `kinds` and
        `time`.
    """
    found = readings(rollouts, operators, limits)
    told = moments(found)
    return Statistics(
        tables=(
            _validity(found),
            _errors(found),
            _patterns(found, top),
            _operators(found, operators),
            _structures(found),
            _kinds(found),
            _time(told),
        ),
        charts=(*time_charts(told), *favourites_chart(found, top)),
    )


def _written(found: Sequence[Reading]) -> list[Workflow]:
    return [workflow for reading in found for workflow in reading.workflows]


def _valid(found: Sequence[Reading]) -> list[Workflow]:
    return [workflow for reading in found for workflow in reading.valid]


def _validity(found: Sequence[Reading]) -> Table:
    written, valid = _written(found), _valid(found)
    plain = sum(not workflow.remarks for workflow in valid)
    acted = sum(bool(reading.workflows) for reading in found)
    able = sum(bool(reading.valid) for reading in found)
    counts = Counter(workflow.text for workflow in valid)
    rows: list[tuple[Cell, ...]] = [
        ("rollouts", len(found), None),
        ("rollouts with a workflow", acted, Share(acted, len(found))),
        ("rollouts with a valid workflow", able, Share(able, len(found))),
        ("workflows written", len(written), None),
        ("valid", len(valid), Share(len(valid), len(written))),
        ("valid, read without a remark", plain, Share(plain, len(written))),
        ("not valid", len(written) - len(valid), Share(len(written) - len(valid), len(written))),
        ("different valid workflows", len(counts), None),
        ("diversity", diversity(counts), None),
        ("entropy (nats)", entropy(counts), None),
    ]
    note = "Diversity: the chance that two of the valid workflows differ."
    return Table("validity", "Validity", ("what", "count", "share"), tuple(rows), note)


def _errors(found: Sequence[Reading]) -> Table:
    wrong = [workflow for workflow in _written(found) if not workflow.valid]
    counts = Counter(code for workflow in wrong for code in workflow.codes)
    rows = tuple(
        (code, MEANINGS.get(code), count, Share(count, len(wrong)))
        for code, count in ranked(counts)
    )
    note = "Of the workflows that are not valid; one may have several errors."
    return Table("errors", "Errors", ("code", "meaning", "count", "share"), rows, note)


def _patterns(found: Sequence[Reading], top: int) -> Table:
    counts = Counter(workflow.text for workflow in _valid(found))
    by_phase = by_phase_of(found)
    compared = by_phase if len(by_phase) > 1 else {}
    ended = Counter(_last(reading) for reading in found if reading.scored)
    right = Counter(_last(reading) for reading in found if reading.scored and reading.correct)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            text,
            count,
            Share(count, counts.total()),
            Share(right[text], ended[text]),
            *(Share(each[text], each.total()) for each in compared.values()),
        )
        for text, count in ranked(counts)[:top]
    )
    columns = ("workflow", "count", "share", "right", *(f"share {phase}" for phase in compared))
    note = "Right: of the rollouts whose last valid workflow it is, those that ended right."
    return Table("patterns", "Patterns", columns, rows, note)


def _last(reading: Reading) -> str:
    return reading.valid[-1].text if reading.valid else ""


def _operators(found: Sequence[Reading], operators: Registry) -> Table:
    valid = _valid(found)
    uses = Counter(dict.fromkeys(operators, 0))
    within = Counter(dict.fromkeys(operators, 0))
    for workflow in valid:
        uses.update(workflow.operators)
        within.update(workflow.operators.keys())
    rows = tuple(
        (name, uses[name], count, Share(count, len(valid))) for name, count in ranked(within)
    )
    columns = ("operator", "uses", "workflows", "share")
    note = "Share: of the valid workflows, those that hold it at least once."
    return Table("operators", "Operators", columns, rows, note)


def _structures(found: Sequence[Reading]) -> Table:
    valid = _valid(found)
    rows = []
    for name in STRUCTURES:
        texts = [workflow.text for workflow in valid if workflow.structure == name]
        rows.append((name, len(set(texts)), len(texts), Share(len(texts), len(valid))))
    columns = ("structure", "different", "count", "share")
    return Table("structures", "Structures", columns, tuple(rows))


_FIGURES = (
    *("rollouts", "with a valid workflow", "right"),
    *("different", "diversity", "entropy", "favourite", "its share"),
)


def _figures(moment: Moment) -> tuple[Cell, ...]:
    """What is told of any group of rollouts, as cells of `_FIGURES`."""
    counts = moment.counts
    varied = (len(counts), diversity(counts), entropy(counts))
    return (moment.rollouts, moment.validity, moment.right, *varied, *moment.favourite)


def _kinds(found: Sequence[Reading]) -> Table:
    rows = tuple((kind, moment.phase, *_figures(moment)) for kind, moment in by_kind(found))
    return Table("kinds", "By kind of task", ("kind", "phase", *_FIGURES), rows)


def _time(told: Sequence[Moment]) -> Table:
    rows = tuple((moment.phase, moment.steps, *_figures(moment)) for moment in told)
    return Table("time", "Over time", ("phase", "steps", *_FIGURES), rows)
