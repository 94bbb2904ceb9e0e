"""`toolgym doctor`: tell what is installed, what hides us, and what is missing.

The facts are found by `toolgym.doctor`; here they are put on a page. Its exit status lets a
script ask whether the base install works.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from toolgym.commands import AsJson, console

if TYPE_CHECKING:
    from toolgym.doctor import Report


def command(
    as_json: AsJson = False,
) -> None:
    """Tell what is installed, what hides us and what is missing.

    Exits with 1 when something is broken or hides one of the packages; a missing extra is no fault.

    Example:
        toolgym doctor
    """
    from toolgym.doctor import examine

    report = examine()
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(1)


def _print(report: Report) -> None:
    """The report as two columns, and what is wrong below them."""
    table = Table(box=None, show_header=False, pad_edge=False)
    python = report.python
    table.add_row("python", f"{python['version']} ({python['executable']}) on {python['platform']}")
    table.add_row("sqlite", report.sqlite)
    table.add_row("base", _versions(report.base))
    for extra, versions in report.extras.items():
        table.add_row(f"extra {extra}", _versions(versions))
        if report.missing(extra):
            table.add_row("", f"add what is missing: pip install 'toolgym[{extra}]'")
    for group, names in report.plugins.items():
        table.add_row(group.partition(".")[2], ", ".join(names) or "none")
    limits = "".join(f", {name}={value}" for name, value in report.threads.items())
    table.add_row("cores", f"{report.cores}{limits}")
    table.add_row("cache", report.cache)
    console().print(table)
    for problem in report.problems:  # not in the table: a path stays on one line and can be copied
        typer.echo(f"problem: {problem.what}\n   cure: {problem.cure}")
    typer.echo("All is well." if report.ok else f"{len(report.problems)} to mend.")


def _versions(found: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version or '(missing)'}" for name, version in found.items())
