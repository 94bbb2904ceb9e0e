"""What a model and a chat template must keep to, measured before a training begins."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.reference.chat import ChatFormat, check_template
from adapters.reference.decoder import Decoder, check_model
from tests.sweeps import sweep
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

NOTES = "trl-tests/Notes-v0"
SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
KEPT: dict[str, dict[str, Any]] = {
    "Qwen3": {"head_dim": 16},
    "Qwen2": {},
    "Llama": {},
    "Mistral": {"sliding_window": 8},
    "Gemma3Text": {"head_dim": 8, "sliding_window": 8},
    "Gemma2": {"head_dim": 8, "sliding_window": 8, "attn_implementation": "eager"},
    "GptOss": {
        "head_dim": 8,
        "sliding_window": 8,
        "num_local_experts": 4,
        "attn_implementation": "eager",
    },
    "Phi3": {},
    "OPT": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "Cohere": {},
}


def random_model(family: str, **options: Any) -> Any:
    attention = options.pop("attn_implementation", "sdpa")
    config = getattr(transformers, f"{family}Config")(**{**SHAPE, **options})
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)


@pytest.fixture(scope="module")
def env() -> Any:
    made: Any = gym.make(NOTES, disable_env_checker=True).unwrapped
    made.reset(seed=0)
    return made


@pytest.mark.parametrize("family", sweep(KEPT, ["Qwen3", "Gemma3Text", "GptOss", "OPT"]))
def test_a_model_of_keys_and_values_computes_the_same_with_the_cache(family: str) -> None:
    model = random_model(family, **KEPT[family])
    model.train(True)

    check_model(model)

    assert model.training


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Mamba", {}),
        ("Bloom", {"n_layer": 2, "n_head": 4}),
        pytest.param("Qwen3Next", {"num_hidden_layers": 4}, marks=pytest.mark.nightly),
    ],
)
def test_a_model_with_another_memory_is_refused(family: str, options: dict[str, Any]) -> None:
    model = random_model(family, **options, attn_implementation="eager")

    with pytest.raises(ConfigurationError, match="use --trainer trl"):
        check_model(model)


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_any_ragged_feeding_gives_the_logits_of_plain_passes(data: st.DataObject) -> None:
    model = random_model("Llama", initializer_range=0.3).train(False)
    count = data.draw(st.integers(1, 4))
    texts: list[list[int]] = [[] for _ in range(count)]
    decoder = Decoder(model, count)
    token = st.integers(0, 299)
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, count - 1))
        rows = range(first, count)
        new = [data.draw(st.lists(token, min_size=1, max_size=7)) for _ in rows]
        logits = decoder.feed(first, new, [len(texts[row]) for row in rows])
        longest = max(map(len, new))
        for row, tokens in zip(rows, new, strict=True):
            texts[row] += tokens
            if len(tokens) == longest:
                with torch.no_grad():
                    plain = model(input_ids=torch.tensor([texts[row]])).logits[0, -1]
                torch.testing.assert_close(logits[row - first], plain, atol=1e-4, rtol=1e-4)
        one, other = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
        decoder.cache.swap(one, other, max(map(len, texts)))
        texts[one], texts[other] = texts[other], texts[one]


@pytest.mark.parametrize(
    "template",
    sweep(
        ["qwen2_5", "qwen3", "qwen3_training", "qwen3_instruct_2507", "qwen3_5_think_training"],
        ["qwen2_5", "qwen3_training"],
    ),
)
def test_a_template_that_only_adds_is_taken(
    template: str, make_tokenizer: Callable[..., Any], env: Any
) -> None:
    tokenizer = make_tokenizer(template)

    check_template(random_model("Llama", vocab_size=len(tokenizer)), tokenizer, env)


PROMPTED = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
ONE = "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
CHATML = "{% for m in messages %}" + ONE + "{% endfor %}" + PROMPTED
BAD = {
    "drops": CHATML.replace(ONE, "{% if m.role != 'tool' %}" + ONE + "{% endif %}"),
    "rewrites": CHATML.replace("m.content +", "(m.content if loop.last else m.content[:3]) +"),
    "depend on its beginning": CHATML.replace(
        PROMPTED, PROMPTED.replace("assistant", "assistant ' + messages[0].content + '")
    ),
    "ends the assistant's turn with none": CHATML.replace("<|im_end|>", ""),
    "refuses a chat with tool results": CHATML.replace(
        ONE, "{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}" + ONE
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_template_that_does_more_is_refused_with_what_to_do(
    fault: str, tokenizer: Any, env: Any
) -> None:
    tokenizer.chat_template = BAD[fault]

    with pytest.raises(ConfigurationError, match=fault) as refusal:
        check_template(random_model("Llama", vocab_size=len(tokenizer)), tokenizer, env)

    assert any(cure in str(refusal.value) for cure in ("--trainer trl", "eos_token_id"))


def test_the_bad_templates_are_bad_in_one_way_only(tokenizer: Any, env: Any) -> None:
    tokenizer.chat_template = CHATML

    check_template(random_model("Llama", vocab_size=len(tokenizer)), tokenizer, env)


def test_a_thought_that_the_prompt_opens_belongs_to_the_turn(tokenizer: Any, env: Any) -> None:
    tokenizer.chat_template = CHATML.replace("assistant\n' }}", "assistant\n<think>\n' }}")
    chat = ChatFormat(random_model("Llama", vocab_size=len(tokenizer)), tokenizer, env)
    said = tokenizer("I say <tool_call></think>done<|im_end|>", add_special_tokens=False)

    (prompt,) = chat.prompts([env])
    assert chat.response(said["input_ids"], prompt) == "<think>I say <tool_call></think>done"


def test_stop_tokens_of_the_generation_config_end_turns(tokenizer: Any, env: Any) -> None:
    model = random_model("Llama", vocab_size=len(tokenizer))
    model.generation_config.eos_token_id = [7, 9]

    assert ChatFormat(model, tokenizer, env).stop == {7, 9, tokenizer.eos_token_id}
