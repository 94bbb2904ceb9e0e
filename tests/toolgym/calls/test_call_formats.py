"""Calls in prose, damaged calls, and what only looks like a call."""

import json

import pytest

from tests.toolgym.calls.toy_sql_tools import TOOLS, TYPED
from toolgym.calls import ToolCall, parse_calls, render_call

DESCRIBE = ToolCall("describe", {"table_name": "x"})
SAMPLE = ToolCall("sample", {"table_name": "y"})
D = '{"name": "describe", "arguments": {"table_name": "x"}}'
S = '{"name": "sample", "arguments": {"table_name": "y"}}'
TWO = {
    "hermes": f"<tool_call>\n{D}\n</tool_call>\n<tool_call>\n{S}\n</tool_call>",
    "hermes with prose": f"Look.\n<tool_call>{D}</tool_call> and <tool_call>{S}</tool_call> so",
    "bare": f"{D}\n{S}",
    "fenced": f"First:\n```json\n{D}\n```\nThen:\n```\n{S}\n```",
    "openai json": json.dumps(
        {"tool_calls": [{"function": json.loads(D)}, {"function": json.loads(S)}]}
    ),
    "python fenced": '```python\ndescribe(table_name="x")\nsample(table_name="y")  # rows\n```',
    "after thinking": f"<think>describe(5)</think>\n{D}\n{S}",
    "thought before a lone tag": f"hm {S}\n</think>\n{D}\n{S}</s>",
}


@pytest.mark.parametrize("text", TWO.values(), ids=TWO)
def test_two_calls_are_read_in_order_without_repairs(text):
    assert parse_calls(text, TOOLS) == [DESCRIBE, SAMPLE]


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 5",
        "describe(table_name) lists columns.\nquery(sql) runs SQL.",
        "First I use `describe`, then I write answer(5) when I know.",
        '{"name": "Alice", "age": 3}',
        "```sql\nSELECT 1\n```",
        "",
        "{" * 5000,
    ],
)
def test_prose_and_data_hold_no_call(text):
    assert parse_calls(text, TOOLS) == []


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "answer", "arguments": {"value": "Par',
        '{"name": "answer", "arguments": {"value"',
        "<function=answer><parameter=value>4",
        "<tool_call>answer\n<arg_key>value</arg_key>\n<arg_value>4",
        '[TOOL_CALLS]answer[ARGS]{"value": 4',
        "answer(4",
        "<tool_call>",
        "<tool_call>answer",
    ],
)
def test_a_call_that_is_cut_off_says_so_and_is_not_executed(text):
    (call,) = parse_calls(text, TOOLS)
    assert call.error is not None
    assert call.error.code == "truncated_call"
    assert "shorter" in call.error.hint


BROKEN = {
    f"<tool_call>{D}": ("missing_close_tag",),
    f"<tool_call>{D}}}</tool_call>": ("repaired_json",),
    f"<tool_call>{D[:-1]}</tool_call>": ("repaired_json",),
    f"<tool_call>{D[:-2]}": ("missing_close_tag", "repaired_json"),
    '{"name": "describe", "arguments": {table_name: "x"}}': ("repaired_json",),
    "<tool_call>{name: 'describe', arguments: {\"table_name\": 'x'}}</tool_call>": (
        "repaired_json",
    ),
    "<function=describe><parameter=table_name>x</parameter>": ("missing_close_tag",),
    '`describe("x")`': ("positional_arguments",),
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_call_is_mended_with_exactly_these_repairs(text):
    assert parse_calls(text, TOOLS) == [ToolCall("describe", {"table_name": "x"}, BROKEN[text])]


def test_line_breaks_and_single_quotes_in_sql_are_mended():
    for text, sql in [
        ('{"name": "query", "arguments": {"sql": "SELECT a\nFROM t"}}', "SELECT a\nFROM t"),
        ('query(sql="SELECT a\nFROM t")', "SELECT a\nFROM t"),
        (r"{'name': 'query', 'arguments': {'sql': 'LIKE \'\d%\''}}", r"LIKE '\d%'"),
    ]:
        assert parse_calls(text, TOOLS) == [ToolCall("query", {"sql": sql}, ("repaired_json",))]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call></tool_call>",
        '{"name": "describe", "arguments": {"table_name": "a", "table_name": "b"}}',
        "<function=query><parameter=sql>a</parameter><parameter=sql>b</parameter></function>",
        "<tool_call>describe(table_name=wards)</tool_call>",
        f"<tool_call>{D.replace('{', '{,', 1)}</tool_call>",
        '{"name": "query", "arguments": {"sql": "SELECT "a" FROM t"}}',
        '<tool_call>{"name":"answer","arguments":{"value":'
        + "[" * 3000
        + "]" * 3000
        + "}}</tool_call>",
    ],
)
def test_what_cannot_be_read_behind_a_mark_is_malformed(text):
    (call,) = parse_calls(text, TOOLS)
    assert call.error is not None
    assert call.error.code == "malformed_call"


def test_one_broken_call_does_not_take_its_neighbours_along():
    text = f"<tool_call>{D}</tool_call><tool_call>oops</tool_call><tool_call>{S}</tool_call>"
    first, broken, last = parse_calls(text, TOOLS)
    assert (first, last) == (DESCRIBE, SAMPLE)
    assert broken.error.code == "malformed_call"


