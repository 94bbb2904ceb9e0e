"""Sessions: what a client may choose, who gets in, when an episode ends, and faults."""

import json
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")

import openenv
from openenv.cli._validation import validate_running_environment
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from adapters.openenv.environment import CLOSED, FAULT, MOST_AFTER_END, RESET_FIRST, WANTED
from adapters.openenv.models import ToolgymAction
from adapters.openenv.server import names_of_container
from adapters.serving.guard import LONGEST_BODY, PATIENCE
from tests.adapters.local_server import JSON, REFUSED
from tests.adapters.openenv.openenv_play import ROOT, Server, say, serving
from tests.adapters.scripted_episodes import EXPLORE, GOLD, HUTS, OPERATE, SCRIPTS, TRACE, call
from toolgym import registration
from toolgym.messages import prompt_messages
from toolgym.runs.episodes import read_episodes

FAULTY = next(script for script in SCRIPTS if script.name == "fault")
MOST = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("logs") / "server.log"
    with serving(EXPLORE, log, "--max-sessions", str(MOST)) as running:
        yield running


def test_the_library_is_found_and_not_our_folder_of_its_name() -> None:
    assert ROOT / "adapters" not in Path(openenv.__file__).resolve().parents
    assert "openenv.core" in sys.modules


def test_a_client_is_shown_the_chat_and_the_tools(server: Server) -> None:
    env = registration.make(EXPLORE)
    env.reset(options={"task_id": HUTS})

    with server.client() as client:
        begun = client.reset(task_id=HUTS)
        state = client.state()

    assert begun.observation.messages == prompt_messages(env)
    assert begun.observation.tools == env.tool_schemas()
    assert (begun.reward, begun.done) == (0.0, False)
    assert (state.env_id, state.task_id, state.step_count, state.over) == (EXPLORE, HUTS, 0, False)


def test_nothing_tells_whether_the_answer_is_near_before_the_end(server: Server) -> None:
    with server.client() as client:
        client.reset(task_id=HUTS)
        seen = say(client, call("query", sql=GOLD)).observation
        state = client.state().model_dump()

    assert (seen.score, seen.correct, seen.reward_parts) == (None, None, {})
    assert state.keys() == {"episode_id", "step_count", "env_id", "task_id", "steps_left", "over"}


def test_calls_that_a_server_of_models_has_parsed_are_read_as_they_were_written(
    server: Server,
) -> None:
    broken = {"name": "submit", "arguments": "{'value': 1539}"}
    with server.client() as client:
        client.reset(task_id=HUTS)
        calls = [{"id": "1", "type": "function", "function": broken}]
        end = client.step(ToolgymAction(tool_calls=calls))

    assert (end.done, end.observation.correct) == (True, True)
    assert "renamed_tool" in end.observation.repairs


def test_a_chat_can_go_on_with_what_a_step_returns(server: Server) -> None:
    with server.client() as client:
        client.reset(task_id=HUTS)
        two = say(client, call("query", sql="SELECT 1") + call("query", sql="SELECT 2"))
        none = say(client, "I think that it is 1539.")

    assert [each["role"] for each in two.observation.messages] == ["tool", "tool"]
    assert [each["role"] for each in none.observation.messages] == ["user"]


def test_sessions_do_not_meet(server: Server) -> None:
    def play(value: int) -> tuple[int, bool | None]:
        with server.client() as client:
            client.reset(task_id=HUTS)
            looked = say(client, call("query", sql="SELECT 1"))
            return looked.observation.steps_left, say(
                client, call("answer", value=value)
            ).observation.correct

    with ThreadPoolExecutor(MOST) as pool:
        results = list(pool.map(play, [1539, 7, 1539, 8]))

    assert results == [(14, True), (14, False), (14, True), (14, False)]


