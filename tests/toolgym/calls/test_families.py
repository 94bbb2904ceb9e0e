"""The table of call formats: what every family writes is read, written, cut off, not mixed up."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolgym.calls.fixtures import FIXTURES, NONE, ONE, TOOLS, TWO
from tests.toolgym.calls.no_calls import messages_without_calls
from toolgym.calls import FORMATS, format_named, formats_in, parse_calls, render_call, render_calls

FIRST_LINE = {"glm-4", "functionary-v2", "functionary-v3.2"}
"""Formats whose first call stands without any mark at the very start of a message."""
by_format = pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.name)


def read(text, tools=TOOLS):
    return [(call.name, call.arguments) for call in parse_calls(text, tools)]


def fixtures_of(entry):
    return [fixture for fixture in FIXTURES if fixture.format == entry.name]


def messages_of(entry):
    """The messages of a format by their names, each with its calls."""
    return {
        f"{fixture.name}-{kind}": message
        for fixture in fixtures_of(entry)
        for kind, message in fixture.messages().items()
    }


def test_there_are_337_messages_of_65_formats_and_of_forty_five_families():
    families = {family for fixture in FIXTURES for family in fixture.families}
    assert len(FORMATS) >= 65
    assert all(fixtures_of(entry) for entry in FORMATS)
    assert sum(len(messages_of(entry)) for entry in FORMATS) >= 337
    assert len(families) >= 45


@by_format
def test_every_message_of_a_format_is_read_without_error_or_repair(entry):
    wrong = {}
    for name, (text, calls) in messages_of(entry).items():
        found = parse_calls(text, TOOLS)
        meant = [(*call, None, ()) for call in calls]
        if [(call.name, call.arguments, call.error, call.repairs) for call in found] != meant:
            wrong[name] = text, found
    assert wrong == {}


def test_a_format_is_told_by_its_own_name_or_by_another_with_the_same_mark():
    for fixture in FIXTURES:
        (told,) = set(formats_in(fixture.one, TOOLS))
        own, other = format_named(fixture.format), format_named(told)
        shared = set(own.marks) & set(other.marks)
        assert told == fixture.format or shared or not own.marks, fixture.name


def assert_no_half_is_another_call(text, calls):
    for end in range(len(text)):
        done = [c for c in parse_calls(text[:end], TOOLS) if c.error is None]
        assert [(c.name, c.arguments) for c in done] == calls[: len(done)], text[:end]


@by_format
def test_half_a_message_never_becomes_another_call(entry):
    """Whatever place a message is cut off at, a call is the whole one, or it is not executed."""
    for fixture in fixtures_of(entry):
        messages = fixture.messages()
        assert_no_half_is_another_call(*messages.get("two", messages["one"]))


@pytest.mark.nightly
@by_format
def test_half_of_any_message_never_becomes_another_call(entry):
    for message in messages_of(entry).values():
        assert_no_half_is_another_call(*message)


def test_a_call_inside_of_thinking_is_never_read():
    for fixture in FIXTURES:
        own = format_named(fixture.format).thinking or ("<think>", "</think>")
        for opening, closing in {own, ("<think>", "</think>")}:
            assert read(f"{opening}\nI could write\n{fixture.one}") == [], fixture.name
            assert read(f"{opening}{fixture.one}{closing}\nI do not know.") == [], fixture.name


def test_a_call_inside_of_a_result_that_the_model_made_up_is_never_read():
    pairs = {entry.result for entry in FORMATS if entry.result and entry.result[1]}
    assert len(pairs) > 8
    for opening, closing in pairs:
        for fixture in FIXTURES:
            assert read(f"It says\n{opening}\n{fixture.one}\n{closing}\nSo I am done.") == []


HOSTILE = (
    *("SELECT 'a'\nFROM t", 'say "x"', "it's 5 o'clock", "a < b and c > d", "C:\\new\\table", "42"),
    *("{curly} [square] (round)", '{"name": "query", "arguments": {"sql": "SELECT 1"}}', "null"),
    *("<|im_end|>", "[TOOL_CALLS]", "</tool_call>", "<think>hm</think>", "{", "\u273f", "", " a "),
    *("\u00c4nderung, \u6771\u4eac \U0001f3b5", "```", "first line\n\nthird line\n", "a, b, c"),
)


def assert_is_read_as_it_was_written(entry, calls):
    sql, text = calls[0][1]["sql"], render_calls(calls, format=entry.name)
    for whole in (text, text + (entry.stop[0] if entry.stop else "")):
        found = parse_calls(whole, TOOLS)
        if [(c.name, c.arguments) for c in found] == calls:
            assert all(c.error is None and not c.repairs for c in found), whole
        else:  # bare text escapes nothing: what holds tags, or blanks at its ends, may be lost
            assert entry.arguments in ("tags", "braces"), whole
            assert any(sign in sql for sign in "<>[]\u273f\n`") or sql != sql.strip() or not sql


@by_format
def test_what_is_written_in_a_format_reads_back_equal_or_as_an_error(entry):
    before = "" if entry.name in FIRST_LINE else "I look at it.\n"
    for calls in (ONE, NONE, TWO if entry.parallel else ONE):
        text = render_calls(calls, format=entry.name)
        assert read(text) == calls
        assert read(before + text + (entry.stop[0] if entry.stop else "")) == calls
    for number, sql in enumerate(HOSTILE):
        calls = [("query", {"sql": sql, "limit": number - 9})]
        assert_is_read_as_it_was_written(entry, [*calls, *(ONE if entry.parallel else ())])


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


@pytest.mark.nightly
@by_format
@settings(max_examples=60)
@given(sql=TEXTS | st.sampled_from(HOSTILE), limit=st.integers(-(10**9), 10**9), two=st.booleans())
def test_whatever_is_written_in_a_format_reads_back_equal_or_as_an_error(entry, sql, limit, two):
    calls = [("query", {"sql": sql, "limit": limit})]
    assert_is_read_as_it_was_written(entry, [*calls, *(ONE if two and entry.parallel else ())])


def test_a_format_without_parallel_calls_or_of_another_name_says_so():
    with pytest.raises(ValueError, match="a message in the format harmony holds one call, got 2"):
        render_calls(TWO, format="harmony")
    with pytest.raises(ValueError, match="there is no call format 'qwen'; there are hermes, "):
        render_call("tables", format="qwen")


def test_two_thousand_messages_without_a_call_give_none():
    draw = random.Random("toolgym-no-calls")
    texts = list(messages_without_calls(draw, 2000))
    assert [text for text in texts if parse_calls(text[1], TOOLS)] == []


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
