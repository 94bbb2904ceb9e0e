"""The table of call formats: what every family writes is read, cut off, not mixed up.

The laws hold for a value that is made of the marks of all formats and of whole calls. A format of
bare text has no escape, so there a value may be an error.
"""

import json
import random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.toolgym.calls.fixtures import BY_NAME, FIXTURES, ONE, TOOLS
from tests.toolgym.calls.no_calls import messages_without_calls
from toolgym.calls import FORMATS, formats_in, parse_calls, render_call
from toolgym.calls.find import without_last_tokens

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


@by_format
def test_every_message_of_a_format_is_read_without_error_or_repair(entry):
    wrong, messages = {}, messages_of(entry)
    assert messages
    for name, (text, calls) in messages.items():
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


def test_a_call_inside_of_a_result_that_the_model_made_up_is_never_read():
    pairs = {entry.result for entry in FORMATS if entry.result and entry.result[1]}
    assert len(pairs) > 8
    for opening, closing in pairs:
        for fixture in FIXTURES:
            assert read(f"It says\n{opening}\n{fixture.one}\n{closing}\nSo I am done.") == []


PIECES = st.sampled_from(
    [
        *sorted({mark for each in FORMATS for mark in (*each.marks, *each.closes, *each.frame)}),
        *(fixture.one for fixture in FIXTURES),
        *("<think>", "</think>", "<|im_end|>", "</s>", "```json\n", '"""', "it's", "SELECT '"),
        *("C:\\new", "null", "42", "<tool_call:abc>", "\u2028", *"'\"\\\n{}[]()`,:= é"),
    ]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
VALUES = st.lists(PIECES | TEXTS, max_size=4).map("".join)
ANY = st.sampled_from(FIXTURES)
in_any_format = given(fixture=ANY, value=VALUES)


def has_no_escapes(fixture):
    """Whether a format writes bare text, where one line break at either end is layout."""
    return BY_NAME[fixture.format].arguments in ("tags", "braces")


def is_meant(call, fixture, value):
    inner = value.removeprefix("\n").removesuffix("\n") if has_no_escapes(fixture) else value
    return call.name == "describe" and call.arguments in (
        {"table_name": value},
        {"table_name": inner},
    )


@settings(max_examples=200)
@in_any_format
def test_whatever_a_value_holds_its_call_is_read_whole_or_is_an_error(fixture, value):
    found = parse_calls(fixture.with_value(value), TOOLS)
    assert found, "silently nothing"
    done = [call for call in found if call.error is None]
    if done or not has_no_escapes(fixture):
        (call,) = done
        assert is_meant(call, fixture, value)
        assert call.repairs == ()


@settings(max_examples=200)
@in_any_format
def test_a_message_cut_off_at_any_place_is_its_call_or_nothing_or_an_error(fixture, value):
    assume(not any(tag in value for tag in ("</think>", "[/THINK]")))  # this ends a thought
    if has_no_escapes(fixture):
        assume(not any(sign in value for sign in "<>[]"))  # cut there, it says a shorter value
    draw = random.Random(value)
    text = draw.choice(("", "I look.\n", "<think>Hm.</think>\n")) + fixture.with_value(value)
    for call in parse_calls(text[: draw.randint(0, len(text))], TOOLS):
        assert call.error or is_meant(call, fixture, value)


def test_a_name_on_a_line_and_its_arguments_below_may_follow_a_sentence():
    inner = '<tool_call>{"name": "describe", "arguments": {"table_name": "singer"}}</tool_call>'
    text = f"I look.\ndescribe\n{json.dumps({'table_name': inner})}"
    (call,) = parse_calls(text, TOOLS)
    assert (call.name, call.arguments) == ("describe", {"table_name": inner})
    for cut in range(len("I look.\ndescribe\n{"), len(text) - 1):
        assert all(call.error for call in parse_calls(text[:cut], TOOLS)), text[:cut]
    assert parse_calls('The word is\nsinger\n{"table_name": "a"}', TOOLS) == []


@settings(max_examples=200)
@in_any_format
def test_a_call_inside_a_thought_is_never_run(fixture, value):
    own = BY_NAME[fixture.format].thinking or ("<think>", "</think>")
    marks = ("think", "THINK", *own)
    assume(not any(mark in value for mark in marks))
    text = fixture.with_value(value)
    for opening, closing in {own, ("<think>", "</think>")}:
        for thought in (f"{opening}{text}{closing}\nI do not know.", f"{opening}\nSo:\n{text}"):
            assert all(call.error for call in parse_calls(thought, TOOLS)), thought
    lone = f"Hm.\n{without_last_tokens(text)}\n</think>\nDone."
    assert all(call.error for call in parse_calls(lone, TOOLS))


SURROGATES = st.text(st.characters(categories=["Cs"]) | st.sampled_from("aé\n"), max_size=4)


@settings(max_examples=150)
@given(fixture=ANY, name=SURROGATES, value=SURROGATES)
@example(fixture=FIXTURES[0], name="", value="\ud83d")
def test_half_a_surrogate_pair_anywhere_stops_nothing(fixture, name, value):
    text = fixture.with_value(value).replace("describe", f"describe{name}", 1)
    for parsing in ("lenient", "strict"):
        for call in parse_calls(value + text, TOOLS, parsing=parsing):
            assert f"{call.error} {render_call(call)}".encode()


@pytest.mark.nightly
@pytest.mark.parametrize(
    "law",
    [
        test_whatever_a_value_holds_its_call_is_read_whole_or_is_an_error,
        test_a_message_cut_off_at_any_place_is_its_call_or_nothing_or_an_error,
        test_a_call_inside_a_thought_is_never_run,
    ],
)
def test_the_laws_hold_in_thousands_of_examples(law):
    settings(max_examples=5_000)(in_any_format(law.hypothesis.inner_test))()


def test_two_thousand_messages_without_a_call_give_none():
    draw = random.Random("toolgym-no-calls")
    texts = list(messages_without_calls(draw, 2000))
    assert [text for text in texts if parse_calls(text[1], TOOLS)] == []


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