def test_a_session_too_many_is_told_so_and_a_place_is_free_again(server: Server) -> None:
    with ExitStack() as opened:
        clients = [opened.enter_context(server.client()) for _ in range(MOST)]
        for client in clients:
            client.reset(task_id=HUTS)
        with server.client() as late, pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
            late.reset(task_id=HUTS)
        clients[0].close()
        with server.client() as next_one:
            assert next_one.reset(task_id=HUTS).observation.task_id == HUTS


def test_a_task_is_chosen_by_id_by_place_or_by_seed(server: Server) -> None:
    env = registration.make(EXPLORE)
    _, info = env.reset(seed=5)
    dev = registration.make(EXPLORE, split="dev").tasks.ids

    with server.client() as client:
        by_seed = client.reset(seed=5).observation.task_id
        by_place = client.reset(split="dev", index=2).observation.task_id
        by_id = client.reset(task_id=dev[3]).observation.task_id

    assert (by_seed, by_place, by_id) == (info["task_id"], dev[2], dev[3])


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        *(({name: "x"}, WANTED) for name in ("dataset", "backend", "parsing", "step_limit")),
        ({"task_id": 7}, WANTED), ({"task_id": "x" * 1001}, WANTED), ({"seed": -1}, WANTED),
        ({"seed": True}, WANTED), ({"seed": 2**31}, WANTED), ({"index": "0"}, WANTED),
        ({"task_id": "../../etc/passwd"}, "There is no task '../../etc/passwd' in train or dev."),
        ({"task_id": HUTS, "split": "dev"}, f"There is no task '{HUTS}' in dev."),
        ({"split": "/etc"}, "There is no split '/etc' here: take train or dev."),
        ({"index": 10**6}, "There is no task 1000000 in train"),
    ],
)  # fmt: skip
def test_a_client_chooses_a_task_and_nothing_else_and_a_mistake_costs_no_episode(
    server: Server, wanted: dict[str, Any], told: str
) -> None:
    with server.client() as client:
        client.reset(task_id=HUTS)
        with pytest.raises(RuntimeError, match="Server error") as refused:
            client.reset(**wanted)
        assert say(client, call("answer", value=1539)).observation.correct

    assert told in str(refused.value)


def test_a_step_before_a_reset_and_one_long_after_the_end_are_refused(server: Server) -> None:
    with server.client() as client:
        with pytest.raises(RuntimeError, match=RESET_FIRST):
            say(client, call("answer", value=1539))
        client.reset(task_id=HUTS)
        say(client, call("answer", value=1539))
        for _ in range(14 + MOST_AFTER_END):
            say(client, "more")
        with pytest.raises(RuntimeError, match=CLOSED):
            say(client, "more")
        assert client.step(ToolgymAction(finish=True)).observation.correct


def test_episodes_are_kept_when_a_session_goes_on_or_leaves_or_the_server_is_stopped(
    tmp_path: Path,
) -> None:
    out = tmp_path / "episodes.jsonl"
    with serving(EXPLORE, tmp_path / "log", "--out", str(out)) as running:
        with running.client() as client:
            client.reset(task_id=HUTS)
            say(client, call("answer", value=1539))
            client.reset(task_id=HUTS)
        still_open = running.client().connect()
        still_open.reset(task_id=HUTS)
    still_open.close()

    records = read_episodes(out)
    assert sorted((each.task_id, each.answered) for each in records) == [
        (HUTS, False), (HUTS, False), (HUTS, True)
    ]  # fmt: skip


def test_a_fault_ends_the_episode_unscored_and_names_no_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(OPERATE, log, **FAULTY.arguments) as running, running.client() as client:
        client.reset(task_id=TRACE)
        for _ in range(2):  # nor can a later message be played
            end = say(client, call("custom"))
            assert (end.done, end.reward, end.observation.scored) == (True, None, False)
            assert (end.observation.text, end.observation.score) == (FAULT, None)
        again = client.reset(task_id=TRACE)
        assert (again.done, again.observation.scored) == (False, True)

    assert f"an episode of {OPERATE} is not scored: task {TRACE!r}" in log.read_text()


