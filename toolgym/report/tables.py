"""The tables of a report as rows of text: results, means over seeds, settings."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgym.intervals import LEAST_SEEDS, average
from toolgym.records import usage_text
from toolgym.report.view import NOTHING, RunView, interval, is_drawable, percent


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        head: The name of the row.
        cells: The text of each cell, and the smaller text below it, which may be empty.
        small: The smaller text below the name.
    """

    head: str
    cells: list[tuple[str, str]]
    small: str = ""


def results(runs: Sequence[RunView]) -> list[Row]:
    """Return accuracy, share of answered episodes, share of valid turns and mean score of
    evaluations."""
    rows = []
    for run in runs:
        for on in run.evaluations:
            for when, figures in on.figures.items():
                names = [run.label] if len(runs) > 1 else []
                names += [name for name in (on.name, when if when != "evaluated" else "") if name]
                ends = interval(figures)
                between = f"{100 * ends[0]:.1f} to {percent(ends[1])}" if ends else ""
                shares = [(percent(figures.get(key)), "") for key in ("answered", "validity")]
                score, episodes = figures.get("mean_score"), figures.get("episodes")
                played = (
                    [f"{episodes:,} episode{'s' * (episodes != 1)}"]
                    if isinstance(episodes, int)
                    else []
                )
                used = figures.get("env_usage")
                if isinstance(used, Mapping) and (text := usage_text(used)):
                    played.append(f"models of the environment: {text}")
                cells = [
                    (percent(figures.get("accuracy")), between),
                    *shares,
                    (f"{score:.3f}" if is_drawable(score) else NOTHING, ""),
                ]
                rows.append(Row(", ".join(names) or when, cells, ", ".join([*on.how, *played])))
    return rows


def seeds_together(runs: Sequence[RunView]) -> list[Row]:
    """Return means over runs that differ only in the seed, with a 95 % interval for 3 or more."""
    groups: dict[str, list[RunView]] = {}
    for run in runs:
        same = json.dumps(_without_seeds(run.config), sort_keys=True)
        groups.setdefault(same, []).append(run)
    rows = []
    for group in groups.values():
        for evaluations in zip(*(run.evaluations for run in group), strict=False):
            whens = [
                [each.figures.get(when, {}).get("accuracy") for each in evaluations]
                for when in ("before", "after")
            ]
            gains = [
                b - a for a, b in zip(*whens, strict=True) if is_drawable(a) and is_drawable(b)
            ]
            if len(group) > 1 and gains:
                label = ", ".join(run.label for run in group)
                cells = [_mean([v for v in values if is_drawable(v)]) for values in (*whens, gains)]
                rows.append(Row(label, cells, evaluations[0].name))
    return rows


def _without_seeds(value: Any) -> Any:
    """Return a config without seeds and reproducibility records, at any depth."""
    if isinstance(value, Mapping):
        others = {k: v for k, v in value.items() if k not in ("seed", "reproducibility")}
        return {key: _without_seeds(inner) for key, inner in others.items()}
    return value


def _mean(values: Sequence[float]) -> tuple[str, str]:
    if len(values) < LEAST_SEEDS:
        return percent(statistics.fmean(values)), ""
    found = average(values)
    return percent(found.value), f"{100 * found.low:.1f} to {percent(found.high)}"


def settings(runs: Sequence[RunView]) -> list[Row]:
    """Return all settings by dotted keys, with the values in each run."""
    flat = [dict(_flat(run.config, "")) for run in runs]
    keys = list(dict.fromkeys(key for record in flat for key in record))
    return [Row(key, [(record.get(key, NOTHING), "") for record in flat]) for key in keys]


def differences(rows: Sequence[Row]) -> list[Row]:
    """Return the settings that differ between runs."""
    return [row for row in rows if len(set(row.cells)) > 1]


def _flat(record: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{prefix}{key}", text
