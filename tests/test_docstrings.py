"""The sessions in docstrings are what the code does."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SESSION = re.compile(r"^ *>>> ", re.MULTILINE)
OURS = ("toolgym", "sqlgym", "aflowgym", "adapters")


def _modules() -> list[object]:
    """The modules that show a session; those of the adapters need the extra `train`."""
    found = []
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            if SESSION.search(path.read_text(encoding="utf-8")):
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                marks = [pytest.mark.torch] if package == "adapters" else []
                found.append(pytest.param(name.removesuffix(".__init__"), marks=marks))
    return found


@pytest.mark.parametrize("name", _modules())
def test_the_sessions_of_a_module_are_true(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if str(problem.name).partition(".")[0] in OURS:
            raise
        pytest.skip(f"needs {problem.name}, which an extra brings")

    sessions = [found for found in doctest.DocTestFinder().find(module) if found.examples]
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for session in sessions:
        runner.run(session)

    assert sessions
    assert runner.failures == 0, "what differed is printed above"
