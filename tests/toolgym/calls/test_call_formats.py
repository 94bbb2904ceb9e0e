"""Each format that a model family writes, whole, damaged, and cut off at every place."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import fuzzing
from tests.toolgym.calls.toy_sql_tools import TOOLS, TYPED
from toolgym.calls import ToolCall, parse_calls, render_call

WRITERS = {f"writer {place}": write for place, write in enumerate(fuzzing.WRITERS)}
DESCRIBE = ToolCall("describe", {"table_name": "x"})
SAMPLE = ToolCall("sample", {"table_name": "y"})
D = '{"name": "describe", "arguments": {"table_name": "x"}}'
S = '{"name": "sample", "arguments": {"table_name": "y"}}'
TWO = {
    "hermes": f"<tool_call>\n{D}\n</tool_call>\n<tool_call>\n{S}\n</tool_call>",
    "hermes with prose": f"Look.\n<tool_call>{D}</tool_call> and <tool_call>{S}</tool_call> so",
    "xml": "<tool_call>\n<function=describe>\n<parameter=table_name>\nx\n</parameter>\n"
    "</function>\n</tool_call>\n<function=sample><parameter=table_name>y</parameter></function>",
    "xml with json": '<function=describe>{"table_name": "x"}</function>'
    '<function=sample>{"table_name": "y"}</function>',
    "glm": "<tool_call>describe\n<arg_key>table_name</arg_key>\n<arg_value>x</arg_value>\n"
    "</tool_call><tool_call>sample<arg_key>table_name</arg_key><arg_value>y</arg_value></tool_call>",
    "mistral list": f"[TOOL_CALLS][{D}, {S}]",
    "mistral names": '[TOOL_CALLS]describe[ARGS]{"table_name": "x"}'
    '[TOOL_CALLS]sample[ARGS]{"table_name": "y"}',
    "llama": f"<|python_tag|>{D.replace('arguments', 'parameters')}; {S}<|eom_id|>",
    "llama python": '<|python_tag|>describe(table_name="x")\nsample(table_name="y")',
    "bare": f"{D}\n{S}",
    "bare list": f"[{D}, {S}]",
    "fenced": f"First:\n```json\n{D}\n```\nThen:\n```\n{S}\n```",
    "openai json": json.dumps(
        {"tool_calls": [{"function": json.loads(D)}, {"function": json.loads(S)}]}
    ),
    "python": "describe(table_name='x')\nsample(table_name=\"y\")",
    "python list": '[describe(table_name="x"), sample(table_name="y")]',
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
        "I would use describe (see below)",
        'describe("singer") returns the columns.',
        "describe(table_name) lists columns.\nquery(sql) runs SQL.",
        "First I use `describe`, then I write answer(5) when I know.",
        '{"name": "Alice", "age": 3}',
        '[{"name": "Alice"}, {"name": "Bob"}]',
        "```sql\nSELECT 1\n```",
        "[1, 2, 3]",
        "print(5)",
        "submit my answer (5)",
        "",
        "{" * 5000,
    ],
)
def test_prose_and_data_hold_no_call(text):
    assert parse_calls(text, TOOLS) == []


ANSWERS = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.lists(st.integers(0, 99), min_size=1, max_size=3)
)


def assert_half_is_no_answer(name, value, data):
    text = WRITERS[name]("answer", {"value": value})
    whole = [c.arguments for c in parse_calls(text, TOOLS) if c.error is None]
    cut = data.draw(st.integers(0, len(text)))
    for call in parse_calls(text[:cut], TOOLS):
        assert call.error is not None or call.arguments in whole


@settings(max_examples=200)
@given(name=st.sampled_from(list(WRITERS)), value=ANSWERS, data=st.data())
def test_half_an_answer_never_becomes_an_answer(name, value, data):
    """Whatever a format's text is cut to, the answer is the whole one or none."""
    assert_half_is_no_answer(name, value, data)