def test_a_fault_at_the_beginning_is_one_too(tmp_path: Path) -> None:
    file = tmp_path / "data" / "database" / "inns" / "inns.sqlite"
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE inns (beds INT); INSERT INTO inns VALUES (40);")
    question = {"question": "How many beds?", "query": "SELECT beds FROM inns", "db_id": "inns"}
    (tmp_path / "data" / "train.json").write_text(json.dumps([question]))
    (tmp_path / "data" / "tables.json").write_text("[]")

    with serving(EXPLORE, tmp_path / "log", "--dataset", str(tmp_path / "data")) as running:
        file.unlink()
        with running.client() as client:
            begun = client.reset()
            with pytest.raises(RuntimeError, match="There is no task 'x'") as refused:
                client.reset(task_id="x")

    assert (begun.done, begun.reward, begun.observation.scored) == (True, None, False)
    assert begun.observation.text == FAULT
    assert str(tmp_path) not in begun.observation.model_dump_json() + str(refused.value)


def test_tasks_are_listed_as_openenv_asks_for_them(server: Server) -> None:
    dev = registration.make(EXPLORE, split="dev").tasks.ids
    splits = server.ask("GET", "/toolgym/splits").json
    listed = server.ask("POST", "/toolgym/tasks", {"split": "dev"}).json["tasks"]
    wanted = {"split": "dev", "start": 1, "stop": 3}

    assert [each["name"] for each in splits] == ["train", "dev"]
    assert server.ask("POST", "/toolgym/num_tasks", {"split": "dev"}).json == {
        "num_tasks": len(dev)
    }
    assert listed == [{"id": name, "index": index} for index, name in enumerate(dev)]
    assert server.ask("POST", "/toolgym/task_range", wanted).json["tasks"] == listed[1:3]
    task = server.ask("POST", "/toolgym/task", {"split": "dev", "index": 4})
    assert task.json == {"task": listed[4]}
    for index in (-1, len(dev)):
        answer = server.ask("POST", "/toolgym/task", {"split": "dev", "index": index})
        assert answer.status == 400
    assert server.ask("POST", "/toolgym/tasks", {"split": "/etc"}).status == 404


@pytest.mark.parametrize(
    "body", ["", "[]", "{", "7", "NaN", '{"split": NaN}', '{"split": "\\ud83d", "\\ud83d": 1}']
)
def test_a_body_that_cannot_be_read_is_not_a_failure_of_the_server(
    server: Server, body: str
) -> None:
    assert server.ask("POST", "/toolgym/num_tasks", body).status == 422


@pytest.mark.parametrize("path", ["/toolgym/num_tasks", "/reset", "/mcp", "/"])
@pytest.mark.parametrize(("headers", "status"), REFUSED)
def test_what_a_page_of_another_origin_can_send_is_refused_on_every_path(
    server: Server, path: str, headers: dict[str, str], status: int
) -> None:
    assert server.ask("POST", path, "{}", {**JSON, **headers}).status == status


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://rebound.example"}, {"Origin": "http://localhost:1"}]
)
def test_a_socket_of_another_origin_is_refused(server: Server, headers: dict[str, str]) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        connect(f"ws://127.0.0.1:{server.port}/ws", additional_headers=headers)


