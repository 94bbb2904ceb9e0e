"""Definitions of a module, their references, and the effects of importing it: read, not run.

A statement of a module counts for the names that it binds. Which of ours a name stands for is
followed through imports, `import *` and attributes of modules; what cannot be followed stands for
the whole module. Statements that do something when a module is imported (calls, loops, decorators
that are ours, classes with a metaclass) are told apart, since nobody has to name them.
"""

from __future__ import annotations

import ast
import importlib.util
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_ONLY_READ: Final = frozenset(
    ("items", "keys", "values", "get", "index", "count", "copy", "format", "join", "split")
)
"""Methods that change nothing, so that a constant may be made with them."""
_PLAIN: Final = frozenset(
    ("functools", "dataclasses", "contextlib", "typing", "abc", "enum", "torch", "pydantic")
)
"""Packages whose decorators give back what they are given, and note it nowhere."""
_BARE: Final = frozenset(("property", "classmethod", "staticmethod"))
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Imported:
    """The target of an imported name: a module, or a name in a module."""

    module: str
    name: str | None = None


@dataclass
class Module:
    """One module of ours.

    Attributes:
        body: Its statements, without docstrings.
        bound: By name, the statements that bind it and the imports that do.
        stars: Modules that it imports everything of.
        imports: What is imported when it is.
        acting: The statements that do more than to bind names.
    """

    name: str
    body: list[ast.stmt] = field(default_factory=list)
    bound: dict[str, list[int | Imported]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    imports: list[Imported] = field(default_factory=list)
    acting: list[int] = field(default_factory=list)


def parse(name: str, source: bytes, *, is_package: bool) -> Module:
    """Read a module.

    Args:
        is_package: It is an `__init__`, to which relative imports are relative.
    """
    module = Module(name, [each for each in ast.parse(source).body if not is_text(each)])
    home = name if is_package else name.rpartition(".")[0]
    for place, statement in enumerate(module.body):
        for each in _at_import(statement):
            if isinstance(each, ast.Import | ast.ImportFrom):
                _bind_import(module, each, home, runs=not _is_for_types(statement))
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            for bound in _stored(statement):
                module.bound.setdefault(bound, []).append(place)
    module.acting = [i for i, each in enumerate(module.body) if _acts(module, each)]
    return module


def imported(node: ast.Import | ast.ImportFrom, home: str) -> Iterator[tuple[str, Imported]]:
    """The names that an import binds, with what they stand for; `home` is the package."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            whole = Imported(alias.name if alias.asname else alias.name.partition(".")[0])
            yield alias.asname or whole.module, whole
        return
    parts = home.split(".")
    above = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
    source = ".".join(each for each in (above, node.module or "") if each)
    for alias in node.names:
        yield alias.asname or alias.name, Imported(source, alias.name)


def _bind_import(module: Module, node: ast.Import | ast.ImportFrom, home: str, runs: bool) -> None:
    if isinstance(node, ast.Import) and runs:
        module.imports += [Imported(alias.name) for alias in node.names]
    for name, target in imported(node, home):
        if target.name == "*":
            module.stars.append(target.module)
        else:
            module.bound.setdefault(name, []).append(target)
        if isinstance(node, ast.ImportFrom) and runs:
            module.imports.append(target)


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a text by itself: a docstring, or one below an attribute."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """A statement with all in it that is executed at import: no bodies of functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, _SCOPES) and child not in _heads(node):
            continue
        yield from _at_import(child)


def _heads(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.AST]:
    """Decorators and defaults, which are worked out when a function is defined."""
    return [node.args, *getattr(node, "decorator_list", ())]


