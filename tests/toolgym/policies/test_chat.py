"""A model on a server plays environments: `toolgym eval --policy openai:MODEL --base-url URL`."""

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("openai", reason="needs the extra `openai`")

from tests.chat_server import ScriptedServer
from tests.toolgym.policies.expert_model import ExpertModel
from toolgym import read_episodes, registration, rollout
from toolgym.cli import application
from toolgym.policies.chat import api_messages, load

ENV = "sqlgym/Explore-v0"
KEY = "sk-very-secret-0123456789"
FAST = {"retries": 0}


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def expert():
    return ExpertModel(ENV, split="dev")


def evaluated(server, *arguments, env_id=ENV):
    command = ["eval", env_id, "--policy", "openai:m", "--base-url", server.url, *arguments]
    fast = [f"--policy-set={name}={value}" for name, value in FAST.items()]
    return CliRunner().invoke(application(), [*command, *fast])


def test_a_model_that_plays_like_the_expert_is_right_in_every_episode(expert):
    with ScriptedServer(expert) as server:
        done = evaluated(server, "--n", "6", "--json")

    told = json.loads(done.stdout)
    assert (told["episodes"], told["accuracy"], told["validity"]) == (6, 1.0, 1.0)
    assert told["usage"]["replies"] == len(server.requests)
    assert told["base_url"] == server.url


def test_the_tools_are_sent_and_every_result_names_its_call(expert):
    with ScriptedServer(expert) as server:
        evaluated(server, "--n", "1")

    asked = server.requests[-1]
    assert {tool["function"]["name"] for tool in asked["tools"]} >= {"describe", "answer"}
    messages = asked["messages"]
    assert [message["role"] for message in messages][:4] == ["system", "user", "assistant", "tool"]
    made = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert made == answered != []


def test_calls_in_the_text_are_found_by_our_own_parser(expert):
    with ScriptedServer(expert) as server:
        done = evaluated(server, "--n", "3", "--json", "--policy-set", "tools=text")

    assert json.loads(done.stdout)["accuracy"] == 1.0
    assert all("tools" not in asked for asked in server.requests)
    assert '"describe"' in server.requests[0]["messages"][0]["content"]
    assert {message["role"] for message in server.requests[-1]["messages"]} == {
        "system", "user", "assistant",
    }  # fmt: skip


def test_an_outage_leaves_its_episode_unscored_and_the_run_goes_on(expert, tmp_path):
    broken = []

    def faults(number, asked):
        question = asked["messages"][1]["content"]
        broken.append(question)
        return "500" if question == broken[0] and len(asked["messages"]) > 2 else None

    out = tmp_path / "episodes.jsonl"
    with ScriptedServer(expert, faults=faults) as server:
        done = evaluated(server, "--n", "5", "--json", "--out", str(out))

    told = json.loads(done.stdout)
    assert (done.exit_code, told["unscored"], told["accuracy"]) == (0, 1, 1.0)
    (reason,) = told["faults"]
    assert "status 500" in reason
    (unscored,) = [record for record in read_episodes(out) if not record.scored]
    assert unscored.fault == reason
    assert len(unscored.turns) == 1  # what was said before the outage is kept


def test_the_same_seed_is_remembered_and_another_one_asks_anew(expert, tmp_path):
    cache = ("--policy-set", f"cache={tmp_path / 'replies.sqlite'}", "--n", "2", "--json")
    with ScriptedServer(expert) as server:
        first = json.loads(evaluated(server, *cache).stdout)
        asked = len(server.requests)
        second = json.loads(evaluated(server, *cache).stdout)
        assert len(server.requests) == asked
        evaluated(server, *cache, "--seed", "9")
        assert len(server.requests) > asked

    assert second["usage"]["cached"] == asked
    assert first["mean_score"] == second["mean_score"]


@pytest.mark.parametrize(
    "arguments",
    ['{"table_name": ', "[1]"],
)
def test_arguments_that_are_no_object_meet_the_parser_and_are_sent_back_as_one(arguments):
    def answer(asked):
        made = {"name": "describe", "arguments": arguments}
        return {"content": "", "tool_calls": [{"type": "function", "function": made}]}

    env = registration.make(ENV, split="dev", step_limit=3)
    with ScriptedServer(answer) as server:
        policy = load("m", base_url=server.url, **FAST)
        record = rollout.play(env, policy, seed=1)
        policy.client.close()

    assert record.scored
    for message in api_messages(env):
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert call["id"]
            assert call["function"]["name"]


def test_no_file_and_no_output_of_a_run_has_the_key(expert, tmp_path):
    def answer(asked):
        made = expert(asked)
        return {**made, "content": f"My key is {KEY}."}

    def faults(number, asked):
        return {0: "401", 3: "400"}.get(number)

    cache, out = tmp_path / "replies.sqlite", tmp_path / "episodes.jsonl"
    with ScriptedServer(answer, faults=faults) as server:
        done = evaluated(
            server, "--n", "6", "--policy-set", f"cache={cache}", "--out", str(out),
            "--transcripts", "6", "--json",
        )  # fmt: skip

    assert server.keys == {KEY}
    assert json.loads(done.stdout)["unscored"] == 2
    texts = [file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*") if file.is_file()]
    assert len(texts) >= 2
    for text in [done.output, *texts]:
        assert "very-secret" not in text
