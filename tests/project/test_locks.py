"""Every lock of the packages survives a fork: it is made in `renew`, or is told of here.

The child of a fork has one thread. A lock that another one held stays locked there for ever, and a
pool of threads takes work that nobody does. So what makes one is found in the source, wherever it
stands, and it must be a line of a `renew` whose class says `renew_in_child`, or be listed below.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("toolgym", "sqlgym", "aflowgym", "adapters")
LOCKS = {
    "threading": {"Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier",
                  "Timer", "local"},
    "_thread": {"allocate_lock", "RLock"},
    "concurrent.futures": {"ThreadPoolExecutor", "ProcessPoolExecutor"},
    "queue": {"Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"},
    "multiprocessing": {"Lock", "RLock", "Condition", "Event", "Semaphore", "Queue", "Pool"},
    "functools": {"cached_property"},
}  # fmt: skip
"""What holds a lock, or waits for one, by its module. `functools.cache` and `lru_cache` do not:
they are written in C and change what they keep under Python's global lock."""
REVIEWED = {
    "toolgym/rollout.py::_advance_all": "lives for one step, and its caller waits for it",
    "toolgym/testing/chat_server.py::ScriptedServer.__init__": "a child speaks to it by network",
    "sqlgym/database/turnstile.py::Turnstile.enter": "in place of one that `renew` makes",
    "aflowgym/sandbox/base.py::InThreads.arun": "`renew` leaves it to the parent",
    "adapters/training/algorithms/workers.py::Workers.each": "`renew` leaves it to the parent",
    "adapters/commands/serving.py::keeping": "a server is not forked",
    "toolgym/report/server.py::WatchedRun.__init__": "a server is not forked",
    "toolgym/report/server.py::WatchServer.__init__": "a server is not forked",
    "toolgym/report/server.py::_Handler.setup": "a server is not forked",
    "toolgym/processes.py::process_pool": "its processes are made anew, and not forked",
    "adapters/lab/runner.py::_executor": "lives for one call, whose caller waits for it",
}
"""Where else one is made, and how it survives a fork."""


def made_in(source, names):
    """What makes a lock in a module: the place, and whether a `renew` of a named class makes it."""
    found = []
    tree = ast.parse(source)
    known = imported(tree)

    def walk(node, places, owner):
        if isinstance(node, ast.ClassDef):
            owner, places = node, [*places, node.name]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            places = [*places, node.name]
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            made = spelled(node, known) in names and not is_annotation(node)
            renewed = places[-1:] == ["renew"] and owner is not None and renews(owner)
            found.extend([(".".join(places) or "<module>", renewed)] * made)
        for child in ast.iter_child_nodes(node):
            child.parent = node
            walk(child, places, owner)

    walk(tree, [], None)
    return found


def imported(tree):
    """What each imported name stands for, written out: `Lock` for `threading.Lock`."""
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                known[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                known[each.asname or each.name] = f"{node.module}.{each.name}"
    return known


def spelled(node, known):
    """A name or a dotted name in full; None if its head is not imported."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        head = spelled(node.value, known)
        return head and f"{head}.{node.attr}"
    return None


def is_annotation(node):
    """It says of what type something is, and makes nothing."""
    while (parent := getattr(node, "parent", None)) is not None:
        if isinstance(parent, ast.AnnAssign) and parent.annotation is node:
            return True
        if isinstance(parent, ast.arg) or getattr(parent, "returns", None) is node:
            return True
        node = parent
    return False


def renews(owner):
    """A class, or one that it derives from in another module, registers its objects."""
    calls = [n for n in ast.walk(owner) if isinstance(n, ast.Call)]
    names = {n.func.id for n in calls if isinstance(n.func, ast.Name)}
    inherits = any(isinstance(base, ast.Name) for base in owner.bases)
    return "renew_in_child" in names or (inherits and "super().renew()" in ast.unparse(owner))


def lock_names():
    return {f"{module}.{name}" for module, names in LOCKS.items() for name in names}


def test_every_lock_of_the_packages_is_made_anew_in_a_child_or_reviewed():
    unknown, met = [], set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name, source = path.relative_to(ROOT).as_posix(), path.read_text()
            if not any(word in source for names in LOCKS.values() for word in names):
                continue
            for place, renewed in made_in(source, lock_names()):
                met.add(f"{name}::{place}")
                if not renewed and f"{name}::{place}" not in REVIEWED:
                    unknown.append(f"{name}::{place}")
    assert not unknown, f"make it in `renew`, see toolgym/forks.py, or review it here: {unknown}"
    assert sorted(REVIEWED.keys() - met) == [], "these are gone"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import threading\nlock = threading.Lock()", [("<module>", False)]),
        ("from threading import RLock as Own\nclass A:\n    lock = Own()", [("A", False)]),
        ("import functools\nclass A:\n    @functools.cached_property\n    def b(self): ...",
         [("A.b", False)]),
        ("from functools import cached_property as c\nclass A:\n    @c\n    def b(self): ...",
         [("A.b", False)]),
        ("import threading as t\nclass A:\n    lock: t.Lock = field(default_factory=t.Lock)",
         [("A", False)]),
        ("from concurrent.futures import ThreadPoolExecutor\nclass A:\n"
         "    def renew(self) -> None:\n        self.pool: ThreadPoolExecutor | None = None", []),
        ("import threading\nclass A:\n    def renew(self):\n        self.lock = threading.Lock()",
         [("A.renew", False)]),
        ("import threading\nclass A:\n    def __init__(self):\n        renew_in_child(self)\n"
         "    def renew(self):\n        self.lock = threading.Lock()", [("A.renew", True)]),
        ("import threading\nclass A:\n    def lock(self): return self.threading.Lock()", []),
    ],
)  # fmt: skip
def test_the_search_finds_a_lock_however_it_is_written(source, found):
    assert made_in(source, lock_names()) == found
