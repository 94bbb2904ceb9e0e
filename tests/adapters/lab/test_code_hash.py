"""What changes the hash of an experiment's code, and what does not."""

import itertools
import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from adapters.lab.catalogue import MODULES, experiment
from adapters.lab.code_hash import Code
from adapters.lab.definitions import Sources
from toolgym.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[3]
EXPERIMENT = '''
"""An experiment."""
from __future__ import annotations

import functools

from PACK import shared
from PACK.helpers import Counter, half
from PACK.judging import Prediction, draw

STEPS = 3


def run(config, seed):
    """What is done."""
    counter = Counter(seed)  # a comment
    return {"value": shared.scaled(counter.count(STEPS)), "half": half(seed)}


def cells(scale):
    return {"a": {"steps": STEPS}}


CLAIMS = (Prediction("rises", "The value rises.", by=0.5),)


def figures(cells):
    return [draw("A title", cells)]
'''
FILES = {
    "__init__": "",
    "experiment": EXPERIMENT,
    "shared": """
        from PACK.deep.constants import *

        UNUSED = 1

        def scaled(value):
            return value * FACTOR
    """,
    "deep.__init__": "",
    "deep.constants": "FACTOR = 2\n",
    "helpers": '''
        import functools
        import math

        from PACK import registry

        def _rounded(value, digits=3):
            """Rounded."""
            return round(value, digits)

        @functools.cache
        def half(value):
            """Half of it."""
            from PACK.deep import late

            return _rounded(value / 2) + late.addend()

        class Base:
            """What counters share."""

            start = 0

        class Counter(Base):
            def __init__(self, seed):
                self.seed = seed
                """Of the draws."""

            def count(self, steps):
                return self.start + math.floor(steps) + registry.TABLE["one"]()

            def unused(self):
                return 1

        def beside():
            return 1
    ''',
    "deep.late": """
        def addend():
            return 1
    """,
    "registry": '''
        TABLE = {}

        def noted(function):
            TABLE[function.__name__] = function
            return function

        @noted
        def one():
            """One."""
            return 1

        TABLE["two"] = lambda: 2
    ''',
    "judging": """
        class Prediction:
            def __init__(self, name, claim, by):
                self.by = by

        def draw(title, cells):
            return title
    """,
}
NUMBERS = itertools.count()


@pytest.fixture
def hashed(tmp_path, monkeypatch):
    """The hash of `run` of a package with some files changed, each time a new one."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def of(*changes, files=FILES, roots=("experiment:run",)):
        pack = f"lab_pack_{next(NUMBERS)}"
        texts = dict(files)
        for name, old, new in changes:
            assert old in texts[name]
            texts[name] = texts[name].replace(old, new)
        for name, text in texts.items():
            file = tmp_path.joinpath(pack, *name.split(".")).with_suffix(".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text).replace("PACK", pack))
        return Code(Sources((pack,))).hash_of(*(f"{pack}.{root}" for root in roots))

    return of


@pytest.mark.parametrize(
    "change",
    [
        ("experiment", "by=0.5", "by=0.7"),
        ("experiment", "A title", "Another title"),
        ("experiment", '"""What is done."""', '"""What is done, in other words."""'),
        ("shared", "UNUSED = 1", "UNUSED = 2"),
    ],
    ids=lambda change: f"{change[1][:24]} to {change[2][:24]}",
)
def test_what_only_judges_and_draws_and_explains_keeps_the_hash(hashed, change):
    assert hashed(change) == hashed()


@pytest.mark.parametrize(
    "change",
    [
        ("experiment", "counter.count(STEPS)", "counter.count(STEPS + 1)"),
        ("helpers", "math.floor(steps)", "math.ceil(steps)"),
        ("deep.constants", "FACTOR = 2", "FACTOR = 3"),
        ("registry", "lambda: 2", "lambda: 3"),
    ],
    ids=lambda change: f"{change[0]}, {change[1][:24]} to {change[2][:24]}",
)
def test_whatever_decides_over_a_record_changes_the_hash(hashed, change):
    assert hashed(change) != hashed()


def test_a_definition_that_moves_to_another_module_keeps_the_hash(hashed):
    moved = dict(FILES)
    moved["rooms.__init__"] = '"""A room."""\n'
    moved["rooms.tools"] = moved.pop("helpers")
    moved["rooms.scaling"] = moved.pop("shared")
    moved["rooms.last"] = moved.pop("deep.late")
    moved["rooms.tools"] = moved["rooms.tools"].replace(
        "from PACK.deep import late", "from PACK.rooms import last as late"
    )
    moved["experiments.one"] = moved.pop("experiment").replace(
        "from PACK import shared\nfrom PACK.helpers import Counter, half\n",
        "from PACK.rooms import scaling\nfrom PACK.rooms.tools import Counter, half\n",
    )
    moved["experiments.one"] = moved["experiments.one"].replace("shared.scaled", "scaling.scaled")

    assert hashed(files=moved, roots=("experiments.one:run",)) == hashed()


@pytest.mark.nightly
def test_two_definitions_of_one_name_that_change_places_change_the_hash(hashed):
    files = {
        "__init__": "",
        "experiment": """
            from PACK import a, b
            def run(config, seed):
                return a.helper() - b.helper()
            def cells(scale):
                return {}
        """,
        "a": "def helper():\n    return 1\n",
        "b": "def helper():\n    return 2\n",
    }
    swapped = files | {"a": files["b"], "b": files["a"]}

    assert hashed(files=files) != hashed(files=swapped)


def test_a_module_without_source_is_told():
    with pytest.raises(ConfigurationError, match=r"no_such_module cannot be read.*define it in"):
        Code(Sources(("no_such_module",))).hash_of("no_such_module:run")


@pytest.mark.nightly
@pytest.mark.torch
@pytest.mark.parametrize("name", MODULES)
def test_no_experiment_hangs_on_its_claims_and_figures(name):
    pytest.importorskip("torch", reason="needs the extra `train`")
    found = experiment(name)
    root = f"{found.run.__module__}:{found.run.__qualname__}"
    reached = Code(Sources(("adapters",))).reached(root)

    texts = {text.partition("\n")[0].partition("(")[0] for text in reached}
    assert "def run" in texts
    assert not {"def figures", "def _figures", "class Prediction", "class Figure"} & texts
    assert not any(text.startswith(("EXPERIMENT", "PREDICTIONS")) for text in reached)


@pytest.mark.nightly
@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "cell", "changes"),
    [
        ("post-episode", "loops", {}),
        ("fallback", "zero-std", {"updates": 1, "start_steps": 2}),
    ],
)
def test_every_function_of_ours_that_a_run_executes_is_reached(name, cell, changes):
    pytest.importorskip("torch", reason="needs the extra `train`")
    found, executed = experiment(name), set()
    config = {**found.cells("smoke")[cell], **changes}
    folders = [str(ROOT / each) for each in ("adapters", "toolgym")]

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(tuple(folders)):
            executed.add(code.co_qualname.partition(".")[0])

    sys.setprofile(note)
    try:
        found.run(config, 1)
    finally:
        sys.setprofile(None)
    code = Code(Sources(("adapters", "toolgym")), ("aflowgym", "sqlgym"))
    root = f"{found.run.__module__}:{found.run.__qualname__}"

    defined = re.compile(r"^(?:class|(?:async )?def) (\w+)", re.MULTILINE)
    names = {each for text in code.reached(root) for each in defined.findall(text)}
    assert len(executed) > 20
    assert executed - names <= {"<module>", "<lambda>"}
