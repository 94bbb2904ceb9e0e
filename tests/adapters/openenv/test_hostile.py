"""Hostile requests and sessions change nothing, and others play on."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.adapters.local_server import BAD_JSON, BAD_VALUES, Hostile, besiege, check_siege
from tests.adapters.openenv.openenv_play import say, serving, session
from tests.adapters.scripted_episodes import EXPLORE, GOLD, HUTS, call

MOST = 12
PATHS = ("/toolgym/tasks", "/toolgym/task", "/toolgym/task_range", "/mcp", "/ws", "/metadata")
TYPES = ("reset", "step", "state", "mcp", "close", "", "reset_async", "__init__", None, [], {})
KEYS = (
    *("task_id", "split", "index", "seed", "episode_id", "self", "func", "session_id", "text"),
    *("tool_calls", "finish", "metadata", "type", "__class__", "jsonrpc", "method", "params"),
)


class HostileSessions(Hostile):
    """Besides hostile requests, sessions with anything in any place and in any order."""

    def message(self) -> str | bytes:
        draw = self.draw
        if draw.random() < 0.3:
            return draw.choice((*BAD_JSON, b"\xff\xfe", b"", "x" * 300_000))
        data: Any = {draw.choice(KEYS): draw.choice(BAD_VALUES) for _ in range(draw.randrange(4))}
        kind = draw.choice(TYPES)
        if kind == "reset":  # with an argument that no client may choose
            data[draw.choice(("dataset", "backend", "parsing"))] = draw.choice(BAD_VALUES)
        elif draw.random() < 0.3:
            data = draw.choice(BAD_VALUES)
        return json.dumps({"type": kind, "data": data})

    def attacks(self, count: int) -> list[Callable[[], bytes]]:
        scripts = [[self.message() for _ in range(3)] for _ in range(count // 2)]

        def attack(messages: list[str | bytes]) -> bytes:
            said: list[str] = []
            try:
                url = f"ws://127.0.0.1:{self.server.port}/ws"
                with connect(url, open_timeout=60, close_timeout=60) as connection:
                    for message in messages:
                        connection.send(message)
                        said.append(str(connection.recv(60)))
            except (ConnectionClosed, InvalidStatus):
                pass
            assert all('"type":"observation"' not in each for each in said), (messages, said)
            return "\n".join(said).encode()

        made = [lambda script=script: attack(script) for script in scripts]
        return [*super().attacks(count - len(made)), *made]


def test_hostile_requests_change_nothing(tmp_path: Path) -> None:
    with serving(EXPLORE, tmp_path / "log", "--max-sessions", str(MOST)) as server:

        def play(count: int) -> dict[str, Any]:
            attacks = HostileSessions(count, server, PATHS).attacks(count)
            with session(server) as client, ThreadPoolExecutor(4) as pool:
                client.reset(task_id=HUTS, episode_id="honest")
                say(client, call("describe", table="huts"))
                running = besiege(pool, attacks)
                while not all(each.done() for each in running):
                    assert client.state().task_id == HUTS
                for each in running:
                    each.result()
                assert "1539" in say(client, call("query", sql=GOLD)).observation.text
                end = say(client, call("answer", value=1539))
                found: dict[str, Any] = end.observation.model_dump()
                return found

        check_siege(server, play)
        clients = [session(server) for _ in range(MOST)]  # no place was taken
        for client in clients:
            assert client.reset(task_id=HUTS).observation.task_id == HUTS
        for client in clients:
            client.close()
