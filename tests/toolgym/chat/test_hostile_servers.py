"""The chat client against servers that send what no server should (`hostile_answers.HOSTILE`)."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("openai", reason="needs the extra `openai`")

from tests.toolgym.chat.hostile_answers import HOSTILE, error
from tests.toolgym.chat.hostile_server import Endless, HostileServer, completion, http
from toolgym.chat import Chat, ChatClient, ChatFault, ChatSettings
from toolgym.chat.reply import NotAReply, read_error, read_reply

CHAT = Chat([{"role": "user", "content": "hi"}], seed=1)
ENOUGH, SHORT = 120.0, 0.3
"""Seconds: of a request that must end by itself, and of one that only its limit ends."""


def client_of(server, **changed):
    options = {"retries": 0, "timeout": ENOUGH, "deadline": ENOUGH}
    return ChatClient(ChatSettings(model="m", **{"base_url": server.url, **options, **changed}))


def asked(client):
    """The text of a reply behind "=", or the code of a fault."""
    (reply,) = client.complete_all([CHAT])
    if isinstance(reply, ChatFault):
        assert reply.hint
        assert str(reply).startswith("the chat server http://127.0.0.1")
        assert len(str(reply).encode()) < 1000
        return reply.code
    json.dumps([reply.text, reply.tool_calls], ensure_ascii=False).encode()
    assert isinstance(reply.tokens_in, int)
    assert 0 <= reply.tokens_in <= 10**8
    assert 0 <= reply.tokens_out <= 10**8
    return f"={reply.text}"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Lets the library try again at once."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.002)


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda each: each.name)
def test_whatever_a_server_sends_is_a_reply_or_a_fault_and_the_next_request_is_served(hostile):
    with HostileServer(*hostile.steps, unasked=hostile.unasked) as server:
        client = client_of(server, timeout=SHORT if hostile.endless else ENOUGH)
        outcome = asked(client)
        # Where the limit is short, it is short for the good reply too.
        tries = 20 if hostile.endless else 2 if hostile.tail else 1
        served = any(asked(client) == "=fine" for _ in range(tries))
        client.close()

    assert outcome == hostile.outcome
    assert served


@pytest.mark.parametrize("after", ["3601", "1e308"])
def test_a_server_cannot_silence_a_client_for_hours(after):
    with HostileServer(error("429 X", f"Retry-After: {after}")) as server:
        client = client_of(server, retries=5)
        assert asked(client) == "rate_limited"
        client.close()

    assert server.asked == 1


def test_a_prompt_goes_nowhere_but_to_the_server_that_the_user_named():
    with HostileServer(times=0) as other:
        moved = error("307 X", f"Location: http://127.0.0.1:{other.port}/elsewhere")
        with HostileServer(moved) as server:
            client = client_of(server)
            with pytest.raises(ChatFault, match="give the base URL of the server that replies"):
                client.complete(CHAT)
            client.close()

    assert (server.asked, other.asked) == (1, 0)


def test_a_server_is_asked_not_to_pack_and_gets_no_cookie_back():
    with HostileServer(http(completion(), "Set-Cookie: a=b; Path=/")) as server:
        client = client_of(server)
        asked(client)
        asked(client)
        client.close()

    heads = [head.lower() for head in server.heads]
    assert all(b"accept-encoding: identity\r\n" in head for head in heads)
    assert not any(b"cookie" in head for head in heads)


LARGE = [
    each for each in HOSTILE
    if any(isinstance(step, Endless) or callable(step) for step in each.steps)
]  # fmt: skip


@pytest.mark.integration
def test_no_answer_takes_much_memory():
    """In a process of its own, which says how far each answer raised the most it ever held."""
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from toolgym.chat import *\n"
        "def asked(url, timeout):\n"
        "    client = ChatClient(ChatSettings(\n"
        "        model='m', base_url=url, retries=0, timeout=timeout, deadline=60))\n"
        "    try:\n"
        "        client.complete(Chat([{'role': 'user', 'content': 'hi'}]))\n"
        "    except ChatFault:\n"
        "        pass\n"
        "    client.close()\n"
        "    told = Path('/proc/self/status').read_text()\n"  # ru_maxrss would be the parent's
        "    return int(re.search(r'VmHWM:\\s+(\\d+) kB', told)[1]) // 1024\n"
        "for line in sys.stdin:\n"
        "    url, timeout = line.split()\n"
        "    print(asked(url, float(timeout)), flush=True)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def megabytes(steps, timeout):
        with HostileServer(*steps) as server:
            child.stdin.write(f"{server.url} {timeout}\n")
            child.stdin.flush()
            return int(child.stdout.readline())

    before = megabytes([http(completion())], ENOUGH)
    taken = {
        each.name: megabytes(each.steps, SHORT if each.endless else ENOUGH) - before
        for each in LARGE
    }
    child.communicate()

    assert child.returncode == 0
    assert {"a gzip bomb", "two million values", "100,000 lists"} <= taken.keys()
    assert max(taken.values()) < 60, taken


KEYS = "choices message content tool_calls function name arguments id usage finish_reason error"
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYS.split(), "text", "code"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=50)
@given(JSON_VALUES, st.sampled_from(["whole", "choice", "message", "call"]))
def test_any_json_is_a_reply_that_can_be_written_down_or_is_told_to_be_none(value, place):
    message = {"tool_calls": [value]} if place == "call" else value
    choice = value if place == "choice" else {"message": message}
    whole = value if place == "whole" else {"choices": [choice], "usage": value}
    try:
        reply = read_reply(json.dumps(whole), {})
    except NotAReply as problem:
        f"{problem}".encode()
    else:
        assert json.dumps([reply.text, reply.tool_calls], ensure_ascii=False).encode()
        assert reply.finish.encode() is not None
    assert all(part.encode() is not None for part in read_error(json.dumps(whole)))
