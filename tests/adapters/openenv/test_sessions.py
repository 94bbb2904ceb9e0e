"""Sessions: what a client may choose, who may connect, when an episode ends, and faults."""

import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")

from openenv.cli._validation import validate_running_environment
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from adapters.openenv.environment import CLOSED, FAULT, MOST_AFTER_END, OVER, RESET_FIRST, WANTED
from adapters.openenv.models import ToolgymAction
from adapters.serving.guard import LONGEST_BODY, PATIENCE
from tests.adapters.local_server import JSON, REFUSED, LocalServer
from tests.adapters.openenv.openenv_play import say, serving, session
from tests.adapters.scripted_episodes import EXPLORE, GOLD, HUTS, OPERATE, SCRIPTS, TRACE, call
from toolgym import registration
from toolgym.messages import prompt_messages
from toolgym.runs.episodes import read_episodes

FAULTY = next(script for script in SCRIPTS if script.name == "fault")
MOST = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    log = tmp_path_factory.mktemp("logs") / "server.log"
    with serving(EXPLORE, log, "--max-sessions", str(MOST)) as started:
        yield started


def test_a_client_sees_the_chat_and_the_tools_and_no_score_before_the_end(
    server: LocalServer,
) -> None:
    env = registration.make(EXPLORE)
    env.reset(options={"task_id": HUTS})

    with session(server) as client:
        begun = client.reset(task_id=HUTS)
        seen = say(client, call("query", sql=GOLD)).observation
        state = client.state()

    assert begun.observation.messages == prompt_messages(env)
    assert begun.observation.tools == env.tool_schemas()
    assert (begun.reward, begun.done) == (0.0, False)
    assert (seen.score, seen.correct, seen.reward_parts) == (None, None, {})
    assert (state.task_id, state.step_count, state.over) == (HUTS, 1, False)


@pytest.mark.parametrize(
    ("arguments", "repair"),
    [
        ("{'value': 1539}", "repaired_json"),
        (json.dumps(json.dumps({"value": 1539})), "decoded_arguments"),
        (json.dumps(json.dumps(json.dumps({"value": 1539}))), "decoded_arguments"),
    ],
)
def test_calls_that_a_model_server_has_parsed_are_read_as_they_were_written(
    server: LocalServer, arguments: str, repair: str
) -> None:
    function = {"name": "answer", "arguments": arguments}
    with session(server) as client:
        client.reset(task_id=HUTS)
        calls = [{"id": "1", "type": "function", "function": function}]
        end = client.step(ToolgymAction(tool_calls=calls))

    assert (end.done, end.observation.correct) == (True, True)
    assert end.observation.repairs == [repair]


def test_a_chat_can_go_on_with_what_a_step_returns(server: LocalServer) -> None:
    with session(server) as client:
        client.reset(task_id=HUTS)
        two = say(client, call("query", sql="SELECT 1") + call("query", sql="SELECT 2"))
        none = say(client, "I think that it is 1539.")

    assert [each["role"] for each in two.observation.messages] == ["tool", "tool"]
    assert [each["role"] for each in none.observation.messages] == ["user"]


def test_sessions_do_not_meet(server: LocalServer) -> None:
    def play(value: int) -> tuple[int, bool | None]:
        with session(server) as client:
            client.reset(task_id=HUTS)
            left = say(client, call("query", sql="SELECT 1")).observation.steps_left
            return left, say(client, call("answer", value=value)).observation.correct

    with ThreadPoolExecutor(MOST) as pool:
        results = list(pool.map(play, [1539, 7, 1539, 8]))

    assert results == [(14, True), (14, False), (14, True), (14, False)]


def test_a_session_too_many_is_refused_until_a_place_is_free(server: LocalServer) -> None:
    with ExitStack() as opened:
        clients = [opened.enter_context(session(server)) for _ in range(MOST)]
        for client in clients:
            client.reset(task_id=HUTS)
        with session(server) as late, pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
            late.reset(task_id=HUTS)
        clients[0].close()
        with session(server) as next_one:
            assert next_one.reset(task_id=HUTS).observation.task_id == HUTS