@pytest.mark.parametrize("path", ["/mcp", "/harness", "/ws?session_id=x", "/ws/", "/"])
def test_no_other_socket_is_served(server: Server, path: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        connect(f"ws://127.0.0.1:{server.port}{path}")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/reset", "/step", "/state"])
def test_no_episode_is_begun_outside_of_a_session(server: Server, method: str, path: str) -> None:
    assert server.ask(method, path, "{}").status == 409


def test_openenv_validates_a_server_that_runs(server: Server) -> None:
    report = validate_running_environment(server.url, timeout_s=60)

    assert [each["id"] for each in report["criteria"] if not each["passed"]] == []
    assert (report["passed"], report["mode"]) == (True, "simulation")


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/web", "/other/splits", "/../etc/passwd"])
def test_nothing_else_is_there(server: Server, path: str) -> None:
    assert server.ask("GET", path).status == 404


def test_a_message_may_have_a_megabyte(server: Server) -> None:
    frame = {"type": "step", "data": {"text": "x" * (LONGEST_BODY - 100)}}
    with connect(f"ws://127.0.0.1:{server.port}/ws", max_size=None) as opened:
        opened.send(json.dumps({"type": "reset", "data": {"task_id": HUTS}}))
        assert json.loads(opened.recv())["type"] == "observation"
        opened.send(json.dumps(frame))
        assert json.loads(opened.recv())["type"] == "observation"
        opened.send("x" * (LONGEST_BODY + 1))
        with pytest.raises(ConnectionClosed, match="1009"):
            opened.recv()


def test_a_silent_session_is_closed_and_its_episode_kept(tmp_path: Path) -> None:
    out = tmp_path / "episodes.jsonl"
    options = ("--idle", "1", "--max-sessions", "1", "--out", str(out))
    with serving(EXPLORE, tmp_path / "log", *options) as running:
        with connect(f"ws://127.0.0.1:{running.port}/ws") as opened:
            opened.send(json.dumps({"type": "reset", "data": {"task_id": HUTS}}))
            opened.recv()
            with pytest.raises(ConnectionClosed, match="1001"):
                opened.recv()
        with running.client() as client:
            assert client.reset(task_id=HUTS).observation.task_id == HUTS

    assert [record.task_id for record in read_episodes(out)] == [HUTS, HUTS]


def test_a_container_is_reached_by_the_names_that_it_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPACE_HOST", "user-toolgym.hf.space")
    monkeypatch.setenv("TOOLGYM_HOSTS", "box, other:8000")
    names = names_of_container()

    hosts = ("localhost:9000", "user-toolgym.hf.space", "box:1", "other:8000", "127.0.0.1:8000")
    assert all(names.has_host(host) for host in hosts)
    assert not any(names.has_host(host) for host in ("other:1", "rebound.example", "", None))
    assert names.has_origin("https://user-toolgym.hf.space", "user-toolgym.hf.space")
    assert not names.has_origin("http://localhost:3000", "localhost:9000")


@pytest.mark.nightly
def test_a_session_outlives_the_time_that_a_request_has_to_arrive(server: Server) -> None:
    with server.client() as client:
        client.reset(task_id=HUTS)
        time.sleep(PATIENCE + 2)
        assert say(client, call("answer", value=1539)).observation.correct


@pytest.mark.nightly
def test_a_request_that_does_not_arrive_is_not_waited_for(server: Server) -> None:
    upgrade = f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n"
    body = f"POST /toolgym/tasks HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    beginnings = {
        "nothing": "",
        "half a handshake": upgrade,
        "half a body": f"{body}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
    }
    opened = {}
    for name, text in beginnings.items():
        opened[name] = socket.create_connection(("127.0.0.1", server.port), PATIENCE + 20)
        opened[name].sendall(text.encode())

    ends = {name: each.recv(65_536).partition(b"\r\n")[0] for name, each in opened.items()}

    assert ends == {
        "nothing": b"",
        "half a handshake": b"",
        "half a body": b"HTTP/1.1 408 Request Timeout",
    }
    for each in opened.values():
        each.close()


def test_a_server_for_others_is_reached_by_the_names_that_it_was_told(tmp_path: Path) -> None:
    options = ("--host", "0.0.0.0", "--allow-host", "box.example")
    with serving(EXPLORE, tmp_path / "log", *options) as running:
        statuses = {
            host: running.ask("GET", "/health", None, {"Host": host}).status
            for host in ("box.example:1", f"localhost:{running.port}", "rebound.example")
        }

    assert list(statuses.values()) == [200, 200, 421]
