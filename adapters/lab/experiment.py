"""Experiments: cells that differ in one thing, seeds, and claims about their records.

An experiment stands in a module of its own, as its `EXPERIMENT`; `catalogue` lists the modules.
A record hangs on its config and on what `run` reaches (see `code_hash`): a change of a claim or
of a figure does not throw away what was done.

One cell with one seed is a unit of work: `run` makes a record of it, from plain values to plain
values, without a clock, so that the same unit gives the same record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adapters.lab.figures import Figure
from adapters.lab.prediction import Cells, Prediction

Scale = Literal["smoke", "quick", "full"]
"""`smoke`: to see that it runs; `quick`: seeds enough for a verdict; `full`: every cell."""
Config = Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Attributes:
        name: As the command line knows it.
        document: Number of the document that makes the claim, such as "003".
        title: A few words.
        claim: What is claimed, in our words.
        setting: What is done to see whether it holds.
        prevention: What prevents it in this package.
        cells: From a scale to configs by cell; a cell of one name has one config at every scale.
            Names are made of letters, digits and `._=+-`.
        seeds: By scale, how many of each cell.
        run: From a config and a seed to a record; numbers and truths in it are averaged over
            seeds, lists and texts are kept for the figures. A function of a module: records are
            kept as long as nothing changes in it and in what it reaches.
        predictions: The claim as numbers can refute it.
        figures: What to draw of the records; cells and seeds may be missing.
        seconds: That a unit of a config takes on one core, for estimates.
    """

    name: str
    document: str
    title: str
    claim: str
    setting: str
    prevention: str
    cells: Callable[[Scale], Mapping[str, Config]]
    seeds: Mapping[Scale, int]
    run: Callable[[Any, int], Mapping[str, Any]]
    predictions: Sequence[Prediction]
    figures: Callable[[Cells], Sequence[Figure]]
    seconds: Callable[[Config], float]
