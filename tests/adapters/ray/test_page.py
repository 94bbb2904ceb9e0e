"""The session of docs/integrations.md prints what the page shows."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra `ray`: make test-adapters NAME=ray")

from tests.adapters.pages import check_page


def test_the_page_prints_what_it_says(
    workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # One process has one connection, and the tests have a cluster already.
    monkeypatch.setattr("toolgym.workers.open_workers", lambda name, address: nullcontext(workers))
    check_page("integrations.md", "ray")
