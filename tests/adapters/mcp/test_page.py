"""The sessions of docs/servers.md print what the page shows."""

from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs its extra: make test-adapters NAME=mcp")

from tests.adapters.pages import check_page


def test_the_page_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_page("servers.md", "mcp")
