"""The contract of an adapter, for whole evaluations by Inspect of a scripted model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="needs its extra: make test-adapters NAME=inspect_ai")

from tests.adapters.conftest import Hold
from tests.adapters.inspect_ai.inspect_play import evaluated, played, scripted_models
from toolgym.testing.adapter import Played
from toolgym.testing.scripts import SCRIPTS, ScriptedEpisode

ENDS = "an evaluation asks no model for more when the episode is over"
EXEMPT = dict.fromkeys(("after_the_end", "budget_spent"), ENDS)


@pytest.fixture(scope="module", autouse=True)
def models() -> Iterator[None]:
    with scripted_models():
        yield


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
@pytest.mark.parametrize("tools", ["text", "native"])
def test_an_evaluation_changes_nothing_of_an_episode(
    hold: Hold, tmp_path: Path, tools: str, script: ScriptedEpisode
) -> None:
    def play(script: ScriptedEpisode) -> Played:
        return played(evaluated(tmp_path, script, tools))

    hold(f"inspect_ai ({tools})", play, script, EXEMPT)
