"""Experiments that are small enough for tests: arithmetic, and one whose second seed fails."""

from typing import Any

from adapters.lab.experiment import Config, Experiment, Scale
from adapters.lab.figures import Figure, Series
from adapters.lab.prediction import Cells, mean_above
from adapters.lab.units import FIRST_SEED

STEPS = (1.0, 2.0)


def run(config: Config, seed: int) -> dict[str, Any]:
    if seed == config["fails_at"]:
        raise ValueError("this seed is unlucky")
    return {
        "value": config["offset"] + 0.01 * (seed - FIRST_SEED),
        "above": config["offset"] > 0,
        "path": [0, 1],
    }


def cells(scale: Scale) -> dict[str, Config]:
    return {name: {"offset": offset, "fails_at": None} for name, offset in (("a", 1), ("b", 0))}


def failing_cells(scale: Scale) -> dict[str, Config]:
    return {"a": {"offset": 1, "fails_at": FIRST_SEED + 1}, "b": {"offset": 0, "fails_at": None}}


def figures(cells: Cells) -> list[Figure]:
    lines = Figure("lines", "Lines", "Up.", (Series("a", [0.0, None]),), STEPS, "step")
    points = (Series("a", [0.5, None], [0.4, None], [0.7, None]),)
    return [lines, Figure("points", "Points", "Two.", points, ("x", "y"))]


def experiment(name: str = "small", *, fails: bool = False) -> Experiment:
    return Experiment(
        name=name,
        document="000",
        title="A title",
        claim="A claim <with> markup.",
        setting="Arithmetic.",
        prevention="More arithmetic.",
        cells=failing_cells if fails else cells,
        seeds={"smoke": 2, "quick": 4, "full": 8},
        run=run,
        predictions=(mean_above("rises", "a is above b.", "a", "value", than="b", by=0.5),),
        figures=figures,
        seconds=lambda config: 60.0,
    )


EXPERIMENT = experiment()
