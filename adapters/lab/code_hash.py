"""A hash of the code that a unit of work depends on, so that old results are not taken for new.

From functions on, everything of ours that they can reach is followed, definition by definition:
functions, classes, constants, and what importing their modules does. A claim or a figure in the
same module is reached by none of them and may change; so may comments and docstrings. Definitions
count by their code, their names and by what they refer to, and not by the module in which they
stand: one that moves to another file is the same. What cannot be followed counts as a whole
module: a module that is handed on as a value, one that a text names, that of code which looks up
names while it runs. The families of environments are reached by an id, so of their packages every
file counts as it is, with what it imports of ours. Nothing is imported.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import entry_points
from typing import Any, Final, NamedTuple

from adapters.lab.definitions import (
    Imported,
    Module,
    Place,
    Sources,
    Target,
    Whole,
    imported,
    outer_names,
    without_texts,
)
from toolgym.errors import ConfigurationError

OURS: Final = ("adapters", "toolgym")
BESIDE: Final = (
    *("adapters.lab.experiment", "adapters.lab.prediction"),
    *("adapters.lab.figures", "adapters.lab.cell_figures"),
    *("adapters.lab.code_hash", "adapters.lab.definitions"),
    *("toolgym.commands", "toolgym.report"),
)
"""What judges, prints and draws, and this: no record depends on it, and it is not followed."""
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.\w+)+(:\w+)?")
_LOOKS_UP: Final = frozenset(("globals", "vars", "eval", "exec", "__import__", "import_module"))
_OWN_NAME: Final = frozenset(("__name__", "__file__", "__package__", "__spec__", "__module__"))


@functools.cache
def code_hash(*functions: Callable[..., Any]) -> str:
    """The hash of what functions, and the families of environments, depend on.

    Args:
        functions: What is no name of its module, such as a lambda or a function in a function,
            stands for the whole module.

    Raises:
        ConfigurationError: There is no source of such a module.
    """
    packages = {each.__module__.partition(".")[0] for each in functions}
    roots = [f"{each.__module__}:{each.__qualname__}" for each in functions]
    return _code((*OURS, *sorted(packages - {*OURS}))).hash_of(*roots)


@functools.cache
def _code(packages: tuple[str, ...]) -> Code:
    """One for all roots: what they share is read once."""
    entries = entry_points(group="toolgym.environments")
    families = sorted({entry.value.partition(".")[0] for entry in entries})
    return Code(Sources(packages, BESIDE), families)


class _Node(NamedTuple):
    """Code, and what the names in it stand for."""

    text: str
    edges: tuple[tuple[str, Target], ...]


class Code:
    """Definitions and what they refer to."""

    def __init__(self, sources: Sources, families: Iterable[str] = ()) -> None:
        self._sources = sources
        self._nodes: dict[Place, _Node] = {}
        self._families = [node for package in families for node in self._family(package)]

    def hash_of(self, *roots: str) -> str:
        """The hash of all that can be reached from functions, each as `module:name`."""
        whole = hashlib.sha256()
        for text, references in self._walked(roots):
            for each in (text, *references, "end"):
                whole.update(f"{len(each)}\n{each}\n".encode("utf-8", "surrogatepass"))
        return whole.hexdigest()

    def reached(self, *roots: str) -> list[str]:
        """The code of all that can be reached, to look into what a hash is of."""
        return [text for text, _ in self._walked(roots)]

    def _walked(self, roots: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        """Code, and what the names in it stand for.

        Definitions are numbered as they are come upon, so that no module's name is needed to say
        what refers to what.
        """
        starts = [*map(self._root, roots), *self._families]
        waiting = [*starts, *self._acting(starts)]
        numbers: dict[Place, int] = {}
        for node in waiting:  # grows as it is walked through
            references = []
            for label, target in self._flat(node):
                if isinstance(target, Place) and target not in numbers:
                    numbers[target] = len(numbers)
                    waiting.append(self._node(target))
                number = f"#{numbers[target]}" if isinstance(target, Place) else target
                references.append(f"{label} {number}")
            yield node.text, references

    def _root(self, name: str) -> _Node:
        """A function by its name, as something that refers to it."""
        module, _, function = name.partition(":")
        if self._sources.module(module) is None:
            raise ConfigurationError(
                f"the source of {module} cannot be read, and whether {name} has changed depends on"
                " it: define it in a file of a package."
            )
        targets = self._sources.resolve(module, function) or [Whole(module)]
        return _Node("root", tuple(("root", each) for each in targets))

    def _family(self, package: str) -> Iterator[_Node]:
        """Every file of a package that brings environments, with what it imports of ours."""
        for root in self._sources.roots(package):
            for file in sorted(root.rglob("*.py")):
                name, source = f"{package}/{file.relative_to(root).as_posix()}", file.read_bytes()
                home = ".".join(name.split("/")[:-1])
                yield _Node(f"{name}\n{source!r}", tuple(self._used(source, home)))

    def _used(self, source: bytes, home: str) -> Iterator[tuple[str, Target]]:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, bound in imported(node, home):
                    if self._sources.is_ours(bound.module):
                        yield from ((name, each) for each in self._sources.follow(bound))

    def _acting(self, starts: list[_Node]) -> list[_Node]:
        """What importing does in every module that is reached, or imported by one that is."""
        seen: set[Place] = set()
        modules: dict[str, Module] = {}
        waiting = list(starts)
        while waiting:
            for _, target in self._flat(waiting.pop()):
                if isinstance(target, Place) and target not in seen:
                    seen.add(target)
                    waiting.append(self._node(target))
                    for module in self._imported_with(target.module, modules):
                        waiting += [self._node(Place(module.name, i)) for i in module.acting]
        acting = [Place(name, i) for name, module in modules.items() for i in module.acting]
        return [self._node(each) for each in sorted(acting, key=self._order)]

    def _order(self, place: Place) -> tuple[str, str, int]:
        return self._node(place).text, place.module, place.place

    def _imported_with(self, name: str, modules: dict[str, Module]) -> Iterator[Module]:
        """The modules that importing one imports, itself and its packages included, if new."""
        waiting = [name]
        while waiting:
            each = waiting.pop()
            module = None if each in modules else self._sources.module(each)
            if module is not None:
                modules[each] = module
                yield module
                waiting += [name for target in module.imports for name in _names(target)]
            waiting += [each.rpartition(".")[0]] if "." in each else []

    def _flat(self, node: _Node) -> Iterator[tuple[str, Place | str]]:
        """What a node refers to, a whole module as each of its statements and its parts."""
        for label, target in node.edges:
            if not isinstance(target, Whole):
                yield label, target
                continue
            module = self._sources.module(target.module)
            if module is None:
                yield label, target.module
                continue
            for place in range(len(module.body)):
                yield f"{label}*", Place(target.module, place)

    def _node(self, place: Place) -> _Node:
        if place not in self._nodes:
            module = self._sources.module(place.module)
            if module is None:
                raise LookupError(f"there is no module {place.module}.")  # never: it was resolved
            self._nodes[place] = _Reader(self._sources, module).read(module.body[place.place])
        return self._nodes[place]


def _names(target: Imported) -> list[str]:
    return [target.module, *([f"{target.module}.{target.name}"] if target.name else [])]


class _Reader(ast.NodeTransformer):
    """Reads one statement of a module: its code without what only says where things stand."""

    def __init__(self, sources: Sources, module: Module) -> None:
        self._sources, self._module = sources, module
        self._edges: dict[tuple[str, Target], None] = {}
        self._own: set[str] = set()
        self._home = module.name

    def read(self, statement: ast.stmt) -> _Node:
        """The statement as a node."""
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return self._import(statement)
        bare = without_texts(statement, self._module)
        self._own = outer_names(ast.unparse(bare))[1]
        text = ast.unparse(self.visit(bare))
        for name in sorted(outer_names(text)[0]):
            self._add(name, self._sources.resolve(self._module.name, name))
            if name in _LOOKS_UP:
                self._add(name, [Whole(self._module.name)])
            if name in _OWN_NAME:
                self._add(name, [self._module.name])
        return _Node(text, tuple(self._edges))

    def _import(self, node: ast.Import | ast.ImportFrom) -> _Node:
        """One at the top of a module that counts as a whole."""
        for name, bound in imported(node, self._home):
            self._add(name, self._sources.follow(bound))
        return _Node("import", tuple(self._edges))

    def _add(self, label: str, targets: Iterable[Target]) -> None:
        self._edges |= {(label, each): None for each in targets}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """One inside a function: what it names counts, and not where that stands."""
        names = dict(imported(node, self._home))
        for name, bound in names.items():
            self._add(f"import {name}", self._sources.follow(bound))
        if all(self._sources.is_ours(bound.module) for bound in names.values()):
            return ast.ImportFrom("ours", [ast.alias(name) for name in names], 0)
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        """One inside a function; of ours the whole module."""
        for alias in node.names:
            self._add(f"import {alias.name}", self._sources.follow(Imported(alias.name)))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """What a module has counts, and not what the module is called here."""
        if node.attr in _LOOKS_UP:
            self._add(node.attr, [Whole(self._module.name)])
        names = _dotted(node)
        targets = [] if names is None or names[0] in self._own else self._reached(names)
        if not targets:
            return self.generic_visit(node)
        label = f"{node.attr}_{len(self._edges)}"
        self._add(label, targets)
        return ast.Name(label, node.ctx)

    def _reached(self, names: list[str]) -> list[Target]:
        """What `a.b.c` stands for where all but the last are modules of ours."""
        targets = self._sources.resolve(self._module.name, names[0])
        for name in names[1:]:
            modules = [each.module for each in targets if isinstance(each, Whole)]
            if not modules or len(modules) != len(targets) or not self._are_there(modules):
                return []
            targets = [t for each in modules for t in self._sources.follow(Imported(each, name))]
        return targets

    def _are_there(self, modules: list[str]) -> bool:
        return all(self._sources.is_ours(each) for each in modules)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A text that is the name of a module may be imported by it."""
        text = node.value
        if isinstance(text, str) and self._sources.is_ours(text) and _MODULE.fullmatch(text):
            module = text.partition(":")[0]
            if self._sources.module(module) is not None:
                self._add(f"text {text}", [Whole(module)])
        return node


def _dotted(node: ast.AST) -> list[str] | None:
    """The parts of `a.b.c`; None where it begins with something else than a name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [*names, node.id][::-1] if isinstance(node, ast.Name) else None
