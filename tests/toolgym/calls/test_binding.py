"""From a name and arguments to a call that fits, or to an error: nothing is guessed twice."""

import datetime
import json
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, Field, create_model

from tests.toolgym.calls.toy_sql_tools import PLAIN, TOOLS, TYPED
from toolgym.calls import ToolCall, bind_call, parse_calls
from toolgym.tools import ToolSpec, specs_from

X = {"table_name": "x"}


def spec(name, **fields):
    return ToolSpec(name, "d", create_model(name, __config__=ConfigDict(extra="forbid"), **fields))


@pytest.mark.parametrize(
    "name",
    [
        "Describe",
        "describe_table",
        "mcp__db__describe",
        "descrbe",
    ],
)
def test_a_name_near_a_tool_is_matched(name):
    assert bind_call(name, X, TOOLS) == ToolCall("describe", X, ("renamed_tool",))


@pytest.mark.parametrize("name", ["ANSWER", "finalAnswer", "Submit"])
def test_the_terminal_tool_is_matched_by_case_separators_and_alias(name):
    assert bind_call(name, {"value": 5}, TOOLS) == ToolCall(
        "answer", {"value": 5}, ("renamed_tool",)
    )


@pytest.mark.parametrize("name", ["answr", "functions.answer", "submit_it"])
def test_nothing_is_answered_by_a_guess(name):
    call = bind_call(name, {"value": 5}, TOOLS)
    assert call.error is not None
    assert call.error.code == "unknown_tool"


@pytest.mark.parametrize("name", ["query_sample", "x" * 5000, "___"])
def test_a_name_far_from_all_tools_or_near_two_is_unknown(name):
    call = bind_call(name, X, TOOLS)
    assert call.error is not None
    assert call.error.code == "unknown_tool"
    assert len(call.name) <= 100


@pytest.mark.parametrize(
    ("written", "repairs"),
    [
        ({"table": "x"}, ("renamed_key",)),
        ({"tableName": "x", "limit": 5}, ("renamed_key", "dropped_argument")),
        ({"table_name": None, "table": "x"}, ("dropped_null", "renamed_key")),
        ({"table_name": "x", "table": "y"}, ("dropped_argument",)),
        ({"arguments": '{"table_name": "x"}'}, ("decoded_arguments", "unwrapped_arguments")),
        ({"input": {"table_name": "x"}, "sql": None}, ("unwrapped_arguments", "dropped_null")),
        ('{"table_name": "x"}', ("decoded_arguments",)),
        (["x", None], ("positional_arguments", "dropped_null")),
        ("x", ("positional_arguments",)),
        ({"table_name": {"name": "x"}}, ("coerced_value",)),
    ],
)
def test_arguments_are_brought_into_shape(written, repairs):
    assert bind_call("describe", written, TOOLS) == ToolCall("describe", X, repairs)


@pytest.mark.parametrize(
    ("name", "written", "code"),
    [
        ("describe", {}, "missing_argument"),
        ("describe", {"table_name": None}, "missing_argument"),
        ("describe", {"a": "x", "b": "y"}, "ambiguous_argument"),
        ("describe", {"tableName": "x", "Table_Name": "y"}, "ambiguous_argument"),
        ("describe", {"table_name": {"a": "x", "b": "y"}}, "invalid_argument"),
        ("describe", ["x", "y"], "invalid_argument"),
        ("answer", {"sql": "SELECT 1", "value": None}, "missing_argument"),
        ("answer", {"value": float("inf")}, "invalid_argument"),
        ("answer", {"value": {"guess": 5}}, "invalid_argument"),
    ],
)
def test_what_could_mean_two_things_or_nothing_is_an_error(name, written, code):
    call = bind_call(name, written, TOOLS)
    assert call.error is not None
    assert call.error.code == code


@pytest.mark.parametrize("value", [5, -1.5, True, "5", "", [[1, "a"], []]])
def test_an_answer_keeps_the_type_it_was_given(value):
    call = bind_call("answer", {"value": value}, TOOLS)
    assert call == ToolCall("answer", {"value": value})
    assert type(call.arguments["value"]) is type(value)


@pytest.mark.parametrize(
    ("name", "written", "arguments"),
    [
        ("turn", {"dial": "7"}, {"dial": 7}),
        ("turn", {"dial": 7.0}, {"dial": 7}),
        ("turn", {"dial": 1, "note": 5}, {"dial": 1, "note": "5"}),
        ("join", {"parts": '["a", "b"]'}, {"parts": ["a", "b"]}),
        ("join", {"parts": [], "sep": True}, {"parts": [], "sep": "true"}),
    ],
)
def test_values_are_converted_to_the_declared_type(name, written, arguments):
    assert bind_call(name, written, TYPED) == ToolCall(name, arguments, ("coerced_value",))
    assert bind_call(name, written, TYPED, "strict").error is not None


