"""What a model wrote in the format of its template reaches the environment as it was meant."""

import json
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.training.algorithms.workers import Workers
from adapters.trl import environment_factory, settings
from adapters.trl.tool_loop import ParallelToolRunner, ParsingTokenizer

pytestmark = pytest.mark.torch

NOTES = "trl-tests/Notes-v0"
ARGUMENTS = {"text": "a 'b' \"c\"\nd <x> é , e", "twice": True}


class Config:
    chat_template_kwargs = None


def spoken(tokenizer: Any, tools: Any) -> tuple[list[int], list[int]]:
    """Token ids of a prompt and of the call as the tokenizer's template writes it."""
    call = {"type": "function", "function": {"name": "count", "arguments": ARGUMENTS}}
    chat = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]
    prompt = tokenizer.apply_chat_template(
        chat[:1], tools=tools, tokenize=False, add_generation_prompt=True
    )
    whole = tokenizer.apply_chat_template(chat, tools=tools, tokenize=False)
    ids = [
        tokenizer(text, add_special_tokens=False)["input_ids"]
        for text in (prompt, whole.removeprefix(prompt))
    ]
    return ids[0], ids[1]


@pytest.mark.parametrize(
    "template",
    [
        *("qwen2_5", "qwen3", "qwen3_instruct_2507", "qwen3_5_nothink", "qwen3_8"),
        *("llama3_1", "glm4moe", "gemma4", "gptoss"),
    ],
)
def test_a_call_in_the_models_own_format_runs_with_its_arguments(
    make_tokenizer: Any, template: str
) -> None:
    environment = environment_factory(NOTES)()
    environment.reset(task_id="note-1")
    env = environment._playing
    tokenizer = make_tokenizer(template)
    settings.prepare_tokenizer(tokenizer, env, Config())
    prompt, call = spoken(tokenizer, env.tool_schemas())
    reader = ParsingTokenizer(tokenizer, env.tools)
    message = reader.parse_response(call, prefix=prompt, tools=env.tool_schemas())
    (each,) = message["tool_calls"]
    (tools,) = ParallelToolRunner([environment], [[message]], Workers(1)).tools()
    result = tools[each["function"]["name"]](**each["function"]["arguments"])
    assert result == str(2 * len(ARGUMENTS["text"]))
    assert [ran.arguments for ran in env.episode.turns[-1].calls] == [ARGUMENTS]


@pytest.mark.parametrize("text", ["", "I do not know.", "<think>describe(x)</think> done", "{"])
def test_a_turn_without_a_call_is_text(tokenizer: Any, text: str) -> None:
    env = environment_factory(NOTES)()._playing
    settings.prepare_tokenizer(tokenizer, env, Config())
    reader = ParsingTokenizer(tokenizer, env.tools)
    ids = tokenizer(text + "<|im_end|>", add_special_tokens=False)["input_ids"]
    message = reader.parse_response(ids, prefix=tokenizer("<|im_start|>assistant\n")["input_ids"])
    assert not message.get("tool_calls")
    assert message["role"] == "assistant"


HIDDEN = {
    "an open thought": "<think>\nI might say {}",
    "a closed thought": "<think>\nI might say {}\n</think>\nNo.",
    "a quotation": "One could write `{}` here.",
}
IN_TAGS = (
    "<tool_call>\n<function=answer>\n<parameter=value>\n11\n</parameter>\n</function>\n</tool_call>"
)


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("template", ["nemotron_3_nano", "qwen3_8", "qwen3"])
def test_a_call_that_our_parser_leaves_alone_is_not_run_by_that_of_trl(
    make_tokenizer: Any, template: str, text: str
) -> None:
    env = environment_factory(NOTES)()._playing
    tokenizer = make_tokenizer(template)
    settings.prepare_tokenizer(tokenizer, env, Config())
    reader = ParsingTokenizer(tokenizer, env.tools)
    json_call = '<tool_call>\n{"name": "answer", "arguments": {"value": 11}}\n</tool_call>'
    said = text.format(json_call if template == "qwen3" else IN_TAGS) + "<|im_end|>"
    ids = tokenizer(said, add_special_tokens=False)["input_ids"]
    before = tokenizer("<|im_start|>assistant\n", add_special_tokens=False)["input_ids"]
    message = reader.parse_response(ids, prefix=before, tools=env.tool_schemas())
    assert not message.get("tool_calls")


def test_reasoning_that_the_prompt_opened_holds_no_calls(tokenizer: Any) -> None:
    env = environment_factory(NOTES)()._playing
    settings.prepare_tokenizer(tokenizer, env, Config())
    reader = ParsingTokenizer(tokenizer, env.tools)
    written = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'
    thought, said = written.format("answer", "{}"), written.format("read", '{"note": "a"}')
    opened = tokenizer("<|im_start|>assistant\n<think>\n", add_special_tokens=False)["input_ids"]
    text = f"I might {thought} now</think>\n\n{said}<|im_end|>"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    message = reader.parse_response(ids, prefix=opened, tools=env.tool_schemas())
    assert [each["function"]["name"] for each in message["tool_calls"]] == ["read"]


def test_what_a_message_is_played_from_ends_before_any_token_that_ends_a_turn(
    tokenizer: Any,
) -> None:
    tools = environment_factory(NOTES)()._playing.tools
    text = '<tool_call>\n{"name": "read", "arguments": {"note": "a"}}\n</tool_call>'
    ids = tokenizer(text + "<|im_start|>", add_special_tokens=False)["input_ids"]
    stop = tokenizer.convert_tokens_to_ids("<|im_start|>")
    message = ParsingTokenizer(tokenizer, tools, [stop]).parse_response(ids)
    assert message.action == text


def test_every_call_of_a_message_gets_its_own_result(tokenizer: Any) -> None:
    environment = environment_factory(NOTES, step_limit=3)()
    environment.reset(task_id="note-1")
    calls = [{"name": "count", "arguments": {"text": "a" * n}} for n in (1, 2)]
    text = "".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls)
    reader = ParsingTokenizer(tokenizer, environment._playing.tools)
    message = reader.parse_response(tokenizer(text)["input_ids"])
    (tools,) = ParallelToolRunner([environment], [[message]], Workers(1)).tools()
    results = [tools[each["function"]["name"]]() for each in message["tool_calls"]]
    assert [result.split("\n")[0] for result in results] == ["1", "2"]
    assert results[1].endswith("(1 call left)")
    assert environment._playing.episode.turns[0].action == text


def test_a_rollout_with_a_fault_answers_every_call_of_a_message(tokenizer: Any) -> None:
    environment = environment_factory(NOTES)()
    environment.reset(task_id="nowhere")
    text = '<tool_call>{"name": "explode", "arguments": {}}</tool_call>' * 2
    reader = ParsingTokenizer(tokenizer, environment._playing.tools)
    message = reader.parse_response(tokenizer(text)["input_ids"])
    (tools,) = ParallelToolRunner([environment], [[message]], Workers(1)).tools()
    results = [tools[each["function"]["name"]]() for each in message["tool_calls"]]
    assert len(results) == 2
    assert "not counted" in results[0]
    assert environment.get_reward() is None


def test_the_reader_is_the_tokenizer_in_everything_else(tokenizer: Any) -> None:
    reader = ParsingTokenizer(tokenizer, {})
    assert reader("abc") == tokenizer("abc")
    assert (reader.eos_token_id, reader.pad_token) == (tokenizer.eos_token_id, tokenizer.pad_token)
