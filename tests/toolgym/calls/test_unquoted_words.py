"""Python calls with a word in place of a text: `describe(wards)`."""

import keyword

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.toolgym.calls.toy_sql_tools import TOOLS, TYPED
from toolgym.calls import ToolCall, parse_calls
from toolgym.env import ToolEnv
from toolgym.tasks import Task, TaskSet
from toolgym.tools import tool

BY_POSITION = ("repaired_json", "positional_arguments")
WORDS = st.from_regex(r"[^\W\d]\w{0,12}", fullmatch=True).filter(str.isidentifier)
CONSTANTS = ("True", "NULL", "null", "None", "none", "nan", "NaN", "inf", "Infinity", "undefined")
CONSTANTS += ("Ellipsis", "NotImplemented", "__debug__", "TRUE", "nil")


@pytest.mark.parametrize(
    "text",
    [
        "describe(wards)",
        "\n describe( wards ) # the rows\n",
        "describe(\n  wards,\n)",
        "describe((wards))",
        "```python\ndescribe(wards)\n```",
        "<think>Which?</think>describe(wards)",
        "<tool_call>describe(wards)</tool_call>",
        "<tool_call>\ndescribe(wards)\n</tool_call>",
        "<tool_call>describe(wards)",
    ],
)
def test_a_word_without_quotes_is_the_text_of_a_text_argument(text):
    calls = parse_calls(text, TOOLS)
    assert [(call.name, call.arguments, call.error) for call in calls] == [
        ("describe", {"table_name": "wards"}, None)
    ]
    assert set(BY_POSITION) <= set(calls[0].repairs)


def test_a_word_may_be_named_and_stand_beside_values():
    assert parse_calls("describe(table_name=wards)", TOOLS) == [
        ToolCall("describe", {"table_name": "wards"}, ("repaired_json",))
    ]
    assert parse_calls("turn(1, note=why, to=2)", TYPED) == [
        ToolCall("turn", {"dial": 1, "note": "why", "to": 2}, BY_POSITION)
    ]
    assert parse_calls("[describe(wards), sample('wards')]", TOOLS) == [
        ToolCall("describe", {"table_name": "wards"}, BY_POSITION),
        ToolCall("sample", {"table_name": "wards"}, BY_POSITION),
    ]


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("turn(left)", TYPED),
        ("turn(dial=left)", TYPED),
        ("turn(1, soon)", TYPED),
        ("join(a)", TYPED),
        ("join([a, b])", TYPED),
        ("join(parts=['a', b])", TYPED),
        ("answer(Paris)", TOOLS),
        ("answer(value=Paris)", TOOLS),
    ],
)
def test_a_word_for_an_argument_that_is_more_than_a_text_is_an_error(text, tools):
    assert [call.error.code for call in parse_calls(text, tools)] == ["malformed_call"]


@pytest.mark.parametrize(
    "inside",
    [
        "table_name",
        "tableName",
        "table_name=table_name",
        "wards.rows",
        "two words",
        "wards-x",
        "wards + 1",
        "wards[0]",
        "[wards]",
        "{wards}",
        "*wards",
        "**wards",
        "f'{wards}'",
        "wards := 1",
        "not wards",
        "lambda: wards",
        "wards for wards in x",
        "wards, wards",
        "sql=wards",
        "table=wards",
        "table_name=wards, table_name=rooms",
        "lower(wards)",
        *(word for word in CONSTANTS if word not in ("True", "None", "null", "none")),
    ],
)
def test_what_is_more_or_less_than_a_word_is_an_error(inside):
    [call] = parse_calls(f"describe({inside})", TOOLS)
    assert call.error is not None
    assert call.error.code == "malformed_call"


@pytest.mark.parametrize(
    "text",
    [
        "I look.\ndescribe(wards)",
        "describe(wards)\nThen I query.",
        "describe(wards)\ndescribe(rooms)",
        "describe(wards) lists the columns.",
        "I would describe(wards)",
        "rows = query(wards)",
        "Describe(wards)",
        "describe(wards",
        "describe(wards ",
        "<think>describe(wards)</think>",
    ],
)
def test_a_word_in_anything_but_a_whole_call_is_prose(text):
    assert parse_calls(text, TOOLS) == []


class Speaker(ToolEnv):
    """Say a word."""

    def begin(self, task):
        return task.question

    @tool(terminal=True)
    def say(self, word: str) -> str:
        """Say it.

        Args:
            word: The word.
        """
        return self.submit(word == "hi")


def test_no_episode_ends_by_a_word_that_may_be_the_name_of_a_variable():
    env = Speaker(TaskSet([Task("a", "Say hi.")]))
    env.reset(seed=0)
    assert env.step("say(hi)")[4]["error"].code == "malformed_call"
    assert env.step("say('hi')")[2]


@settings(max_examples=60)
@given(WORDS)
@example("wards")
@example("ｗａｒｄｓ")
@example("ﬁle")
@example("Stra\u0308\u00dfe")
def test_the_text_is_the_word_as_it_was_written(word):
    for text in (f"describe({word})", f"describe(\n{word} )", f"<tool_call>describe({word})"):
        for call in parse_calls(text, TOOLS):
            assert call.error or call.arguments == {"table_name": word}
    known = keyword.iskeyword(word) or word.casefold() in map(str.casefold, CONSTANTS)
    if word.isascii() and not known and word.lower().replace("_", "") != "tablename":
        assert parse_calls(f"describe({word})", TOOLS)[0].error is None


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            [
                *("wards", "rooms", "table_name=", "sql=", "5", "'a", "b'", "(", ")", "[", "]"),
                *(",", "=", ".", "\n", "#", "\\", "ｗ", "describe(", '"""'),
            ]
        )
        | WORDS,
        max_size=9,
    ).map("".join)
)
def test_nothing_is_bound_that_was_not_written(inside):
    text = f"describe({inside})"
    for call in parse_calls(text, TOOLS):
        if call.error is None:
            assert str(call.arguments["table_name"]) in text.replace("\\\n", "\n")


@pytest.mark.parametrize("name", ["describe", "sample", "query"])
def test_strict_parsing_takes_no_word(name):
    for word in ("wards", "x1", "\u00c4pfel", "null"):
        for text in (f"{name}({word})", f"<tool_call>{name}({word})</tool_call>"):
            assert all(call.error for call in parse_calls(text, TOOLS, parsing="strict"))
