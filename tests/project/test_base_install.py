"""The tests without the mark `torch` are collected on a base install with pytest only.

A module that imports a package of an extra while pytest collects it ends the whole run there, and
where all extras are installed nobody sees it. So they are collected here with all other packages
out of reach.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from tools.interpreters import TEST_PACKAGES

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
COLLECT = """
import sys

class Without:
    # As if some packages were not installed: what asks for them finds nothing.
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        absent = name.partition(".")[0] in ABSENT
        return None if absent else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

ABSENT = {*sys.argv[1].split(",")}
sys.meta_path[:] = map(Without, sys.meta_path)
import pytest
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(roots: Iterable[str]) -> set[str]:
    """These distributions and all that they need without an extra."""
    found: set[str] = set()
    waiting = [canonical(name) for name in roots]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        try:
            wanted = requires(name) or []
        except PackageNotFoundError:
            continue  # for another platform or interpreter
        plain = (each for each in wanted if "extra ==" not in each)
        waiting += [canonical(re.match(r"[\w.-]+", each)[0]) for each in plain]
    return found


def test_every_module_of_tests_is_collected_on_a_base_install():
    base = needed(["toolgym", *TEST_PACKAGES, "pip", "setuptools"])
    absent = {
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not {canonical(owner) for owner in owners} & base
    } - {"adapters", "aflowgym", "sqlgym", "toolgym"}
    assert {"torch", "transformers", "openai", "yaml", "twine"} <= absent
    assert not absent & {"pytest", "numpy", "pydantic", "hypothesis"}

    done = subprocess.run(
        [sys.executable, "-c", COLLECT, ",".join(sorted(absent)), "-p", "no:anyio", "tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    errors = [line for line in done.stdout.splitlines() if re.match(r"E  |ERROR ", line)]
    assert (done.returncode, errors) == (0, []), done.stderr[-2000:]
