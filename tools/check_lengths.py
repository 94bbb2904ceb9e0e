"""Count the lines of every file, function and opening docstring of the packages.

Two limits each: what passes the first is named, what passes the second fails. A function's
docstring is not counted, so that nobody pays for explaining; nor are its decorators. A module can
be too short as well: a slice of a few lines that one other module imports is read with that one,
and belongs into it.

Limits and exceptions stand in `pyproject.toml` under `[tool.toolgym.lengths]`. An exception has a
reason, and fails the check as soon as it is not needed any more, or names something that is not
there, so the list cannot outlive its reasons. Exit status 1 when a length must change.
"""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.import_graph import imports, module_of, source_files

ROOT = Path(__file__).resolve().parent.parent
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Measured:
    """A file, or a function as `file::Class.name`, and its length in lines."""

    name: str
    kind: str
    lines: int


def docstring_lines(node: ast.Module | FunctionNode) -> int:
    """Lines that a node's docstring takes up, 0 without one."""
    if ast.get_docstring(node, clean=False) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def functions(node: ast.AST, name: str, separator: str = "::") -> Iterator[Measured]:
    """Every function below a node, those inside other functions and classes too."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FunctionNode | ast.ClassDef):
            yield from functions(child, name, separator)
            continue
        inner = f"{name}{separator}{child.name}"
        if isinstance(child, FunctionNode):
            span = (child.end_lineno or child.lineno) - child.lineno + 1
            yield Measured(inner, "function", span - docstring_lines(child))
        yield from functions(child, inner, ".")


def measure(path: Path, root: Path) -> Iterator[Measured]:
    """The file itself, its opening docstring, and each of its functions."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, filename=str(path))
    name = path.relative_to(root).as_posix()
    yield Measured(name, "file", len(text.splitlines()))
    yield Measured(name, "module-docstring", docstring_lines(tree))
    yield from functions(tree, name)


def complaints(found: list[Measured], limits: dict[str, Any]) -> Iterator[str]:
    """One sentence for each length, and each exception, that is not as `limits` has it."""
    exceptions = dict(limits["exceptions"])
    shortest, longest = limits["module-docstring"]
    for item in found:
        if item.kind == "module-docstring":
            if not shortest <= item.lines <= longest:
                yield (
                    f"{item.name}: its docstring has {item.lines} lines, not {shortest} to "
                    f"{longest}; tell the idea of the module there"
                )
            continue
        allowed, limit = exceptions.pop(item.name, None), limits[item.kind][1]
        ceiling = allowed["lines"] if allowed else limit
        if item.lines > ceiling:
            yield f"{item.name}: this {item.kind} has {item.lines} lines, {ceiling} are allowed"
        elif allowed and item.lines <= limit:
            yield f"{item.name}: {item.lines} lines need no exception; take it off the list"
    for name in exceptions:
        yield f"{name}: an exception for something that is not there; take it off the list"


def warnings(found: list[Measured], limits: dict[str, Any]) -> Iterator[str]:
    """One sentence for each file and function that is long, and not too long."""
    for item in found:
        if item.kind != "module-docstring" and item.name not in limits["exceptions"]:
            first, second = limits[item.kind]
            if first < item.lines <= second:
                yield f"{item.name}: this {item.kind} has {item.lines} lines; near {first} is usual"


def slices(paths: Sequence[Path], root: Path, limits: dict[str, Any]) -> Iterator[str]:
    """One sentence for each short module that only one other of its package imports."""
    names = {module_of(path, root): path.relative_to(root).as_posix() for path in paths}
    importers: dict[str, set[str]] = defaultdict(set)
    for module, targets in imports(root).items():
        for target in targets:
            importers[names[target]].add(names[module])
    listed = dict(limits["slices"])
    for path in paths:
        name = path.relative_to(root).as_posix()
        users = importers[name]
        is_short = len(path.read_text(encoding="utf-8").splitlines()) < limits["slice"]
        same = {user.split("/")[0] for user in users} == {name.split("/")[0]}
        is_slice = is_short and len(users) == 1 and same and not name.endswith("__init__.py")
        reason = listed.pop(name, None)
        if is_slice and reason is None:
            yield (
                f"{name}: fewer than {limits['slice']} lines, and only {min(users)} imports it;"
                " fold it in there"
            )
        elif reason is not None and not is_slice:
            yield f"{name}: no slice any more; take it off the list"
    for name in listed:
        yield f"{name}: a slice that is not there; take it off the list"


def main(root: Path = ROOT) -> int:
    """Print what is too long or too short, and what needs no exception; return the exit status."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    limits = settings["tool"]["toolgym"]["lengths"]
    files = source_files(root)
    found = [item for path in files for item in measure(path, root)]
    for warning in warnings(found, limits):
        print(f"warning: {warning}")
    problems = [*complaints(found, limits), *slices(files, root, limits)]
    for problem in problems:
        print(problem)
    counted = sum(item.kind == "function" for item in found)
    print(
        f"{len(files)} files, {counted} functions, {len(problems)} with a length that must change"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
