"""The map of the packages in `docs/architecture.md`, made from the imports.

The map is the text between two marks; the rest of the page is written by hand. It has a section
for each package: a diagram with an arrow from each subpackage to those that it imports, and a
table with the first sentence of each subpackage's docstring. Arrows that follow from other arrows
are omitted.
"""

import ast
import tomllib
from collections.abc import Mapping, Set
from pathlib import Path

from tools.import_graph import PACKAGES, imports
from tools.make_reference import table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- made by tools/make_docs.py -->", "<!-- end -->"
DRAWN = ("sqlgym", "aflowgym", "adapters", "adapters.training")
"""Packages with a diagram. `toolgym` has too many modules for one, so its layers are listed."""


def architecture_page() -> str:
    """Return the text of the page with a new map.

    Raises:
        RuntimeError: The page has no marks.
    """
    before, mark, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise RuntimeError(f"{PAGE} needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{package_map()}\n\n{END}{after}"


def package_map() -> str:
    """Return a section for each package."""
    arrows, parts = imports(ROOT), []
    for package in PACKAGES:
        parts.append(f"### `{package}`")
        parts += [_inside(folder, arrows) for folder in DRAWN if folder.split(".")[0] == package]
        if package not in DRAWN:
            parts += [_layers(package), _table(package)]
    return "\n\n".join(parts)


def _inside(folder: str, arrows: Mapping[str, Set[str]]) -> str:
    head = [] if "." not in folder else [f"Inside `{folder}`:"]
    return "\n\n".join([*head, diagram(between(arrows, folder)), _table(folder)])


def between(arrows: Mapping[str, Set[str]], folder: str) -> dict[str, set[str]]:
    """Return the arrows between the parts of a package."""

    def part(module: str) -> str:
        rest = module.removeprefix(f"{folder}.")
        return "" if rest == module else rest.split(".")[0]

    found: dict[str, set[str]] = {}
    for module, targets in sorted(arrows.items()):
        if here := part(module):
            there = {part(target) for target in targets} - {"", here}
            found.setdefault(here, set()).update(there)
            for each in there:
                found.setdefault(each, set())
    return found


def diagram(arrows: Mapping[str, Set[str]]) -> str:
    """Return a Mermaid graph without the arrows that follow from others.

    Raises:
        RuntimeError: The arrows have a cycle.
    """
    reached: dict[str, set[str]] = {}

    def below(part: str, path: tuple[str, ...] = ()) -> set[str]:
        if part in path:
            raise RuntimeError(f"a cycle of imports: {' -> '.join((*path, part))}")
        if part not in reached:
            inner = [below(each, (*path, part)) for each in sorted(arrows[part])]
            reached[part] = set(arrows[part]).union(*inner)
        return reached[part]

    lines = ["```mermaid", "flowchart TD"]
    for part in sorted(arrows):
        below(part)
        lines.append(f"    {part}")
    for part, targets in sorted(arrows.items()):
        implied = {far for each in targets for far in reached[each]}
        lines += [f"    {part} --> {each}" for each in sorted(targets - implied)]
    return "\n".join([*lines, "```"])


def _layers(package: str) -> str:
    """Return the layers of a package, the highest first, as `pyproject.toml` lists them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each.get("containers") == [package]]
    return "\n".join(["Layers, the highest first:", "", "```text", *layers, "```"])


def _table(folder: str) -> str:
    """Return a table with the first sentence of each subpackage of a folder."""
    place = ROOT / folder.replace(".", "/")
    rows = []
    for each in sorted(path for path in place.iterdir() if (path / "__init__.py").exists()):
        doc = ast.get_docstring(ast.parse((each / "__init__.py").read_text(encoding="utf-8")))
        first = (doc or "").split("\n\n")[0].replace("\n", " ")
        rows.append((f"`{folder}.{each.name}`", first))
    return table(("package", "contents"), rows)
