"""The contract of an adapter, for a real server and the real client."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")

from tests.adapters.conftest import Hold
from tests.adapters.local_server import LocalServer
from tests.adapters.openenv.openenv_play import play_with, serving, session
from tests.adapters.scripted_contract import Played
from tests.adapters.scripted_episodes import SCRIPTS, ScriptedEpisode


@pytest.fixture(scope="module")
def server_for(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[ScriptedEpisode], LocalServer]]:
    """The server for a script, one for each environment and its arguments."""
    servers: dict[str, LocalServer] = {}
    log = tmp_path_factory.mktemp("logs") / "servers.log"
    with ExitStack() as started:

        def find(script: ScriptedEpisode) -> LocalServer:
            key = f"{script.env_id} {script.arguments}"
            if key not in servers:
                starting = serving(script.env_id, log, **script.arguments)
                servers[key] = started.enter_context(starting)
            return servers[key]

        yield find


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_every_message_is_carried_whole(
    hold: Hold, server_for: Callable[[ScriptedEpisode], LocalServer], script: ScriptedEpisode
) -> None:
    def play(script: ScriptedEpisode) -> Played:
        with session(server_for(script)) as client:
            return play_with(client, script)

    hold("openenv", play, script, {})
