"""The chat client against a server on the loopback that fails as servers fail."""

import logging
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

pytest.importorskip("openai", reason="needs the extra `openai`")

from tests.chat_server import ScriptedServer
from toolgym.chat import Chat, ChatClient, ChatFault, ChatSettings
from toolgym.errors import ConfigurationError, EnvironmentFault

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(autouse=True, scope="module")
def imported():
    """The first request of a process imports much, and one time limit here is short."""
    with ScriptedServer(lambda asked: "hi") as server:
        client = ChatClient(ChatSettings(model="m", base_url=server.url))
        client.complete(chat())
        client.close()


def served(faults=(), answer=lambda asked: f"seed {asked.get('seed')}", **options):
    return ScriptedServer(answer, faults=faults, **options)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Lets the library try again at once."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.002)


def client_of(server, **changed):
    options = {"retries": 2, "timeout": 120.0, "deadline": 300.0}
    return ChatClient(ChatSettings(model="m", base_url=server.url, **{**options, **changed}))


def chat(seed=1):
    return Chat([{"role": "user", "content": "hi"}], seed=seed)


# Each fault: retried until it passes, or told -----------------------------------------------------

PASSING = {
    "429": "rate_limited", "429 in 0.05 s": "rate_limited", "500": "server_error",
    "slow": "timeout", "cut": "unreachable", "closed": "unreachable",
}  # fmt: skip
LASTING = {
    "malformed JSON": "unreadable_reply", "HTML": "unreadable_reply",
    "empty choices": "unreadable_reply", "no message": "unreadable_reply",
    "429 in an hour": "rate_limited", "quota": "quota", "401": "refused_key", "404": "not_found",
    "400": "refused_request", "content filter": "content_filter",
}  # fmt: skip


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_is_tried_again_and_told_if_it_stays(name):
    with served([name, None, name, name]) as server:
        # The server rests for longer than the limit; other faults need no limit.
        client = client_of(server, retries=1, timeout=0.2 if name == "slow" else 120.0)
        assert client.complete(chat()).text == "seed 1"
        assert client.totals.faults == 0
        with pytest.raises(ChatFault, match=r"chat server http://127\.0\.0\.1") as caught:
            client.complete(chat())
        client.close()

    assert caught.value.code == PASSING[name]
    assert isinstance(caught.value, EnvironmentFault)
    assert caught.value.hint
    assert len(server.requests) == 4
    assert client.totals.faults == 1


@pytest.mark.parametrize("name", LASTING)
def test_a_fault_that_cannot_pass_is_told_at_once(name):
    with served(lambda number, asked: name) as server:
        client = client_of(server)
        with pytest.raises(ChatFault, match="chat server") as caught:
            client.complete(chat())
        client.close()

    assert caught.value.code == LASTING[name]
    assert len(server.requests) == 1


def test_usage_that_cannot_be_is_estimated_and_a_reply_that_was_cut_off_says_so():
    with served(["wrong usage", "no usage", "length", "too long"]) as server:
        client = client_of(server)
        *unknown, cut, none = (client.complete(chat()) for _ in range(4))
        client.close()

    for reply in unknown:
        assert (reply.text, reply.estimated) == ("seed 1", True)
        assert reply.tokens_in > 0 < reply.tokens_out
    assert client.totals.estimated >= 2
    assert cut.cut
    assert (none.text, none.cut) == ("", True)


def test_the_deadline_ends_all_tries_together():
    with served(lambda number, asked: "500") as server:
        client = client_of(server, retries=1_000, deadline=0.4)
        with pytest.raises(ChatFault, match=r"no reply within 0\.4 s"):
            client.complete(chat())
        client.close()

    assert 1 <= len(server.requests) < 1_000


def test_no_more_requests_are_in_flight_than_allowed():
    with served(latency=0.1) as server:
        client = client_of(server, concurrency=3)
        replies = client.complete_all([chat(seed) for seed in range(12)])
        client.close()

    assert [reply.text for reply in replies] == [f"seed {seed}" for seed in range(12)]
    assert server.most_open == 3


# Several at once ----------------------------------------------------------------------------------


def test_a_fault_beside_others_takes_nothing_from_them():
    with served(lambda number, asked: "404" if asked["seed"] == 2 else None) as server:
        client = client_of(server)
        replies = client.complete_all([chat(seed) for seed in range(4)])
        client.close()

    assert [isinstance(reply, ChatFault) for reply in replies] == [False, False, True, False]


def test_a_client_goes_through_a_pickle():
    with served() as server:
        client = client_of(server)
        client.complete(chat())
        copy = pickle.loads(pickle.dumps(client))
        assert copy.complete(chat(2)).text == "seed 2"
        copy.close()
        client.close()


