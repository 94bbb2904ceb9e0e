"""Tables on the workflows of some rollouts: which are valid, which are liked, how varied.

The tables are those by which the collapse of a GRPO training on workflows was found: validity, the
most frequent patterns, operators, structures. To them come how varied the workflows are and how
that moved while the model was trained. Workflows are counted by their canonical text, so that two
spellings of one are one, and those that are not valid by the codes of their errors.

Everything is a function of the rollouts alone; ties are broken by text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from aflowgym.dsl import CODES
from aflowgym.execution.errors import WORKFLOW_ERRORS
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.operator import Operators
from aflowgym.statistics.counts import Gathered, Moment, Tally, diversity, entropy, moments, rank
from aflowgym.statistics.workflows import STRUCTURES, readings
from aflowgym.tasks.task import KINDS
from toolgym.calls import CALL_ERRORS
from toolgym.statistics import Cell, Rollout, Share, Statistics, Table

#: Why a workflow is not valid, or why none was written: code to meaning.
MEANINGS = {**CALL_ERRORS, **WORKFLOW_ERRORS, **CODES}


def workflow_statistics(
    rollouts: Iterable[Rollout],
    top: int = 10,
    *,
    operators: Operators = OPERATORS,
) -> Statistics:
    """The tables on the workflows of some rollouts.

    Args:
        rollouts: Episode records of this package's environments, or lines of a run's
            `rollouts.jsonl`; each is let go when it was counted.
        top: Patterns to tell at most.
        operators: The operators that the agents could name.

    Returns:
        The tables `validity`, `errors`, `patterns`, `operators`, `structures`, `kinds` and
        `time`.
    """
    gathered = Gathered(readings(rollouts, operators))
    return Statistics(
        tables=(
            _validity(gathered.total),
            _errors(gathered.total),
            _patterns(gathered, top),
            _operators(gathered, operators),
            _structures(gathered),
            _kinds(gathered),
            _time(moments(gathered)),
        ),
    )


def _validity(all_of: Tally) -> Table:
    written, valid = all_of.written, all_of.counts.total()
    rows: list[tuple[Cell, ...]] = [
        ("rollouts", all_of.rollouts, None),
        ("rollouts with a workflow", all_of.acted, Share(all_of.acted, all_of.rollouts)),
        ("rollouts with a valid workflow", all_of.able, all_of.validity),
        ("workflows written", written, None),
        ("valid", valid, Share(valid, written)),
        ("valid, read without a remark", all_of.plain, Share(all_of.plain, written)),
        ("not valid", all_of.wrong, Share(all_of.wrong, written)),
        ("different valid workflows", len(all_of.counts), None),
        ("diversity", diversity(all_of.counts), None),
        ("entropy (nats)", entropy(all_of.counts), None),
    ]
    note = "Diversity: the chance that two of the valid workflows differ."
    return Table("validity", "Validity", ("what", "count", "share"), tuple(rows), note)


def _errors(all_of: Tally) -> Table:
    rows = tuple(
        (code, MEANINGS.get(code), count, Share(count, all_of.wrong))
        for code, count in rank(all_of.codes)
    )
    note = "Of the workflows that are not valid; one may have several errors."
    return Table("errors", "Errors", ("code", "meaning", "count", "share"), rows, note)


def _patterns(gathered: Gathered, top: int) -> Table:
    all_of = gathered.total
    by_phase = {phase: gathered.by_phase[phase].counts for phase in gathered.phases}
    compared = by_phase if len(by_phase) > 1 else {}
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            text,
            count,
            Share(count, all_of.counts.total()),
            Share(all_of.ended_right[text], all_of.ended[text]),
            *(Share(each[text], each.total()) for each in compared.values()),
        )
        for text, count in rank(all_of.counts)[:top]
    )
    columns = ("workflow", "count", "share", "right", *(f"share {phase}" for phase in compared))
    note = "Right: of the rollouts whose last valid workflow it is, those that ended right."
    return Table("patterns", "Patterns", columns, rows, note)


def _operators(gathered: Gathered, operators: Operators) -> Table:
    counts = gathered.total.counts
    uses = Counter(dict.fromkeys(operators, 0))
    within = Counter(dict.fromkeys(operators, 0))
    for text, count in counts.items():
        for name, times in gathered.operators[text].items():
            uses[name] += times * count
            within[name] += count
    rows = tuple(
        (name, uses[name], count, Share(count, counts.total())) for name, count in rank(within)
    )
    columns = ("operator", "uses", "workflows", "share")
    note = "Share: of the valid workflows, those that hold it at least once."
    return Table("operators", "Operators", columns, rows, note)


def _structures(gathered: Gathered) -> Table:
    counts = gathered.total.counts
    rows = []
    for name in STRUCTURES:
        texts = [text for text in counts if gathered.structures[text] == name]
        total = sum(counts[text] for text in texts)
        rows.append((name, len(texts), total, Share(total, counts.total())))
    columns = ("structure", "different", "count", "share")
    return Table("structures", "Structures", columns, tuple(rows))


_FIGURES = (
    *("rollouts", "with a valid workflow", "right", "calls"),
    *("different", "diversity", "entropy", "favourite", "its share"),
)


def _figures(tally: Tally) -> tuple[Cell, ...]:
    """What is told of any group of rollouts, as cells of `_FIGURES`."""
    counts = tally.counts
    varied = (len(counts), diversity(counts), entropy(counts))
    ended = (tally.accuracy, tally.mean_calls)
    return (tally.rollouts, tally.validity, *ended, *varied, *tally.favourite)


def _kinds(gathered: Gathered) -> Table:
    rows = tuple(
        (kind, phase, *_figures(gathered.by_kind[kind, phase]))
        for kind in KINDS
        for phase in gathered.phases
        if (kind, phase) in gathered.by_kind
    )
    return Table("kinds", "By kind of task", ("kind", "phase", *_FIGURES), rows, _CALLS)


def _time(course: Sequence[Moment]) -> Table:
    rows = tuple((moment.phase, moment.steps, *_figures(moment.tally)) for moment in course)
    return Table("time", "Over time", ("phase", "steps", *_FIGURES), rows, _CALLS)


_CALLS = "Calls: of a model by the operators, for each scored rollout."
