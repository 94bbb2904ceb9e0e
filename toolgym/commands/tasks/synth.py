"""`toolgym tasks synth`: write tasks for databases that have none.

The family of the environment does the work, since the core knows no databases; here its options are
read and its summary is printed: what was kept, what was rejected and why, and what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from toolgym.commands import AsJson, console, family_of
from toolgym.commands.tasks.options import EXPLORE, Environment
from toolgym.errors import ConfigurationError
from toolgym.family import SynthesisOrder

Sources = Annotated[
    list[Path], typer.Argument(metavar="DATABASE", help="SQLite files, or folders of them.")
]
Out = Annotated[Path, typer.Option(help="The folder to write.")]
Number = Annotated[int, typer.Option(min=1, help="Tasks of each database at most.")]
Seed = Annotated[int, typer.Option(min=0, help="Chooses among the tasks that can be written.")]
Shares = Annotated[
    str | None, typer.Option(help="Shares of the levels, such as easy=0.3,medium=0.4,hard=0.3.")
]
Tables = Annotated[
    str | None, typer.Option(help="Tables to ask about, such as singer,song; all without it.")
]
Variants = Annotated[int, typer.Option(min=1, help="Tasks that may differ in their values only.")]
Splits = Annotated[str, typer.Option(help="Splits and their shares, such as train=0.9,dev=0.1.")]
Link = Annotated[bool, typer.Option("--link", help="Link to the databases instead of copying.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a folder that synth has written.")]


def synth(
    sources: Sources,
    out: Out,
    n: Number = 500,
    seed: Seed = 0,
    hardness: Shares = None,
    tables: Tables = None,
    variants: Variants = 4,
    splits: Splits = "dev=1",
    link: Link = False,
    force: Force = False,
    env_id: Environment = EXPLORE,
    as_json: AsJson = False,
) -> None:
    """Write tasks for databases that have none, as a folder in the Spider layout.

    Several splits divide three databases or more by database, fewer by what is asked: no question
    and no query, whatever its values, occurs in two. The same seed gives the same tasks.

    Example:
        toolgym tasks synth my.db --out tasks
        toolgym tasks synth my.db --out tasks --n 2000 --splits train=0.8,dev=0.2 --force
    """
    from toolgym.commands.evaluate import progress_bar

    options: dict[str, Any] = {"n": n, "seed": seed, "variants": variants}
    if hardness is not None:
        options["hardness"] = shares_of("--hardness", hardness)
    if tables is not None:
        options["tables"] = [name.strip() for name in tables.split(",") if name.strip()]
    shares = shares_of("--splits", splits)
    order = SynthesisOrder(tuple(sources), out, shares, options, link, force)
    with progress_bar("tasks written") as progress:
        told = family_of(env_id).synthesize(order, progress)
    if as_json:
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        _print(told)


def shares_of(option: str, text: str) -> dict[str, float]:
    """The shares in a text such as `train=0.9,dev=0.1`.

    Raises:
        ConfigurationError: It is not of that form.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        try:
            shares[name.strip()] = float(number)
        except ValueError:
            raise ConfigurationError(
                f"{option} must be of the form NAME=SHARE,NAME=SHARE, got {text!r}."
            ) from None
    return shares


def _print(told: Mapping[str, Any]) -> None:
    sources = told["sources"]
    levels = list(dict.fromkeys(level for one in sources.values() for level in one["by_hardness"]))
    table = Table("database", "candidates", "kept", *levels, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, source in sources.items():
        numbers = [source["candidates"], source["kept"]]
        numbers += [source["by_hardness"].get(level, 0) for level in levels]
        table.add_row(name, *(f"{number:,}" for number in numbers))
    console().print(table)
    for name, source in sources.items():
        _print_reasons(name, source)
    for name, why in told["refused"].items():
        typer.echo(f"\n{name}: no tasks: {why}")
    counted = ", ".join(f"{count:,} {split}" for split, count in told["splits"].items())
    dropped = f" ({told['dropped']:,} left out that two would share)" if told["dropped"] else ""
    typer.echo(f"\n{told['out']}: {counted}{dropped}")


def _print_reasons(name: str, source: Mapping[str, Any]) -> None:
    """Why candidates became no tasks, and what is not asked about."""
    rejected = sorted(source["rejected"].items(), key=lambda pair: (-pair[1], pair[0]))
    reasons = ", ".join(f"{count:,} {code}" for code, count in rejected if count)
    typer.echo(f"\n{name}: rejected: {reasons or 'none'}")
    for level, why in source["missing"].items():
        typer.echo(f"  too few {level}: {why}")
    for left_out, why in source["left_out"].items():
        typer.echo(f"  left out: {left_out}: {why}")
