"""One episode over pipes: what a host is shown, what it is not, and what a fault looks like."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`: make test-adapters NAME=mcp")

from mcp import Client, MCPError

from adapters.mcp.server import (
    CLOSE,
    CLOSED,
    FAULT,
    MOST_AFTER_END,
    RESULT,
    Session,
    build_server,
)
from tests.adapters.local_server import ROOT, toolgym
from tests.adapters.mcp.mcp_play import result, stdio
from tests.adapters.scripted_episodes import EXPLORE, GOLD, HUTS, OPERATE, SCRIPTS, TRACE
from toolgym import registration
from toolgym.messages import system_prompt
from toolgym.runs.episodes import read_episodes

FAULTY = next(script for script in SCRIPTS if script.name == "fault")
Talk = Callable[[Client], Awaitable[Any]]


def session_on(env_id: str = EXPLORE, task_id: str = HUTS, **env_kwargs: Any) -> Session:
    env = registration.make(env_id, **env_kwargs)
    env.reset(options={"task_id": task_id})
    return Session(env, env_id)


def talk(about: Talk, *where: Any, **env_kwargs: Any) -> Any:
    """Run a client in this process on the server of one episode."""

    async def run() -> Any:
        session = session_on(*where, **env_kwargs)
        server = build_server(session.env, lambda context: session)
        async with Client(server) as client:
            return await about(client)

    return asyncio.run(run())


def test_a_host_is_shown_the_tools_the_question_and_the_instructions() -> None:
    env = registration.make(EXPLORE)
    env.reset(options={"task_id": HUTS})

    async def look(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(env.tools)
        assert [tool.input_schema for tool in tools] == [s.parameters for s in env.tools.values()]
        assert [tool.description for tool in tools] == [s.description for s in env.tools.values()]
        assert client.instructions == system_prompt(env)
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["task"]
        assert (await client.get_prompt("task")).messages[0].content.text == env.user_prompt()
        with pytest.raises(MCPError, match="The only prompt is task"):
            await client.get_prompt("other")

    talk(look)


def test_the_score_is_told_only_when_the_episode_is_over() -> None:
    async def answer(client: Client) -> None:
        called = await client.call_tool("query", {"sql": GOLD})
        ours = {key for key in called.meta if key.startswith("toolgym/")}
        assert ours == {f"toolgym/{key}" for key in ("over", "steps_left", "repairs", "errors")}
        assert await result(client) == {"over": False, "steps_left": 14}
        await client.call_tool("submit", {"value": 1539, "sql": None})
        told = await result(client)
        assert told["correct"]
        assert told["score"] == pytest.approx(sum(turn["reward"] for turn in told["turns"]))
        assert told["turns"][1]["repairs"] == ["renamed_tool", "dropped_null"]
        assert await result(client, CLOSE) == told

    talk(answer)


def test_only_the_unlisted_resource_closes_an_episode() -> None:
    async def close(client: Client) -> None:
        listed = (await client.list_resources()).resources
        assert [str(resource.uri) for resource in listed] == [RESULT]
        told = await result(client, CLOSE)
        assert (told["over"], told["answered"]) == (True, False)
        with pytest.raises(MCPError, match="The only resource is"):
            await client.read_resource("file:///etc/passwd")

    talk(close)


def test_calls_that_come_at_the_same_time_are_played_one_after_the_other() -> None:
    async def ask(client: Client) -> None:
        texts = [f"SELECT {number}" for number in range(8)]
        called = await asyncio.gather(*(client.call_tool("query", {"sql": t}) for t in texts))
        left = sorted(each.meta["toolgym/steps_left"] for each in called)
        assert left == list(range(7, 15))
        for number, each in enumerate(called):
            assert each.content[0].text.splitlines()[1] == str(number)

    talk(ask)


def test_a_fault_is_an_error_of_the_protocol_that_says_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(client: Client) -> None:
        for _ in range(2):  # nor can a later call be played
            with pytest.raises(MCPError, match="begin another episode") as failed:
                await client.call_tool("custom", {})
            assert failed.value.message == FAULT
            assert failed.value.data == {"scored": False}
        told = await result(client)
        assert (told["over"], told["scored"], told["score"]) == (True, False, None)

    talk(fail, OPERATE, TRACE, **FAULTY.arguments)
    assert [record.getMessage() for record in caplog.records if "adapters" in record.name] == [
        f"an episode of {OPERATE} is not scored: task {TRACE!r}: a call of Custom was not"
        " recorded. Record it again: the task, the workflow, the seed or a prompt has changed."
    ]


def test_a_call_that_waited_while_the_episode_was_closed_is_not_played() -> None:
    async def race() -> None:
        session = session_on()
        record = await session.close()
        with pytest.raises(MCPError, match=CLOSED.partition(".")[0]):
            await session.play("answer", {"value": 1539})
        assert not record.answered
        assert await session.close() == record

    asyncio.run(race())


@pytest.mark.parametrize("times", [1, 2, 3])
def test_arguments_that_a_host_encoded_several_times_are_decoded(times: int) -> None:
    arguments: Any = {"sql": GOLD}
    for _ in range(times):
        arguments = json.dumps(arguments)

    async def ask(client: Client) -> None:
        called = await client.call_tool("query", {"arguments": arguments})
        assert "1539" in called.content[0].text
        assert called.meta["toolgym/repairs"] == ["decoded_arguments", "unwrapped_arguments"]

    talk(ask)


def test_a_client_that_goes_on_after_the_end_is_cut_off() -> None:
    async def go_on(client: Client) -> None:
        await client.call_tool("answer", {"value": 1539})
        for _ in range(14 + MOST_AFTER_END):
            await client.call_tool("query", {"sql": GOLD})
        with pytest.raises(MCPError, match="This episode was closed"):
            await client.call_tool("query", {"sql": GOLD})
        told = await result(client)
        assert len(told["turns"]) == 15 + MOST_AFTER_END
        assert told["correct"]

    talk(go_on)


@pytest.mark.parametrize("answers", [True, False])
def test_an_episode_is_kept_when_the_host_leaves(tmp_path: Path, answers: bool) -> None:
    file = tmp_path / "episodes.jsonl"

    async def play() -> None:
        mode = "auto" if answers else "legacy"  # a client of an older protocol
        where = stdio(EXPLORE, "--task-id", HUTS, "--out", str(file))
        async with Client(where, mode=mode) as client:
            await client.call_tool("describe", {"table": "huts"})
            if answers:
                await client.call_tool("answer", {"value": 1539})

    asyncio.run(play())
    (record,) = read_episodes(file)
    assert (record.task_id, record.answered, record.correct) == (HUTS, answers, answers)
    assert record.turns[0]["repairs"] == ["renamed_key"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--task-id", "nowhere-1"], "nowhere-1"),
        (["--task-id", HUTS, "--seed", "3"], "--task-id and --seed both choose the task"),
        (["--http", "0", "--seed", "3"], "with --http a client chooses it"),
        (["--set", "colour=red"], "has no argument 'colour'"),
        (["--out", "no/such/folder/x.jsonl"], "--out no/such/folder/x.jsonl cannot be written"),
    ],
)
def test_a_mistake_is_explained_in_a_sentence(options: list[str], told: str) -> None:
    done = subprocess.run(
        [sys.executable, *toolgym("mcp", EXPLORE, *options)],
        cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
