"""Half a character (`"\\ud800"`) from a model or a server goes out nowhere, and ends nothing."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgym import messages, registration
from toolgym.calls import ToolCall
from toolgym.chat.reply import encoded
from toolgym.policies.chat import api_messages
from toolgym.records import EpisodeRecord
from toolgym.sanitize import encodable

HALF = "a\ud83db\udc00"
HALVES = st.text(st.characters(codec=None, categories=["Cs", "L", "Z", "Cc"]), max_size=12)
ENVS = ["sqlgym/Explore-v0", "aflowgym/Compose-v0"]


def is_encodable(value) -> bool:
    """Raises where it is not, which shows the place."""
    json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    return True


@settings(max_examples=50)
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


def turns_of(tool: str, text: str):
    """Turns of a model that hold `text`, as `step` takes them and a server sends them."""
    call = {"name": tool, "arguments": {"table_name": text, "value": text, text: text}}
    whole = json.dumps(call)
    native = {"id": text, "type": "function", "function": {"name": tool, "arguments": whole}}
    nameless = {"function": {"name": text, "arguments": text}}
    return [
        text,
        f"<tool_call>{whole}</tool_call>{text}",
        f"<tool_call>{json.dumps(call, ensure_ascii=False)}</tool_call>",
        {"content": text, "tool_calls": [native]},
        {"content": text, "tool_calls": [nameless]},
    ]


@pytest.mark.parametrize("env_id", ENVS)
@settings(max_examples=5)
@given(text=st.just(HALF) | HALVES)
def test_whatever_a_model_writes_the_episode_goes_on_and_every_exit_can_be_encoded(env_id, text):
    env = registration.make(env_id, render_mode="ansi")
    tool = next(iter(env.tools))
    code = {"name": tool, "arguments": {"sql": f"SELECT '{text}'", "dsl": f"Custom {text}"}}
    for action in [*turns_of(tool, text), [code, text], ToolCall(text, {text: text})]:
        env.reset(seed=1)
        observation, *_, info = env.step(action)

        assert info["scored"], action
        assert len(env.episode.turns) == 1, action
        assert is_encodable([observation, {**info, "calls": [], "error": str(info["error"])}])
        assert is_encodable([[call.name, call.arguments] for call in info["calls"]])
        assert is_encodable([env.render(), messages.episode_messages(env, final="end")])
        assert is_encodable(encoded({"messages": api_messages(env)}).decode())
        assert is_encodable(EpisodeRecord.of(env.episode, env_id).to_json())
