"""Many episodes over HTTP: who may connect, what a client may choose, and when an episode ends."""

import asyncio
import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`: make test-adapters NAME=mcp")

from mcp import Client, MCPError

from adapters.mcp.server import CLOSE, FAULT
from adapters.serving.guard import LONGEST_BODY, open_socket
from tests.adapters.local_server import JSON, REFUSED
from tests.adapters.mcp.mcp_play import HttpServer, http_server, result
from tests.adapters.scripted_episodes import EXPLORE, HUTS
from toolgym import ConfigurationError, registration
from toolgym.runs.episodes import read_episodes


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with http_server(EXPLORE, "--max-episodes", "4") as started:
        yield started


def test_two_clients_play_two_episodes_that_do_not_meet(server: HttpServer) -> None:
    async def play() -> tuple[Any, Any]:
        one, other = server.begin(task_id=HUTS), server.begin(task_id=HUTS)
        async with Client(one) as first, Client(other) as second:
            await first.call_tool("query", {"sql": "SELECT 1"})
            called = await second.call_tool("query", {"sql": "SELECT 1"})
            assert called.meta["toolgym/steps_left"] == 14
            await first.call_tool("answer", {"value": 1539})
            left, right = await result(first), await result(second, CLOSE)
        assert server.close(one).items() <= left.items()
        server.close(other)
        return left, right

    left, right = asyncio.run(play())
    assert (left["correct"], right["correct"], right["answered"]) == (True, False, False)


def test_a_client_of_an_older_protocol_plays_too(server: HttpServer) -> None:
    async def play(url: str) -> Any:
        async with Client(url, mode="legacy") as client:
            await client.call_tool("answer", {"value": 1539})
            return await result(client)

    url = server.begin(task_id=HUTS)
    assert asyncio.run(play(url))["correct"]
    server.close(url)


def test_a_seed_chooses_the_task_as_everywhere(server: HttpServer) -> None:
    env = registration.make(EXPLORE)
    _, info = env.reset(seed=5)

    answer = server.ask("POST", "/episodes", {"seed": 5})

    assert answer.json["task_id"] == info["task_id"]
    assert server.ask("DELETE", f"/episodes/{answer.json['episode']}").status == 200


@pytest.mark.parametrize("path", ["/episodes", "/episodes/x/mcp", "/other"])
@pytest.mark.parametrize(("headers", "status"), REFUSED)
def test_a_page_of_another_site_is_refused_on_every_path(
    server: HttpServer, path: str, headers: dict[str, str], status: int
) -> None:
    assert server.ask("POST", path, "{}", {**JSON, **headers}).status == status


def test_a_page_of_the_server_itself_is_not_refused(server: HttpServer) -> None:
    host = f"localhost:{server.port}"
    own = {"Origin": f"http://{host}", "Host": host, **JSON}

    answer = server.ask("POST", "/episodes", {}, own)

    assert answer.status == 201
    server.ask("DELETE", f"/episodes/{answer.json['episode']}")


@pytest.mark.parametrize(
    "body",
    [
        {"dataset": "/etc"}, {"backend": "replay:/etc/passwd"}, {"parsing": "strict"},
        {"task_id": HUTS, "split": "dev"}, {"task_id": 7}, {"task_id": "x" * 1001}, {"seed": -1},
        {"seed": 2**31}, {"seed": True}, {"seed": "5"}, "", "[]", "{", '"x"', "null", b"\xff\xfe{}",
    ],
)  # fmt: skip
def test_a_client_chooses_a_task_and_nothing_else(server: HttpServer, body: Any) -> None:
    answer = server.ask("POST", "/episodes", body)

    assert (answer.status, list(answer.json)) == (400, ["error"])


def test_an_unknown_id_opens_nothing(server: HttpServer) -> None:
    async def ask() -> None:
        async with Client(f"{server.url}/episodes/{'A' * 32}/mcp") as client:
            for request in (
                client.call_tool("answer", {"value": 1539}),
                client.get_prompt("task"),
                client.read_resource(CLOSE),
                client.list_tools(),
            ):
                with pytest.raises(MCPError, match="There is no such episode"):
                    await request

    asyncio.run(ask())
    assert server.ask("DELETE", f"/episodes/{'A' * 32}").status == 404


def test_there_are_at_most_so_many_episodes_and_failures_take_no_place(server: HttpServer) -> None:
    for _ in range(5):
        assert server.ask("POST", "/episodes", {"task_id": "nowhere"}).status == 404
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: server.ask("POST", "/episodes", {}), range(8)))
    begun = [each.json["episode"] for each in answers if each.status == 201]
    full = next(each for each in answers if each.status == 503)

    assert (len(begun), len(set(begun))) == (4, 4)
    assert min(map(len, begun)) >= 32
    assert "DELETE one" in full.json["error"]
    for name in begun:
        assert server.ask("DELETE", f"/episodes/{name}").status == 200
    server.close(server.begin())


def test_a_body_may_have_a_megabyte_whether_it_says_so_or_not(server: HttpServer) -> None:
    whole = "x" * LONGEST_BODY

    assert server.ask("POST", "/episodes", whole).status == 400  # read, and no JSON
    for path in ("/episodes", "/episodes/x/mcp"):
        assert server.ask("POST", path, whole + "x").status == 413
        assert chunked(server, path, 2 * LONGEST_BODY) == 413


def chunked(server: HttpServer, path: str, size: int) -> int:
    """The status of a request that does not say how long its body is."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    pieces = (b"x" * 65_536 for _ in range(size // 65_536 + 1))
    try:
        connection.request("POST", path, pieces, {**JSON, "Transfer-Encoding": "chunked"},
                           encode_chunked=True)  # fmt: skip
        return connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        return 413  # it answered and closed before all was sent
    finally:
        connection.close()


@pytest.mark.integration
@pytest.mark.parametrize("sent", [b"", b"POST /epi"])
def test_a_connection_on_which_no_request_arrives_is_closed(
    server: HttpServer, sent: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as silent:
        silent.sendall(sent)
        with suppress(ConnectionResetError):
            assert silent.recv(1) == b""


@pytest.mark.integration
def test_an_idle_episode_gives_up_its_place_and_is_kept_as_open_ones_are_when_the_server_stops(
    tmp_path: Path,
) -> None:
    file = tmp_path / "episodes.jsonl"
    options = ("--out", str(file), "--idle", "1", "--max-episodes", "1")

    with http_server(EXPLORE, *options) as started:
        started.begin(task_id=HUTS)
        time.sleep(1.1)
        started.begin(task_id=HUTS)

    assert [(record.task_id, record.answered) for record in read_episodes(file)] == [
        (HUTS, False)
    ] * 2


def test_a_taken_port_is_refused_with_a_cure() -> None:
    with open_socket(0) as taken:
        host, port = taken.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(ConfigurationError, match=f"port {port} of 127.0.0.1 cannot be used"):
            open_socket(port)


def test_a_fault_at_the_beginning_names_no_file(tmp_path: Path) -> None:
    file = tmp_path / "database" / "inns" / "inns.sqlite"
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE inns (beds INT); INSERT INTO inns VALUES (40);")
    question = {"question": "How many beds?", "query": "SELECT beds FROM inns", "db_id": "inns"}
    (tmp_path / "train.json").write_text(json.dumps([question]))
    (tmp_path / "tables.json").write_text("[]")

    with http_server(EXPLORE, "--max-episodes", "1", "--dataset", str(tmp_path)) as started:
        started.close(started.begin())
        file.unlink()
        answers = [started.ask("POST", "/episodes", {}) for _ in range(2)]

    assert [(each.status, each.json) for each in answers] == [(503, {"error": FAULT})] * 2
