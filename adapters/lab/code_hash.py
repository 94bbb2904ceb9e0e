"""A number for the code that a unit of work depends on, so that old results are not taken for new.

From a module on, every import of ours is followed in its source, also those inside functions; of
the families of environments, which are reached by an id, everything counts. So a change in one
experiment does not throw away the work of the others. Nothing is imported.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

OURS: Final = ("adapters", "toolgym")
JUDGING: Final = (
    *("adapters.lab.experiment", "adapters.lab.prediction", "adapters.lab.intervals"),
    *("adapters.lab.figures", "toolgym.report"),
)
"""What only looks at records: no record depends on it."""


@functools.cache
def code_hash(module: str) -> str:
    """The hash of a module's source, of all of ours that it imports, and of the families."""
    found = dict(_families())
    waiting = [module]
    while waiting:
        name = waiting.pop()
        source = None if name in found else _source(name)
        if source is not None:
            found[name] = source
            waiting += [each for each in _imports(source) if _counts(each)]
    whole = hashlib.sha256()
    for name, source in sorted(found.items()):
        whole.update(f"{name}\n{len(source)}\n".encode() + source)
    return whole.hexdigest()


def _counts(module: str) -> bool:
    return module.partition(".")[0] in OURS and not module.startswith(JUDGING)


@functools.cache
def _families() -> tuple[tuple[str, bytes], ...]:
    """Every file of every package that brings environments, by its name."""
    entries = {
        entry.value.partition(".")[0] for entry in entry_points(group="toolgym.environments")
    }
    return tuple(
        (f"{family}/{file.relative_to(root).as_posix()}", file.read_bytes())
        for family in sorted(entries)
        for root in _roots(family)
        for file in sorted(root.rglob("*.py"))
    )


@functools.cache
def _roots(package: str) -> tuple[Path, ...]:
    spec = importlib.util.find_spec(package)
    places = None if spec is None else spec.submodule_search_locations
    return tuple(map(Path, places or ()))


def _source(name: str) -> bytes | None:
    """The source of a module; None where the name is not a module's but of something in one."""
    package, *parts = name.split(".")
    for root in _roots(package):
        place = root.joinpath(*parts)
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if file.is_file():
                return file.read_bytes()
    return None


def _imports(source: bytes) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
