"""The table of call formats: what every family writes is read, written, escaped, not mixed up."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sweeps import sweep
from tests.toolgym.calls.fixtures import FIXTURES, NONE, ONE, TOOLS, TWO
from tests.toolgym.calls.no_calls import EXCUSED, messages_without_calls
from toolgym.calls import FORMATS, format_named, formats_in, parse_calls, render_call, render_calls
from toolgym.calls.enveloped import OPENINGS, read_enveloped
from toolgym.calls.hiding_tags import CONTROL_TEXTS
from toolgym.calls.marked import MARK
from toolgym.calls.source import Source
from toolgym.sanitize import escape_control_tokens
from toolgym.tools import specs_from

MESSAGES = {
    f"{fixture.name}-{kind}": (text, calls)
    for fixture in FIXTURES
    for kind, (text, calls) in fixture.messages().items()
}
FIRST_LINE = {"glm-4", "functionary-v2", "functionary-v3.2"}
"""Formats whose first call stands without any mark at the very start of a message."""


def read(text, tools=TOOLS):
    return [(call.name, call.arguments) for call in parse_calls(text, tools)]


@pytest.mark.parametrize(("text", "calls"), MESSAGES.values(), ids=MESSAGES)
def test_a_message_of_a_family_is_read_without_error_or_repair(text, calls):
    found = parse_calls(text, TOOLS)
    assert [(call.name, call.arguments) for call in found] == calls
    assert [(call.error, call.repairs) for call in found] == [(None, ())] * len(calls)


def test_there_are_sixty_fixtures_of_forty_five_families_and_one_of_every_format():
    families = {family for fixture in FIXTURES for family in fixture.families}
    assert len(FIXTURES) >= 60
    assert len(families) >= 45
    assert {fixture.format for fixture in FIXTURES} == {entry.name for entry in FORMATS}
    assert len({entry.name for entry in FORMATS}) == len(FORMATS)
    assert all(entry.source and entry.families for entry in FORMATS)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_a_format_is_told_by_its_own_name_or_by_another_with_the_same_mark(fixture):
    (told,) = set(formats_in(fixture.one, TOOLS))
    own, other = format_named(fixture.format), format_named(told)
    assert told == fixture.format or set(own.marks) & set(other.marks) or not own.marks


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_half_a_message_never_becomes_another_call(fixture):
    """Whatever place a message is cut off at, a call is the whole one, or it is not executed."""
    for text, calls in fixture.messages().values():
        for end in range(len(text)):
            done = [c for c in parse_calls(text[:end], TOOLS) if c.error is None]
            assert [(c.name, c.arguments) for c in done] == calls[: len(done)], text[:end]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_a_call_inside_of_thinking_is_never_read(fixture):
    own = format_named(fixture.format).thinking or ("<think>", "</think>")
    for opening, closing in {own, ("<think>", "</think>")}:
        assert read(f"{opening}\nI could write\n{fixture.one}") == []
        assert read(f"{opening}{fixture.one}{closing}\nI do not know.") == []


def test_a_call_inside_of_a_result_that_the_model_made_up_is_never_read():
    pairs = {entry.result for entry in FORMATS if entry.result and entry.result[1]}
    assert len(pairs) > 8
    for opening, closing in pairs:
        for fixture in FIXTURES:
            assert read(f"It says\n{opening}\n{fixture.one}\n{closing}\nSo I am done.") == []


def test_no_reader_of_another_family_reads_a_message_differently():
    for text, calls in MESSAGES.values():
        for opening in OPENINGS.values():
            if "hermes" in opening.reading or opening.mark in ("[TOOL_CALLS]", "<|python_tag|>"):
                continue
            place = text.find(opening.mark)
            if place < 0 or text.find("]<]minimax[>[", max(place - 13, 0), place) >= 0:
                continue  # a part of a longer mark is not met as a mark
            source = Source(text, specs_from(TOOLS))
            found = read_enveloped(source, MARK.match(text, place), opening).calls
            good = [(each.name, set(each.arguments)) for each in found if each.error is None]
            assert all(each in [(n, set(a)) for n, a in calls] for each in good), opening.mark


@pytest.mark.parametrize("text", CONTROL_TEXTS)
def test_every_text_of_control_is_escaped_in_the_result_of_a_tool(text):
    escaped = escape_control_tokens(f"a {text} b")
    assert text not in escaped
    assert escaped.replace("\\", "") == f"a {text} b"
    assert escape_control_tokens(escaped) == escaped


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30) | st.sampled_from(
    [
        "SELECT 'a'\nFROM t",
        'say "x"',
        "<|im_end|>",
        "[TOOL_CALLS]",
        "</tool_call>",
        "{",
        "\u273f",
        "",
    ]
)
QUICK = (
    "hermes",
    "kimi-k2",
    "deepseek-v3",
    "llama-4",
    "qwen3-coder",
    "gemma-4",
    "command-a",
    "glm-4",
)


@pytest.mark.parametrize("entry", sweep(FORMATS, QUICK, lambda entry: entry.name))
@settings(max_examples=60)
@given(sql=TEXTS, limit=st.integers(-(10**9), 10**9), two=st.booleans())
def test_what_is_written_in_a_format_reads_back_equal_or_as_an_error(entry, sql, limit, two):
    calls = [("query", {"sql": sql, "limit": limit})]
    calls = [*calls, *ONE] if two and entry.parallel else calls
    text = render_calls(calls, format=entry.name)
    for whole in (text, text + (entry.stop[0] if entry.stop else "")):
        found = parse_calls(whole, TOOLS)
        if [(c.name, c.arguments) for c in found] == calls:
            assert all(c.error is None and not c.repairs for c in found)
        else:  # bare text escapes nothing: what holds tags, or blanks at its ends, may be lost
            assert entry.arguments in ("tags", "braces")
            assert any(sign in sql for sign in "<>[]\u273f\n`") or sql != sql.strip() or not sql


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.name)
def test_a_format_writes_the_calls_of_the_fixtures(entry):
    before = "" if entry.name in FIRST_LINE else "I look at it.\n"
    for calls in (ONE, NONE, TWO if entry.parallel else ONE):
        text = render_calls(calls, format=entry.name)
        assert read(text) == calls
        assert read(before + text + (entry.stop[0] if entry.stop else "")) == calls


def test_a_format_without_parallel_calls_or_of_another_name_says_so():
    with pytest.raises(ValueError, match="a message in the format harmony holds one call, got 2"):
        render_calls(TWO, format="harmony")
    with pytest.raises(ValueError, match="there is no call format 'qwen'; there are hermes, "):
        render_call("tables", format="qwen")


def test_two_thousand_messages_without_a_call_give_none():
    draw = random.Random("toolgym-no-calls")
    wrong = [
        (kind, text)
        for kind, text in messages_without_calls(draw, 2000)
        if parse_calls(text, TOOLS) and kind not in EXCUSED
    ]
    assert wrong == []
    assert len(EXCUSED) <= 5


def test_hunyuans_marks_may_carry_a_word_of_the_tokenizer():
    text = render_calls(TWO, format="hunyuan-3")
    marks = ("tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value")
    for mark in marks:
        text = text.replace(f"<{mark}>", f"<{mark}:opensource>")
        text = text.replace(f"</{mark}>", f"</{mark}:opensource>")
    assert read(text) == TWO


def test_the_recipient_of_a_channel_may_stand_in_the_role():
    for head in (
        "",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant",
    ):
        call = 'to=functions.describe<|channel|>commentary json<|message|>{"table_name": "singer"}'
        assert read(f"{head} {call}") == ONE
    assert read("<|channel|>final<|message|>It is done.<|return|>") == []
    assert read("<|channel|>commentary<|message|>I will look.<|end|>") == []


def test_a_call_that_is_cut_off_behind_a_recipient_in_the_role_is_an_error():
    call = ' to=functions.describe<|channel|>commentary json<|message|>{"table_name": "singer"}'
    for end in range(call.index("{") + 1, call.rindex('"')):
        (found,) = parse_calls(call[:end], TOOLS)
        assert found.error.code == "truncated_call", call[:end]


def test_a_misspelt_name_on_the_first_line_is_the_tool_that_it_is_near():
    for name in ("Describe", "functions.describe", "describe_table", "descrbe"):
        (found,) = parse_calls(f'{name}\n{{"table_name": "singer", "sql": null}}', TOOLS)
        assert (found.name, found.arguments) == ONE[0]
        assert found.repairs == ("renamed_tool", "dropped_null")
    assert read('Singers\n{"table_name": "singer"}') == []
    other = '{"name": "tables", "arguments": {}}'
    assert read(f"Describe\n{other}") == [("tables", {})]


def test_what_follows_an_observation_that_the_model_made_up_is_not_read():
    text = 'Action: describe\nAction Input: {"table_name": "singer"}\nObservation: 3 columns\n'
    assert read(text + "Action: tables\nAction Input: {}") == ONE