def test_a_task_is_chosen_by_id_by_index_or_by_seed(server: LocalServer) -> None:
    env = registration.make(EXPLORE)
    _, info = env.reset(seed=5)
    dev = registration.make(EXPLORE, split="dev").tasks.ids

    with session(server) as client:
        by_seed = client.reset(seed=5).observation.task_id
        by_index = client.reset(split="dev", index=2).observation.task_id
        by_id = client.reset(task_id=dev[3]).observation.task_id

    assert (by_seed, by_index, by_id) == (info["task_id"], dev[2], dev[3])


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        *(({name: "x"}, WANTED) for name in ("dataset", "backend", "parsing", "step_limit")),
        ({"task_id": 7}, WANTED), ({"task_id": "x" * 1001}, WANTED), ({"seed": -1}, WANTED),
        ({"seed": True}, WANTED), ({"seed": 2**31}, WANTED), ({"index": "0"}, WANTED),
        ({"task_id": "../../etc/passwd"}, "There is no task '../../etc/passwd' in train or dev"),
        ({"task_id": HUTS, "split": "dev"}, f"There is no task '{HUTS}' in dev."),
        ({"split": "/etc"}, "There is no split '/etc'. Use train or dev"),
        ({"index": 10**6}, "There is no task 1000000 in train"),
    ],
)  # fmt: skip
def test_a_client_chooses_a_task_and_nothing_else_and_a_mistake_costs_no_episode(
    server: LocalServer, wanted: dict[str, Any], reason: str
) -> None:
    with session(server) as client:
        client.reset(task_id=HUTS)
        with pytest.raises(RuntimeError, match="Server error") as refused:
            client.reset(**wanted)
        assert say(client, call("answer", value=1539)).observation.correct

    assert reason in str(refused.value)


def test_a_step_before_a_reset_and_one_long_after_the_end_are_refused(server: LocalServer) -> None:
    with session(server) as client:
        with pytest.raises(RuntimeError, match=RESET_FIRST):
            say(client, call("answer", value=1539))
        client.reset(task_id=HUTS)
        say(client, call("answer", value=1539))
        for _ in range(14 + MOST_AFTER_END):
            say(client, "more")
        with pytest.raises(RuntimeError, match=OVER):
            say(client, "more")
        assert client.step(ToolgymAction(finish=True)).observation.correct


def test_episodes_are_kept_when_a_session_goes_on_or_leaves_or_the_server_is_stopped(
    tmp_path: Path,
) -> None:
    out = tmp_path / "episodes.jsonl"
    with serving(EXPLORE, tmp_path / "log", "--out", str(out)) as started:
        with session(started) as client:
            client.reset(task_id=HUTS)
            say(client, call("answer", value=1539))
            client.reset(task_id=HUTS)
        still_open = session(started).connect()
        still_open.reset(task_id=HUTS)
    still_open.close()

    assert sorted(each.answered for each in read_episodes(out)) == [False, False, True]


def test_a_fault_ends_the_episode_unscored_and_names_no_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(OPERATE, log, **FAULTY.arguments) as started, session(started) as client:
        client.reset(task_id=TRACE)
        for _ in range(2):  # nor can a later message be played
            end = say(client, call("custom"))
            assert (end.done, end.reward, end.observation.scored) == (True, None, False)
            assert (end.observation.text, end.observation.score) == (FAULT, None)
        again = client.reset(task_id=TRACE)
        assert (again.done, again.observation.scored) == (False, True)

    assert f"an episode of {OPERATE} is not scored: task {TRACE!r}" in log.read_text()


def test_a_fault_at_the_beginning_names_no_file_either(tmp_path: Path) -> None:
    file = tmp_path / "data" / "database" / "inns" / "inns.sqlite"
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE inns (beds INT); INSERT INTO inns VALUES (40);")
    question = {"question": "How many beds?", "query": "SELECT beds FROM inns", "db_id": "inns"}
    (tmp_path / "data" / "train.json").write_text(json.dumps([question]))
    (tmp_path / "data" / "tables.json").write_text("[]")

    with serving(EXPLORE, tmp_path / "log", "--dataset", str(tmp_path / "data")) as started:
        file.unlink()
        with session(started) as client:
            begun = client.reset()

    assert (begun.done, begun.reward, begun.observation.scored) == (True, None, False)
    assert begun.observation.text == FAULT
    assert str(tmp_path) not in begun.observation.model_dump_json()


