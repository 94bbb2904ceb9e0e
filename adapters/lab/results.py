"""What came of experiments, as one object: verdicts, statistics of every cell, and what is missing.

There is no clock, no path and no machine in it, and its keys are sorted: the same seeds give the
same bytes. It is made of the records on disk alone, whoever has done them and when, beside the
failures of the run that makes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from adapters.lab.experiment import Experiment, Scale
from adapters.lab.figures import Figure
from adapters.lab.intervals import Effect, average, share
from adapters.lab.prediction import Cells, Prediction, Verdict
from adapters.lab.runner import Failure
from adapters.lab.units import Unit, done
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
        """How many units there are."""
        return sum(map(len, self.cells.values()))

    def verdicts(self) -> list[tuple[Prediction, Verdict]]:
        """Each prediction with what became of it."""
        smoke = self.scale == "smoke"
        predictions = self.experiment.predictions
        return [(each, each.verdict(self.cells, smoke=smoke)) for each in predictions]

    def told(self) -> list[tuple[Prediction, Verdict]]:
        """Those that say something: at smoke size only what has no chance in it."""
        found = self.verdicts()
        return [each for each in found if self.scale != "smoke" or each[1].effect.exact]

    def untold(self) -> int:
        """How many predictions are left out of `told`."""
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
    """What is on disk of an experiment's units."""
    own = [unit for unit in units if unit.experiment == experiment.name]
    cells: dict[str, dict[int, Mapping[str, Any]]] = {unit.cell: {} for unit in own}
    took: dict[str, list[float]] = {}
    for unit in own:
        kept = done(unit, out)
        if kept is not None:
            cells[unit.cell][unit.seed] = kept.record
            took.setdefault(unit.cell, []).append(kept.seconds)
    failed = [each for each in failures if each.unit.experiment == experiment.name]
    seconds = {cell: median(each) for cell, each in took.items()}
    return Finding(experiment, scale, cells, len(own), failed, seconds)


def write_results(findings: Iterable[Finding], out: Path) -> Path:
    """Write `results.json` into a folder, which is made; the file."""
    told = {each.experiment.name: to_json(each) for each in findings}
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(plain(told, "results"), indent=1, sort_keys=True, ensure_ascii=False)
    replace_file(out / FILE, [encode(text + "\n")])
    return out / FILE


def to_json(found: Finding) -> dict[str, Any]:
    """One experiment's part of the object."""
    experiment = found.experiment
    return {
        "title": experiment.title,
        "document": experiment.document,
        "claim": experiment.claim,
        "setting": experiment.setting,
        "prevention": experiment.prevention,
        "scale": found.scale,
        "units": {"wanted": found.wanted, "done": found.done},
        "failed": [
            {"cell": each.unit.cell, "seed": each.unit.seed, "error": each.error}
            for each in found.failed
        ],
        "predictions": [_judged(*each) for each in found.verdicts()],
        "figures": [
            {"name": each.name, "title": each.title, "note": each.note} for each in found.figures()
        ],
        "cells": {
            cell: {key: _effect(effect) for key, effect in keys.items()}
            for cell, keys in found.statistics().items()
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
    found = {}
    for key in keys:
        values = [row[key] for row in rows if row.get(key) is not None]
        if all(isinstance(value, bool) for value in values) and values:
            found[key] = share(sum(values), len(values))
        elif all(isinstance(value, int | float) and math.isfinite(value) for value in values):
            found[key] = average([float(value) for value in values])
    return found
