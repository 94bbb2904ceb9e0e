"""The plots of a report as Vega-Lite specifications, JSON objects that contain their data.

Vega provides legends, tooltips and zooming. Untrusted text appears only in data and in lists of
values, never in an expression or a field name, so Vega does not interpret it. Colors are variables
of the style sheet, which has a light and a dark scheme.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from toolgym.report.view import STEP_NAMES, RunView, interval, is_drawable
from toolgym.runs.metrics import METRICS

COLORS: Final = 6
"""Number of series colors, the variables `--s0` to `--s5` of the style sheet."""
POINTS: Final = 250
"""Maximum number of points of a curve. For longer runs, each point is the mean of several steps."""
CROWDED: Final = 3
"""Maximum number of curves in a plot that also shows bands and unsmoothed curves."""
BANDS: Final = {"held_out_accuracy": ("held_out_low", "held_out_high"), "reward": ("reward_std",)}
"""The metrics for the band around a metric: its two ends, or half its width."""
SECTIONS: Final = {
    "Rollouts": ("grpo", ("rollouts",)),
    "Held-out evaluation": ("selection", ("evaluation", "clock")),
    "Dynamic sampling": ("grpo", ("sampling",)),
    "Updates": ("grpo", ("update",)),
    "Guards": ("grpo", ("guards",)),
    "Time and memory": ("grpo", ("clock",)),
    "Supervised steps (SFT)": ("sft", ("update",)),
}
"""Phase and sources of the metrics in each section, by its title."""

Json = dict[str, Any]
Steps = dict[int, Json]
"""The records of a phase, by step."""
CONFIG: Final[Json] = {
    "background": None,
    "font": 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif',
    "view": {"stroke": None},
    "axis": {
        **dict.fromkeys(("labelColor", "titleColor", "domainColor", "tickColor"), "var(--soft)"),
        "gridColor": "var(--line)",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
    },
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False, "tickCount": 5},
    "legend": {"labelColor": "var(--ink)", "labelFontSize": 11, "symbolOpacity": 1},
}
PICK: Final = {
    "name": "pick",
    "select": {"type": "point", "fields": ["series"], "toggle": "true"},
    "bind": "legend",
}
"""Selection in the legend: the first click shows one series alone, further clicks add others."""
ZOOM: Final = {
    "name": "zoom",
    "bind": "scales",
    "select": {
        "type": "interval",
        "encodings": ["x"],
        "zoom": "wheel![event.ctrlKey || event.metaKey]",  # the wheel alone scrolls the page
        "translate": "[pointerdown[event.pointerType !== 'touch'], window:pointerup]"
        " > window:pointermove!",
    },
}
HOVER: Final = {
    "name": "hover",
    "select": {
        "type": "point",
        "fields": ["step"],
        "nearest": True,
        "on": "pointerover",
        "clear": "pointerout",
    },
}


@dataclass(frozen=True)
class Chart:
    """A plot with a title and a caption.

    Attributes:
        title: The title.
        note: The text below the plot.
        words: The first and the last value of each series, for readers who cannot see the plot.
        spec: The Vega-Lite specification.
    """

    title: str
    note: str
    words: str
    spec: Json


@dataclass(frozen=True)
class Section:
    """A section of learning curves.

    Attributes:
        title: The title.
        charts: The plots.
        constant: Names and values of the metrics that are constant in all steps of all runs.
    """

    title: str
    charts: list[Chart]
    constant: list[str]


def curves(runs: Sequence[RunView]) -> list[Section]:
    """Return the plots of all metrics that change over steps, with a curve for each run."""
    logged = [_by_phase(run) for run in runs]
    sections = []
    for title, (phase, sources) in SECTIONS.items():
        section = Section(title, [], [])
        steps = [each.get(phase, {}) for each in logged]
        for key, metric in METRICS.items():
            if phase not in metric.phases or metric.source not in sources:
                continue
            values = [_in_unit(key, r.get(key)) for each in steps for r in each.values()]
            if set(values) <= {None} or key in chain(*BANDS.values()):
                continue
            if len(set(values)) == 1 < len(values):
                section.constant.append(f"{_title(key)} {_text(key, values[0])}")
            else:
                names = [run.label for run in runs] if len(runs) > 1 else [_title(key)]
                section.charts.append(_line_chart(key, phase, list(zip(names, steps, strict=True))))
        if section.charts or section.constant:
            sections.append(section)
    return sections


def _by_phase(run: RunView) -> dict[str, Steps]:
    """Return the records by phase and step; the last record of a step counts."""
    found: dict[str, Steps] = {}
    for record in run.records:
        if record["step"] < 10**9:
            found.setdefault(record["phase"], {})[record["step"]] = record
    return {phase: dict(sorted(steps.items())) for phase, steps in found.items()}


def _in_unit(key: str, value: object) -> float | None:
    """Return a value in the unit of its axis with five digits; None if it cannot be drawn."""
    if not is_drawable(value):
        return None
    if abs(value) < 1e-150:  # Vega's scales underflow
        return 0.0
    return float(f"{value * (100 if METRICS[key].unit == 'share' else 1):.5g}")


def _title(key: str) -> str:
    """Return the title of a metric."""
    return {"kl": "KL divergence", "grad_norm": "gradient norm"}.get(key, key.replace("_", " "))


def _text(key: str, value: float | None) -> str:
    """Return a value with the unit of its axis."""
    unit = METRICS[key].unit
    sign = {"share": " %", "number": "", "count": "", "score": ""}.get(unit, f" {unit}")
    return f"{value:g}{sign}"


def _line_chart(key: str, phase: str, series: Sequence[tuple[str, Steps]]) -> Chart:
    """Return the plot of a metric over steps.

    Args:
        key: The metric.
        phase: The phase of the records.
        series: The name and the records of each curve.
    """
    names = [name for name, _ in series]
    longest = max(len(steps) for _, steps in series)
    merged = math.ceil(longest / POINTS)
    window = max(1, min(25, longest // 10) // merged)
    rows = [row for name, steps in series for row in _points(name, key, steps, merged)]
    unit, meaning = METRICS[key].unit, METRICS[key].meaning.replace("`", "")
    notes = [f"{meaning[0].upper()}{meaning[1:]}."]
    y: Json = {"type": "quantitative", "title": {"share": "%", "number": None}.get(unit, unit)}
    y["scale"] = {"zero": key != "ratio"}
    line: Json = {"type": "line", "clip": True, "strokeWidth": 2.2}
    dashes = [[[1, 0], [6, 3], [2, 3]][place // COLORS % 3] for place in range(len(names))]
    dash = {"strokeDash": _color("series", names, dashes)}
    layers: list[Json] = []
    is_crowded = len(series) > CROWDED
    if merged > 1:
        notes.append(f"Each point is the mean of {merged} steps.")
    if not is_crowded and any("low" in row for row in rows):
        ends = {"y": {"field": "low", **y}, "y2": {"field": "high"}}
        layers.append({"mark": {"type": "area", "opacity": 0.15, "clip": True}, "encoding": ends})
        edges = {_title(edge): METRICS[edge].meaning.replace("`", "") for edge in BANDS[key]}
        notes += [f"Band, {edge}: {meaning}." for edge, meaning in edges.items()]
    if window == 1:
        dots = {**line, "point": True}
        layers.append({"mark": dots, "encoding": {"y": {"field": "value", **y}, **dash}})
    else:
        if not is_crowded:
            thin = {**line, "strokeWidth": 1, "opacity": 0.5}
            layers.append({"mark": thin, "encoding": {"y": {"field": "value", **y}, **dash}})
        layers.append({"mark": line, "encoding": {"y": {"field": "mean", **y}, **dash}})
    layers[0]["params"] = [PICK, ZOOM]
    visible_at = {"condition": {"param": "hover", "empty": False, "value": 0.5}, "value": 0}
    layers.append(
        {
            "transform": [{"pivot": "series", "value": "value", "groupby": ["step"]}],
            "mark": {"type": "rule", "clip": True, "tooltip": {"content": "data"}},
            "encoding": {"opacity": visible_at, "color": {"value": "var(--soft)"}},
            "params": [HOVER],
        }
    )
    mean = {
        "window": [{"op": "mean", "field": "value", "as": "mean"}],
        "frame": [1 - window, 0],
        "groupby": ["series"],
        "sort": [{"field": "step"}],
    }
    x: Json = {"field": "step", "type": "quantitative", "title": STEP_NAMES[phase]}
    x |= {"scale": {"nice": False, "zero": False}, "axis": {"tickMinStep": 1}}
    spec: Json = {
        "data": {"values": rows},
        "transform": [{"filter": {"param": "pick"}}, mean],
        "encoding": {
            "x": x,
            "color": _color("series", names, [f"var(--s{n % COLORS})" for n in range(len(names))]),
        },
        "layer": layers,
        "usermeta": {"axis": STEP_NAMES[phase], "legend": "runs" if len(names) > 1 else ""},
    }
    words: list[str] = []
    for name, steps in series:
        drawn = [v for r in steps.values() if (v := _in_unit(key, r.get(key))) is not None]
        if drawn:
            first, last = _text(key, drawn[0]), _text(key, drawn[-1])
            words.append(f"{name}: {first} to {last} in {len(steps)} steps.")
    title, text = _title(key), " ".join(words)
    return Chart(title[0].upper() + title[1:], " ".join(notes), text, _framed(spec, text, 190))


def _points(name: str, key: str, steps: Steps, merged: int) -> Iterator[Json]:
    """Yield the points of a curve, each the mean of `merged` steps."""

    def mean(key: str) -> float | None:
        drawn = [v for _, record in part if is_drawable(v := record.get(key))]
        return _in_unit(key, math.fsum(v / len(drawn) for v in drawn)) if drawn else None

    records = list(steps.items())
    for start in range(0, len(records), merged):
        part = records[start : start + merged]
        row: Json = {"series": name, "step": part[-1][0], "value": mean(key)}
        match [row["value"], *(mean(each) for each in BANDS.get(key, ()))]:
            case [float(value), float(spread)]:
                row |= {"low": value - spread, "high": value + spread}
            case [float(), float(low), float(high)]:
                row |= {"low": low, "high": high}
        yield row


def _color(field: str, names: Sequence[str], values: Sequence[Any]) -> Json:
    """Return the encoding of a field by colors or dashes, with a legend for several names."""
    legend = {"orient": "top", "columns": 2, "labelLimit": {"expr": "width / 2 - 30"}}
    scale = {"domain": list(names), "range": list(values)}
    shown = legend if len(names) > 1 else None
    return {"field": field, "type": "nominal", "title": None, "scale": scale, "legend": shown}


def _framed(spec: Json, words: str, height: int) -> Json:
    frame = {"width": "container", "height": height, "config": CONFIG, "usermeta": {}}
    frame["autosize"] = {"contains": "padding", "resize": True}
    return {"description": words, **frame, **spec}


def accuracy_chart(runs: Sequence[RunView]) -> Chart | None:
    """Return the plot of all accuracies with their 95 % intervals; None without evaluations."""
    rows: list[Json] = []
    for run in runs:
        for on in run.evaluations:
            names = [run.label] if len(runs) > 1 else []
            name = ", ".join([*names, on.name] if on.name else names) or "accuracy"
            for when, figures in on.figures.items():
                if is_drawable(value := figures.get("accuracy")):
                    ends = interval(figures) or (value, value)
                    low, value, high = (round(100 * each, 1) for each in (ends[0], value, ends[1]))
                    rows.append({"evaluation": name, "when": when, "accuracy": value})
                    rows[-1] |= {"low": low, "high": high}
    if not rows:
        return None
    whens = list(dict.fromkeys(row["when"] for row in rows))
    x = {"type": "quantitative", "title": "accuracy (%)", "scale": {"domain": [0, 100]}}
    y: Json = {"field": "evaluation", "type": "nominal", "title": None, "sort": None}
    y["axis"] = {"labelLimit": {"expr": "max(90, width / 3)"}, "offset": 8}
    rule: Json = {"type": "rule", "strokeWidth": 2, "tooltip": {"content": "data"}}
    point = {"type": "point", "filled": True, "size": 80, "opacity": 1, "tooltip": rule["tooltip"]}
    spec = {
        "data": {"values": rows},
        "encoding": {
            "y": y,
            "yOffset": {"field": "when", "scale": {"domain": whens}},
            "color": _color("when", whens, ["var(--s5)", "var(--s0)"][-len(whens) :]),
        },
        "layer": [
            {"mark": rule, "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}}},
            {"mark": point, "encoding": {"x": {"field": "accuracy", **x}}},
        ],
    }
    words = " ".join(f"{row['evaluation']}, {row['when']}: {row['accuracy']} %." for row in rows)
    note = "Points are accuracies, and bars are 95 % confidence intervals."
    return Chart("Accuracy", note, words, _framed(spec, words, 22 * len(rows)))
