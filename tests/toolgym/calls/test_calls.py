"""The public face of the parser: what goes in, what comes out, and the laws between the two."""

import json
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolgym.calls.toy_sql_tools import TOOLS, TYPED
from toolgym.calls import REPAIRS, ToolCall, parse_calls, render_call

DESCRIBE = ToolCall("describe", {"table_name": "singer"})
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
VALUES = st.one_of(
    TEXTS,
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.lists(TEXTS | st.integers(0, 99), max_size=4),
)


def only_sql(text):
    return {"sql": text} if text.startswith("SELECT") else None


BARE_QUERY = replace(TOOLS["query"], bare=only_sql)


@pytest.mark.parametrize("code", REPAIRS)
def test_each_repair_of_the_table_is_made_in_its_own_example(code):
    repair = REPAIRS[code]
    name, arguments = repair.after
    tools = {**TOOLS, "query": BARE_QUERY} if code == "bare_argument" else TOOLS
    assert parse_calls(repair.before, tools) == [ToolCall(name, arguments, (code,))]


@pytest.mark.parametrize("code", REPAIRS)
def test_strict_refuses_what_lenient_repairs_except_a_fence(code):
    calls = parse_calls(REPAIRS[code].before, TOOLS, parsing="strict")
    assert code == "stripped_fence" or all(call.error for call in calls)


def test_a_bare_argument_is_a_call_only_without_other_calls_and_in_strict_parsing_if_hidden():
    tools = {**TOOLS, "query": BARE_QUERY}
    call = '{"name": "describe", "arguments": {"table_name": "singer"}}'
    assert parse_calls(f"SELECT 1\n{call}", tools) == [DESCRIBE]
    assert parse_calls("Let me SELECT 1", tools) == []
    assert parse_calls("SELECT 1", tools, parsing="strict") == []
    assert parse_calls("SELECT '\ud800'", tools)[0].arguments == {"sql": "SELECT '\ufffd'"}
    hidden = {"query": replace(BARE_QUERY, hidden=True)}
    for parsing in ("lenient", "strict"):
        assert parse_calls("SELECT 1", hidden, parsing=parsing) == [
            ToolCall("query", {"sql": "SELECT 1"})
        ]


@given(st.sampled_from(["answer", "query", "describe"]), VALUES)
def test_a_rendered_call_parses_back_without_repairs(name, value):
    argument = {"answer": "value", "query": "sql", "describe": "table_name"}[name]
    value = value if name == "answer" else f"SELECT {value}"
    call = ToolCall(name, {argument: value})
    for parsing in ("lenient", "strict"):
        assert parse_calls(render_call(call), TOOLS, parsing=parsing) == [call]


@given(VALUES, st.sampled_from(["sql", "limit", "table name", "arguments"]), st.booleans())
def test_an_extra_null_changes_no_result(value, key, first):
    given_arguments = {key: None, "value": value} if first else {"value": value, key: None}
    (call,) = parse_calls(render_call("answer", given_arguments), TOOLS)
    assert (call.name, call.arguments, call.error) == ("answer", {"value": value}, None)
    assert call.repairs == ("dropped_null",)


@pytest.mark.parametrize(
    "action",
    [
        5,
        b"\xff",
        object(),
        [[[]]],
    ],
    ids=lambda action: repr(action).partition(" at 0x")[0],
)
def test_what_can_hold_no_call_is_a_bad_action(action):
    calls = parse_calls(action, TOOLS)
    assert [(call.name, call.error.code) for call in calls] == [("", "bad_action")]


def test_an_empty_list_and_prose_hold_no_call():
    assert parse_calls([], TOOLS) == []
    assert parse_calls("The answer is 5", TOOLS) == []


