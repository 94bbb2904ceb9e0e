"""A notebook shows data escaped, cut and made visible, and never as markup."""

import datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgym import notebook

OURS = {"div", "b", "table", "tr", "th", "td", "span"}
HOSTILE = ("<script>alert(1)</script>", "</td></table>", "<!--", "&lt;", "&#x3c;", '" onload="x')
anything = st.lists(
    st.one_of(st.text(st.characters(exclude_categories=())), st.sampled_from(HOSTILE)), max_size=6
).map("".join)
"""Texts with lone surrogates, control characters and markup."""


class Read(HTMLParser):
    """What a browser finds in a page: the tags, and the text of each cell of a table."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert [name for name, _ in attrs if name not in ("style", "class")] == []
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = tag not in ("td", "th") and self.inside

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = unknown_decl = handle_pi = handle_comment


@given(anything)
def test_a_value_is_read_back_as_it_was_but_for_what_a_page_cannot_hold(value):
    page = notebook.table(["name"], [[value]], 1, most_chars=len(value))

    read = Read(page)
    assert read.cells == ["name", notebook.visible(value)]
    assert set(read.tags) <= OURS
    page.encode("utf-8")


@given(anything, anything)
def test_no_sign_of_markup_in_a_page_comes_from_data(column, value):
    def page(column, value):
        parts = (
            notebook.heading(value, column),
            notebook.paragraph(value),
            notebook.facts([(column, value)]),
            notebook.table([column], [[value], [[value]], [{value: value}]], 3),
        )
        return "".join(parts)

    signs = [page(*each).count("<") for each in ((column, value), ("a", "b"))]
    notes = page(column, value).count("<span")  # ours: where a value was cut
    assert signs[0] == signs[1] + 2 * notes


@given(anything)
def test_the_picture_of_a_text_is_the_same_every_time(value):
    assert notebook.paragraph(value) == notebook.paragraph(value)


@pytest.mark.parametrize("value", ["x" * 1_000_000, b"x" * 1_000_000, ["x" * 1_000_000] * 1000])
def test_a_long_value_is_cut(value):
    assert len(notebook.text(value)) < 1_500
    assert "…" in notebook.text(value)


def test_what_was_cut_is_counted():
    assert "… 999,800 more characters" in notebook.text("x" * 1_000_000)
    assert "… 1 more character<" in notebook.text("xy", most=1)
    assert "… 900 more bytes" in notebook.text(b"x" * 1_000)


def test_a_table_shows_its_first_rows_and_says_how_many_more_there_are():
    made = []

    def rows():
        for number in range(1_000):
            made.append(number)
            yield [number]

    page = notebook.table(["n"], rows(), 1_000, unit="episode")

    assert Read(page).cells[-1].startswith(str(notebook.MOST_ROWS - 1))
    assert "… 980 more episodes" in page
    assert len(made) <= notebook.MOST_ROWS + 1


def test_rows_of_long_values_are_left_out_sooner():
    page = notebook.table(["n"], [["x" * 9_000]] * 10, 10, most_chars=9_000)

    assert page.count("<td") == notebook.MOST_SHOWN // 9_000
    assert "… 8 more rows" in page


def test_a_first_row_is_shown_however_long_it_is():
    assert "<td" in notebook.table(["n"], [["x" * 90_000]], 1, most_chars=90_000)


def test_columns_beyond_the_most_are_left_out_and_counted():
    page = notebook.table([str(n) for n in range(50)], [list(range(50))], 1)

    assert page.count("<td") == page.count("<th") == notebook.MOST_COLUMNS
    assert "… 30 more columns" in page


def test_a_whole_table_has_no_note():
    assert "more" not in notebook.table(["n"], [[1], [2]], 2)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "True"),
        (-12, "-12"),
        (0.1, "0.1"),
        (float("nan"), "nan"),
        (b"\x00\xff", "x'00ff'"),
        (Path("a/b"), "a/b"),
        ({"b": 1, "a": 2}, "{'a': 2, 'b': 1}"),
        (frozenset("cab"), "frozenset({'a', 'b', 'c'})"),
        ({10, 9, 1}, "{1, 9, 10}"),
        ({"b", 1, "a", None}, "{None, 1, 'a', 'b'}"),
        (set(), "set()"),
        pytest.param(object(), "<object>", id="object"),
        ([len], "[<builtin_function_or_method>]"),
        pytest.param(10**5_000, "<integer of 16,610 bits>", id="large"),
        (datetime.date(2026, 1, 2), "datetime.date(2026, 1, 2)"),
    ],
)
def test_a_value_that_is_no_text_is_shown_without_its_place_in_memory(value, shown):
    assert Read(notebook.facts([("value", value)])).cells[1] == shown


@pytest.mark.parametrize("value", ["x", None, True, 10**400, [1]])
def test_what_is_no_figure_is_left_as_it_is(value):
    assert notebook.figure(value) is value


def test_a_figure_that_is_infinite_or_no_number_is_shown():
    assert notebook.text(notebook.figure(float("nan"))) == "nan"
    assert notebook.text(notebook.figure(float("-inf"))) == "-inf"


def test_a_word_of_ours_does_not_look_like_data():
    assert notebook.text(notebook.Plain("NULL")) != notebook.text("NULL")


class Two(notebook.Shown):
    def __repr__(self):
        return "\ud800" + "x" * 1_000_000

    def notebook_parts(self):
        yield notebook.heading("Two", 2)
        yield notebook.facts([("price", "$1 and $2")])


def test_a_picture_names_no_colour_but_a_transparent_grey_and_is_no_formula():
    page = Two()._repr_html_()

    without_lines = page.replace("rgba(128,128,128,.4)", "")
    assert not any(word in without_lines for word in ("color", "background", "rgb", "#", "white;"))
    assert page.startswith('<div class="tex2jax_ignore mathjax_ignore"')


def test_the_text_beside_a_picture_is_short_and_can_be_sent():
    written = []
    printer = type("Printer", (), {"text": lambda self, text: written.append(text)})()

    Two()._repr_pretty_(printer, cycle=False)

    assert written[0].startswith("\ufffdxxx")
    assert written[0].endswith("… 998,001 more characters")
    assert len(written[0]) < 2_100


@pytest.mark.parametrize(
    "sentence",
    [
        f"Of a value in a table {notebook.MOST_CHARS} characters are shown",
        f"an action or an observation {notebook.MOST_LONG:,}",
        f"stands alone {notebook.MOST_TEXT:,};",
        f"at most {notebook.MOST_ROWS} rows and {notebook.MOST_COLUMNS} columns",
        f"at most {notebook.MOST_SHOWN:,} characters",
    ],
)
def test_a_limit_that_the_page_tells_is_that_of_the_program(sentence):
    page = Path(__file__).resolve().parents[2] / "docs" / "notebooks.md"

    assert sentence in " ".join(page.read_text("utf-8").split())
