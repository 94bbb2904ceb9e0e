"""Episodes by verifiers of a scripted model behind a real server, and what their traces tell."""

import asyncio
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import load_environment

from adapters.export.verifiers_package import write_package
from adapters.verifiers.environment import EpisodeEnvConfig
from tests.adapters.scripted_contract import Played, PlayedTurn
from tests.adapters.scripted_episodes import EXPLORE, SCRIPTS, ScriptedEpisode
from tests.chat_server import Body, ScriptedServer

PACKAGE = "toolgym-explore-v0"


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """A package that `toolgym export verifiers` would write, where this process imports from."""
    write_package(folder, EXPLORE, {"split": "train"})
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(PACKAGE.replace("-", "_"), None)


def next_message(asked: Body) -> str:
    """What the script says next that the request names as its model."""
    script = next(each for each in SCRIPTS if each.name == asked["model"])
    number = sum(message["role"] == "assistant" for message in asked["messages"])
    return script.messages[number] if number < len(script.messages) else "There is no more."


def episode_of(server: ScriptedServer, script: ScriptedEpisode, turns: int | None = None) -> Any:
    """One episode of a script, played as `vf-eval` plays it, with so many messages at most."""
    config = EpisodeEnvConfig.model_validate(
        {
            "taskset": {
                "id": PACKAGE,
                "env_id": script.env_id,
                "env_kwargs": script.arguments,
            },
            "agent": {"max_turns": turns},
        }
    )

    async def run() -> Any:
        env = load_environment(config)
        task = next(iter(env.taskset.include(ids=[script.task_id])))
        client = vf.EvalClientConfig(base_url=server.url)
        async with env.serving():
            (slot,) = env.slots(task)
            return await env.run_slot(slot, vf.ModelContext(script.name, client))

    return asyncio.run(run())


def played(episode: Any) -> Played:
    """What the trace of an episode tells."""
    (trace,) = episode.traces
    record = trace.info["episode"]
    asked, shown = said_to(trace)
    is_over = trace.ok and trace.stop_condition == "user_closed"
    turns = [
        PlayedTurn(
            text,
            turn["reward"],
            tuple(turn["repairs"]),
            tuple(turn["errors"]),
            is_over and number == len(record["turns"]),
        )
        for number, (text, turn) in enumerate(zip(shown, record["turns"], strict=True), 1)
    ]
    score = trace.rewards["score"].score if "score" in trace.rewards else math.nan
    return Played(asked, tuple(turns), score, record["correct"])


def said_to(trace: Any) -> tuple[str, Sequence[str]]:
    """The question, and what the model was shown after each message; of the last one as kept."""
    texts = [node.message.content for node in trace.nodes if node.message.role == "user"]
    record = trace.info["episode"]
    kept = [turn["observation"] for turn in record["turns"]]
    return texts[0], [*texts[1:], *kept[len(texts) - 1 :]]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The episodes of a run of `vf-eval`."""
    (file,) = folder.glob("*/traces.jsonl")
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]
