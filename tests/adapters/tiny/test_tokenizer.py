"""The tiny model's chat format and tokenizer, as transformers and TRL read them."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer
from trl.chat_template_utils import (
    is_chat_template_prefix_preserving,
    is_chat_template_stop_token_trained,
    parse_response,
    supports_tool_calling,
)

from adapters.tiny.tokenizer import (
    ROLES,
    header,
    mistakes,
    null_padded,
    train_tokenizer,
)
from adapters.training.models.demonstrations import demonstrate
from toolgym import registration

pytestmark = pytest.mark.torch

EXPLORE = "sqlgym/Explore-v0"
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("describe", "query")]


def test_a_saved_tokenizer_comes_back_with_its_chat_format(
    tmp_path: Path, tiny_transcripts: Any, tiny_tokenizer: Any
) -> None:
    tiny_tokenizer.save_pretrained(tmp_path)

    loaded = AutoTokenizer.from_pretrained(str(tmp_path))

    assert loaded.response_template == tiny_tokenizer.response_template
    assert loaded.padding_side == "left"
    for transcript in tiny_transcripts[:5]:
        text, again = (
            t.apply_chat_template(transcript, tokenize=False) for t in (tiny_tokenizer, loaded)
        )
        assert text == again
        assert loaded(text)["input_ids"] == tiny_tokenizer(text)["input_ids"]


def test_the_same_transcripts_give_the_same_tokenizer(tiny_tokenizer: Any) -> None:
    again = train_tokenizer(demonstrate(EXPLORE, 60, dataset="tiny"))

    assert again.get_vocab() == tiny_tokenizer.get_vocab()


@given(text=st.text())
def test_any_text_comes_back_from_its_tokens(text: str, tiny_tokenizer: Any) -> None:
    tokens = tiny_tokenizer(text, add_special_tokens=False)["input_ids"]

    assert tiny_tokenizer.decode(tokens) == text


@given(number=st.integers())
def test_a_number_is_spelt_digit_by_digit(number: int, tiny_tokenizer: Any) -> None:
    spelt = [tiny_tokenizer.decode([token]) for token in tiny_tokenizer(str(number))["input_ids"]]

    assert spelt == list(str(number))


def test_what_opens_a_turn_is_one_token_and_tools_are_bare_names(tiny_tokenizer: Any) -> None:
    chat = [{"role": "system", "content": "read the manual"}, {"role": "user", "content": "Why?"}]

    text = tiny_tokenizer.apply_chat_template(
        chat, tools=TOOLS, add_generation_prompt=True, tokenize=False
    )

    assert text == (
        "<|im_start|>tools\n describe query<|im_end|>"
        "<|im_start|>user\nWhy?<|im_end|><|im_start|>assistant\n"
    )
    for role in ROLES:
        assert len(tiny_tokenizer(header(role))["input_ids"]) == 1


def test_trl_finds_in_the_format_what_it_asks_for(tiny_tokenizer: Any) -> None:
    assert supports_tool_calling(tiny_tokenizer)
    assert is_chat_template_prefix_preserving(tiny_tokenizer)
    assert is_chat_template_stop_token_trained(tiny_tokenizer)


def test_trl_reads_every_turn_back_as_it_was_rendered(
    tiny_transcripts: Any, tiny_tokenizer: Any
) -> None:
    transcript = tiny_transcripts[0]
    for place, message in enumerate(transcript):
        if message["role"] != "assistant":
            continue
        before, after = (
            tiny_tokenizer.apply_chat_template(
                transcript[:end],
                tools=TOOLS,
                add_generation_prompt=prompted,
                return_dict=False,
            )
            for end, prompted in ((place, True), (place + 1, False))
        )
        parsed = parse_response(tiny_tokenizer, after[len(before) :], prefix=before)
        assert parsed.get("tool_calls") == message.get("tool_calls")
        assert parsed["content"] == message["content"]


def test_an_argument_padded_with_null_costs_two_tokens(tiny_transcripts: Any) -> None:
    env = registration.make(EXPLORE, dataset="tiny")
    padded = [null_padded(transcript, env.tool_schemas()) for transcript in tiny_transcripts]
    tokenizer = train_tokenizer([*tiny_transcripts, *padded])

    for clean, dirty in zip(tiny_transcripts[:10], padded[:10], strict=True):
        calls = sum(len(message.get("tool_calls", [])) for message in clean)
        lengths = [_length(tokenizer, transcript) for transcript in (clean, dirty)]
        assert lengths[1] - lengths[0] <= 2 * 2 * calls  # two arguments of other tools in each call


def test_mistakes_show_the_error_of_every_tool_that_goes_on() -> None:
    env: Any = registration.make(EXPLORE, dataset="tiny")

    (transcript,) = mistakes(env, env.tasks.ids[:1])

    told = "\n".join(message["content"] for message in transcript)
    for code in ("unknown_tool", "no_call", "missing_argument", "unknown_table", "sql_error"):
        assert f"error[{code}]" in told


def _length(tokenizer: Any, transcript: Any) -> int:
    return len(tokenizer.apply_chat_template(transcript, return_dict=False))
