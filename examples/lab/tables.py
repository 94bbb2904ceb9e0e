"""The command line and the tables of the experiments: means over seeds with 95 % intervals."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from toolgym.errors import ConfigurationError
from toolgym.intervals import LEAST_SEEDS, average, share

Arm = TypeVar("Arm")
Numbers = Mapping[str, float | bool]


def arguments(about: str | None, **sizes: int) -> argparse.Namespace:
    """Parse the command line.

    Args:
        about: Docstring of the experiment; its first line is the description.
        sizes: An integer option for each name, such as `--seeds`, with its default.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size, help="default %(default)s")
    return parser.parse_args()


def compare(
    arms: Mapping[str, Arm],
    run: Callable[[Arm, int], Numbers],
    columns: Mapping[str, str],
    seeds: int,
) -> None:
    """Run each arm with each seed, and print a row for each arm.

    Args:
        arms: Arms by the name of the row.
        run: Function from an arm and a seed to numbers. Booleans are averaged to a share.
        columns: Titles of columns by the keys of the numbers.
        seeds: Number of seeds, from 0.

    Raises:
        ConfigurationError: There are fewer than three seeds.
    """
    if seeds < LEAST_SEEDS:
        raise ConfigurationError(
            f"{seeds} seeds cannot be compared, since means over fewer than {LEAST_SEEDS} have no"
            f" useful interval: give --seeds {LEAST_SEEDS} or more."
        )
    found: dict[str, list[Numbers]] = {name: [] for name in arms}
    for seed in range(seeds):  # so that the arms of a seed share their initial weights
        for name, arm in arms.items():
            found[name].append(run(arm, seed))
    rows = [
        [name, *(_cell([run[key] for run in runs]) for key in columns)]
        for name, runs in found.items()
    ]
    print_table([f"{seeds} seeds", *columns.values()], rows)


def _cell(values: Sequence[float | bool]) -> str:
    is_share = all(isinstance(value, bool) for value in values)
    effect = share(sum(values), len(values)) if is_share else average(list(map(float, values)))
    value, low, high = (_written(each) for each in (effect.value, effect.low, effect.high))
    return f"{value} [{low}, {high}]"


def _written(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for cells in (titles, ["-" * width for width in widths], *rows):
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print("|", " | ".join(padded), "|")
