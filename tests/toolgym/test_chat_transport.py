"""The transport of `toolgym.chat`: HTTP as servers really send it, in pieces and with surprises."""

import asyncio

import pytest

pytest.importorskip("httpx2", reason="needs the extra `openai`")

import httpx2

from toolgym.chat.transport import DirectTransport, is_for

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: x\r\n\r\n"
)
TO_THE_END = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


async def served(replies, ask, *, pause=False):
    """What `ask` returns; the n-th request is answered by the n-th (bytes, close afterwards)."""
    seen = []

    async def answer(reader, writer):
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            seen.append((writer.get_extra_info("peername"), head, await reader.readexactly(length)))
            data, close = replies[len(seen) - 1]
            for piece in (data[n : n + 1] for n in range(len(data))) if pause else [data]:
                writer.write(piece)
                await asyncio.sleep(0)
            if close:
                break
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with httpx2.AsyncClient(transport=DirectTransport()) as client:
            return await ask(client, f"http://127.0.0.1:{port}/v1/chat?x=1"), seen
    finally:
        server.close()
        await asyncio.sleep(0.005)  # the ends of its connections reach it


def got(replies, times=1, **options):
    async def ask(client, url):
        return [(await client.post(url, content=b"question")).text for _ in range(times)]

    return asyncio.run(served(replies, ask, **options))


@pytest.mark.parametrize("pause", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("reply", [PLAIN, CHUNKED, INTERIM])
def test_a_reply_is_read_to_its_end_and_the_connection_is_used_again(reply, pause):
    texts, seen = got([(reply, False)] * 3, times=3, pause=pause)

    assert texts == ["hello"] * 3
    assert len({connection for connection, _, _ in seen}) == 1
    assert seen[0][1].startswith(b"POST /v1/chat?x=1 HTTP/1.1\r\n")
    assert seen[0][2] == b"question"


def test_a_reply_without_a_length_ends_with_its_connection():
    texts, seen = got([(TO_THE_END, True)] * 2, times=2)

    assert texts == ["hello"] * 2
    assert len({connection for connection, _, _ in seen}) == 2


def test_a_connection_that_the_server_closed_meanwhile_is_opened_anew():
    async def ask(client, url):
        first = await client.post(url, content=b"1")
        await asyncio.sleep(0.01)  # the server hangs up
        return first.text, (await client.post(url, content=b"2")).text

    texts, _ = asyncio.run(served([(PLAIN, True), (PLAIN, False)], ask))

    assert texts == ("hello", "hello")


@pytest.mark.parametrize(
    "reply",
    [
        b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", CHUNKED[:-9], b"HTTP/1.1 200",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", b"x" * 100_000,
    ],
)  # fmt: skip
def test_what_is_cut_or_no_http_is_an_error_of_the_connection(reply):
    with pytest.raises(httpx2.RemoteProtocolError, match=r"connection was|no HTTP"):
        got([(reply, True)])


def test_a_request_that_is_given_up_takes_its_connection_with_it():
    async def ask(client, url):
        with pytest.raises(TimeoutError, match=r"^$"):
            await asyncio.wait_for(client.post(url, content=b"1"), 0.02)
        return (await client.post(url, content=b"2")).text

    half = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"
    text, seen = asyncio.run(served([(half, False), (PLAIN, False)], ask))

    assert text == "hello"
    assert seen[0][0] != seen[1][0]


def test_packed_replies_are_unpacked():
    import gzip

    packed = gzip.compress(b"hello")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)

    assert got([(head + packed, False)])[0] == ["hello"]


def test_only_plain_http_without_a_proxy_goes_this_way(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert is_for("http://127.0.0.1:8000/v1")
    assert not is_for("https://api.example.org/v1")

    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert is_for("http://127.0.0.1:8000/v1")
    assert not is_for("http://inference.example.org/v1")
