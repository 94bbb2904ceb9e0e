"""The contract of an adapter, for real MCP servers and the real client, by pipes and by HTTP."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`: make test-adapters NAME=mcp")

from mcp import Client

from tests.adapters.conftest import Hold
from tests.adapters.mcp.mcp_play import HttpServer, http_server, play_with, stdio
from tests.adapters.scripted_contract import NotCarried, Played
from tests.adapters.scripted_episodes import SCRIPTS, ScriptedEpisode

HOST = "a host reads calls by itself and sends whole ones, so this never leaves it"
EXEMPT = {
    **dict.fromkeys(("broken_json", "cut_off", "no_call"), HOST),
    "encoded_arguments": "arguments are an object in this protocol",
    "lone_surrogate": "the client writes UTF-8, which has no half characters",
}


@pytest.fixture(scope="module")
def server_for() -> Iterator[Callable[[ScriptedEpisode], HttpServer]]:
    """The server for a script, one for each environment and its arguments."""
    servers: dict[str, HttpServer] = {}
    with ExitStack() as running:

        def find(script: ScriptedEpisode) -> HttpServer:
            key = f"{script.env_id} {script.arguments}"
            if key not in servers:
                starting = http_server(script.env_id, **script.arguments)
                servers[key] = running.enter_context(starting)
            return servers[key]

        yield find


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_over_http_all_is_carried_that_a_host_sends(
    hold: Hold, server_for: Callable[[ScriptedEpisode], HttpServer], script: ScriptedEpisode
) -> None:
    def play(script: ScriptedEpisode) -> Played:
        server = server_for(script)
        url = server.begin(task_id=script.task_id)
        try:
            return asyncio.run(played(url, script))
        finally:
            server.close(url)

    hold("mcp (http)", play, script, EXEMPT)


@pytest.mark.nightly
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_over_pipes_all_is_carried_that_a_host_sends(hold: Hold, script: ScriptedEpisode) -> None:
    def play(script: ScriptedEpisode) -> Played:
        options = ("--task-id", script.task_id)
        return asyncio.run(played(stdio(script.env_id, *options, **script.arguments), script))

    hold("mcp (stdio)", play, script, EXEMPT)


async def played(where: object, script: ScriptedEpisode) -> Played:
    async with Client(where) as client:
        try:
            return await play_with(client, script)
        except NotCarried as found:  # inside, the task groups of the client would wrap it
            lack = found
    raise lack