@pytest.mark.integration
def test_a_client_goes_through_a_fork():
    with served() as server:
        code = (
            "import os, sys\nfrom toolgym.chat import *\n"
            f"c = ChatClient(ChatSettings(model='m', base_url={server.url!r}))\n"
            "ask = lambda n: c.complete(Chat([{'role': 'user', 'content': 'hi'}], seed=n)).text\n"
            "ask(1)\npid = os.fork()\n"
            "if pid == 0:\n    os._exit(0 if ask(5) == 'seed 5' else 1)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=600)

    assert done.returncode == 0, done.stderr


# Usage and cost -----------------------------------------------------------------------------------


# The cache ----------------------------------------------------------------------------------------


def test_a_remembered_reply_costs_nothing_and_asks_nobody(tmp_path):
    with served(["404"]) as server:
        options = {"cache": tmp_path / "replies.sqlite", "prices": {"m": (1.0, 1.0)}}
        first = client_of(server, **options)
        with pytest.raises(ChatFault, match="404"):
            first.complete(chat())
        paid = first.complete(chat())
        first.close()
        second = client_of(server, **options)
        free = second.complete(chat())
        other = second.complete(chat(seed=2))
        second.close()

    assert len(server.requests) == 3
    assert (free.text, free.tokens_in, free.cached) == (paid.text, paid.tokens_in, True)
    assert second.totals.dollars == first.totals.dollars > 0  # of the other reply
    assert not other.cached
    assert second.totals.cached == 1


@pytest.mark.integration
def test_processes_that_make_and_fill_one_cache_at_once_wait_for_each_other(tmp_path):
    """Only the first few openings of a file collide, so many files are opened by all at once."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom toolgym.chat.cache import ReplyCache\n"
        "from toolgym.chat.reply import Reply\n"
        "sys.stdin.readline()\n"
        "for n in range(60):\n"
        "    cache = ReplyCache(Path(sys.argv[1]) / f'{n}.sqlite')\n"
        "    for k in 'abc':\n"
        "        cache.put(k, Reply(f'reply {k}'))\n"
        "        assert cache.get(k).text == f'reply {k}'\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for each in running:
        each.stdin.write(b"\n")
        each.stdin.flush()

    assert [(each.communicate(timeout=600)[1], each.returncode) for each in running] == [
        (b"", 0)
    ] * 3


def test_a_file_that_is_no_cache_is_refused(tmp_path):
    (tmp_path / "replies.sqlite").write_text(
        "not a database, but long enough to look like one " * 9
    )

    with pytest.raises(ConfigurationError, match="cache=false"):
        ChatClient(ChatSettings(model="m", cache=tmp_path / "replies.sqlite"))


def test_a_cache_that_stops_working_costs_no_reply(tmp_path):
    with served() as server:
        client = client_of(server, cache=tmp_path / "replies.sqlite")
        client.complete(chat())
        with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as file, file:
            file.execute("DROP TABLE replies")
        with pytest.warns(RuntimeWarning, match="continuing without it"):
            assert client.complete(chat()).text == "seed 1"
        client.close()


# The key ------------------------------------------------------------------------------------------


def test_the_key_is_sent_and_is_found_nowhere_else(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    faults, answer = ["401", "400"], f"You sent {KEY}, did you not?"
    with served(faults, lambda asked: answer) as server:
        client = client_of(server, cache=tmp_path / "replies.sqlite")
        seen = []
        for seed in range(2):
            with pytest.raises(ChatFault, match="status 40") as caught:
                client.complete(chat(seed))
            error = caught.value
            while error is not None:
                seen.append(repr(error) + str(error) + str(vars(error)))
                error = error.__cause__ or error.__context__
        reply = client.complete(chat(2))
        seen += [repr(reply), repr(client), repr(client.settings), caplog.text]
        seen.append(str(pickle.dumps(client)))
        client.close()

    assert server.keys == {KEY}
    assert caplog.records, "the libraries log something, or this shows nothing"
    seen += [file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*")]
    assert not any("very-secret" in text for text in seen)


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": f"http://me:{KEY}@host/v1"},
        {"base_url": f"http://host/v1?api_key={KEY}"},
        {"api_key_env": KEY},
    ],
)
def test_a_key_in_a_setting_is_refused_and_not_repeated(wrong):
    with pytest.raises(ConfigurationError, match=r"environment|never the key") as caught:
        ChatSettings(model="m", **wrong)

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-\u201cvery-secret\u201d", "sk-very\n-secret"])
def test_a_key_that_no_header_can_hold_is_told_by_its_variable_and_not_repeated(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with served() as server:
        client = client_of(server)
        with pytest.raises(ConfigurationError, match="key in OPENAI_API_KEY contains") as caught:
            client.complete(chat())
        client.close()

    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert server.requests == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": ""}, {"concurrency": 0}, {"timeout": 0}, {"prices": {"m": (1.0,)}},
        {"base_url": "localhost:8000"}, {"base_url": "http://a..b/v1"},
        {"base_url": "http://host/\ud800"},
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ConfigurationError, match=r"."):
        ChatSettings(**{"model": "m", **wrong})


# Reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_client_that_is_closed_lets_no_thread_wait(is_connected):
    release = threading.Event()
    with served(answer=lambda asked: "late" if release.wait(60) else "") as server:
        client = client_of(server, concurrency=2, retries=0)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.complete_all, [chat()] * 6)
            while not (server.requests if is_connected else client._server):
                time.sleep(0.001)
            client.close()
            found = [fault.code for fault in waiting.result(60)]
        release.set()
        assert found == ["unreachable"] * 6
        assert client.complete(chat()).text == "late"
        client.close()
