"""Real servers of `toolgym mcp` in processes of their own, and a real client that plays scripts."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters

from adapters.mcp.server import CLOSE
from tests.adapters.local_server import LocalServer
from tests.adapters.scripted_contract import NotCarried, Played, PlayedTurn, json_calls
from tests.adapters.scripted_episodes import ScriptedEpisode

ROOT = Path(__file__).resolve().parents[3]


def command_for(env_id: str, *options: str, **env_kwargs: Any) -> list[str]:
    """`toolgym mcp` without the name of the interpreter."""
    told = [word for k, v in env_kwargs.items() for word in ("--set", f"{k}={json.dumps(v)}")]
    return ["-m", "toolgym", "mcp", env_id, *told, *options]


def stdio(env_id: str, *options: str, **env_kwargs: Any) -> StdioServerParameters:
    """How a host starts the server of one episode."""
    return StdioServerParameters(
        command=sys.executable,
        args=command_for(env_id, *options, **env_kwargs),
        env={name: os.environ[name] for name in ("TOOLGYM_CACHE",) if name in os.environ},
        cwd=ROOT,
    )


class HttpServer(LocalServer):
    """A server of many episodes."""

    def begin(self, **wanted: Any) -> str:
        """Begin an episode: the URL for a client."""
        answer = self.ask("POST", "/episodes", wanted)
        assert answer.status == 201, answer
        return f"{self.url}{answer.json['mcp']}"

    def close(self, url: str) -> Any:
        """Close the episode of a URL: its result."""
        answer = self.ask("DELETE", url.removeprefix(self.url).removesuffix("/mcp"))
        assert answer.status == 200, answer
        return answer.json


@contextmanager
def http_server(env_id: str, *options: str, **env_kwargs: Any) -> Iterator[HttpServer]:
    """A server on a free port; it is stopped in the end."""
    command = [sys.executable, *command_for(env_id, "--http", "0", *options, **env_kwargs)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        yield HttpServer(process, int(said.rpartition(":")[2].partition("/")[0]))
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


async def play_with(client: Client, script: ScriptedEpisode) -> Played:
    """Play a script as a host does: it reads the calls itself, and sends them one by one."""
    prompt = (await client.get_prompt("task")).messages[0].content.text
    turns: list[list[PlayedTurn]] = []
    try:
        for message in script.messages:
            turns.append([await played_call(client, **each) for each in json_calls(message)])
    except MCPError:
        pass  # a fault: no turn, and no score
    result = json.loads((await client.read_resource(CLOSE)).contents[0].text)
    rewards = iter([turn["reward"] for turn in result["turns"]])
    joined = [
        PlayedTurn.joined([with_reward(part, next(rewards)) for part in parts]) for parts in turns
    ]
    score = math.nan if result["score"] is None else result["score"]
    return Played(prompt, tuple(joined), score, result["correct"])


async def played_call(client: Client, name: str, arguments: dict[str, Any]) -> PlayedTurn:
    """One call, as the client reports it."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotCarried("half a character") from None
    result = await client.call_tool(name, arguments)
    about = {key.removeprefix("toolgym/"): value for key, value in (result.meta or {}).items()}
    assert result.is_error == bool(about["errors"])
    return PlayedTurn(
        result.content[0].text,
        None,
        tuple(about["repairs"]),
        tuple(about["errors"]),
        about["over"],
    )


def with_reward(turn: PlayedTurn, reward: float) -> PlayedTurn:
    return PlayedTurn(turn.observation, reward, turn.repairs, turn.errors, turn.over)
