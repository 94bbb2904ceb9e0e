"""The page on Inspect is true: its session runs, and its tables name what there is."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="needs its extra: make test-adapters NAME=inspect_ai")

from adapters.inspect_ai.task import env
from tests.adapters.inspect_ai.inspect_play import ROOT
from toolgym.records import FIGURES

PAGE = (ROOT / "docs" / "inspect_ai.md").read_text("utf-8")


def test_the_session_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python inspect_ai\n(.*?)^```$", PAGE, re.M | re.S)
    session = doctest.DocTestParser().get_doctest(block, {}, "inspect_ai.md", "inspect_ai.md", 0)
    said: list[str] = []

    doctest.DocTestRunner(verbose=False).run(session, out=said.append)

    assert not said, "".join(said)


def test_every_argument_of_the_task_is_in_the_table() -> None:
    for name in inspect.signature(env).parameters:
        assert f"`{name}`" in PAGE, name


def test_every_figure_is_named() -> None:
    listed = PAGE.partition("The figures are ")[2].partition(".")[0]

    assert re.findall(r"\w+", listed.replace(" and ", " ")) == [*FIGURES[:-1]]
    assert f"`{FIGURES[-1]}` 0" in PAGE
