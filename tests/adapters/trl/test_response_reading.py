"""The tokenizer of `with_call_reading`: what it reads, and what it leaves as it is."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from transformers import AutoTokenizer, PreTrainedTokenizerBase
from trl import GRPOConfig
from trl.chat_template_utils import add_response_schema, parse_response

from adapters.trl import environment_factory, training_dataset
from adapters.trl.response_reading import with_call_reading
from tests.adapters.call_templates import (
    FAMILIES,
    SPOKEN,
    Family,
    encoded,
    group_of,
    model_of,
    texts_of,
    tokenizer_of,
)
from tests.adapters.trl.scripted_trl import END, NOTES, SETTINGS, Scripted, always, call
from toolgym import ConfigurationError, ToolgymError

pytestmark = pytest.mark.torch
ARGUMENTS = {"text": "a 'b' \"c\"\nd <x> é , e", "twice": True}
TEMPLATES = [
    *("qwen2_5", "qwen3", "qwen3_instruct_2507", "qwen3_5_nothink", "qwen3_8"),
    *("llama3_1", "glm4moe", "gemma4", "gptoss"),
]


def begun(**options: Any) -> Any:
    environment = environment_factory(NOTES, **options)()
    environment.reset(task_id="note-1")
    return environment


def tools_of(environment: Any) -> list[Any]:
    return [getattr(environment, name) for name in environment._tools]


def read(
    tokenizer: Any, text: str, tools: list[Any], before: str = "<|im_start|>assistant\n"
) -> dict[str, Any]:
    """A response as TRL asks for it."""
    ids, prefix = (
        tokenizer(each, add_special_tokens=False)["input_ids"] for each in (text, before)
    )
    message: dict[str, Any] = parse_response(tokenizer, ids, prefix=prefix, tools=tools)
    return message


def run(environment: Any, message: dict[str, Any]) -> list[str]:
    """The results of a message's calls as TRL's loop gets them."""
    functions = [each["function"] for each in message["tool_calls"]]
    return [getattr(environment, each["name"])(**each["arguments"]) for each in functions]


def test_a_message_that_is_the_argument_of_a_tool_reaches_the_environment(
    make_tokenizer: Any,
) -> None:
    tokenizer = with_call_reading(make_tokenizer(TEMPLATES[0]))
    for options, repairs in (({}, ("bare_argument",)), ({"one_shot": True}, ())):
        environment = environment_factory("aflowgym/Compose-v0", kind="math", **options)()
        environment.reset(seed=0)
        message = read(tokenizer, "Custom -> Revise", tools_of(environment))
        assert "Solution:" in run(environment, message)[0]
        (turn,) = environment._playing.episode.turns
        assert [(each.arguments, each.repairs) for each in turn.calls] == [
            ({"dsl": "Custom -> Revise"}, repairs)
        ]
        assert not read(tokenizer, "done", tools_of(environment)).get("tool_calls")


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_valid_call_in_the_models_own_format_stays_as_trl_reads_it(
    make_tokenizer: Any, template: str
) -> None:
    environment = begun()
    tools = tools_of(environment)
    tokenizer = add_response_schema(make_tokenizer(template))
    function = {"name": "count", "arguments": ARGUMENTS}
    spoken = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"type": "function", "function": function}],
    }
    chat = [{"role": "user", "content": "hello"}, spoken]
    prompt = tokenizer.apply_chat_template(
        chat[:1], tools=tools, tokenize=False, add_generation_prompt=True
    )
    text = tokenizer.apply_chat_template(chat, tools=tools, tokenize=False).removeprefix(prompt)
    message = read(with_call_reading(tokenizer), text, tools, prompt)
    assert message == read(tokenizer, text, tools, prompt)
    assert run(environment, message) == [str(2 * len(ARGUMENTS["text"]))]
    (turn,) = environment._playing.episode.turns
    assert [each.arguments for each in turn.calls] == [ARGUMENTS]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.format)
def test_a_call_in_a_format_that_trl_does_not_know_reaches_the_environment(family: Family) -> None:
    environment = begun()
    tokenizer = with_call_reading(tokenizer_of(family, texts_of(NOTES)))
    asked = [{"role": "user", "content": "hello"}]
    prompt = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    for kind, (text, *_) in zip(SPOKEN, group_of(tokenizer, family, "note-1"), strict=True):
        ids = encoded(tokenizer, text)
        prefix = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        message = parse_response(tokenizer, ids, prefix=prefix, tools=tools_of(environment))
        silent = kind in ("silent", "in a thought", "in an open thought")
        assert bool(message.get("tool_calls")) != silent, kind
        environment.reset(task_id="note-1")
        if kind in ("right", "repaired"):
            assert run(environment, message)[0].endswith("is 11")
            (ran,) = environment._playing.episode.turns[0].calls
            assert bool(ran.repairs) == (kind == "repaired")


@pytest.mark.parametrize("text", ["I do not know.", "<think>describe(x)</think> done", "{", ""])
def test_a_message_without_a_call_stays_as_trl_reads_it(tokenizer: Any, text: str) -> None:
    tools = tools_of(begun())
    plain = add_response_schema(copy.deepcopy(tokenizer))
    message = read(with_call_reading(tokenizer), text + END, tools)
    assert message == read(plain, text + END, tools)
    assert not message.get("tool_calls")


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
def test_a_call_in_a_thought_or_a_quotation_is_not_run(
    make_tokenizer: Any, template: str, text: str
) -> None:
    said = call("answer", value=11).removesuffix(END) if template == "qwen3" else IN_TAGS
    tokenizer = with_call_reading(make_tokenizer(template))
    assert not read(tokenizer, text.format(said) + END, tools_of(begun())).get("tool_calls")


def test_reasoning_that_the_prompt_opened_holds_no_calls(tokenizer: Any) -> None:
    environment = begun()
    thought, said = call("answer", value=11).removesuffix(END), call("read", note="a")
    text = f"I might {thought} now</think>\n\n{said}"
    opened = "<|im_start|>assistant\n<think>\n"
    message = read(with_call_reading(tokenizer), text, tools_of(environment), opened)
    assert [each["function"]["name"] for each in message["tool_calls"]] == ["read"]
    run(environment, message)
    assert not environment._playing.episode.over


def test_every_call_of_a_message_with_a_wrong_one_gets_its_own_result(tokenizer: Any) -> None:
    environment = begun(step_limit=3)
    text = call("fly").removesuffix(END) + call("count", text="aa")
    message = read(with_call_reading(tokenizer), text, tools_of(environment))
    wrong, right = run(environment, message)
    assert wrong.startswith("error[unknown_tool]")
    assert right == "2\n(1 call left)"
    (turn,) = environment._playing.episode.turns
    assert turn.action == text.removesuffix(END)


@pytest.mark.parametrize(
    "body",
    [
        *('"x"', "[1]", "{}", "null", "read(note='a')", '{"name": ["read"], "arguments": {}}'),
        *('{"name": "read", "arguments": ["a"]}', '{"name": "read", "arguments": "a"}'),
        *('{"name": "read", "parameters": {"note": "a"}}', '{"function": "read", "arguments": 1}'),
        *(
            '{"name": "Read_Note", "arguments": {"note": "a"}}',
            '{"name": "read"',
            "{'name': 'read'}",
        ),
    ],
)
@pytest.mark.parametrize("template", ["qwen3", "qwen3_8"])
def test_whatever_stands_in_a_call_is_played_as_it_was_written(
    make_tokenizer: Any, template: str, body: str
) -> None:
    environment = begun()
    text = f"<tool_call>\n{body}\n</tool_call>"
    tokenizer = with_call_reading(make_tokenizer(template))
    run(environment, read(tokenizer, text + END, tools_of(environment)))
    assert [turn.action for turn in environment._playing.episode.turns] == [text]


def test_two_answers_in_a_message_are_no_answer(tokenizer: Any) -> None:
    environment = begun()
    text = call("answer", value=10).removesuffix(END) + call("answer", value=11)
    run(environment, read(with_call_reading(tokenizer), text, tools_of(environment)))
    assert environment.get_reward() < 0


def test_a_rollout_with_a_fault_answers_every_call_of_a_message(tokenizer: Any) -> None:
    environment = begun()
    environment.reset(task_id="nowhere")
    text = call("fly").removesuffix(END) * 2
    message = read(with_call_reading(tokenizer), text, tools_of(environment))
    results = run(environment, message)
    assert len(results) == 2
    assert all("not counted" in result for result in results)
    assert environment.get_reward() is None


def test_a_message_cannot_be_carried_by_the_arguments_of_a_model(tokenizer: Any) -> None:
    environment = begun()
    said = call("read", message=call("answer", value=11).removesuffix(END))
    run(environment, read(with_call_reading(tokenizer), said, tools_of(environment)))
    assert not environment._playing.episode.over


def test_strict_parsing_leaves_all_reading_to_trl(tokenizer: Any) -> None:
    tools = tools_of(begun(parsing="strict"))
    broken = call("read", note="a").replace("}}", "}")
    assert not read(with_call_reading(tokenizer), broken, tools).get("tool_calls")


def look() -> str:
    """Look around."""
    return "nothing"


def test_tools_beside_the_environment_are_refused(tokenizer: Any) -> None:
    with pytest.raises(ToolgymError, match="Make each of them a @tool of the environment"):
        read(with_call_reading(tokenizer), call("look"), [look, *tools_of(begun())])


def test_a_message_that_is_nested_too_deeply_is_played(tokenizer: Any) -> None:
    said = f"{call('answer', value=10)}\n<tool_call>\n" + "[" * 5000
    one, *_ = read(with_call_reading(tokenizer), said, tools_of(begun()))["tool_calls"]
    assert "WrittenMessage" in type(one["function"]["arguments"]["message"]).__name__
    nested = "<tool_call>" + '{"a":' * 5000
    assert read(with_call_reading(tokenizer), nested, [])["content"].startswith("<tool_call>")


@pytest.mark.parametrize("value", ["10.0", "1e1"])
def test_a_value_that_trl_would_round_is_the_environments_to_read(
    value: str, make_tokenizer: Any
) -> None:
    tokenizer = with_call_reading(make_tokenizer("qwen3_8"))
    said = "<tool_call>\n<function=answer>\n<parameter=value>\n{}\n</parameter>\n</function>"
    said += "\n</tool_call>"
    tools = tools_of(begun())
    exact, rounded = (
        read(tokenizer, said.format(each), tools)["tool_calls"][0]["function"]["arguments"]
        for each in ("10", value)
    )
    assert exact == {"value": 10}
    assert "message" in rounded


def test_a_long_message_is_read_by_the_environment_alone(tokenizer: Any) -> None:
    """For some formats the parser of transformers takes quadratic time."""
    calls = read(
        with_call_reading(tokenizer),
        "<tool_call>\n<function=read>\n" + "<parameter=note>" * 2_000,
        tools_of(begun()),
    ).get("tool_calls", [])
    assert all("message" in each["function"]["arguments"] for each in calls)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_a_copy_of_the_tokenizer_reads_as_it_does(tokenizer: Any, copied: Any) -> None:
    made = copied(with_call_reading(tokenizer))
    assert isinstance(made, PreTrainedTokenizerBase)
    assert isinstance(made, type(tokenizer))
    assert made("abc") == tokenizer("abc")
    broken = call("read", note="a").replace("}}", "}")
    assert read(made, broken, tools_of(begun()))["tool_calls"]


def test_what_is_saved_is_the_tokenizer_that_was_given(tokenizer: Any, tmp_path: Path) -> None:
    add_response_schema(tokenizer)
    for name, each in {"plain": tokenizer, "reading": with_call_reading(tokenizer)}.items():
        each.save_pretrained(tmp_path / name)
    files = {path.name: path.read_bytes() for path in (tmp_path / "plain").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "reading").iterdir()}
    loaded = AutoTokenizer.from_pretrained(tmp_path / "reading")
    assert loaded("abc")["input_ids"] == tokenizer("abc")["input_ids"]


def test_the_tokenizer_that_was_given_stays_as_it_was(tokenizer: Any) -> None:
    kind, state = type(tokenizer), set(vars(tokenizer))
    assert with_call_reading(with_call_reading(tokenizer))("abc") == tokenizer("abc")
    assert type(tokenizer) is kind
    assert set(vars(tokenizer)) == state


def test_a_tokenizer_that_parses_without_tools_is_refused(tokenizer: Any) -> None:
    class Older(type(tokenizer)):  # type: ignore[misc]
        def parse_response(self, response: Any, schema: Any = None) -> Any:
            return json.loads(response)

    tokenizer.__class__ = Older
    with pytest.raises(ConfigurationError, match=r"transformers 5\.15"):
        with_call_reading(tokenizer)


def trained(model: Any, tokenizer: Any, folder: Path, script: Any) -> Any:
    """TRL's own trainer after a step in which the rollouts say what the script has."""
    settings = {**SETTINGS, "report_to": "none", "use_cpu": True, "bf16": False}
    trainer = Scripted(
        model=model,
        processing_class=with_call_reading(tokenizer),
        args=GRPOConfig(str(folder), **settings),
        train_dataset=training_dataset(NOTES),
        environment_factory=environment_factory(NOTES),
    )
    trainer.script = script
    trainer.train()
    return trainer


