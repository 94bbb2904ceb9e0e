"""A model on a server plays environments: `toolgym eval --policy openai:MODEL --base-url URL`."""

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("openai", reason="needs the extra `openai`")

from tests.chat_server import ScriptedServer
from tests.toolgym.commands.command_line import run_here
from tests.toolgym.policies.expert_model import ExpertModel
from toolgym import registration, rollout
from toolgym.chat import ChatFault
from toolgym.cli import application
from toolgym.errors import ConfigurationError
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
        if not broken:
            broken.append(question)
        return "500" if question == broken[0] and len(asked["messages"]) > 2 else None

    out = tmp_path / "episodes.jsonl"
    with ScriptedServer(expert, faults=faults) as server:
        done = evaluated(server, "--n", "5", "--json", "--out", str(out))

    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["episodes"], told["unscored"], told["accuracy"]) == (5, 1, 1.0)
    ((reason, count),) = told["faults"].items()
    assert count == 1
    assert "status 500" in reason
    records = [json.loads(line) for line in out.read_text().splitlines()]
    (unscored,) = [record for record in records if not record["scored"]]
    assert unscored["fault"] == reason
    assert unscored["score"] is None
    assert len(unscored["turns"]) == 1  # what was said before the outage is kept


def test_a_run_without_a_server_says_so_and_ends_with_status_1():
    with ScriptedServer(lambda asked: "") as server:
        pass
    done = run_here(
        "eval", ENV, "--policy", "openai:m", "--base-url", server.url, "--n", "2",
        "--policy-set", "retries=0",
    )  # fmt: skip

    assert done.returncode == 1
    assert "2 (2 unscored)" in done.stdout
    assert "unscored: 2 because of this fault: the chat server" in done.stdout
    assert "Is the server running" in done.stdout


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


def test_a_workflow_environment_is_played_in_the_same_way():
    expert = ExpertModel("aflowgym/Compose-v0", split="dev")
    with ScriptedServer(expert) as server:
        done = evaluated(server, "--n", "3", "--json", env_id="aflowgym/Compose-v0")

    told = json.loads(done.stdout)
    assert (told["episodes"], told["unscored"], told["validity"]) == (3, 0, 1.0)


@pytest.mark.parametrize(
    "arguments",
    ['{"table_name": ', "[1]", "", "null"],
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


def test_a_turn_that_was_cut_off_is_no_call():
    def answer(asked):
        made = {"name": "answer", "arguments": '{"value": "4'}
        return {"content": "", "tool_calls": [{"type": "function", "function": made}]}

    with ScriptedServer(answer, faults=lambda number, asked: "length") as server:
        policy = load("m", base_url=server.url, **FAST)
        record = rollout.play(registration.make(ENV, split="dev", step_limit=2), policy, seed=1)
        policy.client.close()

    assert record.scored
    assert not record.answered
    assert {code for turn in record.turns for code in turn["errors"]} == {"truncated_call"}


def test_a_step_with_a_fault_ends_the_episode_unscored_and_raises_it():
    env = registration.make(ENV, split="dev")
    env.reset(seed=1)

    with pytest.raises(ChatFault, match="gone"):
        env.step(ChatFault("the server is gone."))

    assert env.episode.over
    assert env.episode.fault.startswith("the server is gone. Is the server running")
    assert env.finish() != env.finish()  # nan


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--policy", "expert", "--base-url", "http://127.0.0.1:1/v1"],
            "leave out base_url",
        ),
        (
            ["--policy", "expert", "--policy-set", "retries=1"],
            "leave out retries",
        ),
        (
            ["--policy", "openai:m", "--policy-set", "retry=1"],
            "retry: Extra inputs",
        ),
        (["--policy", "openai:"], "name the model"),
        (["--policy", "openai:m", "--base-url", "localhost:8000"], "is not a base URL"),
        (["--policy", "openai:m", "--policy-set", "tools=none"], '"native" or "text"'),
    ],
)
def test_wrong_use_is_told_with_the_cure(arguments, told):
    done = CliRunner().invoke(application(), ["eval", ENV, *arguments])

    assert isinstance(done.exception, ConfigurationError) or done.exit_code == 2
    assert told in f"{done.output}{done.exception}"
