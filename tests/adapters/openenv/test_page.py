"""The page on OpenEnv is true: its session runs, and its sentences name what there is."""

import doctest
import re
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")

from adapters.openenv.catalogue import MOST_LISTED
from adapters.openenv.environment import MOST_AFTER_END
from adapters.serving.guard import LONGEST_BODY, MOST_CONNECTIONS, PATIENCE
from tests.adapters.openenv.openenv_play import ROOT

PAGE = (ROOT / "docs" / "openenv.md").read_text("utf-8")


def test_the_session_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python openenv\n(.*?)^```$", PAGE, re.M | re.S)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "openenv", "openenv.md", 0)
    said: list[str] = []

    doctest.DocTestRunner(verbose=False).run(session, out=said.append)

    assert len(blocks) == 1
    assert not said, "".join(said)


@pytest.mark.parametrize(
    "sentence",
    [
        f"at most {LONGEST_BODY // 1_000_000} MB",
        f"within {PATIENCE:g} seconds",
        f"at most {MOST_CONNECTIONS} connections",
        f"cut off after {MOST_AFTER_END} messages",
        f"the first {MOST_LISTED:,}",
        f"Tested with openenv {version('openenv')}",
    ],
)
def test_what_the_page_says_is_so(sentence: str) -> None:
    assert sentence in " ".join(PAGE.split())
