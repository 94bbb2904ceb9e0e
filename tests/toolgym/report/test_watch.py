"""`toolgym watch` serves the report of one run to this machine, and nothing else to anybody."""

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from tests.toolgym.report.synthetic_run import Page, episode, synthetic_run
from toolgym.commands.watch import command
from toolgym.report.server import READERS, WatchedRun, WatchServer
from toolgym.runs.run import Run

SECRET = "the content of a file beside the run"
MORE_PATHS = (
    "/secret.txt",
    "//secret.txt",
    "/explore/config.json",
    "/content/../config.json",
    "/content/",
    "/version%00",
    "/" + "a" * 5000,
    "http://elsewhere.example/",
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return synthetic_run(tmp_path_factory.mktemp("runs") / "explore", steps=4)


@pytest.fixture
def run(original: Run, tmp_path: Path) -> Run:
    (tmp_path / "secret.txt").write_text(SECRET)
    shutil.copytree(original.path, tmp_path / "explore")
    return Run.open(tmp_path / "explore")


@pytest.fixture
def server(run: Run) -> Iterator[WatchServer]:
    with WatchServer(WatchedRun(run.path)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: WatchServer, path: str, method: str = "GET", **headers: str
) -> tuple[HTTPResponse, str]:
    """The answer to a request, and its body; a header given as empty is left out."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": f"127.0.0.1:{server.port}", **headers}.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode("utf-8")
    connection.close()
    return answer, body


@pytest.mark.nightly
def test_the_page_is_the_report_and_may_ask_its_own_server_only(
    server: WatchServer, tmp_path: Path
) -> None:
    answer, body = ask(server, "/")
    (tmp_path / "page.html").write_text(body, "utf-8")
    page = Page(tmp_path / "page.html")

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    (policy,) = [value for _, value in page.attributes if value.startswith("default-src")]
    assert "connect-src 'self'" in policy.split("; ")
    assert "sqlgym/Explore-v0: explore" in page.text
    assert len(page.scripts) == 3


@pytest.mark.nightly
def test_what_is_logged_makes_a_new_version_and_stands_on_the_page(
    run: Run, server: WatchServer
) -> None:
    _, before = ask(server, "/version")
    _, again = ask(server, "/version")
    run.log_metrics({"phase": "grpo", "step": 5, "entropy": 0.123456})
    run.log_rollouts([episode(1, "after", True, " a new one")])
    _, after = ask(server, "/version")
    _, content = ask(server, "/content")

    assert before == again != after
    assert "0.1235" in content


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/config.json",
        *(pytest.param(each, marks=pytest.mark.nightly) for each in MORE_PATHS),
    ],
)
def test_no_path_reaches_the_disk(server: WatchServer, path: str) -> None:
    answer, body = ask(server, path)

    assert SECRET not in body
    assert answer.status == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "rebound.example"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://rebound.example"}, 403),
        pytest.param({"Host": "127.0.0.1:1"}, 421, marks=pytest.mark.nightly),
        pytest.param({"Host": "127.0.0.1"}, 421, marks=pytest.mark.nightly),
        pytest.param({"Origin": "null"}, 403, marks=pytest.mark.nightly),
    ],
)
def test_a_page_of_another_site_is_refused(
    server: WatchServer, headers: dict[str, str], status: int
) -> None:
    for path in ("/", "/content", "/version"):
        answer, body = ask(server, path, **headers)
        assert (answer.status, "Explore" in body) == (status, False)


@pytest.mark.nightly
def test_the_names_of_this_machine_are_served(server: WatchServer) -> None:
    for host in (f"localhost:{server.port}", f"127.0.0.1:{server.port}"):
        assert ask(server, "/version", Host=host, Origin=f"http://{host}")[0].status == 200


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_only_reading_is_answered(server: WatchServer, method: str) -> None:
    answer, body = ask(server, "/", method)

    assert (answer.status, answer.headers["Allow"], body) == (405, "GET, HEAD", "")


@pytest.mark.nightly
def test_a_request_that_is_none_gets_no_page_and_harms_nobody(server: WatchServer) -> None:
    for text in (b"\x16\x03\x01\x00\n\n", b"GET / HTTP/9.9\r\n\r\n", b"GET\r\n\r\n", b"G" * 70_000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=600) as connection:
            try:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                told = b"".join(iter(lambda: connection.recv(65536), b""))
            except ConnectionError:
                told = b""
        assert b"Explore" not in told

    assert ask(server, "/version")[0].status == 200


@pytest.mark.nightly
def test_more_readers_than_are_answered_at_once_are_told_to_come_back(server: WatchServer) -> None:
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(READERS)]
    try:
        answer = _eventually_busy(server)
        assert answer.headers["Retry-After"] == "1"
    finally:
        for connection in held:
            connection.close()

    statuses = iter(lambda: ask(server, "/version")[0].status, 200)
    assert all(status == 503 for status, _ in zip(statuses, range(1000), strict=False))


def _eventually_busy(server: WatchServer) -> HTTPResponse:
    """The first answer that turns a reader away; the held connections are taken one by one."""
    for _ in range(1000):
        answer, _ = ask(server, "/version")
        if answer.status == 503:
            return answer
        time.sleep(0.01)
    raise AssertionError("no reader was turned away")


@pytest.mark.nightly
def test_on_a_terminal_hostile_text_is_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path / "run", {"env_id": "\x1b[31m[bold]x\x07", "model": "[/]\ud800"})

    command(run.path, terminal=True)

    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "[bold]x" in told
    assert "There are no metrics yet." in told


@pytest.mark.nightly
def test_a_damaged_run_is_told_on_the_page_which_recovers(run: Run) -> None:
    watched = WatchedRun(run.path)
    config = (run.path / "config.json").read_bytes()
    (run.path / "config.json").write_bytes(b"<script>alert(1)</script>")

    broken = watched.page(has_scripts=True).decode()
    assert "This run cannot be read now" in broken
    assert "<script>alert" not in broken
    assert f'data-version="{watched.version}"' in broken

    (run.path / "config.json").write_bytes(config)
    assert b"sqlgym/Explore-v0: explore" in watched.page(has_scripts=True)


def watching(*arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "toolgym", "watch", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.nightly
def test_the_command_says_where_it_serves_and_ctrl_c_ends_it_well(run: Run) -> None:
    process = watching(run.path)
    assert process.stdout is not None
    line = process.stdout.readline()
    address = line.split(" at ")[1].split(" ")[0]
    port = int(address.removesuffix("/").rpartition(":")[2])
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", "/version")
    assert connection.getresponse().status == 200

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)

    assert process.returncode == 0
    assert errors == "Stopped watching; the run itself was left alone.\n"
