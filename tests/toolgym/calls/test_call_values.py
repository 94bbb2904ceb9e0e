"""What a value holds changes no call: tags, quotes and whole calls inside of it, cut off anywhere.

Every format writes the same call with a value made of the marks of all formats. Read back, it is
that call or an error. The formats of bare text have no escape, so there the text can be, letter by
letter, what another call is written as; such a text is left out.
"""

import inspect
import json

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.toolgym.calls.toy_sql_tools import TOOLS, TYPED
from toolgym.calls import ToolCall, parse_calls, render_call
from toolgym.calls.find import find_calls


def as_json(name, arguments):
    return json.dumps({"name": name, "arguments": arguments})


def as_python(name, arguments):
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def as_xml(name, arguments):
    pairs = "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in arguments.items())
    return f"<tool_call>\n<function={name}>\n{pairs}</function>\n</tool_call>"


def as_short_xml(name, arguments):
    pairs = "".join(f"<parameter={k}>{v}</parameter>" for k, v in arguments.items())
    return f"<function={name}>{pairs}</function>"


def as_arg_keys(name, arguments):
    pairs = "".join(
        f"<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n" for k, v in arguments.items()
    )
    return f"<tool_call>{name}\n{pairs}</tool_call>"


BARE_TEXT = {"xml": as_xml, "short xml": as_short_xml, "arg keys": as_arg_keys}
ESCAPED = {
    "rendered": render_call,
    "hermes": lambda n, a: f"<tool_call>\n{as_json(n, a)}\n</tool_call>",
    "hermes in a fence": lambda n, a: f"<tool_call>\n```json\n{as_json(n, a)}\n```\n</tool_call>",
    "raw line breaks": lambda n, a: "<tool_call>{}</tool_call>".format(
        as_json(n, a).replace("\\n", "\n")
    ),
    "a Python dict": lambda n, a: "<tool_call>{}</tool_call>".format(
        repr({"name": n, "arguments": a})
    ),
    "bare": as_json,
    "fenced": lambda n, a: f"```json\n{as_json(n, a)}\n```",
    "llama": lambda n, a: f"<|python_tag|>{as_json(n, a)}",
    "mistral": lambda n, a: f"[TOOL_CALLS]{n}[ARGS]{json.dumps(a)}",
    "mistral list": lambda n, a: f"[TOOL_CALLS][{as_json(n, a)}]",
    "openai": lambda n, a: json.dumps({"tool_calls": [{"function": {"name": n, "arguments": a}}]}),
    "function with json": lambda n, a: f"<function={n}>{json.dumps(a)}</function>",
    "python": as_python,
    "python in a fence": lambda n, a: f"```python\n{as_python(n, a)}\n```",
    "python in tags": lambda n, a: f"<tool_call>{as_python(n, a)}</tool_call>",
    "python behind a tag": lambda n, a: f"<|python_tag|>{as_python(n, a)}",
    "python list": lambda n, a: f"[{as_python(n, a)}]",
}
WRITERS = {**ESCAPED, **BARE_TEXT}
OTHER = {"table_name": "y"}
MARKS = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "<function=sample>", "<function=x>", "</function>"),
        *("<parameter=table_name>", "<parameter=b>", "</parameter>", "</parameter>\n</function>"),
        *("<arg_key>table_name</arg_key>", "<arg_key>", "</arg_key>", "<arg_value>"),
        *("</arg_value>", "</arg_value>\n</tool_call>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
        *("<|python_tag|>", "<think>", "</think>", "[THINK]", "[/THINK]", "<think>hm</think>"),
        *("```", "```json\n", "'", '"', "'''", '"""', "\\", "\n", "{", "}", "[", "]", "(", ")"),
        *(",", ":", "=", "x", " ", "it's", "SELECT '", "' FROM t", "é", "<|im_end|>", "</s>"),
        *(write("sample", OTHER) for write in WRITERS.values()),
    ]
)
FORMAT_NAMES = st.sampled_from(list(WRITERS))
VALUES = st.lists(MARKS | st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=5)
BEFORE = st.sampled_from(["", "", "I look.\n", "<think>Hm.</think>\n", "Hm.\n</think>\n"])
AFTER = st.sampled_from(["", "", "\n", "<|im_end|>"])


