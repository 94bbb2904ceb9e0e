"""A notebook shows data escaped, cut and made visible, and never as markup."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
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


@settings(max_examples=40)
@given(anything)
def test_a_value_is_read_back_as_it_was_but_for_what_a_page_cannot_hold(value):
    page = notebook.table(["name"], [[value]], 1, most_chars=len(value))

    read = Read(page)
    assert read.cells == ["name", notebook.visible(value)]
    assert set(read.tags) <= OURS
    page.encode("utf-8")


@settings(max_examples=40)
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


@pytest.mark.parametrize("value", ["x" * 1_000_000, b"x" * 1_000_000, ["x" * 1_000_000] * 1000])
def test_a_long_value_is_cut(value):
    assert len(notebook.text(value)) < 1_500
    assert "…" in notebook.text(value)


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
