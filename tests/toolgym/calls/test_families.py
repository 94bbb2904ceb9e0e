"""The table of call formats: what every family writes is read, cut off, not mixed up."""

import json
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.toolgym.calls.fixtures import BY_NAME, FIXTURES, ONE, TOOLS, TWO
from tests.toolgym.calls.no_calls import messages_without_calls
from toolgym.calls import FORMATS, formats_in, parse_calls

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
        own, other = BY_NAME[fixture.format], BY_NAME[told]
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
        own = BY_NAME[fixture.format].thinking or ("<think>", "</think>")
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
    *(
        "<|im_end|>",
        "[TOOL_CALLS]",
        "<tool_call:abc>",
        "</tool_call>",
        "<think>hm</think>",
        "{",
        "\u273f",
        "",
        " a ",
    ),
    *("\u00c4nderung, \u6771\u4eac \U0001f3b5", "```", "first line\n\nthird line\n", "a, b, c"),
)


def assert_is_read_whole_or_is_an_error(fixture, value):
    found = parse_calls(fixture.with_value(value), TOOLS)
    if BY_NAME[fixture.format].arguments == "tags":  # bare text escapes nothing
        found = [call for call in found if call.error is None] or None
    meant = [("describe", {"table_name": value}, None, ())]
    assert found is None or [(c.name, c.arguments, c.error, c.repairs) for c in found] == meant


@by_format
def test_whatever_a_value_holds_the_call_is_read_whole_or_is_an_error(entry):
    for fixture in fixtures_of(entry):
        for value in HOSTILE:
            assert_is_read_whole_or_is_an_error(fixture, value)


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


@pytest.mark.nightly
@by_format
@settings(max_examples=60)
@given(value=TEXTS | st.sampled_from(HOSTILE), data=st.data())
def test_a_message_with_any_value_is_read_whole_and_half_of_it_is_never_run(entry, value, data):
    fixture = data.draw(st.sampled_from(fixtures_of(entry)))
    assert_is_read_whole_or_is_an_error(fixture, value)
    if entry.arguments == "tags":
        assume(not any(sign in value for sign in "<>[]"))  # cut there, it says a shorter value
    text = fixture.with_value(value)
    half = text[: data.draw(st.integers(0, len(text)))]
    done = [(c.name, c.arguments) for c in parse_calls(half, TOOLS) if c.error is None]
    assert done in ([], [("describe", {"table_name": value})])


def test_two_thousand_messages_without_a_call_give_none():
    draw = random.Random("toolgym-no-calls")
    texts = list(messages_without_calls(draw, 2000))
    assert [text for text in texts if parse_calls(text[1], TOOLS)] == []


def test_hunyuans_marks_may_carry_a_word_of_the_tokenizer():
    text = fixtures_of(BY_NAME["hunyuan-3"])[0].two
    marks = ("tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value")
    for mark in marks:
        text = text.replace(f"<{mark}>", f"<{mark}:opensource>")
        text = text.replace(f"</{mark}>", f"</{mark}:opensource>")
    assert read(text) == TWO


def test_a_tag_with_a_word_of_the_tokenizer_inside_an_argument_stays_as_it_is():
    for sql in ("SELECT '<tool_call:abc>'", "SELECT '<think:abc>' || '</tool_call:abc>'"):
        for fixture in FIXTURES:
            if "query" in fixture.two and BY_NAME[fixture.format].arguments == "JSON":
                text = fixture.two.replace(json.dumps(TWO[1][1]["sql"]), json.dumps(sql))
                assert read(text) == [ONE[0], ("query", {**TWO[1][1], "sql": sql})], text


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
