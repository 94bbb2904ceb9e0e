"""Real servers of `toolgym serve`, and the real client that plays scripts."""

import math
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from openenv.core.sync_client import SyncEnvClient

from adapters.openenv.client import ToolgymEnv
from adapters.openenv.models import ToolgymAction
from tests.adapters.local_server import LocalServer, running
from tests.adapters.scripted_contract import Played, PlayedTurn
from tests.adapters.scripted_episodes import ScriptedEpisode


def serving(
    env_id: str, log: Path, *options: str, **env_kwargs: Any
) -> AbstractContextManager[LocalServer]:
    """A server on a free port."""
    return running(log, "serve", env_id, "--port", "0", *options, **env_kwargs)


def session(server: LocalServer) -> SyncEnvClient:
    """A new session; use it in a `with` statement."""
    return ToolgymEnv(base_url=server.url).sync()


def say(client: SyncEnvClient, text: str) -> Any:
    """Send one message of a model."""
    return client.step(ToolgymAction(text=text))


def play_with(client: SyncEnvClient, script: ScriptedEpisode) -> Played:
    """Play a script as a trainer does: every message is sent unchanged."""
    begun = client.reset(task_id=script.task_id)
    turns: list[PlayedTurn] = []
    rewards = [begun.reward]
    for message in script.messages:
        result = say(client, message)
        seen = result.observation
        if not seen.scored:
            break
        codes = (tuple(seen.repairs), tuple(seen.errors))
        turns.append(PlayedTurn(seen.text, result.reward, *codes, result.done))
        rewards.append(result.reward)
    end = client.step(ToolgymAction(finish=True))
    seen = end.observation
    assert end.done
    if not seen.scored:
        assert (end.reward, seen.score) == (None, None)
        return Played(begun.observation.text, tuple(turns), math.nan, False)
    assert math.isclose(math.fsum([*rewards, end.reward]), seen.score, abs_tol=1e-9)
    return Played(begun.observation.text, tuple(turns), seen.score, seen.correct)
