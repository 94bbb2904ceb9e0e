"""The contract of an adapter, for episodes that verifiers runs with a scripted model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("verifiers", reason="needs its extra: make test-adapters NAME=verifiers")

from tests.adapters.conftest import Hold
from tests.adapters.scripted_contract import NotCarried, Played
from tests.adapters.scripted_episodes import SCRIPTS, ScriptedEpisode
from tests.adapters.verifiers.verifiers_play import episode_of, importable, next_message, played
from tests.chat_server import ScriptedServer

ENDS = "no model is asked for more when the episode is over"
EXEMPT = {
    **dict.fromkeys(("after_the_end", "budget_spent"), ENDS),
    "silent": "a rollout asks the model at least once",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    folder: Path = tmp_path_factory.mktemp("exported") / "package"
    with importable(folder), ScriptedServer(next_message) as running:
        yield running


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_an_episode_of_verifiers_is_the_same(
    hold: Hold, server: ScriptedServer, script: ScriptedEpisode
) -> None:
    def play(script: ScriptedEpisode) -> Played:
        if not script.messages:
            raise NotCarried("an agent that never writes")
        return played(episode_of(server, script, turns=len(script.messages)))

    hold("verifiers", play, script, EXEMPT)
