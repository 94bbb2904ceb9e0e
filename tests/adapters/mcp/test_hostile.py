"""Hostile requests change nothing, and others play on."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`: make test-adapters NAME=mcp")

from mcp import Client

from adapters.mcp.server import CLOSE
from tests.adapters.local_server import BAD_JSON, BAD_VALUES, Hostile, besiege, check_siege
from tests.adapters.mcp.mcp_play import http_server
from tests.adapters.scripted_episodes import EXPLORE, GOLD, HUTS

MOST = 6
NOBODY = f"/episodes/{'A' * 32}"
METHODS = (
    *("tools/call", "tools/list", "prompts/get", "resources/read", "resources/subscribe", "ping"),
    *("initialize", "server/discover", "subscriptions/listen", "logging/setLevel", "", "__init__"),
    *("notifications/cancelled", "completion/complete", "sampling/createMessage"),
)
VERSIONS = ("2026-07-28", "2025-11-25", "1999-01-01")


class HostileProtocol(Hostile):
    """Besides hostile requests, messages of the protocol with anything in any place."""

    def request(self) -> bytes:
        draw = self.draw
        if draw.random() < 0.5:
            return super().request()
        method, value = draw.choice(METHODS), draw.choice(BAD_VALUES)
        params: Any = draw.choice(
            (value, {"name": "answer", "arguments": {"value": 1539}}, {"name": value},
             {"name": "query", "arguments": value}, {"uri": CLOSE}, {"uri": "file:///etc/passwd"},
             {"protocolVersion": value, "capabilities": value}, {"_meta": value})
        )  # fmt: skip
        message = {"jsonrpc": "2.0", "id": draw.choice((1, value)), "method": method}
        text = json.dumps({**message, "params": params})
        whole = self.whole(draw.choice((text, text, draw.choice(BAD_JSON))), f"{NOBODY}/mcp")
        headers = f"MCP-Protocol-Version: {draw.choice(VERSIONS)}\r\nMcp-Session-Id: x\r\nHost:"
        return whole.replace(b"Host:", headers.encode(), 1)


def test_hostile_requests_change_nothing() -> None:
    with http_server(EXPLORE, "--max-episodes", str(MOST)) as server:

        async def honest(count: int) -> Any:
            paths = ("/episodes/", NOBODY, f"{NOBODY}/mcp")
            attacks = HostileProtocol(count, server, paths).attacks(count)
            url = server.begin(task_id=HUTS)
            with ThreadPoolExecutor(4) as pool:
                async with Client(url) as client:
                    await client.call_tool("describe", {"table": "huts"})
                    running = besiege(pool, attacks)
                    while not all(each.done() for each in running):
                        assert (await client.list_tools()).tools
                        await asyncio.sleep(0.05)
                    for each in running:
                        each.result()
                    told = await client.call_tool("query", {"sql": GOLD})
                    assert "1539" in told.content[0].text
                    await client.call_tool("answer", {"value": 1539})
            return server.close(url)

        check_siege(server, lambda count: asyncio.run(honest(count)))
        urls = [server.begin() for _ in range(MOST)]  # no place was taken
        assert server.ask("POST", "/episodes", {}).status == 503
        for url in urls:
            server.close(url)