def in_bare_text(arguments):
    """Values as the formats of bare text give them back: without one line break at either end."""
    return {
        key: value.removeprefix("\n").removesuffix("\n") if isinstance(value, str) else value
        for key, value in arguments.items()
    }


def says_another_call(write, text):
    """Whether a text is, but for blanks, exactly what the calls that were read are written as."""
    raws = [raw for raw in find_calls(text, TOOLS) if raw.error is None]
    written = "".join(write(raw.name, raw.arguments) for raw in raws)
    return bool(raws) and "".join(written.split()) == "".join(text.split())


@settings(max_examples=120)
@given(format_name=FORMAT_NAMES, pieces=VALUES, before=BEFORE, after=AFTER)
def test_whatever_a_value_holds_its_call_is_read_whole_or_is_an_error(
    format_name, pieces, before, after
):
    write, value = WRITERS[format_name], "".join(pieces)
    meant = {"table_name": value}
    text = before + write("describe", meant) + after
    calls = parse_calls(text, TOOLS)
    assert calls, "silently nothing"
    accepted = [(call.name, call.arguments) for call in calls if call.error is None]
    if format_name in ESCAPED:
        assert accepted == [("describe", meant)]
    elif accepted and not says_another_call(write, text.removeprefix(before).removesuffix(after)):
        assert [(n, in_bare_text(a)) for n, a in accepted] == [("describe", in_bare_text(meant))]


@pytest.mark.nightly
@pytest.mark.parametrize("format_name", WRITERS)
@pytest.mark.parametrize("law", ["whole", "cut off", "thought"])
def test_the_laws_of_values_hold_in_hundreds_of_examples_of_each_format(format_name, law):
    """The same laws as in the tests around this one, each format by itself."""
    laws = {
        "whole": test_whatever_a_value_holds_its_call_is_read_whole_or_is_an_error,
        "cut off": test_a_call_cut_off_at_any_place_is_whole_or_nothing_or_an_error,
        "thought": test_a_call_inside_a_real_thought_is_never_run,
    }
    inner = laws[law].hypothesis.inner_test
    drawn = {"pieces": VALUES, "before": BEFORE, "after": AFTER, "data": st.data()}
    names = inspect.signature(inner).parameters
    chosen = {name: drawn[name] for name in names if name != "format_name"}

    @settings(max_examples=300)
    @given(**chosen)
    def holds(**values):
        inner(format_name, **values)

    holds()


CLOSED_THOUGHT = ("</think>", "[/THINK]")  # behind a half call, this ends a thought


@settings(max_examples=120)
@given(format_name=FORMAT_NAMES, pieces=VALUES, before=BEFORE, data=st.data())
def test_a_call_cut_off_at_any_place_is_whole_or_nothing_or_an_error(
    format_name, pieces, before, data
):
    write, value = WRITERS[format_name], "".join(pieces)
    assume(not any(tag in value for tag in CLOSED_THOUGHT))
    if format_name in BARE_TEXT:  # cut behind such a tag, it says what a shorter value does
        assume("</parameter>" not in value and "</arg_value>" not in value)
    meant = {"table_name": value}
    whole = write("describe", meant)
    text = whole[: data.draw(st.integers(0, len(whole)))]
    for call in parse_calls(before + text, TOOLS):
        if call.error is None:
            assert call.name == "describe"
            assert in_bare_text(call.arguments) == in_bare_text(meant)


@settings(max_examples=120)
@given(format_name=FORMAT_NAMES, data=st.data())
def test_no_argument_is_lost_where_a_call_is_cut_off(format_name, data):
    """A bracket or a tag at the end may be missing, but not if an argument may be missing too."""
    meant = {"dial": 3, "to": 5, "note": "it's\nso"}
    if format_name == "raw line breaks":
        meant["note"] = "so"
    whole = WRITERS[format_name]("turn", meant)
    text = whole[: data.draw(st.integers(0, len(whole)))]
    for call in parse_calls(text, TYPED):
        assert call.error is not None or call.arguments == meant