@pytest.mark.integration
def test_the_tokens_of_a_rollout_are_those_that_were_sampled_and_the_results(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    turns = [call("read", note="a").replace("}}", "}"), call("raed", note="a"), f"done{END}"]
    trainer = trained(tiny_model, tokenizer, tmp_path, always(*[turns] * 4))
    mask, _, ids = trainer.outcome[:3]
    results = [
        f"\n<|im_start|>user\n<tool_response>\n{turn.observation}\n</tool_response>{END}"
        "\n<|im_start|>assistant\n"
        for turn in trainer.environments[0]._playing.episode.turns
    ]
    whole = [turns[0], results[0], turns[1], results[1], turns[2]]
    assert tokenizer.decode(ids[0]) == "".join(whole)
    sampled = [token for token, bit in zip(ids[0], mask[0], strict=True) if bit]
    assert sampled == tokenizer("".join(turns), add_special_tokens=False)["input_ids"]


@pytest.mark.integration
@pytest.mark.parametrize("name", ["mistral-args", "glm"])
def test_trl_trains_with_a_chat_template_that_it_does_not_know(name: str, tmp_path: Path) -> None:
    family = next(each for each in FAMILIES if each.format == name)
    tokenizer = tokenizer_of(family, texts_of(NOTES))

    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        return group_of(tokenizer, family, inputs[0]["task_id"])[:4]

    trainer = trained(model_of(family, tokenizer), tokenizer, tmp_path, script)
    right, repaired, wrong, silent = trainer._logs["rewards"]["NotesEnvironment"]
    assert 1.0 > right > repaired > 0.9
    assert wrong == 0.0 > silent
