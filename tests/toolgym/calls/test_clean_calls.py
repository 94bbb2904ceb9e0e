"""The short way for clean calls gives what the general way gives, or leaves the text to it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolgym.calls.toy_sql_tools import TOOLS
from toolgym.calls import bind_call, parse_calls, render_call
from toolgym.calls.binding import bind
from toolgym.calls.formats import find_calls
from toolgym.calls.parsing import read_clean, specs_of
from toolgym.testing.contract import random_actions
from toolgym.tools import read_spec

SPECS = specs_of(TOOLS)
SQL = "SELECT name FROM singer WHERE age < 30"


def general(text):
    return [bind(raw, SPECS) for raw in find_calls(text, SPECS)]


@pytest.mark.parametrize(
    "wrap", ["{}", " {}\n", "<tool_call>\n{}\n</tool_call>", "<tool_call>{}</tool_call>\n"]
)
def test_a_clean_call_takes_the_short_way(wrap):
    text = wrap.format(json.dumps({"name": "query", "arguments": {"sql": SQL}}))
    assert read_clean(text, SPECS, bare=True) == ("query", {"sql": SQL})
    assert parse_calls(text, TOOLS) == general(text) == [bind_call("query", {"sql": SQL}, TOOLS)]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "query", "arguments": {"sql": "SELECT 1"}} and more',
        '{"name": "query", "arguments": {"sql": "```sql\\nSELECT 1\\n```"}}',
        '{"name": "query", "arguments": {"sql": "SELECT 1", "extra": "x"}}',
        '{"name": "query", "arguments": {"sql": "SELECT 1", "sql": "SELECT 2"}}',
        '{"name": "query", "arguments": [["sql", "SELECT 1"]]}',
        '{"name": "query", "arguments": {"sql": null}}',
        '{"name": "query", "arguments": {}}',
        '{"name": "query", "arguments": []}',
        '{"name": "Query", "arguments": {"sql": "SELECT 1"}}',
        '{"name": "query", "parameters": {"sql": "SELECT 1"}}',
        '{"name": "query", "arguments": {"sql": "</tool_call>"}}',
        '{"name": "query", "arguments": {"sql": "<think>"}}',
        '{"name": "query", "arguments": {"sql": "\\ud83d"}}',
        '<think>x</think>{"name": "query", "arguments": {"sql": "SELECT 1"}}',
        '<tool_call>{"name": "query", "arguments": {"sql": "SELECT 1"}}',
    ],
)
def test_what_is_not_plainly_clean_is_left_to_the_general_way(text):
    assert read_clean(text, SPECS, bare=True) is None
    assert parse_calls(text, TOOLS) == general(text)


def stop(self) -> str:
    """Stop."""
    return "stopped"


def look(self, at: str = "sky") -> str:
    """Look.

    Args:
        at: Where.
    """
    return at


BARE = {each.__name__: read_spec(each) for each in (stop, look)}


@pytest.mark.parametrize("name", BARE)
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('{"name": "%s", "arguments": {}}', True),
        ('<tool_call>\n{"name": "%s", "arguments": { \r\n} }\n</tool_call>', True),
        ('{"name": "%s", "arguments": []}', False),
        ('{"name": "%s", "arguments": ""}', False),
        ('{"name": "%s", "arguments": null}', False),
    ],
)
def test_an_empty_object_is_clean_where_no_argument_is_required(name, text, clean):
    text = text % name
    assert (read_clean(text, BARE, bare=True) == (name, {})) is clean
    assert parse_calls(text, BARE) == [bind(raw, BARE) for raw in find_calls(text, BARE)]


@pytest.mark.parametrize("seed", range(3))
def test_the_two_ways_agree_on_mutated_calls(seed):
    texts = [action for action in random_actions(seed, 1_500, TOOLS) if isinstance(action, str)]
    for text in texts:
        if read_clean(text, SPECS, bare=True) is not None:
            assert parse_calls(text, TOOLS) == general(text), text


@given(st.text(max_size=60), st.sampled_from(["query", "describe"]), st.booleans())
def test_the_two_ways_agree_on_every_text(value, name, tagged):
    argument = "sql" if name == "query" else "table_name"
    text = render_call(name, {argument: value})
    text = text if tagged else json.dumps({"name": name, "arguments": {argument: value}})
    for _ in range(2):  # the second time it is remembered
        assert parse_calls(text, TOOLS) == general(text)


def test_a_call_that_is_remembered_is_given_out_as_a_new_one():
    text = render_call("query", {"sql": "SELECT 7"})
    parse_calls(text, TOOLS)[0].arguments["sql"] = "changed"
    assert parse_calls(text, TOOLS)[0].arguments == {"sql": "SELECT 7"}


def test_strict_parsing_takes_no_bare_object_that_lenient_has_read():
    text = json.dumps({"name": "query", "arguments": {"sql": "SELECT 8"}})
    assert len(parse_calls(text, TOOLS)) == 1
    assert parse_calls(text, TOOLS, parsing="strict") == []
