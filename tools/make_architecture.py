"""The map of the rooms in `docs/architecture.md`, made from the imports.

The page is written by hand but for what stands between its two marks: for each package a picture of
its rooms, with an arrow from each to those that it imports, and a table with the sentence that each
room begins with. An arrow that follows from two others is left out of a picture.
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
"""Folders of which the rooms are drawn. Those of `toolgym` are many small ones in many layers."""


def architecture_page() -> str:
    """The text of the page, its map made anew.

    Raises:
        RuntimeError: The page has lost its marks.
    """
    before, mark, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise RuntimeError(f"{PAGE} needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{rooms_map()}\n\n{END}{after}"


def rooms_map() -> str:
    """The picture of the packages, then a section for each."""
    arrows = imports(ROOT)
    parts = [picture(between(arrows, ""))]
    for package in PACKAGES:
        parts.append(f"### `{package}`")
        parts += [_inside(folder, arrows) for folder in DRAWN if folder.split(".")[0] == package]
        if package not in DRAWN:
            parts += [_layers(package), _sentences(package)]
    return "\n\n".join(parts)


def _inside(folder: str, arrows: Mapping[str, Set[str]]) -> str:
    head = [] if "." not in folder else [f"Inside `{folder}`:"]
    return "\n\n".join([*head, picture(between(arrows, folder)), _sentences(folder)])


def between(arrows: Mapping[str, Set[str]], folder: str) -> dict[str, set[str]]:
    """The arrows between what lies in a folder; of the root, between the packages."""

    def room(module: str) -> str:
        rest = module.removeprefix(f"{folder}.") if folder else module
        return "" if folder and rest == module else rest.split(".")[0]

    found: dict[str, set[str]] = {}
    for module, targets in sorted(arrows.items()):
        if here := room(module):
            there = {room(target) for target in targets} - {"", here}
            found.setdefault(here, set()).update(there)
            for each in there:
                found.setdefault(each, set())
    return found


def picture(arrows: Mapping[str, Set[str]]) -> str:
    """A graph in the language of Mermaid, without the arrows that follow from others.

    Raises:
        RuntimeError: There is a circle.
    """
    reached: dict[str, set[str]] = {}

    def below(room: str, path: tuple[str, ...] = ()) -> set[str]:
        if room in path:
            raise RuntimeError(f"a circle: {' -> '.join((*path, room))}")
        if room not in reached:
            inner = [below(each, (*path, room)) for each in sorted(arrows[room])]
            reached[room] = set(arrows[room]).union(*inner)
        return reached[room]

    lines = ["```mermaid", "flowchart TD"]
    for room in sorted(arrows):
        below(room)
        lines.append(f"    {room}")
    for room, targets in sorted(arrows.items()):
        implied = {far for each in targets for far in reached[each]}
        lines += [f"    {room} --> {each}" for each in sorted(targets - implied)]
    return "\n".join([*lines, "```"])


def _layers(package: str) -> str:
    """The layers of a package from the top, as its contract in `pyproject.toml` has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each.get("containers") == [package]]
    return "\n".join(["From the top:", "", "```text", *layers, "```"])


def _sentences(folder: str) -> str:
    """A table of the rooms of a folder: the first sentence of each, and how many files it has."""
    place = ROOT / folder.replace(".", "/")
    rooms = sorted(path for path in place.iterdir() if any(path.glob("*.py")))
    rows = []
    for room in rooms:
        files = sorted(room.rglob("*.py"))
        doc = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
        first = (doc or "").split("\n\n")[0].replace("\n", " ")
        rows.append((f"`{folder}.{room.name}`", first, f"{len(files)}"))
    return table(("room", "what it is", "files"), rows)
