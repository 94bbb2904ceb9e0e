"""Many episodes over HTTP: who gets in, what a client may choose, and when an episode ends."""

import asyncio
import json
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`: make test-adapters NAME=mcp")

import anyio
from mcp import Client, MCPError

from adapters.mcp.http import Episodes, Full, Wanted
from adapters.mcp.server import CLOSE, FAULT
from adapters.serving.guard import LONGEST_BODY, LOOPBACK, PATIENCE, open_socket
from tests.adapters.local_server import JSON, REFUSED
from tests.adapters.mcp.mcp_play import HttpServer, http_server
from tests.adapters.scripted_episodes import EXPLORE, HUTS
from toolgym import ConfigurationError, registration
from toolgym.records import EpisodeRecord
from toolgym.runs.episodes import read_episodes


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with http_server(EXPLORE, "--max-episodes", "4") as running:
        yield running


async def result(client: Client, uri: str = CLOSE) -> Any:
    return json.loads((await client.read_resource(uri)).contents[0].text)


def test_two_clients_play_two_episodes_that_do_not_meet(server: HttpServer) -> None:
    async def play() -> tuple[Any, Any]:
        one, other = server.begin(task_id=HUTS), server.begin(task_id=HUTS)
        async with Client(one) as first, Client(other) as second:
            await first.call_tool("query", {"sql": "SELECT 1"})
            called = await second.call_tool("query", {"sql": "SELECT 1"})
            assert called.meta["toolgym/steps_left"] == 14
            await first.call_tool("answer", {"value": 1539})
            left, right = await result(first), await result(second)
        assert server.close(one) == {
            k: v for k, v in left.items() if k not in ("over", "steps_left")
        }
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


@pytest.mark.parametrize("path", ["/episodes", "/episodes/x/mcp", "/episodes/x", "/", "/other"])
@pytest.mark.parametrize(("headers", "status"), REFUSED)
def test_what_a_page_of_another_origin_can_send_is_refused_on_every_path(
    server: HttpServer, path: str, headers: dict[str, str], status: int
) -> None:
    assert server.ask("POST", path, "{}", {**JSON, **headers}).status == status


def test_a_page_of_the_server_itself_is_not_refused(server: HttpServer) -> None:
    own = {"Origin": server.url, "Host": f"localhost:{server.port}", **JSON}

    answer = server.ask("POST", "/episodes", {}, own)

    assert answer.status == 201
    server.ask("DELETE", f"/episodes/{answer.json['episode']}")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"])
@pytest.mark.parametrize("path", ["/episodes", "/episodes/x/mcp", "/other"])
def test_other_methods_are_refused(server: HttpServer, method: str, path: str) -> None:
    assert server.ask(method, path).status == 405


@pytest.mark.parametrize(
    "body",
    [
        {"dataset": "/etc"}, {"backend": "replay:/etc/passwd"}, {"parsing": "strict"},
        {"task_id": HUTS, "split": "dev"}, {"task_id": 7}, {"task_id": ["x"]},
        {"task_id": "x" * 1001}, {"seed": -1}, {"seed": 2**31}, {"seed": True},
        {"seed": "5"}, {"seed": 1.5},
    ],
)  # fmt: skip
def test_a_client_chooses_a_task_and_nothing_else(server: HttpServer, body: dict[str, Any]) -> None:
    answer = server.ask("POST", "/episodes", body)

    assert (answer.status, list(answer.json)) == (400, ["error"])


@pytest.mark.parametrize("body", ["", "[]", "{", "7", '"x"', "null", b"\xff\xfe{}", "["])
def test_what_is_no_object_is_refused(server: HttpServer, body: Any) -> None:
    assert server.ask("POST", "/episodes", body).status == 400


def test_a_task_that_is_not_there_is_told(server: HttpServer) -> None:
    answer = server.ask("POST", "/episodes", {"task_id": "../../etc/passwd"})

    assert answer.status == 404
    assert "no task" in answer.json["error"]


def test_an_id_that_nobody_was_told_opens_nothing(server: HttpServer) -> None:
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


def test_ids_are_long_and_differ(server: HttpServer) -> None:
    urls = [server.begin() for _ in range(3)]
    names = {url.split("/")[-2] for url in urls}

    assert len(names) == 3
    assert min(map(len, names)) >= 32
    for url in urls:
        server.close(url)


def test_so_many_episodes_and_no_more(server: HttpServer) -> None:
    urls = [server.begin() for _ in range(4)]
    full = server.ask("POST", "/episodes", {})
    server.close(urls.pop())
    again = server.ask("POST", "/episodes", {})

    assert (full.status, again.status) == (503, 201)
    assert "DELETE one" in full.json["error"]
    server.ask("DELETE", f"/episodes/{again.json['episode']}")
    for url in urls:
        server.close(url)


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
        return 413  # it answered and closed, before all was sent
    finally:
        connection.close()


def episodes(**options: Any) -> tuple[Episodes, list[EpisodeRecord]]:
    closed: list[EpisodeRecord] = []
    made = Episodes(lambda: registration.make(EXPLORE), EXPLORE, on_close=closed.append, **options)
    return made, closed


def test_an_episode_that_nobody_plays_is_closed_and_kept() -> None:
    async def leave() -> None:
        table, closed = episodes(idle=3600.0)
        idle, _ = await table.begin(Wanted(task_id=HUTS))
        busy, session = await table.begin(Wanted(task_id=HUTS))
        async with session.lock:  # a call of it is being played
            await table.close_idle(0)
        assert table.find(idle) is None
        assert table.find(busy) is session
        assert [(record.task_id, record.answered) for record in closed] == [(HUTS, False)]
        await table.close_idle()
        assert len(table) == 1

    anyio.run(leave)


def test_many_that_begin_at_once_are_not_more_than_may_be() -> None:
    async def begin() -> None:
        table, _ = episodes(most=3)
        outcomes = await asyncio.gather(
            *(table.begin(Wanted()) for _ in range(9)), return_exceptions=True
        )
        assert sum(isinstance(each, Full) for each in outcomes) == 6
        assert len(table) == 3

    anyio.run(begin)


def test_a_beginning_that_fails_takes_no_place() -> None:
    async def fail() -> None:
        table, _ = episodes(most=1)
        for _ in range(3):
            with pytest.raises(ConfigurationError, match="no task"):
                await table.begin(Wanted(task_id="nowhere"))
        await table.begin(Wanted())

    anyio.run(fail)


def test_the_socket_is_on_the_loopback_interface_and_a_taken_port_is_told() -> None:
    with open_socket(0) as taken:
        host, port = taken.getsockname()
        assert host == LOOPBACK
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

    with http_server(EXPLORE, "--max-episodes", "1", "--dataset", str(tmp_path)) as running:
        running.close(running.begin())
        file.unlink()
        answers = [running.ask("POST", "/episodes", {}) for _ in range(2)]

    assert [(each.status, each.json) for each in answers] == [(503, {"error": FAULT})] * 2


def test_episodes_that_are_open_when_the_server_is_stopped_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"

    with http_server(EXPLORE, "--out", str(file)) as running:
        running.begin(task_id=HUTS)
        running.close(running.begin(task_id=HUTS))

    assert [(record.task_id, record.answered) for record in read_episodes(file)] == [
        (HUTS, False)
    ] * 2


@pytest.mark.nightly
def test_a_request_that_does_not_arrive_is_not_waited_for(server: HttpServer) -> None:
    head = f"POST /episodes HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    typed = f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    beginnings = {"nothing": "", "half a head": head, "half a body": typed + '{"task_id": '}
    opened = {}
    for name, text in beginnings.items():
        opened[name] = socket.create_connection(("127.0.0.1", server.port), PATIENCE + 20)
        opened[name].sendall(text.encode())

    ends = {name: each.recv(65_536).partition(b"\r\n")[0] for name, each in opened.items()}

    assert ends == {
        "nothing": b"",
        "half a head": b"",
        "half a body": b"HTTP/1.1 408 Request Timeout",
    }
    server.close(server.begin())
    for each in opened.values():
        each.close()
