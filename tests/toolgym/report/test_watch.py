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
from toolgym.errors import ConfigurationError
from toolgym.report import library
from toolgym.report.server import READERS, WatchedRun, WatchServer
from toolgym.report.terminal import sparkline
from toolgym.runs.run import Run

SECRET = "the content of a file beside the run"


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
    library.plotting_script()  # made once, so that no request has to wait for it
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
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": f"127.0.0.1:{server.port}", **headers}.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode("utf-8")
    connection.close()
    return answer, body


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


def test_an_open_page_gets_the_content_without_the_scripts(server: WatchServer) -> None:
    _, version = ask(server, "/version")
    _, content = ask(server, "/content")

    assert f'data-version="{version}"' in content
    assert content.count("<script") == 1  # the data
    assert "toolgymPlots" not in content
    assert library.page_script()[:80] not in content


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
        "/secret.txt",
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "//secret.txt",
        "/config.json",
        "/explore/config.json",
        "/content/../config.json",
        "/content/",
        "/version%00",
        "/" + "a" * 5000,
        "http://elsewhere.example/",
        "/?../../secret.txt",
    ],
)
def test_no_path_reaches_the_disk(server: WatchServer, path: str) -> None:
    answer, body = ask(server, path)

    assert SECRET not in body
    assert answer.status == (200 if path.startswith("/?") else 404)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "rebound.example"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://rebound.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_page_of_another_site_is_refused(
    server: WatchServer, headers: dict[str, str], status: int
) -> None:
    for path in ("/", "/content", "/version"):
        answer, body = ask(server, path, **headers)
        assert (answer.status, "Explore" in body) == (status, False)


def test_the_names_of_this_machine_are_served(server: WatchServer) -> None:
    for host in (f"localhost:{server.port}", f"127.0.0.1:{server.port}"):
        assert ask(server, "/version", Host=host, Origin=f"http://{host}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_only_reading_is_answered(server: WatchServer, method: str) -> None:
    answer, body = ask(server, "/", method)

    assert (answer.status, answer.headers["Allow"], body) == (405, "GET, HEAD", "")


def test_head_says_what_get_would_and_sends_no_body(server: WatchServer) -> None:
    answer, body = ask(server, "/content", "HEAD")

    assert (answer.status, body) == (200, "")
    assert answer.headers["Content-Length"] == str(len(ask(server, "/content")[1].encode()))


def test_a_request_that_is_none_gets_no_page_and_harms_nobody(server: WatchServer) -> None:
    for text in (b"\x16\x03\x01\x00\n\n", b"GET / HTTP/9.9\r\n\r\n", b"GET\r\n\r\n", b"G" * 70_000):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            try:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                told = b"".join(iter(lambda: connection.recv(65536), b""))
            except ConnectionError:
                told = b""
        assert b"Explore" not in told

    assert ask(server, "/version")[0].status == 200


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


def test_a_run_that_has_not_begun_and_one_that_was_interrupted_have_a_page(
    tmp_path: Path,
) -> None:
    empty = Run.create(tmp_path / "empty", {"env_id": "sqlgym/Explore-v0"})
    assert b"There are no metrics" in WatchedRun(empty.path).page(has_scripts=False)

    cut = Run.create(tmp_path / "cut", {})
    cut.log_metrics({"phase": "grpo", "step": 3, "reward": 0.5})
    cut.write_summary({"status": "interrupted"})
    assert b"This run was interrupted" in WatchedRun(cut.path).page(has_scripts=False)


def test_a_line_that_is_just_being_written_is_no_damage(run: Run) -> None:
    with (run.path / "metrics.jsonl").open("ab") as stream:
        stream.write(b'{"phase": "gr')
    watched = WatchedRun(run.path)

    with run.held():
        assert b"was cut off" not in watched.page(has_scripts=False)
    assert b"was cut off" in watched.page(has_scripts=False)


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


def test_a_port_that_is_taken_is_told_with_a_cure(run: Run, server: WatchServer) -> None:
    with pytest.raises(ConfigurationError, match="Leave --port out"):
        WatchServer(WatchedRun(run.path), server.port)


def test_a_folder_that_is_no_run_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="There is no run folder"):
        command(tmp_path / "nowhere")


def watching(*arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "toolgym", "watch", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_command_says_where_it_serves_and_ctrl_c_ends_it_well(run: Run) -> None:
    process = watching(run.path)
    assert process.stdout is not None
    line = process.stdout.readline()
    address = line.split(" at ")[1].split(" ")[0]
    port = int(address.removesuffix("/").rpartition(":")[2])
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/version")
    assert connection.getresponse().status == 200

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 0
    assert errors == "Stopped watching; the run itself was left alone.\n"


def test_on_a_terminal_the_run_is_told_in_lines(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    command(run.path, terminal=True)

    told = capsys.readouterr().out
    assert "it learnt no new skill" in told
    assert "Complete." in told
    (entropy,) = [line for line in told.splitlines() if line.startswith("Entropy")]
    last = run.metrics("grpo")[-1]["entropy"]
    assert float(entropy.split()[-1]) == pytest.approx(last, rel=1e-3)


def test_on_a_terminal_hostile_text_is_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path / "run", {"env_id": "\x1b[31m[bold]x\x07", "model": "[/]\ud800"})

    command(run.path, terminal=True)

    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "[bold]x" in told
    assert "There are no metrics yet." in told


@pytest.mark.parametrize(
    ("values", "drawn"), [([], ""), ([None], ""), ([1.0], "▁"), ([float("nan"), 2, 3], " ▁█")]
)
def test_a_curve_in_a_line_has_gaps_where_there_is_no_number(
    values: list[float | None], drawn: str
) -> None:
    assert sparkline(values, 10) == drawn
