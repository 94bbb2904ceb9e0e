"""The contract of an adapter, for whole evaluations by Inspect of a scripted model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="needs its extra: make test-adapters NAME=inspect_ai")

from tests.adapters.conftest import Hold
from tests.adapters.inspect_ai.inspect_play import evaluated, next_message, played
from tests.adapters.scripted_contract import Played
from tests.adapters.scripted_episodes import SCRIPTS, ScriptedEpisode
from tests.chat_server import ScriptedServer

ENDS = "an evaluation asks no model for more when the episode is over"
EXEMPT = dict.fromkeys(("after_the_end", "budget_spent"), ENDS)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(next_message) as running:
        patch.setenv("SCRIPT_API_KEY", "none")
        yield running


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
@pytest.mark.parametrize("tools", ["text", "native"])
def test_an_evaluation_changes_nothing_of_an_episode(
    hold: Hold, server: ScriptedServer, tmp_path: Path, tools: str, script: ScriptedEpisode
) -> None:
    def play(script: ScriptedEpisode) -> Played:
        return played(evaluated(server, tmp_path, script, tools))

    hold(f"inspect_ai ({tools})", play, script, EXEMPT)
