"""The page on Ray is true: its session prints what it says."""

import doctest
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra `ray`: make test-adapters NAME=ray")

from adapters.ray.workers import RETRIES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "ray.md").read_text("utf-8")


def test_the_session_prints_what_it_says(
    workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # One process has one connection, and the tests have a cluster already.
    monkeypatch.setattr("toolgym.workers.open_workers", lambda name, address: nullcontext(workers))
    (block,) = re.findall(r"^```python ray\n(.*?)^```$", PAGE, re.M | re.S)
    session = doctest.DocTestParser().get_doctest(block, {}, "ray.md", "ray.md", 0)
    said: list[str] = []

    doctest.DocTestRunner(verbose=False).run(session, out=said.append)

    assert not said, "".join(said)


def test_the_number_of_tries_is_that_of_the_program() -> None:
    assert RETRIES == 3
    assert "loses its worker four times" in PAGE
