"""What is read in names, and the English that is made of it."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlgym.synthesis import english
from sqlgym.synthesis.flags import flag_of
from sqlgym.synthesis.nouns import column_noun, table_noun
from sqlgym.synthesis.parts import is_readable, parts_of, words_of
from sqlgym.synthesis.spoken_values import quoted_text


@pytest.mark.parametrize(
    ("one", "many"),
    [
        *[("singer", "singers"), ("city", "cities"), ("bus", "buses"), ("house", "houses")],
        *[("box", "boxes"), ("knife", "knives"), ("person", "people"), ("series", "series")],
        *[("date of birth", "dates of birth"), ("MPG", "MPGs")],
    ],
)
def test_a_noun_has_this_plural(one, many):
    assert english.plural(one) == many


@pytest.mark.parametrize(
    ("many", "one"),
    [
        *[("singers", "singer"), ("cities", "city"), ("buses", "bus"), ("houses", "house")],
        *[("people", "person"), ("class", "class"), ("series", "series"), ("menus", "menu")],
    ],
)
def test_a_plural_has_this_singular(many, one):
    assert english.singular(many) == one


@given(st.from_regex(r"[a-z]{1,12}", fullmatch=True))
def test_a_plural_is_recognised_and_a_singular_of_it_stays(word):
    one = english.singular(english.plural(word))

    assert english.singular(one) == one or one.endswith("s")


@pytest.mark.parametrize(
    ("noun", "said"),
    [
        *[("age", "an age"), ("year", "a year"), ("hour", "an hour"), ("MPG", "an MPG")],
        *[("university", "a university"), ("umbrella", "an umbrella"), ("URL", "a URL")],
    ],
)
def test_the_article_follows_the_sound(noun, said):
    assert english.a(noun) == said


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        *[
            ("singer", "singer"),
            ("Product_Categories", "product category"),
            ("tbl_emp", "employee"),
        ],
        *[("t1", 'record in "t1"'), ("Größen", 'record in "Größen"')],
        *[('a "b"', 'record in "a ""b"""'), ("x" * 200, f'record in "{"x" * 200}"')],
    ],
)
def test_a_table_is_called_this(name, noun):
    assert table_noun(name).one == noun


@pytest.mark.parametrize(
    ("name", "table", "said", "unit"),
    [
        *[("emp_hire_dt", ("employee",), "hire date", ""), ("qty", (), "quantity", "")],
        *[
            ("customerFirstName", ("customer",), "first name", ""),
            ("length_km", (), "length", "km"),
        ],
        *[("no_of_floors", (), "number of floors", ""), ("price_eur", (), "price", "euros")],
    ],
)
def test_a_column_is_called_this(name, table, said, unit):
    noun = column_noun(name, table, is_number=True)

    assert (noun.one, noun.unit, noun.is_readable) == (said, unit, True)


@pytest.mark.parametrize(
    "name",
    ["x7", "fld_03", "größte", "名前", ""],
)
def test_a_name_that_cannot_be_read_is_quoted(name):
    noun = column_noun(name, (), is_number=True)

    assert (noun.one, noun.is_readable) == (f'value in column "{name}"', False)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("hired", "date", "hire date"),
        ("paid", "figure", "amount paid"),
        ("returned", "value", "returned value"),
    ],
)
def test_a_name_that_is_no_noun_is_one_of_what_it_holds(name, kind, said):
    assert column_noun(name, (), kind == "figure", kind=kind).one == said


@pytest.mark.parametrize(
    ("name", "table", "kind", "said", "event"),
    [
        ("closed_at", "ticket", "date", "closing date", "were closed"),
        ("created_at", "user", "date", "creation date", ""),
        ("member_since", "member", "date", "joining date", "joined"),
        ("FND_YR", "club", "year", "founding year", "were founded"),
    ],
)
def test_a_date_has_a_noun_and_a_verb(name, table, kind, said, event):
    noun = column_noun(name, (table,), kind=kind)

    assert (noun.one, noun.event) == (said, event)


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        *[("is_active", "active", "not active"), ("has_crane", "a crane", "no crane")],
        *[("in_service", "in service", "not in service"), ("can_fly", "can fly", "cannot fly")],
    ],
)
def test_a_flag_is_said_by_its_grammar(name, yes, no):
    flag = flag_of(name)

    assert (flag.yes, flag.no) == (yes, no)


@pytest.mark.parametrize(
    ("name", "table", "said", "unit", "counts"),
    [
        ("minutes_spent", "ticket", "number of minutes", "", "minutes"),
        ("capacity_pallets", "depot", "capacity", "pallets", ""),
        ("drop_rate_pct", "item", "drop rate", "percent", ""),
    ],
)
def test_a_quantity_is_called_this(name, table, said, unit, counts):
    noun = column_noun(name, (table,), True, kind="figure")

    assert (noun.one, noun.unit, noun.counts) == (said, unit, counts)


@given(st.text(max_size=30))
def test_any_name_gives_a_noun(name):
    column, table = column_noun(name, ("table",), True), table_noun(name)

    assert all((column.one, column.many, table.one, table.many))
    assert is_readable(name) in (True, False)
    assert "".join(parts_of(name)).isascii()
    assert all(words_of(name)) or not words_of(name)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *[("France", "France"), ("New York", "New York")],
        *[("University of Oslo", "University of Oslo")],
        *[("on time", "'on time'"), ("USA", "'USA'"), ("M", "'M'"), ("it's", '"it\'s"')],
        *[("Palais d'Été", '"Palais d\'Été"'), ("O'Hara", "O'Hara"), ("St. Anne's", "St. Anne's")],
    ],
)
def test_a_text_is_quoted_unless_it_is_a_name(value, said):
    assert quoted_text(value) == said


def test_dates_and_lists_are_written_out():
    assert english.written_date(date(2014, 5, 3)) == "3 May 2014"
    assert english.join_words(["a", "b", "c"]) == "a, b and c"
    assert english.possessive("stadium") == "stadium's"
