"""`toolgym doctor`: check the installation.

A problem is a condition that prevents toolgym from working: a missing dependency, a package of
another distribution that hides one of toolgym's packages, a plug-in that cannot be loaded, or a
cache folder that cannot be written to. A missing extra is not a problem. Commands and environments
of installed packages are imported; libraries such as torch are not.

Two of our package names are also used by other distributions. AdapterHub's `adapters` is a regular
package and hides our namespace folder. Another distribution named `sqlgym` can be installed into
our folder, or into a folder earlier on the path. `__toolgym__` in the source marks our package.
"""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from toolgym.cache import cache_folder
from toolgym.commands import AsJson, print_json, print_table, say
from toolgym.plugins import COMMANDS, ENVIRONMENTS, PluginError, find_plugins

ROOT = Path(__file__).resolve().parents[2]
SHARED_NAMES = ("sqlgym", "aflowgym", "adapters")
REINSTALL = "pip install --force-reinstall --no-deps toolgym"
FOR_DEVELOPERS = ("bench", "dev", "docs")  # extras that are useful in a checkout only
_REQUIREMENT = re.compile(r"""([\w.-]+).*?(?:extra\s*==\s*['"]([^'"]+)['"].*)?$""")

Problem = dict[str, str]
"""A problem in one sentence (`what`) and its solution, a command if possible (`cure`)."""


def command(as_json: AsJson = False) -> None:
    """Check the installation and print how to fix problems.

    Prints versions, extras, plug-ins and the cache folder. The exit status is 1 if there is a
    problem. A missing extra does not count as a problem.

    Example:
        toolgym doctor
        toolgym doctor --json
    """
    report = examine()
    if as_json:
        print_json(report)
    else:
        _print(report)
    if not report["ok"]:
        raise typer.Exit(1)


def examine() -> dict[str, Any]:
    """Check the interpreter, installed packages, plug-ins and the cache folder.

    Returns:
        A dict with `ok`, `python` and `sqlite` (versions), `base` and `extras` (the version of each
        distribution that the base install and each extra require, or None if it is not installed),
        `plugins` (names by entry-point group, without plug-ins that cannot be loaded), `cache` (the
        folder), and `problems`.
    """
    base: dict[str, str | None] = {"toolgym": _version_of("toolgym")}
    extras: dict[str, dict[str, str | None]] = {}
    try:
        lines = requires("toolgym") or []
    except PackageNotFoundError:  # a bare checkout
        lines = []
    for line in lines:
        if match := _REQUIREMENT.match(line):
            name, extra = match.groups()
            if extra not in FOR_DEVELOPERS:
                (extras.setdefault(extra, {}) if extra else base)[name] = _version_of(name)
    plugins, problems = load_plugins()
    problems += hidden_packages()
    problems += [
        {"what": f"The required package {name} is missing.", "cure": f"pip install {name}"}
        for name, installed in base.items()
        if installed is None
    ]
    cache = cache_folder()
    above = next(place for place in (cache, *cache.parents) if place.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        why = "no permission to write there" if above.is_dir() else "it is a file"
        problems.append(
            {
                "what": f"The cache folder {cache} cannot be written: {above}: {why}.",
                "cure": "set TOOLGYM_CACHE to a writable folder",
            }
        )
    return {
        "ok": not problems,
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "sqlite": sqlite3.sqlite_version,
        "base": base,
        "extras": extras,
        "plugins": plugins,
        "cache": str(cache),
        "problems": problems,
    }


def _version_of(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def load_plugins() -> tuple[dict[str, list[str]], list[Problem]]:
    """Load the commands and environments of installed packages.

    Returns:
        The names of the loaded plug-ins by group, and a problem for each plug-in that cannot be
        loaded.
    """
    loaded: dict[str, list[str]] = {}
    problems = []
    for group in (COMMANDS, ENVIRONMENTS):
        loaded[group] = []
        for name, plugin in find_plugins(group).items():
            try:
                plugin.load()
                loaded[group].append(name)
            except PluginError as problem:
                text = str(problem)
                cure = f"reinstall or remove {plugin.origin}"
                problems.append({"what": text[0].upper() + text[1:], "cure": cure})
    return loaded, problems


def hidden_packages(root: Path = ROOT) -> Iterator[Problem]:
    """Yield a problem for each package of toolgym that cannot be imported.

    Args:
        root: The folder that contains toolgym's packages.
    """
    for name in SHARED_NAMES:
        ours = root / name
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):  # ValueError: a module without a spec has that name
            spec = None
        found = [] if spec is None else list(spec.submodule_search_locations or [spec.origin or ""])
        if not found:
            yield {"what": f"The package {name} of toolgym is missing.", "cure": REINSTALL}
        elif ours.resolve() not in [Path(place).resolve() for place in found]:
            yield {
                "what": f"The package {name} at {found[0]} hides that of toolgym at {ours}.",
                "cure": f"pip uninstall {name}, or remove {Path(found[0]).parent} from PYTHONPATH",
            }
        elif name == "sqlgym" and not _is_marked(ours / "__init__.py"):
            yield {
                "what": f"Another package named sqlgym has overwritten that of toolgym at {ours}.",
                "cure": f"pip uninstall sqlgym && {REINSTALL}",
            }


def _is_marked(file: Path) -> bool:
    return file.is_file() and "__toolgym__" in file.read_text("utf-8", "replace")


def _print(report: dict[str, Any]) -> None:
    from rich.table import Table

    base, problems = report["base"], report["problems"]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("toolgym", f"{base['toolgym']} ({ROOT})")
    table.add_row("python", "{version} ({executable})".format(**report["python"]))
    table.add_row("sqlite", report["sqlite"])
    needed = [f"{name} {base[name] or '(missing)'}" for name in base if name != "toolgym"]
    table.add_row("required", ", ".join(needed))
    incomplete = []
    for extra, versions in report["extras"].items():
        missing = [name for name, installed in versions.items() if installed is None]
        incomplete += [extra] if missing else []
        cure = f"missing {', '.join(missing)}: pip install 'toolgym[{extra}]'"
        table.add_row(f"extra {extra}", cure if missing else "installed")
    for group, names in report["plugins"].items():
        table.add_row(group.partition(".")[2], ", ".join(names) or "none")
    table.add_row("cache", report["cache"])
    print_table(table)
    for problem in problems:  # not in the table, so that a path stays on one line
        say(f"problem: {problem['what']}\n    fix: {problem['cure']}")
    if problems:
        return say(f"{len(problems)} problem{'s' * (len(problems) != 1)} found.")
    optional = f" Optional extras not installed: {', '.join(incomplete)}." if incomplete else ""
    say(f"No problem found.{optional}")
