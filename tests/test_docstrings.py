"""The sessions in docstrings are what the code does."""

import ast
import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("toolgym", "sqlgym", "aflowgym", "adapters")


def _modules() -> list[object]:
    """The modules that show a session; those of the adapters need the extra `train`."""
    found = []
    for package in (*OURS, "tools"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if _shows_a_session(path.read_text(encoding="utf-8")):
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                marks = [pytest.mark.torch] if package == "adapters" else []
                found.append(pytest.param(name.removesuffix(".__init__"), marks=marks))
    return found


def _shows_a_session(code: str) -> bool:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, documented)]
    return any(">>> " in (ast.get_docstring(node) or "") for node in nodes)


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
