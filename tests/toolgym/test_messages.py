"""Transcripts become the chat that a template renders."""

import datetime
import enum
import json

import pytest
from pydantic import BaseModel

import toolgym
from toolgym import (
    ConfigurationError,
    Task,
    TaskSet,
    ToolEnv,
    info_to_json,
    messages,
    policies,
    rollout,
    tool,
)
from toolgym.records import EpisodeRecord

ENVS = [
    f"{family}gym/{name}-v0"
    for family, names in {"sql": ("Explore", "TextToSQL"), "aflow": ("Compose", "Operate")}.items()
    for name in names
]


def test_the_prompt_is_a_system_and_a_user_message(lock_env):
    env = lock_env()
    env.reset(options={"task_id": "lock-407"})
    system, user = messages.prompt_messages(env)
    assert system["role"] == "system"
    assert system["content"].startswith("Open a lock with three dials.")
    assert "call open" in system["content"]
    assert user == {
        "role": "user",
        "content": "Open lock 0.\nYou have 15 calls; open is free and ends the episode:"
        " give it before they are used up.",
    }


@pytest.mark.parametrize("env_id", ENVS)
def test_reset_returns_the_user_message_of_the_chat(env_id):
    env = toolgym.make(env_id)
    observation, _ = env.reset(seed=0)
    assert observation == messages.prompt_messages(env)[1]["content"]


@pytest.mark.parametrize(
    ("env_id", "purpose"),
    [
        (
            "sqlgym/Explore-v0",
            "Answer a question about a database that you can only see through its tools.",
        ),
        (
            "sqlgym/TextToSQL-v0",
            "Write the SQL query (SQLite) whose result answers a question about a database.",
        ),
        (
            "aflowgym/Compose-v0",
            "Compose a workflow of operators that solves a task; each call that it makes has a"
            " price.",
        ),
        (
            "aflowgym/Operate-v0",
            "Solve a task by calling operators one by one; each call that they make has a price.",
        ),
    ],
)
def test_the_system_prompt_begins_with_the_docstring_that_results_were_measured_with(
    env_id, purpose
):
    prompt = messages.system_prompt(toolgym.make(env_id))
    assert prompt.startswith(f"{purpose} Use the tools you are given")


def test_calls_become_tool_calls_with_arguments_as_a_dict(lock_env):
    env = lock_env()
    rollout.play(env, policies.ExpertPolicy(), task_id="lock-407")
    chat = messages.episode_messages(env, final="done")
    assert [message["role"] for message in chat] == [
        "system",
        "user",
        *["assistant", "tool"] * 7,
        "assistant",
    ]
    assert chat[2]["tool_calls"] == [
        {"type": "function", "function": {"name": "peek", "arguments": {"dial": 0}}}
    ]
    assert chat[3] == {"role": "tool", "name": "peek", "content": "dial 0 belongs at 4"}
    assert chat[-1] == {"role": "assistant", "content": "done"}
    assert "null" not in json.dumps(chat)


def test_what_a_model_wrote_stays_character_by_character(lock_env):
    env = lock_env()
    env.reset(seed=0)
    text = 'Hm. <tool_call>{"name": "peek", "arguments": {"dial": 0, "code": null}}</tool_call>'
    env.step(text)
    env.step("no call here")
    chat = messages.episode_messages(env)
    assert chat[2] == {"role": "assistant", "content": text}
    assert chat[3]["role"] == "tool"
    assert chat[4] == {"role": "assistant", "content": "no call here"}
    assert chat[5]["role"] == "user"
    assert chat[5]["content"].startswith("error[no_call]")


def test_a_recorded_episode_is_the_chat_that_was_played(lock_env):
    env = lock_env(step_limit=6)
    env.reset(seed=0)
    env.step([{"name": "peek", "arguments": {"dial": d}} for d in (0, 1)])
    env.step('Hm. <tool_call>{"name": "peek", "arguments": {"dial": 0, "code": null}}</tool_call>')
    env.step("no call here")
    env.step({"name": "peek", "arguments": {"dial": 7}})
    played = messages.episode_messages(env)
    record = EpisodeRecord.of(env.episode, "lock")

    again = EpisodeRecord.from_json(json.loads(json.dumps(record.to_json())))
    assert messages.recorded_messages(lock_env(step_limit=6), again) == played
    assert "results" not in record.turns[1]

    del record.turns[0]["results"]
    with pytest.raises(ConfigurationError, match="has 2 calls but not the result of each"):
        messages.recorded_messages(env, record)


class Side(enum.Enum):
    LEFT = "left"


class Place(BaseModel):
    row: int


class TypedEnv(ToolEnv):
    """Take values that JSON has no types for."""

    def begin(self, task):
        return task.question

    @tool(terminal=True)
    def take(self, side: Side, day: datetime.date, place: Place) -> str:
        """Take values.

        Args:
            side: A side.
            day: A day.
            place: A place.
        """
        return self.submit(side is Side.LEFT and place.row == 3)


def test_values_of_declared_types_are_written_as_a_model_would_write_them():
    written = {"side": "left", "day": "2024-01-31", "place": {"row": 3}}
    env = TypedEnv(TaskSet([Task("a", "Which?")]))
    env.reset(seed=0)
    *_, info = env.step({"name": "take", "arguments": written})

    assert info["correct"]
    assert info_to_json(info)["call"]["arguments"] == written
    [*_, spoken, _] = messages.episode_messages(env)
    assert spoken["tool_calls"][0]["function"]["arguments"] == written
    record = EpisodeRecord.of(env.episode, "typed")
    assert record.turns[0]["calls"] == [{"name": "take", "arguments": written}]
    assert messages.recorded_messages(env, record) == messages.episode_messages(env)
