"""The README runs as printed."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
SESSIONS = [block for block in BLOCKS if ">>>" in block]
SCRIPTS = [block for block in BLOCKS if ">>>" not in block]


def test_the_first_thirty_lines_hold_an_episode():
    head = "\n".join(README.read_text(encoding="utf-8").splitlines()[:30])
    assert "pip install toolgym" in head
    assert SESSIONS[0][:200] in head


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_prints_what_it_says(session):
    parsed = doctest.DocTestParser().get_doctest(session, {}, "README", str(README), 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(parsed, out=report.append)
    assert not report, "".join(report)


def imported(script: str) -> list[tuple[str, str]]:
    nodes = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.ImportFrom)]
    return [(node.module or "", alias.name) for node in nodes for alias in node.names]


@pytest.mark.torch
@pytest.mark.parametrize("script", [script for script in SCRIPTS if "trl" in script])
def test_what_a_training_script_imports_is_there(script):
    """It needs weights from a hub, so it is not run here; `examples/trl_grpo.py` is."""
    pytest.importorskip("trl")
    for module, name in imported(script):
        assert hasattr(importlib.import_module(module), name), (module, name)


@pytest.mark.parametrize("script", [script for script in SCRIPTS if "trl" not in script])
def test_a_script_runs(script):
    exec(compile(script, str(README), "exec"), {})


def test_every_file_that_it_links_to_is_there():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target
