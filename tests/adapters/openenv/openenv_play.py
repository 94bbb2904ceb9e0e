"""Real servers of `toolgym serve` in processes of their own, and the real client that plays."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openenv.core.sync_client import SyncEnvClient

from adapters.openenv.client import ToolgymEnv
from adapters.openenv.models import ToolgymAction, ToolgymObservation
from tests.adapters.local_server import LocalServer
from tests.adapters.scripted_contract import Played, PlayedTurn
from tests.adapters.scripted_episodes import ScriptedEpisode

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Server(LocalServer):
    """A server of sessions."""

    log: Path

    def client(self) -> SyncEnvClient:
        """A new session; use it in a `with` statement."""
        return ToolgymEnv(base_url=self.url).sync()


@contextmanager
def serving(env_id: str, log: Path, *options: str, **env_kwargs: Any) -> Iterator[Server]:
    """A server on a free port; it is stopped in the end.

    Args:
        log: Takes what it writes to stderr.
    """
    told = [word for k, v in env_kwargs.items() for word in ("--set", f"{k}={json.dumps(v)}")]
    command = [sys.executable, "-m", "toolgym", "serve", env_id, "--port", "0", *told, *options]
    with log.open("a") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment()
        )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, log.read_text()
        yield Server(process, int(said.rpartition(":")[2]), log)
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def environment() -> dict[str, str]:
    """The variables of a server: none that would change what OpenEnv serves."""
    return {k: v for k, v in os.environ.items() if k not in ("ENABLE_WEB_INTERFACE", "SPACE_HOST")}


def say(client: SyncEnvClient, text: str) -> Any:
    """One message of a model."""
    return client.step(ToolgymAction(text=text))


def play_with(client: SyncEnvClient, script: ScriptedEpisode) -> Played:
    """Play a script as a trainer does: every message goes out as it is."""
    begun = client.reset(task_id=script.task_id)
    turns: list[PlayedTurn] = []
    rewards = [begun.reward]
    for message in script.messages:
        result = say(client, message)
        if not result.observation.scored:
            break
        turns.append(played_turn(result.reward, result.done, result.observation))
        rewards.append(result.reward)
    end = client.step(ToolgymAction(finish=True))
    assert end.done
    if not end.observation.scored:
        assert (end.reward, end.observation.score) == (None, None)
        return Played(begun.observation.text, tuple(turns), math.nan, False)
    assert math.isclose(math.fsum([*rewards, end.reward]), end.observation.score, abs_tol=1e-9)
    return Played(
        begun.observation.text, tuple(turns), end.observation.score, end.observation.correct
    )


def played_turn(reward: float, over: bool, seen: ToolgymObservation) -> PlayedTurn:
    return PlayedTurn(seen.text, reward, tuple(seen.repairs), tuple(seen.errors), over)
