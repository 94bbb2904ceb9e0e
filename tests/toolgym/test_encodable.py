"""Half a character (`"\\ud800"`) from a model or a server goes out nowhere, and ends nothing."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chat_server import ScriptedServer
from toolgym import messages, policies, registration, rollout
from toolgym.calls import ToolCall
from toolgym.chat.cache import ReplyCache
from toolgym.chat.reply import Chat, Reply, encoded, key_of, read_reply
from toolgym.chat.settings import ChatSettings
from toolgym.errors import EnvironmentFault
from toolgym.policies.chat import api_messages, load
from toolgym.records import EpisodeRecord
from toolgym.report import write_report
from toolgym.runs.run import Run
from toolgym.sanitize import encodable

HALF = "a\ud83db\udc00"
HALVES = st.text(st.characters(codec=None, categories=["Cs", "L", "Z", "Cc"]), max_size=12)
ENVS = ["sqlgym/Explore-v0", "aflowgym/Compose-v0", "aflowgym/Operate-v0"]


def is_encodable(value) -> bool:
    """Raises where it is not, which shows the place."""
    json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    return True


@given(HALVES)
def test_a_text_is_changed_where_it_cannot_be_encoded_and_nowhere_else(text):
    made = encodable(text)

    assert is_encodable(made)
    assert encodable(made) == made
    try:
        text.encode()
    except UnicodeEncodeError:
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert made == whole
        assert "\ufffd" in made or len(made) < len(text)
    else:
        assert made is text


def test_two_halves_of_one_character_are_that_character():
    assert encodable("\ud83d" + "\ude00") == "\U0001f600"
    assert encodable("\ude00\ud83d") == "\ufffd\ufffd"


def actions(tool: str, text: str):
    """A model's turn that holds `text`, in each form that `step` takes."""
    call = {"name": tool, "arguments": {"table_name": text, "value": text, text: text}}
    whole = json.dumps(call)
    native = {"id": text, "type": "function", "function": {"name": tool, "arguments": whole}}
    return {
        "words": text,
        "a call, with escapes": f"<tool_call>{whole}</tool_call>{text}",
        "a call": f"<tool_call>{json.dumps(call, ensure_ascii=False)}</tool_call>",
        "a dict": call,
        "a name": {"name": text, "arguments": text},
        "a message": {"content": text, "tool_calls": [native]},
        "a message of nonsense": {"content": text, "tool_calls": [{"function": {"name": text}}]},
        "a list": [call, text, {text: text}],
        "a ToolCall": ToolCall(text, {text: text}),
        "code": {"name": "query", "arguments": {"sql": f"SELECT '{text}'"}},
        "a workflow": {"name": "run_workflow", "arguments": {"workflow": f"Custom {text}"}},
    }


def exits(env, info, observation):
    """All that goes out of an episode, by the name of the exit."""
    error = info["error"]
    return {
        "observation": observation,
        "info": {**info, "error": error and [str(error), *error.args]},
        "calls": [[call.name, call.arguments, str(call.error)] for call in info["calls"]],
        "render": env.render(),
        "messages": messages.episode_messages(env, final="end"),
        "request": encoded({"messages": api_messages(env)}).decode(),
        "record": EpisodeRecord.of(env.episode, "some/env-v0").to_json(),
    }


@pytest.mark.parametrize("env_id", ENVS)
@settings(max_examples=5)
@given(text=st.just(HALF) | HALVES)
def test_whatever_a_model_writes_the_episode_goes_on_and_every_exit_can_be_encoded(env_id, text):
    env = made(env_id)
    for form, action in actions(next(iter(env.tools)), text).items():
        env.reset(seed=1)
        observation, *_, info = env.step(action)

        assert info["scored"], form
        assert len(env.episode.turns) == 1, form
        for name, value in exits(env, info, observation).items():
            assert is_encodable(value), (form, name)


ENV_OF = {}


def made(env_id):
    if env_id not in ENV_OF:
        ENV_OF[env_id] = registration.make(env_id, render_mode="ansi")
    return ENV_OF[env_id]


