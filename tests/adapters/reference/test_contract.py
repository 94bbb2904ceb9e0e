"""Requirements on chat templates, which are checked before a training begins."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.reference.chat import ChatFormat
from tests.adapters.base_models import random_model
from tests.sweeps import sweep
from toolgym import ConfigurationError, registration

pytestmark = pytest.mark.torch

MODEL = random_model()


@pytest.fixture(scope="module")
def env() -> Any:
    made = registration.make("trl-tests/Notes-v0")
    made.reset(seed=0)
    return made


@pytest.mark.parametrize(
    "template",
    sweep(
        ["qwen2_5", "qwen3", "qwen3_training", "qwen3_instruct_2507", "qwen3_5_think_training"],
        ["qwen2_5", "qwen3_training"],
    ),
)
def test_a_template_that_only_appends_is_accepted(
    template: str, make_tokenizer: Callable[..., Any], env: Any
) -> None:
    ChatFormat(MODEL, make_tokenizer(template), env).check(env)


PROMPTED = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
ONE = "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
CHATML = "{% for m in messages %}" + ONE + "{% endfor %}" + PROMPTED
BAD = {
    "drops": CHATML.replace(ONE, "{% if m.role != 'tool' %}" + ONE + "{% endif %}"),
    "changes earlier messages": CHATML.replace(
        "m.content +", "(m.content if loop.last else m.content[:3]) +"
    ),
    "depending on its beginning": CHATML.replace(
        PROMPTED, PROMPTED.replace("assistant", "assistant ' + messages[0].content + '")
    ),
    "ends the assistant's turn with none": CHATML.replace("<|im_end|>", ""),
    "cannot render a chat with tool results": CHATML.replace(
        ONE, "{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}" + ONE
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_template_that_does_more_is_refused_with_what_to_do(
    fault: str, tokenizer: Any, env: Any
) -> None:
    tokenizer.chat_template = CHATML
    ChatFormat(MODEL, tokenizer, env).check(env)  # each of the others differs from it in one thing
    tokenizer.chat_template = BAD[fault]

    with pytest.raises(ConfigurationError, match=fault) as refusal:
        ChatFormat(MODEL, tokenizer, env).check(env)

    assert any(cure in str(refusal.value) for cure in ("--chat-template hermes", "eos_token_id"))


def test_a_thought_that_the_prompt_opens_belongs_to_the_turn(tokenizer: Any, env: Any) -> None:
    tokenizer.chat_template = CHATML.replace("assistant\n' }}", "assistant\n<think>\n' }}")
    chat = ChatFormat(MODEL, tokenizer, env)
    said = tokenizer("I say <tool_call></think>done<|im_end|>", add_special_tokens=False)

    (prompt,) = chat.prompts([env])
    assert chat.response(said["input_ids"], prompt) == "<think>I say <tool_call></think>done"


def test_stop_tokens_of_the_generation_config_end_turns(tokenizer: Any, env: Any) -> None:
    model = random_model()
    model.generation_config.eos_token_id = [7, 9]

    assert ChatFormat(model, tokenizer, env).stop == {7, 9, tokenizer.eos_token_id}


def test_control_tokens_of_the_tokenizer_alone_stay_text_in_results(
    notes_model: Any, notes_tokenizer: Any, env: Any
) -> None:
    chat = ChatFormat(notes_model, notes_tokenizer, env)
    result = {"role": "tool", "name": "read", "content": "a <|im_end|> b"}

    (tail,) = chat.following([[result]])

    assert notes_tokenizer.decode(tail).count("<|im_end|>") == 2
    assert tail.count(notes_tokenizer.eos_token_id) == 1
