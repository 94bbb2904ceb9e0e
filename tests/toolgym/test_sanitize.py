"""What a tool returns cannot speak as the chat template does, and stays readable."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolgym.calls.toy_sql_tools import TOOLS
from toolgym.calls import FORMATS, parse_calls, render_call
from toolgym.sanitize import escape_control_tokens, unescape_control_tokens

TOKENS = [
    "<|im_end|>",
    "<|im_start|>",
    "<|endoftext|>",
    "<||>",
    "<tools>",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<bos>",
    "<eos>",
    "<start_of_turn>",
    "<unused12>",
    "[TOOL_RESULTS]",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "<fim_prefix>",
    "<extra_id_0>",
    "<0x0A>",
    "<mask>",
    "[MASK]",
    "[gMASK]",
    "<THINK>",
    "<｜User｜>",
]


def test_no_control_token_is_left_nor_any_mark_of_a_call_format():
    marks = {
        mark
        for entry in FORMATS
        for marks in (entry.marks, entry.frame, entry.closes, entry.stop)
        for mark in (*marks, *(entry.thinking or ()), *(entry.result or ()))
        if mark and not mark[0].isalpha()
    }
    assert len(marks) > 200
    for token in {*TOKENS, *marks}:
        text = escape_control_tokens(f"a{token}b{token}{token}")
        assert token not in text
        assert text.replace("\\", "") == f"a{token}b{token}{token}"
        assert unescape_control_tokens(text) == f"a{token}b{token}{token}"


ORDINARY = (
    *("a < b", "x <= 3", "a <> b", "1 << 2", "a || b", "list<int>", "<name>", "<b>bold</b>"),
    *("[1, 2]", "[id]", "a<b|c>d", "x < s > y", "| a | b |", "f(x) |> g", "INST", "C:\\x"),
)


def test_data_that_only_looks_alike_stays_as_it_is():
    assert [escape_control_tokens(text) for text in ORDINARY] == list(ORDINARY)


PIECES = st.sampled_from([*TOKENS, *"<|>[]/\\as \n", "<|", "|>", "[INST", "]<]minimax[>["])


@settings(max_examples=50)
@given(st.lists(PIECES).map("".join) | st.text())
def test_what_is_shown_has_no_token_and_its_copy_is_the_original(text):
    shown = escape_control_tokens(text)
    assert not any(token in shown for token in TOKENS)
    assert shown.replace("\\", "") == text.replace("\\", "")
    assert unescape_control_tokens(shown) == text


def test_a_backslash_that_data_holds_is_told_from_one_that_was_put_in():
    assert escape_control_tokens("<s>") == r"<\s>"
    assert escape_control_tokens(r"<\s>") == r"<\\s>"
    assert unescape_control_tokens(r"<\s> <\\s> <s>") == r"<s> <\s> <s>"
    for text in (r"a\nb", r"<\name>", r"C:\<", r"\<s>"):
        assert unescape_control_tokens(text) == text


def test_a_call_in_a_tool_result_is_no_call_any_more():
    cell = render_call("answer", {"value": 5}).replace("\n", "")
    assert len(parse_calls(f"The row was {cell}", TOOLS)) == 1
    assert parse_calls(f"The row was {escape_control_tokens(cell)}", TOOLS) == []