def test_a_fault_with_half_a_character_in_it_can_be_written_down():
    env = registration.make(ENVS[0])
    env.reset(seed=1)
    with pytest.raises(EnvironmentFault, match="gone"):
        env.step(EnvironmentFault(f"{HALF} is gone."))

    assert is_encodable(EpisodeRecord.of(env.episode, ENVS[0]).to_json())


@given(HALVES)
@settings(max_examples=50)
def test_what_a_server_says_and_what_it_is_asked_can_be_encoded(text):
    call = {"id": text, "function": {"name": text, "arguments": {text: text}}}
    message = {"content": [{"text": text}], "tool_calls": [call]}
    body = Chat([{"role": "user", "content": text}]).body(ChatSettings(model=text + "m"))

    reply = read_reply(json.dumps({"choices": [{"message": message}]}), body)

    assert is_encodable([reply.text, reply.tool_calls])
    assert json.loads(encoded(body))["messages"][0]["content"] == encodable(text)
    assert key_of("http://host", body)


def test_a_cache_gives_back_what_can_be_encoded_and_nothing_from_a_row_that_is_no_reply(tmp_path):
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.put("a", Reply(HALF))
    for key, row in (("b", "{"), ("c", "[]"), ("d", "[1, 2, 3, 4, 5, 6]"), ("e", "null")):
        cache._execute("INSERT INTO replies VALUES (?, ?)", key, row)

    assert is_encodable(cache.get("a").text)
    assert [cache.get(key) for key in "bcde"] == [None] * 4


def half_spoken(run_folder):
    """A run with an episode of a model that writes half characters."""
    said = [form for form in actions("describe", HALF).values() if form is not None]
    policy = policies.ScriptedPolicy([said[number % len(said)] for number in range(12)])
    record = rollout.play(ENVS[0], policy, seed=1)
    run = Run.create(run_folder, {"seed": 0, "model": HALF})
    run.log_rollouts([{**record.to_json(), "phase": "grpo", "step": 1}])
    assert record.scored
    return run


def test_a_run_is_written_of_a_model_that_writes_half_characters(tmp_path):
    assert all(is_encodable(rollout) for rollout in half_spoken(tmp_path / "run").rollouts())


@pytest.mark.integration
def test_a_report_is_written_of_a_model_that_writes_half_characters(tmp_path):
    assert "\ufffd" in write_report(half_spoken(tmp_path / "run")).read_text("utf-8")


def spoken():
    """What a server may say of all that."""
    forms = list(actions("describe", HALF).values())
    dicts = [form for form in forms if isinstance(form, dict)]
    calls = [{"content": HALF, **form} for form in dicts if "tool_calls" in form]
    return [form for form in forms if isinstance(form, str)] + calls


@pytest.mark.parametrize("tools", ["native", "text"])
def test_a_served_model_that_writes_half_characters_is_played_to_the_end(tools):
    pytest.importorskip("openai", reason="needs the extra `openai`")
    turns = itertools.cycle(spoken())
    with ScriptedServer(lambda asked: next(turns)) as server:
        policy = load("m", base_url=server.url, tools=tools, retries=0)
        record = rollout.play(ENVS[0], policy, seed=1)
        policy.client.close()

    assert record.scored
    assert len(record.turns) == len(server.requests) > 5
    assert is_encodable([record.to_json(), server.requests])


@pytest.mark.nightly
def test_it_is_told_on_a_terminal_that_has_no_such_characters_and_in_a_file(tmp_path):
    pytest.importorskip("openai", reason="needs the extra `openai`")
    turns = itertools.cycle(spoken())
    out = tmp_path / "episodes.jsonl"
    with ScriptedServer(lambda asked: next(turns)) as server:
        done = subprocess.run(
            [
                sys.executable, "-m", "toolgym", "eval", ENVS[0], "--n", "2",
                "--policy", "openai:m", "--base-url", server.url, "--policy-set", "tools=text",
                "--transcripts", "2", "--out", str(out),
            ],
            capture_output=True, timeout=600, cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert b"(0 unscored)" in done.stdout
    records = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [record["scored"] for record in records] == [True, True]
    assert is_encodable(records)
