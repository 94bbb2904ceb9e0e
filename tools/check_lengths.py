"""Count the lines of every file, function and opening docstring of the packages.

The limits and the list of exceptions stand in `pyproject.toml` under `[tool.toolgym.lengths]`.
A function's docstring is not counted, so that nobody pays for explaining; nor are its decorators.
An exception says how long its file or function may be, and why; it fails the check as soon as it
is not needed any more, or names something that is not there, so the list cannot outlive its
reasons. Exit status 1 when anything is too long.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("toolgym", "sqlgym", "aflowgym", "adapters")
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
        allowed, limit = exceptions.pop(item.name, None), limits[item.kind]
        ceiling = allowed["lines"] if allowed else limit
        if item.lines > ceiling:
            yield f"{item.name}: this {item.kind} has {item.lines} lines, {ceiling} are allowed"
        elif allowed and item.lines <= limit:
            yield f"{item.name}: {item.lines} lines need no exception; take it off the list"
    for name in exceptions:
        yield f"{name}: an exception for something that is not there; take it off the list"


def main(root: Path = ROOT) -> int:
    """Print what is too long or needs no exception; return the exit status."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    files = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    found = [item for path in files for item in measure(path, root)]
    problems = list(complaints(found, settings["tool"]["toolgym"]["lengths"]))
    for problem in problems:
        print(problem)
    counted = sum(item.kind == "function" for item in found)
    print(
        f"{len(files)} files, {counted} functions, {len(problems)} with a length that must change"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