def test_bare_text_takes_the_type_of_its_argument():
    xml = "<function=turn><parameter=dial>2</parameter><parameter=note>\n7\n</parameter></function>"
    assert parse_calls(xml, TYPED) == [ToolCall("turn", {"dial": 2, "note": "7"})]
    glm = '<tool_call>join<arg_key>parts</arg_key><arg_value>["a", "b"]</arg_value></tool_call>'
    assert parse_calls(glm, TYPED) == [ToolCall("join", {"parts": ["a", "b"]})]
    assert parse_calls("<tool_call>look\n</tool_call>", TYPED) == [ToolCall("look", {})]
    for text, value in [("42", 42), ("Paris", "Paris"), ("[1, 2]", [1, 2]), ("true", True)]:
        xml = f"<function=answer><parameter=value>{text}</parameter></function>"
        assert parse_calls(xml, TOOLS) == [ToolCall("answer", {"value": value})]


MEGABYTE = {
    "tags": lambda: "<tool_call>" * 90_000,
    "braces": lambda: "{" * 1_000_000,
    "brace lines": lambda: "{\n" * 500_000,
    "quotes in a call": lambda: '<tool_call>{"name": "' + '"' * 1_000_000,
    "parameters": lambda: "<function=a><parameter=b>" * 40_000,
    "open brackets": lambda: "describe(\n" * 100_000,
    "fences": lambda: "```" * 300_000,
    "backslashes": lambda: '<tool_call>{"a' + "\\" * 1_000_000,
    "deep": lambda: '<tool_call>{"name":"answer","arguments":{"value":' + "[" * 500_000,
    "keys": lambda: "<tool_call>describe" + "<arg_key>a</arg_key><arg_value>" * 30_000,
    "texts side by side": lambda: '<tool_call>{"name": "a", "arguments": ' + '"a" ' * 250_000,
    "one broken object": lambda: '<tool_call>{"name": "a", "x": 1 - ' + "1 " * 500_000 + "}",
}


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(name, marks=pytest.mark.integration if name == "brace lines" else ())
        for name in MEGABYTE
    ],
)
def test_a_megabyte_of_noise_is_read_at_once_and_executes_nothing(noise):
    """Were any pattern quadratic, this test would run for hours."""
    assert all(call.error is not None for call in parse_calls(MEGABYTE[noise](), TOOLS))


QUOTED = {
    "<tool_call>query<arg_key>sql</arg_key><arg_value>{}</arg_value></tool_call>": (
        "SELECT 'x</tool_call>y'",
    ),
    "<function=query><parameter=sql>{}</parameter></function>": (
        "SELECT '</parameter>' FROM t",
        "SELECT '<think>a</think>' FROM t",
        "SELECT '[TOOL_CALLS]'",
    ),
    "query('''{}''')": ('SELECT ")"', "SELECT\n1", "SELECT '</think>' FROM t"),
}


@pytest.mark.parametrize(
    ("text", "sql"),
    [(form.format(sql), sql) for form, all_sql in QUOTED.items() for sql in all_sql],
)
def test_a_tag_in_quotes_inside_bare_text_is_a_part_of_the_value(text, sql):
    assert [(c.arguments, c.error) for c in parse_calls(text, TOOLS)] == [({"sql": sql}, None)]


@pytest.mark.parametrize(
    "text",
    [
        "<function=query><parameter=sql>a<parameter=b>c</parameter></function>",
        "<function=query><parameter=sql>a</parameter></function>"
        '<tool_call>{"name": "answer", "arguments": {"value": 5}}</tool_call></parameter>',
        "<tool_call>query<arg_key>sql</arg_key><arg_value>a<arg_value>b</arg_value></tool_call>",
        '<tool_call>{"name": "query", "arguments": {"sql": "SELECT "<tool_call>" x"}}</tool_call>',
    ],
)
def test_what_can_be_read_in_two_ways_is_an_error_and_no_guess(text):
    calls = parse_calls(text, TOOLS)
    assert calls
    assert {call.error.code for call in calls if call.error} == {"malformed_call"}
    assert all(call.error for call in calls)


def test_half_a_call_in_a_thought_does_not_hide_the_call_behind_it():
    half = '{"name": "answer", "arguments": {"value": "x'
    for thought in (
        f"<tool_call>{half}",
        half,
        "<function=query><parameter=sql>SELECT",
        "query('a",
    ):
        text = f"Hm.\n{thought}</think>\n{D}"
        assert parse_calls(text, TOOLS) == [DESCRIBE]


@pytest.mark.parametrize("parsing", ["lenient", "strict"])
def test_no_error_is_longer_than_a_page_however_long_the_call(parsing):
    long = "x\x00é'\U0001f600" * 1_000
    for text in (
        render_call(long, {"x": 1}),
        render_call("describe", {long: "a", f"{long}y": "b"}),
        render_call("describe", {f"k{n}": "b" for n in range(2_000)}),
        render_call("turn", {"dial": long, "to": [long]}),
        f"<function={long}><parameter={long}>x</parameter></function>",
        f"describe({long}=5)",
        f"<tool_call>{long}</tool_call>",
    ):
        for tools in (TOOLS, TYPED):
            for call in parse_calls(text, tools, parsing=parsing):
                assert len(str(call.error)) < 4_000
