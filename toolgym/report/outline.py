"""What a plot over steps is made of, before any run is looked at.

A series is one metric with its name and meaning. A single run's plot may hold several that are read
together; several runs need the legend for themselves, so then each series has a plot of its own,
with its name as the title and its meaning as the note. A series that is marked quiet is left out
where it has one value throughout, and told in words: most runs never lose a rollout to a fault, and
flat lines would hide the plots that tell something.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolgym.report.axes import Unit


@dataclass(frozen=True)
class Series:
    """One metric in a plot.

    Attributes:
        key: Its key in the records.
        name: In legends, and as the title where it has a plot for itself.
        meaning: One sentence for a reader who meets it for the first time.
        is_quiet: Not drawn where it never changes.
    """

    key: str
    name: str
    meaning: str
    is_quiet: bool = False


@dataclass(frozen=True)
class Band:
    """A metric that is drawn as a band around another.

    Attributes:
        key: Its key in the records; the band reaches as far to either side.
        meaning: One sentence.
    """

    key: str
    meaning: str


@dataclass(frozen=True)
class Plot:
    """One plot over steps.

    Attributes:
        title: Stands above it.
        series: What it shows.
        note: What is to be said of all its series together.
        unit: How values are written.
        phase: Whose steps.
        spread: Drawn around the first series.
        is_smoothed: Each step is so noisy that a running mean is needed to see where it goes.
        from_zero: The vertical axis begins at 0, or shows it.
    """

    title: str
    series: tuple[Series, ...]
    note: str = ""
    unit: Unit = "number"
    phase: str = "grpo"
    spread: Band | None = None
    is_smoothed: bool = True
    from_zero: bool = True


@dataclass(frozen=True)
class Section:
    """Plots that are read together."""

    title: str
    plots: tuple[Plot, ...]
