"""Results of experiments, as JSON and as a page: verdicts, statistics of cells, missing units.

There is no clock, no path and no machine in `results.json`, and its keys are sorted: the same seeds
give the same bytes. It is made of the records on disk alone, whoever has done them and when, beside
the failures of the run that makes it.

`report.html` is one file without requests, in the style and with the script of the report of a run.
All text passes through the template's escaping; plots get it as data.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from markupsafe import Markup, escape

from adapters.lab.experiment import Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells, Prediction, Verdict
from adapters.lab.runner import Failure
from adapters.lab.units import Unit, done
from toolgym.intervals import Effect, average, share
from toolgym.notebook import visible
from toolgym.report.page import rendered
from toolgym.runs.files import encode, plain, replace_file

FILE: Final = "results.json"


@dataclass(frozen=True)
class Finding:
    """One experiment with what came of it.

    Attributes:
        cells: The records that are there.
        seconds: By cell, of a core, the middle of what its units took. No part of the results.
        wanted: How many units there were to be.
        failed: Those that failed when they were last tried.
    """

    experiment: Experiment
    scale: Scale
    cells: Cells
    wanted: int
    failed: Sequence[Failure] = field(default=())
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """The number of units that are done."""
        return sum(map(len, self.cells.values()))

    def verdicts(self) -> list[tuple[Prediction, Verdict]]:
        """Each prediction with what became of it."""
        smoke = self.scale == "smoke"
        predictions = self.experiment.predictions
        return [(each, each.verdict(self.cells, smoke=smoke)) for each in predictions]

    def told(self) -> list[tuple[Prediction, Verdict]]:
        """Those that say something: at smoke size only what has no chance in it."""
        verdicts = self.verdicts()
        return [each for each in verdicts if self.scale != "smoke" or each[1].effect.exact]

    def untold(self) -> int:
        """The number of predictions that are left out of `told`."""
        return len(self.experiment.predictions) - len(self.told())

    def figures(self) -> list[Figure]:
        """Those pictures that there is something to draw of."""
        return [each for each in self.experiment.figures(self.cells) if not each.is_empty]

    def statistics(self) -> dict[str, dict[str, Effect]]:
        """By cell and key of its records: the mean, or of truths the share, over seeds."""
        return {cell: _statistics(records) for cell, records in self.cells.items() if records}


def finding(
    experiment: Experiment,
    scale: Scale,
    units: Sequence[Unit],
    out: Path,
    failures: Iterable[Failure] = (),
) -> Finding:
    """The finding from an experiment's units on disk."""
    own = [unit for unit in units if unit.experiment == experiment.name]
    cells: dict[str, dict[int, Mapping[str, Any]]] = {unit.cell: {} for unit in own}
    took: dict[str, list[float]] = {}
    for unit in own:
        unit_done = done(unit, out)
        if unit_done is not None:
            cells[unit.cell][unit.seed] = unit_done.record
            took.setdefault(unit.cell, []).append(unit_done.seconds)
    failed = [each for each in failures if each.unit.experiment == experiment.name]
    seconds = {cell: median(each) for cell, each in took.items()}
    return Finding(experiment, scale, cells, len(own), failed, seconds)


def write_results(findings: Iterable[Finding], out: Path) -> Path:
    """Write `results.json` into a folder, which is made; the file."""
    results = {each.experiment.name: to_json(each) for each in findings}
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(plain(results, "results"), indent=1, sort_keys=True, ensure_ascii=False)
    replace_file(out / FILE, [encode(text + "\n")])
    return out / FILE


def to_json(finding: Finding) -> dict[str, Any]:
    """One experiment's part of the object."""
    experiment = finding.experiment
    return {
        "title": experiment.title,
        "document": experiment.document,
        "claim": experiment.claim,
        "setting": experiment.setting,
        "prevention": experiment.prevention,
        "scale": finding.scale,
        "units": {"wanted": finding.wanted, "done": finding.done},
        "failed": [
            {"cell": each.unit.cell, "seed": each.unit.seed, "error": each.error}
            for each in finding.failed
        ],
        "predictions": [_judged(*each) for each in finding.verdicts()],
        "figures": [
            {"name": each.name, "title": each.title, "note": each.note}
            for each in finding.figures()
        ],
        "cells": {
            cell: {key: _effect(effect) for key, effect in keys.items()}
            for cell, keys in finding.statistics().items()
        },
    }


def _judged(prediction: Prediction, verdict: Verdict) -> dict[str, Any]:
    return {
        "name": prediction.name,
        "claim": prediction.claim,
        "size": prediction.size,
        "within": prediction.within,
        "verdict": verdict.outcome,
        "effect": _effect(verdict.effect),
        "sentence": verdict.sentence,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "value": effect.value,
        "low": effect.low,
        "high": effect.high,
        "seeds": effect.seeds,
    }


def _statistics(records: Mapping[int, Mapping[str, Any]]) -> dict[str, Effect]:
    rows = [record for _, record in sorted(records.items())]
    keys = dict.fromkeys(key for row in rows for key in row)
    statistics = {}
    for key in keys:
        values = [row[key] for row in rows if row.get(key) is not None]
        if all(isinstance(value, bool) for value in values) and values:
            statistics[key] = share(sum(values), len(values))
        elif all(isinstance(value, int | float) and math.isfinite(value) for value in values):
            statistics[key] = average([float(value) for value in values])
    return statistics


PAGE: Final = "report.html"
_DASH: Final = "\N{EN DASH}"


def write_lab_report(findings: Sequence[Finding], out: Path) -> Path:
    """Write `report.html` into a folder, which is made; the file."""
    out.mkdir(parents=True, exist_ok=True)
    replace_file(out / PAGE, [render(findings).encode("utf-8")])
    return out / PAGE


def render(findings: Sequence[Finding]) -> str:
    """The page as text."""
    tally = Counter(verdict.outcome for each in findings for _, verdict in each.verdicts())
    return rendered(
        "lab_report.html.j2",
        package="adapters.lab",
        coded=_coded,
        tally=", ".join(f"{count} {name}" for name, count in sorted(tally.items())),
        findings=[_content(each) for each in findings],
    )


def _coded(text: str) -> Markup:
    """A text, with what stands between backticks as code."""
    parts = [str(escape(visible(part))) for part in text.split("`")]
    inside = [f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts)]
    return Markup("".join(inside))  # each part was escaped above


def _content(finding: Finding) -> dict[str, Any]:
    statistics = finding.statistics()
    keys = list(dict.fromkeys(key for cell in statistics.values() for key in cell))
    rows = [
        (cell, [*(_cell(each.get(key)) for key in keys), (f"{finding.seconds[cell]:.1f}", "")])
        for cell, each in statistics.items()
    ]
    return {
        "experiment": finding.experiment,
        "scale": finding.scale,
        "done": finding.done,
        "wanted": finding.wanted,
        "failed": finding.failed,
        "verdicts": finding.verdicts(),
        "told": finding.told(),
        "untold": finding.untold(),
        "charts": [figure.chart() for figure in finding.figures()],
        "columns": [*(key.replace("_", " ") for key in keys), "seconds of a core"],
        "rows": rows,
    }


def _cell(effect: Effect | None) -> tuple[str, str]:
    """A number, and its interval in small print."""
    if effect is None or not math.isfinite(effect.value):
        return _DASH, ""
    ends = (effect.low, effect.high)
    if not all(map(math.isfinite, ends)):
        return f"{effect.value:.3g}", ""
    return f"{effect.value:.3g}", f"[{ends[0]:.3g}, {ends[1]:.3g}]"