def test_cycles_and_endless_depth_are_malformed_calls():
    looped: dict = {"name": "describe"}
    looped["arguments"] = looped
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    wide: list = []
    for _ in range(60):
        wide = [wide, wide]
    for arguments in (looped, deep, wide, {"table_name": object()}, {"table_name": 10**400}):
        (call,) = parse_calls({"name": "describe", "arguments": arguments}, TOOLS)
        assert call.error is not None
        assert call.error.code == "malformed_call"


OPENAI = {
    "type": "function",
    "function": {"name": "describe", "arguments": '{"table_name": "singer"}'},
}


@pytest.mark.parametrize(
    "action",
    [
        {"name": "describe", "arguments": {"table_name": "singer"}},
        [{"name": "describe", "arguments": {"table_name": "singer"}}],
        DESCRIBE,
        OPENAI,
        {"role": "assistant", "content": None, "tool_calls": [OPENAI]},
        {"role": "assistant", "content": [{"type": "text", "text": render_call(DESCRIBE)}]},
        SimpleNamespace(
            content=None,
            tool_calls=[
                SimpleNamespace(
                    id="a",
                    function=SimpleNamespace(name="describe", arguments='{"table_name": "singer"}'),
                )
            ],
        ),
    ],
)
def test_every_parsed_form_of_one_call_means_the_same(action):
    assert parse_calls(action, TOOLS) == [DESCRIBE]
    assert parse_calls(action, TOOLS, parsing="strict") == [DESCRIBE]


def test_openai_arguments_that_are_cut_off_are_not_executed():
    action = {"function": {"name": "answer", "arguments": '{"value": "Par'}}
    assert parse_calls(action, TOOLS)[0].error.code == "truncated_call"


def test_tools_may_be_given_as_a_mapping_a_list_or_as_schemas():
    text = render_call(DESCRIBE)
    schemas = [spec.schema() for spec in TOOLS.values()]
    for tools in (TOOLS, list(TOOLS.values()), schemas):
        assert parse_calls(text, tools) == [DESCRIBE]


def test_at_most_32_calls_are_read_from_one_action():
    assert len(parse_calls(render_call(DESCRIBE) * 50, TOOLS)) == 32
    assert len(parse_calls([DESCRIBE] * 50, TOOLS)) == 32
    assert parse_calls(f"{render_call(DESCRIBE) * 50}</think>", TOOLS) == []


def test_every_error_has_a_whole_call_as_its_example():
    texts = [render_call("nope"), render_call("turn"), render_call("join", {"parts": 5})]
    texts += ["<tool_call>", "<tool_call>x</tool_call>", render_call("turn", {"a": 1, "b": 2})]
    for text in texts:
        (call,) = parse_calls(text, TYPED)
        (example,) = parse_calls(json.dumps(call.error.example), TYPED)
        assert example.error is None, text


def test_strict_parsing_takes_no_bare_object_that_lenient_has_read():
    text = json.dumps({"name": "query", "arguments": {"sql": "SELECT 8"}})
    assert len(parse_calls(text, TOOLS)) == 1
    assert parse_calls(text, TOOLS, parsing="strict") == []


@pytest.mark.parametrize(
    "value",
    ["1or 2", "0xfor x", "1.5if x else 2", "1.or 2", r"'\d'", r"'\400'", r"b'\d'", "f'{1or 2}'"],
)
def test_python_source_in_a_call_shows_no_warning(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in (f"answer({value})", f"<tool_call>{{'name': 'x', 'arguments': {value}}}"):
            parse_calls(text, TOOLS)


def test_a_number_of_thousands_of_digits_is_a_malformed_call():
    for digits in (400, 5000):
        arguments = f'{{"value": {"9" * digits}}}'
        for text in (
            f'<tool_call>{{"name": "answer", "arguments": {arguments}}}</tool_call>',
            f"<tool_call>{{'name': 'answer', 'arguments': {arguments}}}</tool_call>",
            f"<tool_call>{json.dumps({'name': 'answer', 'arguments': arguments})}</tool_call>",
        ):
            (call,) = parse_calls(text, TOOLS)
            assert call.error.code == "malformed_call"
