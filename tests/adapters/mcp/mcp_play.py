"""Real servers of `toolgym mcp` in processes of their own, and a real client that plays scripts."""

import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters

from adapters.mcp.server import CLOSE, RESULT
from tests.adapters.local_server import ROOT, LocalServer, running, toolgym
from tests.adapters.scripted_contract import NotCarried, Played, PlayedTurn, json_calls
from tests.adapters.scripted_episodes import ScriptedEpisode


def stdio(env_id: str, *options: str, **env_kwargs: Any) -> StdioServerParameters:
    """How a host starts the server of one episode."""
    return StdioServerParameters(
        command=sys.executable,
        args=toolgym("mcp", env_id, *options, **env_kwargs),
        env={name: os.environ[name] for name in ("TOOLGYM_CACHE",) if name in os.environ},
        cwd=ROOT,
    )


class HttpServer(LocalServer):
    """A server of many episodes."""

    def begin(self, **wanted: Any) -> str:
        """Begin an episode, and return its URL for a client."""
        answer = self.ask("POST", "/episodes", wanted)
        assert answer.status == 201, answer
        return f"{self.url}{answer.json['mcp']}"

    def close(self, url: str) -> Any:
        """Close the episode of a URL, and return its result."""
        answer = self.ask("DELETE", url.removeprefix(self.url).removesuffix("/mcp"))
        assert answer.status == 200, answer
        return answer.json


@contextmanager
def http_server(env_id: str, *options: str, **env_kwargs: Any) -> Iterator[HttpServer]:
    """A server on a free port."""
    words = ("mcp", env_id, "--http", "0", *options)
    with running(Path(os.devnull), *words, **env_kwargs) as started:
        yield HttpServer(started.process, started.port, started.log)


async def result(client: Client, uri: str = RESULT) -> Any:
    return json.loads((await client.read_resource(uri)).contents[0].text)


async def play_with(client: Client, script: ScriptedEpisode) -> Played:
    """Play a script as a host does: it reads the calls itself, and sends them one by one."""
    prompt = (await client.get_prompt("task")).messages[0].content.text
    turns: list[list[PlayedTurn]] = []
    try:
        for message in script.messages:
            turns.append([await played_call(client, **each) for each in json_calls(message)])
    except MCPError:
        pass  # a fault: no turn, and no score
    end = await result(client, CLOSE)
    rewards = iter([turn["reward"] for turn in end["turns"]])
    joined = []
    for parts in turns:
        rewarded = [
            PlayedTurn(each.observation, next(rewards), each.repairs, each.errors, each.over)
            for each in parts
        ]
        joined.append(PlayedTurn.joined(rewarded))
    score = math.nan if end["score"] is None else end["score"]
    return Played(prompt, tuple(joined), score, end["correct"])


async def played_call(client: Client, name: str, arguments: dict[str, Any]) -> PlayedTurn:
    """Play one call."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotCarried("a lone surrogate") from None
    called = await client.call_tool(name, arguments)
    about = {key.removeprefix("toolgym/"): value for key, value in (called.meta or {}).items()}
    assert called.is_error == bool(about["errors"])
    codes = (tuple(about["repairs"]), tuple(about["errors"]))
    return PlayedTurn(called.content[0].text, None, *codes, about["over"])