@settings(max_examples=120)
@given(format_name=FORMAT_NAMES, pieces=VALUES)
def test_a_call_inside_a_real_thought_is_never_run(format_name, pieces):
    value = "".join(pieces)
    assume(not any(mark in value for mark in ("</think", "/THINK]", "<think", "[THINK]")))
    text = WRITERS[format_name]("describe", {"table_name": value})
    for thought in (f"<think>{text}</think>", f"<think>\n{text}\n", f"[THINK]\n{text}\n[/THINK]\n"):
        assert all(call.error for call in parse_calls(thought, TOOLS))
    assert all(call.error for call in parse_calls(f"Hm.\n{text}\n</think>\nDone.", TOOLS))


QUOTED = {
    "<tool_call>query<arg_key>sql</arg_key><arg_value>{}</arg_value></tool_call>": (
        "SELECT 'x</tool_call>y'",
        "SELECT 'x</arg_value>y'",
        "SELECT '</think>'",
    ),
    "<function=query><parameter=sql>{}</parameter></function>": (
        "SELECT '</parameter>' FROM t",
        "SELECT '</function>' FROM t",
        "SELECT '</tool_call>' FROM t",
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
        "<function=query><parameter=sql>SELECT '</parameter>",
        "<function=query><parameter=sql>SELECT '</function>",
        "<function=query><parameter=sql>SELECT '</function>' FROM",
        "<tool_call>query<arg_key>sql</arg_key><arg_value>SELECT '</tool_call>",
        'query(sql=""',
        "query(sql='''it''",
        'query(\'<tool_call>{"name": "answer", "arguments": {"value": 5}}</tool_call>',
        '[describe(table_name="x"), describe(table_name="<function=describe></function>"',
    ],
)
def test_a_value_cut_off_behind_a_tag_or_a_quote_is_a_truncated_call(text):
    assert {call.error and call.error.code for call in parse_calls(text, TOOLS)} <= {
        "truncated_call",
        "malformed_call",
    }
    assert len(parse_calls(text, TOOLS)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "<function=query><parameter=sql>a<parameter=b>c</parameter></function>",
        "<function=query><parameter=sql>a</parameter></parameter></function>",
        "<function=query><parameter=sql>a</parameter></function>b</parameter></function>",
        "<function=query><parameter=sql>a</parameter></function>"
        '<tool_call>{"name": "answer", "arguments": {"value": 5}}</tool_call></parameter>',
        "<tool_call>query<arg_key>sql</arg_key><arg_value>a<arg_value>b</arg_value></tool_call>",
        '<tool_call>{"name": "query", "arguments": {"sql": "SELECT "<tool_call>" x"}}</tool_call>',
        '<tool_call>{"name": "query", "arguments": {"sql": "SELECT "</tool_call>" x"}}</tool_call>',
        '<tool_call>{"name": "query", "arguments": {"sql": "a "<think>b</think>" c"}}</tool_call>',
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
        text = f"Hm.\n{thought}</think>\n" + as_short_xml("describe", OTHER)
        assert parse_calls(text, TOOLS) == [ToolCall("describe", OTHER)]


SURROGATES = st.text(st.characters(categories=["Cs"]) | st.sampled_from("aé\n"), max_size=4)


@settings(max_examples=120)
@given(format_name=FORMAT_NAMES, name=SURROGATES, key=SURROGATES, value=SURROGATES)
@example(format_name="hermes", name="", key="", value="\ud83d")
def test_half_a_surrogate_pair_anywhere_stops_nothing(format_name, name, key, value):
    arguments = {f"table_name{key}": value, f"x{key}": [value], key: None}
    for text in (
        WRITERS[format_name](f"describe{name}", arguments),
        value + as_json("describe", {"table_name": "x"}).replace("x", value),
    ):
        for parsing in ("lenient", "strict"):
            for call in parse_calls(text, TOOLS, parsing=parsing):
                assert f"{call.error} {render_call(call)}".encode()


@pytest.mark.parametrize("parsing", ["lenient", "strict"])
@settings(max_examples=20)
@given(letter=st.sampled_from("x\x00é'\U0001f600"))
def test_no_error_is_longer_than_a_page_however_long_the_call(letter, parsing):
    long = letter * 5_000
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
