"""Whole evaluations: the command, the log that it leaves, faults, limits, what a model is told."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs its extra: make test-adapters NAME=inspect_ai")

from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, read_eval_log

from adapters.inspect_ai.task import env
from tests.adapters.inspect_ai.inspect_play import SCORES, native, next_message, on
from tests.adapters.local_server import ROOT
from tests.adapters.scripted_episodes import EXPLORE, GOLD, HUTS, OPERATE, TRACE
from tests.chat_server import Body, ScriptedServer
from toolgym import EpisodeRecord, registration
from toolgym.messages import system_prompt, tools_in_words
from toolgym.records import FIGURES

NO_BACKEND = {"backend": f"replay:{os.devnull}"}


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("SCRIPT_API_KEY", "none")
    with ScriptedServer(next_message) as running:
        yield running


def command(*options: str) -> subprocess.CompletedProcess[str]:
    """`inspect eval` in a process of its own."""
    inspect = str(Path(sys.executable).with_name("inspect"))
    return subprocess.run(
        [inspect, "eval", "toolgym/env", "--display", "plain", *options],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip


def figures(log: EvalLog) -> dict[str, dict[str, float]]:
    """By the name of a figure its metrics."""
    assert log.results is not None
    return {
        score.name: {name: metric.value for name, metric in score.metrics.items()}
        for score in log.results.scores
    }


def samples(log: EvalLog) -> list[Any]:
    assert log.samples is not None
    return list(log.samples)


def test_the_command_plays_to_the_end_and_keeps_everything(
    tmp_path: Path, server: ScriptedServer
) -> None:
    done = command(
        *("-T", f"env_id={EXPLORE}", "-T", "split=train", "--sample-id", HUTS),
        *("--epochs", "2", "--log-dir", str(tmp_path), "--model", on(server)["model"]),
        *("--model-base-url", server.url),
    )

    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*.eval")
    log = read_eval_log(str(file))
    assert (log.status, log.eval.task, log.eval.packages["toolgym"]) == (
        "success", "toolgym/env", version("toolgym"),
    )  # fmt: skip
    told = figures(log)
    assert tuple(told) == FIGURES
    assert (told["correct"]["mean"], told["scored"]["mean"], told["turns"]["mean"]) == (1, 1, 3)
    first, second = (each.scores[SCORES].metadata["episode"] for each in samples(log))
    record = EpisodeRecord.from_json(first)
    assert record.score == pytest.approx(told["score"]["mean"])
    assert (record.number, second["number"], record.correct) == (0, 1, True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-T", "env_id=sqlgym/Exlore-v0"], "Did you mean sqlgym/Explore-v0?"),
        (["-T", f"env_id={EXPLORE}", "-T", "split=exam"], "bundled has no split 'exam'"),
        (["-T", f"env_id={EXPLORE}", "-T", "tools=none"], 'tools must be "native" or "text"'),
    ],
)
def test_a_mistake_is_told_in_a_sentence(options: list[str], told: str) -> None:
    done = command(*options, "--model", "mockllm/model")

    assert done.returncode != 0
    assert told in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stdout + done.stderr


def test_a_fault_is_the_error_of_its_sample_and_counts_in_no_mean(
    tmp_path: Path, server: ScriptedServer
) -> None:
    def answers_one(asked: Body) -> Body:
        is_first = server_question in asked["messages"][1]["content"]
        name = "answer" if is_first else "custom"
        return {"content": "", "tool_calls": native([{"name": name, "arguments": {}}])}

    other = next(each for each in registration.make(OPERATE).tasks if each.id != TRACE)
    server_question = other.question
    server.answer = answers_one

    (log,) = inspect_eval(
        env(OPERATE, env_kwargs=NO_BACKEND), sample_id=[TRACE, other.id], log_dir=str(tmp_path),
        **on(server),
    )  # fmt: skip

    assert log.status == "error"  # as the option fail_on_error has it, and nothing is lost
    faulted, scored = sorted(samples(log), key=lambda each: each.error is None)
    assert (faulted.id, scored.id) == (TRACE, other.id)
    assert "was not recorded" in faulted.error.message
    value = faulted.scores[SCORES].value
    assert value.pop("scored") == 0
    assert all(math.isnan(each) for each in value.values())
    assert faulted.error.message in faulted.scores[SCORES].metadata["episode"]["fault"]
    told = figures(log)
    assert told["scored"]["mean"] == 0.5
    assert told["score"]["mean"] == scored.scores[SCORES].value["score"]


@pytest.mark.parametrize("how", ["message limit", "full context", "failed server"])
def test_a_limit_is_scored_and_a_failed_server_is_not(
    how: str, tmp_path: Path, server: ScriptedServer
) -> None:
    limit = 5 if how == "message limit" else None
    fault = {"full context": "too long", "failed server": "401"}.get(how)
    server.faults = lambda number, asked: fault if number else None

    (log,) = inspect_eval(
        env(EXPLORE), sample_id=HUTS, message_limit=limit, log_dir=str(tmp_path), **on(server)
    )

    (sample,) = samples(log)
    value = sample.scores[SCORES].value
    if how == "failed server":
        assert "Incorrect API key" in sample.error.message
        assert value["scored"] == 0
        assert math.isnan(figures(log)["score"]["mean"])
    else:
        assert sample.error is None
        assert (value["answered"], value["scored"]) == (0, 1)


def test_a_model_is_told_the_tools_natively_or_in_words(
    tmp_path: Path, server: ScriptedServer
) -> None:
    plain = registration.make(EXPLORE)
    plain.reset(options={"task_id": HUTS})
    one = {"sample_id": HUTS, "turn_limit": 1, "log_dir": str(tmp_path), **on(server)}

    for tools in ("native", "text"):
        inspect_eval(env(EXPLORE, tools=tools), **one)

    natively = server.requests[0]
    in_words = next(each for each in server.requests if "tools" not in each)
    assert [each["content"] for each in natively["messages"]] == [
        system_prompt(plain), plain.user_prompt(),
    ]  # fmt: skip
    sent = [each["function"] for each in natively["tools"]]
    for function, schema in zip(sent, plain.tool_schemas(), strict=True):
        asked = schema["function"]
        assert (function["name"], function["description"]) == (asked["name"], asked["description"])
        assert function["parameters"]["properties"] == asked["parameters"]["properties"]
        assert function["parameters"]["required"] == asked["parameters"]["required"]
    assert in_words["messages"][0]["content"].endswith(tools_in_words(plain.tools))


def calls(*functions: dict[str, Any]) -> Callable[[Body], Body]:
    """A model that makes these native calls, one a message."""

    def answer(asked: Body) -> Body:
        number = sum(message["role"] == "assistant" for message in asked["messages"])
        return {"content": "", "tool_calls": native([functions[min(number, len(functions) - 1)]])}

    return answer


def test_native_arguments_reach_the_environment_as_they_were_written(
    tmp_path: Path, server: ScriptedServer
) -> None:
    broken = "{'sql': \"SELECT count(*) FROM huts\""
    twice = json.dumps(json.dumps({"sql": GOLD}))
    server.answer = calls(
        {"name": "query", "arguments": broken},
        {"name": "query", "arguments": twice},
        {"name": "query", "arguments": json.dumps(twice)},
        {"name": "query", "arguments": json.dumps({"sql": GOLD, "table_name": None})},
        {"name": "submit", "arguments": "{'value': 1539}"},
    )

    (log,) = inspect_eval(env(EXPLORE), sample_id=HUTS, log_dir=str(tmp_path), **on(server))

    (sample,) = samples(log)
    turns = sample.scores[SCORES].metadata["episode"]["turns"]
    assert turns[0]["observation"].splitlines() == ["count(*)", "18"]
    assert [turn["repairs"] for turn in turns] == [
        ["repaired_json"], ["decoded_arguments"], ["decoded_arguments"], ["dropped_null"],
        ["repaired_json", "renamed_tool"],
    ]  # fmt: skip
    assert sample.scores[SCORES].value["correct"] == 1


def test_several_native_calls_get_a_result_each(tmp_path: Path, server: ScriptedServer) -> None:
    both = native(
        [{"name": "describe", "arguments": {"table_name": "huts"}},
         {"name": "query", "arguments": {"sql": GOLD}}]
    )  # fmt: skip
    server.answer = lambda asked: {"content": "", "tool_calls": both}

    inspect_eval(env(EXPLORE), sample_id=HUTS, turn_limit=2, log_dir=str(tmp_path), **on(server))

    first, second = server.requests[1]["messages"][-2:]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("call-0", "call-1")
    assert first["content"].startswith("huts (18 rows)")
    assert second["content"].splitlines()[1] == "1539"


def test_the_tasks_are_those_of_toolgym_eval() -> None:
    taken = env(EXPLORE, split="train", n=5, seed=7).dataset

    tasks = registration.make(EXPLORE, split="train").tasks
    assert [each.id for each in taken] == tasks.shuffle(7).first_playable(5).ids