def test_tasks_are_listed_in_the_way_of_openenv(server: LocalServer) -> None:
    def asked(route: str, **body: Any) -> Any:
        return server.ask("POST", f"/toolgym/{route}", body)

    dev = registration.make(EXPLORE, split="dev").tasks.ids
    listed = asked("tasks", split="dev").json["tasks"]

    splits = [each["name"] for each in server.ask("GET", "/toolgym/splits").json]
    assert splits[:2] == ["train", "dev"]
    assert asked("num_tasks", split="dev").json == {"num_tasks": len(dev)}
    assert listed == [{"id": name, "index": index} for index, name in enumerate(dev)]
    assert asked("task_range", split="dev", start=1, stop=3).json["tasks"] == listed[1:3]
    assert asked("task", split="dev", index=4).json == {"task": listed[4]}
    wrong = [asked("task", split="dev", index=i) for i in (-1, len(dev))]
    assert [each.status for each in (*wrong, asked("tasks", split="/etc"))] == [404] * 3


@pytest.mark.parametrize("body", ["", "[]", "{", '{"split": NaN}', '{"split": 7, "\\ud83d": 1}'])
def test_a_body_that_cannot_be_read_is_not_a_failure_of_the_server(
    server: LocalServer, body: str
) -> None:
    assert server.ask("POST", "/toolgym/num_tasks", body).status == 422


@pytest.mark.parametrize("path", ["/toolgym/num_tasks", "/mcp", "/"])
@pytest.mark.parametrize(("headers", "status"), REFUSED)
def test_a_page_of_another_site_is_refused_on_every_path(
    server: LocalServer, path: str, headers: dict[str, str], status: int
) -> None:
    assert server.ask("POST", path, "{}", {**JSON, **headers}).status == status


@pytest.mark.parametrize("origin", ["http://rebound.example", "http://localhost:1"])
def test_a_socket_of_a_page_of_another_site_is_refused(server: LocalServer, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        connect(f"ws://127.0.0.1:{server.port}/ws", additional_headers={"Origin": origin})


@pytest.mark.parametrize("path", ["/reset", "/step", "/state"])
def test_no_episode_is_begun_outside_of_a_session(server: LocalServer, path: str) -> None:
    assert server.ask("POST", path, "{}").status == 404


def test_openenv_validates_a_server_that_runs(server: LocalServer) -> None:
    report = validate_running_environment(server.url, timeout_s=60)

    assert [each["id"] for each in report["criteria"] if not each["passed"]] == []
    assert report["passed"]


def test_a_message_may_have_a_megabyte(server: LocalServer) -> None:
    frame = {"type": "step", "data": {"text": "x" * (LONGEST_BODY - 100)}}
    with connect(f"ws://127.0.0.1:{server.port}/ws", max_size=None) as opened:
        opened.send(json.dumps({"type": "reset", "data": {"task_id": HUTS}}))
        assert json.loads(opened.recv())["type"] == "observation"
        opened.send(json.dumps(frame))
        assert json.loads(opened.recv())["type"] == "observation"
        opened.send("x" * (LONGEST_BODY + 1))
        with pytest.raises(ConnectionClosed, match="1009"):
            opened.recv()
    assert server.ask("POST", "/toolgym/num_tasks", "x" * (LONGEST_BODY + 1)).status == 413


@pytest.mark.integration
def test_a_silent_session_is_closed_and_its_episode_kept(tmp_path: Path) -> None:
    out = tmp_path / "episodes.jsonl"
    options = ("--idle", "1", "--max-sessions", "1", "--out", str(out))
    with serving(EXPLORE, tmp_path / "log", *options) as started, session(started) as silent:
        silent.reset(task_id=HUTS)
        until = time.monotonic() + 60
        while not out.read_text() and time.monotonic() < until:
            time.sleep(0.2)
        with session(started) as client:
            assert client.reset(task_id=HUTS).observation.task_id == HUTS
        with pytest.raises(RuntimeError, match=CLOSED):
            silent.reset(task_id=HUTS)

    assert [record.task_id for record in read_episodes(out)] == [HUTS, HUTS]


@pytest.mark.nightly
def test_a_body_that_does_not_arrive_is_not_waited_for(server: LocalServer) -> None:
    head = f"POST /toolgym/tasks HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    text = f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE + 20) as connection:
        connection.sendall(text.encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408 ")


def test_a_server_for_others_is_reached_by_its_names_only(tmp_path: Path) -> None:
    options = ("--host", "0.0.0.0", "--allow-host", "box.example")
    with serving(EXPLORE, tmp_path / "log", *options) as started:
        statuses = [
            started.ask("GET", "/health", None, {"Host": host}).status
            for host in ("box.example:1", "localhost:1", "rebound.example")
        ]

    assert statuses == [200, 200, 400]