def _stored(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds in its module."""
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
        return
    for node in _at_import(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (*_DEFINITIONS, ast.ExceptHandler)) and node.name:
            yield node.name


def _is_for_types(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If)
        and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        and not node.orelse
    )


def _acts(module: Module, node: ast.stmt) -> bool:
    """Whether importing the module does this, beside binding its names."""
    if _is_for_types(node) or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
        return False
    if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
        return False
    if isinstance(node, ast.ClassDef) and node.keywords:
        return True
    if isinstance(node, _DEFINITIONS):
        changes = not all(_is_plain(module, each) for each in node.decorator_list)
    else:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        binds_names = all(isinstance(each, ast.Name | ast.Tuple) for each in targets)
        changes = not (isinstance(node, ast.Assign | ast.AnnAssign) and binds_names)
    return changes or any(_calls_a_constant(module, each) for each in _at_import(node))


def _is_plain(module: Module, decorator: ast.expr) -> bool:
    root = ast.unparse(decorator).partition("(")[0].partition(".")[0]
    bound = module.bound.get(root, ())
    if not bound:
        return root in _BARE
    return all(isinstance(b, Imported) and b.module.split(".")[0] in _PLAIN for b in bound)


def _calls_a_constant(module: Module, node: ast.AST) -> bool:
    """Whether it calls a method, not one that only reads, of what this module has made."""
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr in _ONLY_READ:
        return False
    root = called.value
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    bound = module.bound.get(root.id, ()) if isinstance(root, ast.Name) else ()
    return any(isinstance(each, int) for each in bound)


def without_texts(node: ast.stmt, module: Module) -> ast.stmt:
    """A copy of a statement without docstrings; what has a decorator of ours keeps its own.

    The decorator may read it, as that of tools does to make their descriptions of it.
    """
    own: ast.stmt = ast.parse(ast.unparse(node)).body[0]
    for each in ast.walk(own):
        body = getattr(each, "body", None)
        decorators = getattr(each, "decorator_list", ())
        if isinstance(body, list) and all(_is_plain(module, one) for one in decorators):
            setattr(each, "body", [line for line in body if not is_text(line)] or [ast.Pass()])  # noqa: B010
    return own


def outer_names(text: str) -> tuple[set[str], set[str]]:
    """The names that a statement takes from its module, and those it has of its own somewhere."""
    outer: set[str] = set()
    own: set[str] = set()
    waiting = [symtable.symtable(text, "statement", "exec")]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        kind = str(table.get_type()).lower()
        for symbol in table.get_symbols():
            is_open = symbol.is_global() or "module" in kind or "class" in kind
            is_used = symbol.is_referenced() or symbol.is_declared_global()
            if is_used and is_open and not symbol.is_free():
                outer.add(symbol.get_name())
            if "module" not in kind and symbol.is_local():
                own.add(symbol.get_name())
    return outer, own


class Sources:
    """Modules of some packages, found where Python would find them and each read once.

    Args:
        beside: Parts of them that are not followed, and are taken for never changing.
    """

    def __init__(self, packages: tuple[str, ...], beside: tuple[str, ...] = ()) -> None:
        self.packages, self._beside = packages, tuple(f"{each}." for each in beside)
        self._roots: dict[str, tuple[Path, ...]] = {}
        self._read: dict[str, Module | None] = {}

    def is_ours(self, name: str) -> bool:
        """Whether a dotted name stands in one of the packages."""
        return name.partition(".")[0] in self.packages

    def _is_beside(self, name: str) -> bool:
        return f"{name}.".startswith(self._beside)

    def module(self, name: str) -> Module | None:
        """A module; None where there is none of ours of this name."""
        if name not in self._read:
            is_read = self.is_ours(name) and not self._is_beside(name)
            self._read[name] = self._found(name) if is_read else None
        return self._read[name]

    def _found(self, name: str) -> Module | None:
        package, *parts = name.split(".")
        for root in self.roots(package):
            if root.is_file() and not parts:
                return parse(name, root.read_bytes(), is_package=False)
            place = root.joinpath(*parts)
            for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                if file.is_file():
                    return parse(name, file.read_bytes(), is_package=file.parent == place)
        return None

    def roots(self, package: str) -> tuple[Path, ...]:
        """The folders of a package; of a module that stands alone its file."""
        if package not in self._roots:
            spec = importlib.util.find_spec(package)
            places = None if spec is None else spec.submodule_search_locations
            alone = [spec.origin] if spec is not None and spec.origin and not places else []
            self._roots[package] = tuple(map(Path, places or alone))
        return self._roots[package]

    def resolve(self, module: str, name: str) -> list[Target]:
        """The targets of a name in a module: statements, whole modules, or modules not ours."""
        return list(dict.fromkeys(self._resolve(module, name, frozenset())))

    def _resolve(self, module: str, name: str, seen: frozenset[object]) -> Iterator[Target]:
        found = self.module(module)
        if found is None or (module, name) in seen:
            return
        seen |= {(module, name)}
        for bound in found.bound.get(name, ()):
            if isinstance(bound, int):
                yield Place(module, bound)
            else:
                yield from self.follow(bound, seen)
        if name not in found.bound:
            for star in found.stars:
                followed = self._resolve(star, name, seen) if self.module(star) else ()
                yield from followed or (f"{star}.*",)

    def follow(self, bound: Imported, seen: frozenset[object] = frozenset()) -> Iterator[Target]:
        """The targets of an import."""
        if not self.is_ours(bound.module):
            yield bound.module if bound.name is None else f"{bound.module}.{bound.name}"
        elif self._is_beside(bound.module) or self._is_beside(f"{bound.module}.{bound.name}"):
            yield "beside"
        elif bound.name is None or bound.name == "*":
            yield Whole(bound.module)
        else:
            named = list(self._resolve(bound.module, bound.name, seen))
            below = f"{bound.module}.{bound.name}"
            if self.module(below) is not None:
                named.append(Whole(below))
            yield from named or [Whole(bound.module)]


@dataclass(frozen=True)
class Place:
    """A statement of a module."""

    module: str
    place: int


@dataclass(frozen=True)
class Whole:
    """A module itself: a reference to it may reach everything in it."""

    module: str


Target = Place | Whole | str
"""A text names what is not ours."""
