"""Tables about the workflows in rollouts: validity, errors, frequent workflows, structures.

Valid workflows are counted by their canonical form, so different spellings of a workflow are
counted together. Invalid workflows are counted by their error codes. Rollouts are read one at a
time. To limit memory use, at most `MOST` different workflows and `MOST` steps are counted. Further
workflows are counted as `(others)`, and further steps as part of the last step.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from aflowgym.dsl import CODES, parse
from aflowgym.dsl.nodes import operators_of
from aflowgym.execution.errors import WORKFLOW_ERRORS
from aflowgym.operators import OPERATORS, Operators
from aflowgym.statistics.workflows import ANY_SIZE, STRUCTURES, structure, workflows_of
from toolgym.statistics import Cell, Rollout, Share, Statistics, Table

MOST: Final = 20_000
MOST_WINDOWS: Final = 20
OTHERS: Final = "(others)"
MEANINGS: Final = {
    **WORKFLOW_ERRORS,
    **CODES,
    "fallback": "The trainer replaced the output by a default workflow.",
}

Counts = defaultdict[str, Counter[str]]
"""Counts over a set of rollouts.

`valid` counts valid workflows by text, `error` counts error codes of invalid workflows, and
`invalid` is the number of invalid workflows. `ended`, `judged` and `right` count rollouts by their
last valid workflow ("" for none): all rollouts, those whose correctness is known, and the correct
ones. `score` is the sum of the scores, and `scored` is the number of scores.
"""


def workflow_statistics(
    rollouts: Iterable[Rollout], top: int = 10, *, operators: Operators = OPERATORS
) -> Statistics:
    """Return tables about the workflows in rollouts.

    Args:
        rollouts: Episode records, lines of a run's `rollouts.jsonl`, or the output of `read_log`,
            in chronological order.
        top: Maximum number of workflows in the table `patterns`.
        operators: The operators that were available to the agents.

    Returns:
        The tables `validity`, `errors`, `patterns`, `operators`, `structures`, `collapse` and
        `time`.
    """
    known: set[str] = set()
    steps: dict[tuple[str, Any, int], Counts] = {}
    counts: Counts = defaultdict(Counter)
    for rollout in rollouts:
        record = rollout if isinstance(rollout, Mapping) else vars(rollout)
        step = (record.get("phase", ""), record.get("step"), record.get("updates", 0))
        if step in steps or len(steps) < MOST:
            counts = steps.setdefault(step, defaultdict(Counter))
        last = ""
        for text, codes in workflows_of(record, operators):
            if not text:
                counts["invalid"][""] += 1
                counts["error"].update(codes)
                continue
            last = text if text in known or len(known) < MOST else OTHERS
            known.add(last)
            counts["valid"][last] += 1
        counts["ended"][last] += 1
        if record.get("scored", True) and record["correct"] is not None:
            counts["judged"][last] += 1
            counts["right"][last] += bool(record["correct"])
        if (score := record.get("score")) is not None and not math.isnan(score):
            counts["scored"][""] += 1
            counts["score"][""] += score

    whole = _sum(steps.values())
    valid, errors = whole["valid"], whole["error"]
    n, invalid = valid.total(), whole["invalid"].total()
    accepted = n + invalid - errors["fallback"]
    able = _able(whole)
    validity: list[tuple[Cell, ...]] = [
        ("rollouts", able.of, None),
        ("rollouts with a valid workflow", able.count, able),
        ("workflows", n + invalid, None),
        ("valid", n, Share(n, n + invalid)),
        ("different valid workflows", len(valid), None),
    ]
    if errors["fallback"]:
        validity.append(("accepted by the trainer", accepted, Share(accepted, n + invalid)))
        validity.append(("accepted by the trainer and valid", n, Share(n, accepted)))
    uses, within = Counter(dict.fromkeys(operators, 0)), Counter(dict.fromkeys(operators, 0))
    classes: dict[str, list[int]] = {name: [] for name in STRUCTURES}
    for text, count in valid.items():
        if node := parse(text, operators=operators, limits=ANY_SIZE).workflow:  # excludes `OTHERS`
            classes[structure(node)].append(count)
            for name, times in Counter(each.name for each in operators_of(node)).items():
                uses[name] += times * count
                within[name] += count

    collapse: list[tuple[Cell, ...]] = []
    time: list[tuple[Cell, ...]] = []
    for phase in dict.fromkeys(phase for phase, _, _ in steps):
        own = [step for step in steps if step[0] == phase]
        trained = [step for step in own if step[1] is not None]
        pairs = [*pairwise(trained)]
        updates = [(before, after) for before, after in pairs if before[2] != after[2]]
        for compared, cases in (("steps after an update", updates), ("all steps", pairs)):
            if cases:
                fallen = sum(_rate(steps[b]) / 2 > _rate(steps[a]) for b, a in cases)
                share = Share(fallen, len(cases))
                collapse.append((phase, compared, len(cases), fallen, share))
        width = max(1, -(-len(trained) // MOST_WINDOWS))
        windows = [trained[i : i + width] for i in range(0, len(trained), width)]
        for window in ([step for step in own if step[1] is None], *windows):
            if window:
                ends = [str(end[1]) for end in (window[0], window[-1]) if end[1] is not None]
                counts = _sum(steps[step] for step in window)
                scored = counts["scored"].total()
                favorite, count = next(iter(_rank(counts["valid"])), ("", 0))
                time.append(
                    (
                        phase,
                        " to ".join(dict.fromkeys(ends)),
                        counts["ended"].total(),
                        _able(counts),
                        Share(counts["right"].total(), counts["judged"].total()),
                        counts["score"].total() / scored if scored else None,
                        len(counts["valid"]),
                        favorite,
                        Share(count, counts["valid"].total()),
                    )
                )

    return Statistics(
        (
            Table("validity", "Validity", ("what", "count", "share"), tuple(validity)),
            Table(
                "errors",
                "Errors",
                ("code", "meaning", "count", "share"),
                tuple(
                    (code, MEANINGS.get(code), count, Share(count, invalid))
                    for code, count in _rank(errors)
                ),
                "Share of the invalid workflows. A workflow may have several errors.",
            ),
            Table(
                "patterns",
                "Patterns",
                ("workflow", "count", "share", "right"),
                tuple(
                    (
                        text,
                        count,
                        Share(count, n),
                        Share(whole["right"][text], whole["judged"][text]),
                    )
                    for text, count in _rank(valid)[:top]
                ),
                "Right: share of correct rollouts among those whose last valid workflow this is.",
            ),
            Table(
                "operators",
                "Operators",
                ("operator", "uses", "workflows", "share"),
                tuple((name, uses[name], count, Share(count, n)) for name, count in _rank(within)),
                "Share of the valid workflows that contain the operator.",
            ),
            Table(
                "structures",
                "Structures",
                ("structure", "different", "count", "share"),
                tuple(
                    (name, len(counted), sum(counted), Share(sum(counted), n))
                    for name, counted in classes.items()
                ),
            ),
            Table(
                "collapse",
                "Collapse",
                ("phase", "compared", "cases", "collapses", "share"),
                tuple(collapse),
                "Collapse: the share of rollouts with a valid workflow falls to 0, or by more than"
                " half. If a log marks no steps, windows of rollouts are compared.",
            ),
            Table(
                "time",
                "Over time",
                (
                    *("phase", "steps", "rollouts", "valid", "right", "score"),
                    *("different", "most frequent", "its share"),
                ),
                tuple(time),
            ),
        )
    )


def _sum(parts: Iterable[Counts]) -> Counts:
    whole: Counts = defaultdict(Counter)
    for part in parts:
        for name, counter in part.items():
            whole[name].update(counter)
    return whole


def _able(counts: Counts) -> Share:
    """Return the share of rollouts with a valid workflow."""
    of = counts["ended"].total()
    return Share(of - counts["ended"][""], of)


def _rate(counts: Counts) -> float:
    return _able(counts).value or 0.0


def _rank(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the entries in descending order of their counts; ties are sorted by text."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