@pytest.mark.nightly
@pytest.mark.parametrize("name", WRITERS)
@given(value=ANSWERS, data=st.data())
def test_half_an_answer_of_a_format_never_becomes_an_answer(name, value, data):
    assert_half_is_no_answer(name, value, data)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "answer", "arguments": {"value": "Par',
        '<tool_call>{"name": "answer", "arguments": {"value": 4',
        '{"name": "answer", "arguments": {"value": ["a", "b"',
        '{"name": "answer", "arguments": {"value"',
        "<function=answer><parameter=value>4",
        "<tool_call>answer\n<arg_key>value</arg_key>\n<arg_value>4",
        '[TOOL_CALLS]answer[ARGS]{"value": 4',
        "answer(4",
        'answer("Par',
        'answer(["a", "b"',
        'describe("x"',
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
    f"<tool_call>```json\n{D}\n```</tool_call>": ("repaired_json",),
    f"<tool_call>[{D}]</tool_call>": ("repaired_json",),
    '<tool_call>describe\n{"table_name": "x"}</tool_call>': ("repaired_json",),
    '{"name": "describe", "arguments": {table_name: "x"}}': ("repaired_json",),
    "<tool_call>{name: 'describe', arguments: {\"table_name\": 'x'}}</tool_call>": (
        "repaired_json",
    ),
    '{"name": "describe", "arguments": {"table_name": "x",}}': ("repaired_json",),
    "<function=describe><parameter=table_name>x</parameter>": ("missing_close_tag",),
    '`describe("x")`': ("positional_arguments",),
    f"[TOOL_CALLS][{D}": ("repaired_json",),
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
        "<tool_call>hello</tool_call>",
        "<tool_call>{}</tool_call>",
        '<tool_call>{"arguments": {"table_name": "x"}}</tool_call>',
        '{"name": "describe", "arguments": {"table_name": "a", "table_name": "b"}}',
        "<function=query><parameter=sql>a</parameter><parameter=sql>b</parameter></function>",
        "<function=describe><parameter=table_name>x</function>",
        "answer(Paris)",
        "describe(wards)",
        "<tool_call>describe(table_name=wards)</tool_call>",
        f"<tool_call>{D.replace('{', '{,', 1)}</tool_call>",
        '{"name": "query", "arguments": {"sql": "SELECT "a" FROM t"}}',
        '{"name": "query", "arguments": {"sql": "SELECT a" "FROM t"}}',
        "query('SELECT ''a'' FROM t')",
        '<tool_call>{"name": 5, "arguments": {}}</tool_call>',
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


def test_an_error_says_where_the_json_breaks_and_how_a_quote_is_written():
    for written, told in {
        '"SELECT "a" FROM t"': (
            "it is not valid JSON from 'a\" FROM t\"}}' on; "
            r"a quote inside a text is written as \"."
        ),
        '"SELECT\n1" + 2': "it is not valid JSON from '+ 2}}' on; "
        r"a quote inside a text is written as \".",
        "1539 - 1": "it is not valid JSON from '- 1}}' on.",
        "1 - " + "9" * 5_000: f"it is not valid JSON from '- {'9' * 22}' on.",
        "": "it is not valid JSON from '}}' on.",
    }.items():
        text = f'<tool_call>{{"name": "query", "arguments": {{"sql": {written}}}}}</tool_call>'
        (call,) = parse_calls(text, TOOLS)
        assert call.error.message == f"The call could not be read: {told}"


def test_python_joins_texts_that_stand_on_lines_of_their_own():
    text = "query(\n    'SELECT a '\n    'FROM t'\n)"
    assert parse_calls(text, TOOLS)[0].arguments == {"sql": "SELECT a FROM t"}


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


def test_the_word_null_in_bare_text_is_a_null_where_no_text_is_wanted():
    xml = "<function=query><parameter=sql>SELECT 1</parameter><parameter=value>null</parameter>"
    (call,) = parse_calls(xml + "</function>", TOOLS)
    assert call == ToolCall("query", {"sql": "SELECT 1"}, ("dropped_null",))


MEGABYTE = {
    "tags": lambda: "<tool_call>" * 90_000,
    "tags with names": lambda: "<tool_call>x" * 80_000,
    "tags with brackets": lambda: "<tool_call>{" * 80_000,
    "braces": lambda: "{" * 1_000_000,
    "brace lines": lambda: "{\n" * 500_000,
    "quotes": lambda: '"' * 1_000_000,
    "quotes in a call": lambda: '<tool_call>{"name": "' + '"' * 1_000_000,
    "parameters": lambda: "<function=a><parameter=b>" * 40_000,
    "one function": lambda: "<function=query>" + "<parameter=sql>" * 60_000,
    "open brackets": lambda: "describe(\n" * 100_000,
    "half calls": lambda: 'describe("x\n' * 80_000,
    "thoughts": lambda: "<think>" * 140_000,
    "fences": lambda: "```" * 300_000,
    "name": lambda: "<tool_call>" + "a" * 1_000_000,
    "blanks": lambda: "<tool_call>" + " " * 1_000_000,
    "backslashes": lambda: '<tool_call>{"a' + "\\" * 1_000_000,
    "deep": lambda: '<tool_call>{"name":"answer","arguments":{"value":' + "[" * 500_000,
    "keys": lambda: "<tool_call>describe" + "<arg_key>a</arg_key><arg_value>" * 30_000,
    "nested objects": lambda: '{"name": "a", "arguments": [\n' * 30_000,
    "lists": lambda: "[describe(" * 100_000,
    "texts side by side": lambda: '<tool_call>{"name": "a", "arguments": ' + '"a" ' * 250_000,
    "broken objects": lambda: '<tool_call>{"name": "a", "x": 1 - 1}</tool_call>\n' * 22_000,
    "one broken object": lambda: '<tool_call>{"name": "a", "x": 1 - ' + "1 " * 500_000 + "}",
    "minus": lambda: "answer(" + "-" * 1_000_000 + "1)",
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


def test_a_long_answer_is_read_whole():
    rows = [["a" * 50, number] for number in range(2000)]
    call = ToolCall("answer", {"value": rows})
    assert parse_calls(render_call(call), TOOLS) == [call]
