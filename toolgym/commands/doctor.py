"""`toolgym doctor`: tell what is installed, what hides us, and what is missing.

Nothing is imported to find out whether it is there, least of all torch: metadata and import specs
tell enough. Only what toolgym itself would load (commands and environments of installed packages)
is loaded, since that is the question. A missing extra is a fact; only what is broken, or stands
before our own packages on the path, is a problem, and the exit status tells it to a script.

Two of our names are shared with other distributions. `adapters` is AdapterHub's: its regular
package hides our namespace folder wherever it comes from another folder than ours. `sqlgym` is an
older SQL environment: it lies in our place, or before it; `__toolgym__` in the package's text
marks ours.
"""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from toolgym.cache import cache_folder
from toolgym.commands import (
    AsJson,
    print_json,
    print_table,
    say,
)
from toolgym.plugins import COMMANDS, ENVIRONMENTS, POLICIES, PluginError, find_plugins

ROOT = Path(__file__).resolve().parents[2]
SHARED_NAMES = ("sqlgym", "aflowgym", "adapters")
REINSTALL = "pip install --force-reinstall --no-deps toolgym"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@dataclass(frozen=True)
class Problem:
    """Something that keeps toolgym from working.

    Attributes:
        what: One sentence.
        cure: What to do, as a command where there is one.
    """

    what: str
    cure: str


@dataclass(frozen=True)
class Report:
    """All that the doctor found; versions are None for what is not installed.

    Attributes:
        python: Version, executable, platform.
        sqlite: Version of the SQLite library.
        base: Distributions that the base install needs, with their versions.
        extras: The same for each extra.
        plugins: Names of what installed packages add, by entry-point group; broken ones left out.
        cache: The folder for built data.
        cores: Cores that this process may use.
        threads: Environment variables that limit threads, where they are set.
        problems: What is wrong; empty when all is well.
    """

    python: dict[str, str]
    sqlite: str
    base: dict[str, str | None]
    extras: dict[str, dict[str, str | None]]
    plugins: dict[str, list[str]]
    cache: str
    cores: int
    threads: dict[str, str]
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Nothing hides us and nothing is broken."""
        return not self.problems

    def missing(self, extra: str) -> list[str]:
        """The distributions of an extra that are not installed."""
        return [name for name, installed in self.extras[extra].items() if installed is None]

    def to_json(self) -> dict[str, Any]:
        """The report as plain data, with `ok` first."""
        return {"ok": self.ok, **asdict(self)}


def examine() -> Report:
    """Look at the interpreter, the installation, the path, the plug-ins and the machine."""
    from toolgym.processes import usable_cores

    base, extras = installed_requirements()
    plugins, broken = load_plugins()
    unmet = [
        Problem(f"{name} is not installed; toolgym needs it.", f"pip install {name}")
        for name, installed in base.items()
        if installed is None
    ]
    cache = cache_folder()
    problems = [*hidden_packages(), *broken, *unmet, *unwritable(cache)]
    return Report(
        python={
            "version": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
        },
        sqlite=sqlite3.sqlite_version,
        base=base,
        extras=extras,
        plugins=plugins,
        cache=str(cache),
        cores=usable_cores(),
        threads={name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        problems=problems,
    )


def installed_requirements() -> tuple[dict[str, str | None], dict[str, dict[str, str | None]]]:
    """Versions of what toolgym asks for: the base install, and each extra by name."""
    base: dict[str, str | None] = {"toolgym": _version_of("toolgym")}
    extras: dict[str, dict[str, str | None]] = {}
    for requirement in _requirements():
        name, extra = _NAME.match(requirement), _EXTRA.search(requirement)
        if name is not None:
            group = extras.setdefault(extra[1], {}) if extra else base
            group[name[0]] = _version_of(name[0])
    return base, extras


def _requirements() -> list[str]:
    try:
        return requires("toolgym") or []
    except PackageNotFoundError:  # run from a bare checkout; `base` says that it is not installed
        return []


def _version_of(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def hidden_packages(root: Path = ROOT) -> Iterator[Problem]:
    """One problem for each package of ours that an import would not find.

    Args:
        root: The folder that our packages lie in.
    """
    for name in SHARED_NAMES:
        ours = root / name
        places = _places_of(name)
        if not places:
            yield Problem(f"{name} cannot be found; it belongs to toolgym.", REINSTALL)
        elif ours.resolve() not in [place.resolve() for place in places]:
            yield Problem(
                f"{name} is found at {places[0]}, which hides ours at {ours}.",
                f"pip uninstall {name}, or take {places[0].parent} off the path (PYTHONPATH)",
            )
        elif name == "sqlgym" and not _is_marked(ours / "__init__.py"):
            yield Problem(
                f"sqlgym at {ours} is another package of that name: it was written over ours.",
                f"pip uninstall sqlgym && {REINSTALL}",
            )


def _places_of(name: str) -> list[Path]:
    """The folders that `import name` would look into; nothing is imported."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # ValueError: something put a module without a spec in place
        return []
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin)] if spec.origin else []
    return [Path(place) for place in spec.submodule_search_locations]


def _is_marked(file: Path) -> bool:
    try:
        return "__toolgym__" in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def load_plugins() -> tuple[dict[str, list[str]], list[Problem]]:
    """Load the commands and environments of installed packages; policies are only looked up.

    Returns:
        Their names by group, and a problem for each that is broken.
    """
    loaded: dict[str, list[str]] = {}
    problems = []
    for group in (COMMANDS, ENVIRONMENTS, POLICIES):
        loaded[group] = []
        for name, plugin in find_plugins(group).items():
            try:
                if group != POLICIES:  # loading one imports its trainer's libraries
                    plugin.load()
            except PluginError as problem:
                cure = f"reinstall or remove {plugin.origin}"
                problems.append(Problem(f"{str(problem)[0].upper()}{str(problem)[1:]}", cure))
            else:
                loaded[group].append(name)
    return loaded, problems


def unwritable(folder: Path) -> Iterator[Problem]:
    """A problem if nothing can be written to the folder, or it cannot be made."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        what = f"The cache folder {folder} cannot be made: {nearest} is a file."
    elif not os.access(nearest, os.W_OK | os.X_OK):
        what = f"The cache folder {folder} cannot be written: {nearest} is not yours to write."
    else:
        return
    yield Problem(what, "set TOOLGYM_CACHE to a folder that can be written")


def command(as_json: AsJson = False) -> None:
    """Tell what is installed, what hides us and what is missing.

    Exits with 1 when something is broken or hides one of the packages; a missing extra is no fault.

    Example:
        toolgym doctor
        toolgym doctor --json
    """
    report = examine()
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(1)


def _print(report: Report) -> None:
    """The report as two columns, and what is wrong below them."""
    from rich.table import Table

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
    print_table(table)
    for problem in report.problems:  # not in the table: a path stays on one line and can be copied
        say(f"problem: {problem.what}\n   cure: {problem.cure}")
    say("All is well." if report.ok else f"{len(report.problems)} to mend.")


def _versions(versions: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version or '(missing)'}" for name, version in versions.items())