def test_a_null_for_a_default_is_dropped_and_a_wanted_null_is_kept():
    assert bind_call("turn", {"dial": 1, "to": None}, TYPED) == ToolCall(
        "turn", {"dial": 1}, ("dropped_null",)
    )
    kept = ToolCall("turn", {"dial": 1, "note": None})
    assert bind_call("turn", {"dial": 1, "note": None}, TYPED) == kept
    assert bind_call("turn", {"dial": 1, "note": None}, TYPED, "strict") == kept


@pytest.mark.parametrize(
    "written",
    [
        "```sql\nSELECT 1\n```",
        "```sql SELECT 1```",
        "'SELECT 1'",
        "````sql\nSELECT 1\n````",
    ],
)
def test_fences_and_quotes_around_code_are_stripped(written):
    call = bind_call("query", {"sql": written}, TOOLS)
    assert call == ToolCall("query", {"sql": "SELECT 1"}, ("stripped_fence",))


@pytest.mark.parametrize(
    "sql",
    [
        '"a" || "b"',
        "SELECT 1;",
        " SELECT 1 ",
        "``` a ``` b ```",
        "'it''s a'",
        "",
    ],
)
def test_sql_that_only_looks_wrapped_is_left_alone(sql):
    assert bind_call("query", {"sql": sql}, TOOLS) == ToolCall("query", {"sql": sql})
    plain = {"table_name": "```x```"}  # no code
    assert bind_call("describe", plain, TOOLS) == ToolCall("describe", plain)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(["dial", "to", "note", "Dial", "dials", "parts", "sep", "args", "x"])


@given(st.sampled_from(["turn", "join", "look", "Turn"]), st.dictionaries(KEYS, JSON, max_size=4))
def test_strict_accepts_a_subset_of_arguments_with_equal_results(name, arguments):
    strict = bind_call(name, arguments, TYPED, "strict")
    assert strict.error is not None or strict == bind_call(name, arguments, TYPED)


def test_json_forms_of_richer_types_are_no_repair():
    order, share = (Literal["asc", "desc"], "asc"), (Annotated[float, Field(le=1)], 0.5)
    tools = [spec("when", day=(datetime.date, ...), order=order, share=share)]
    day = datetime.date(2024, 2, 29)
    for parsing in ("lenient", "strict"):
        made = bind_call("when", {"day": "2024-02-29", "share": 1}, tools, parsing)
        assert made == ToolCall("when", {"day": day, "share": 1.0})
    wrong = bind_call("when", {"day": "2024-02-29", "order": "up"}, tools)
    assert "'asc' or 'desc'" in wrong.error.message
    assert bind_call("when", {"day": day, "share": 2}, tools).error.code == "invalid_argument"


@pytest.mark.parametrize(
    "name", ["_id", "__class__", "model_config", "schema", "class", "max-rows", ""]
)
def test_a_schema_may_call_its_arguments_anything(name):
    properties = {name: {"type": "string"}, "limit": {"type": "integer", "default": 3}}
    parameters = {"type": "object", "properties": properties, "required": [name]}
    tools = specs_from([{"name": "find", "parameters": parameters}])
    for parsing in ("lenient", "strict"):
        call = bind_call("find", {name: "a", "limit": 5}, tools, parsing)
        assert call == ToolCall("find", {name: "a", "limit": 5})
    assert f"'{name}'" in bind_call("find", {}, tools).error.message


def encoded(value, times):
    """A value as JSON text, encoded several times in a row."""
    for _ in range(times):
        value = json.dumps(value)
    return value


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), st.integers() | st.text(max_size=8)),
    st.integers(1, 4),
)
def test_arguments_encoded_several_times_bind_as_if_encoded_once(options, times):
    arguments = {"steps": [options], "ratio": 0.25}
    clean = bind_call("plan", arguments, PLAIN)
    wanted = ToolCall("plan", clean.arguments, ("decoded_arguments",))
    text = encoded(arguments, times)
    assert bind_call("plan", text, PLAIN) == wanted

    call = {"name": "plan", "arguments": text}
    assert parse_calls(f"<tool_call>{json.dumps(call)}</tool_call>", PLAIN) == [wanted]
    # One layer is the form of OpenAI's API, and no repair.
    parsed = {"tool_calls": [{"type": "function", "function": call}]}
    assert parse_calls(parsed, PLAIN) == [clean if times == 1 else wanted]

    values = {"steps": encoded([options], times), "ratio": encoded(0.25, times)}
    assert bind_call("plan", values, PLAIN) == ToolCall("plan", clean.arguments, ("coerced_value",))


@given(st.text(max_size=8) | st.integers(), st.integers(1, 4))
def test_a_text_that_looks_like_json_is_kept_where_the_schema_says_text(value, times):
    text = encoded({"value": value}, times)
    assert bind_call("answer", {"value": text}, TOOLS) == ToolCall("answer", {"value": text})


@pytest.mark.parametrize(
    "text", ['"' + "\\" * 1_000_000, '\\"' * 500_000, encoded('"\\' * 60_000, 4), '["' * 500_000]
)
def test_a_megabyte_of_nested_escapes_is_an_error_and_no_crash(text):
    for arguments in (text, {"dial": text}):
        assert bind_call("turn", arguments, TYPED).error is not None
