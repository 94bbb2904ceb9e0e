"""The imports between the modules of this repository, read from their source.

Imports inside functions and for type hints count too.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("toolgym", "sqlgym", "aflowgym", "adapters")


def source_files(root: Path) -> list[Path]:
    """Return the Python files of the packages in a checkout, sorted."""
    return sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))


def module_of(path: Path, root: Path) -> str:
    """Return the dotted name of a file; an `__init__.py` has the name of its folder."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(root: Path) -> dict[str, set[str]]:
    """Return, for each module of a checkout, the other modules of the checkout that it imports."""
    files = {module_of(path, root): path for path in source_files(root)}
    found: dict[str, set[str]] = {module: set() for module in files}
    for module, path in files.items():
        for name in _names(path):
            while name and name not in files:  # a name in a module stands for the module
                name = name.rpartition(".")[0]
            if name and name != module:
                found[module].add(name)
    return found


def _names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
