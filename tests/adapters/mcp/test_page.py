"""The page on the protocol is true: its sessions run, and its tables name what there is."""

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`: make test-adapters NAME=mcp")

from adapters.mcp.server import CLOSE, FAULT, RESULT
from adapters.serving.guard import LONGEST_BODY, MOST_CONNECTIONS, PATIENCE
from tests.adapters.mcp.mcp_play import ROOT

PAGE = (ROOT / "docs" / "mcp.md").read_text("utf-8")


def test_every_session_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python mcp\n(.*?)^```$", PAGE, re.M | re.S)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "mcp.md", "mcp.md", 0)
    said: list[str] = []

    doctest.DocTestRunner(verbose=False).run(session, out=said.append)

    assert len(blocks) > 1
    assert not said, "".join(said)


@pytest.mark.parametrize(
    "sentence",
    [
        f"`{RESULT}`",
        f"`{CLOSE}`",
        f"at most {LONGEST_BODY // 1_000_000} MB",
        f"within {PATIENCE:g} seconds",
        f"at most {MOST_CONNECTIONS} connections",
        FAULT.partition(".")[0],
    ],
)
def test_what_the_page_says_is_so(sentence: str) -> None:
    assert sentence in " ".join(PAGE.split())
