"""What is read in names, and the English that is made of it."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlgym.synthesis import english
from sqlgym.synthesis.lexicon import abbreviates, is_readable, parts_of, words_of
from sqlgym.synthesis.nouns import column_noun, table_noun
from sqlgym.synthesis.spoken_values import quoted_text


@pytest.mark.parametrize(
    ("one", "many"),
    [
        *[("singer", "singers"), ("city", "cities"), ("bus", "buses"), ("house", "houses")],
        *[("box", "boxes"), ("knife", "knives"), ("person", "people"), ("series", "series")],
        *[("date of birth", "dates of birth"), ("MPG", "MPGs"), ("class", "classes")],
    ],
)
def test_a_noun_has_this_plural_and_that_this_singular(one, many):
    assert english.plural(one) == many
    assert english.singular(many) == one or " " in one
    assert english.singular(one) == one


@given(st.from_regex(r"[a-z]{1,12}", fullmatch=True))
def test_a_singular_of_a_plural_stays(word):
    one = english.singular(english.plural(word))

    assert english.singular(one) == one or one.endswith("s")


@pytest.mark.parametrize(
    "said", ["an age", "a year", "an hour", "an MPG", "a university", "an umbrella", "a URL"]
)
def test_the_article_follows_the_sound(said):
    assert english.a(said.partition(" ")[2]) == said


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        *[("singer", "singer"), ("Product_Categories", "product category")],
        *[
            ("tbl_emp", "employee"),
            ("Staff", "staff record"),
            ("memberships", "membership"),
            ("moorings", "mooring"),
        ],
        *[("has_pet", 'record in "has_pet"'), ("x" * 200, "x" * 200)],
    ],
)
def test_a_table_is_called_this(name, noun):
    assert table_noun(name).one == noun


@pytest.mark.parametrize(
    ("name", "table", "kind", "said", "unit", "counts"),
    [
        ("emp_hire_dt", ("employee",), "date", "hire date", "", ""),
        ("opened_on", ("shop",), "date", "date opened", "", ""),
        ("founded", ("club",), "year", "year founded", "", ""),
        ("customerFirstName", ("customer",), "", "first name", "", ""),
        ("qty", (), "count", "quantity", "", ""),
        ("length_km", (), "number", "length", "km", ""),
        ("price_eur", (), "number", "price", "euros", ""),
        ("drop_rate_pct", (), "number", "drop rate", "percent", ""),
        ("duration_min", (), "count", "duration", "minutes", ""),
        ("no_of_floors", (), "count", "number of floors", "", "floors"),
        ("visit_count", (), "count", "number of visits", "", "visits"),
        ("pages", (), "count", "number of pages", "", "pages"),
        ("pages", (), "number", "pages", "", ""),
        ("acres", (), "number", "number of acres", "", "acres"),
        ("days_to_maturity", (), "count", "number of days to maturity", "", "days to maturity"),
        ("tickets_sold", (), "count", "number of tickets sold", "", "tickets sold"),
        ("points_per_game", (), "number", "points per game", "", ""),
        ("price_pence", (), "count", "price", "pence", ""),
        ("sales", (), "count", "sales", "", ""),
    ],
)
def test_a_column_is_called_this(name, table, kind, said, unit, counts):
    noun = column_noun(name, table, kind)

    assert (noun.one, noun.unit, noun.counts) == (said, unit, counts)


@pytest.mark.parametrize("name", ["highest", "returned", "from_port", "melting", ""])
def test_a_name_that_is_no_noun_is_quoted(name):
    noun = column_noun(name)

    assert (noun.one, noun.is_readable) == (f'value in column "{name}"', False)


def test_names_are_readable_if_their_parts_are_words():
    clear = ["song_name", "numberOfPages", "GDP", "sourceairport", "electronegativity", "area_km2"]
    odd = ["x7", "fld_03", "größte", "名前", "", "zzqp", "est_low", "KO_TM", "cstmr"]

    assert [name for name in clear if not is_readable(name)] == []
    assert [name for name in odd if is_readable(name)] == []


def test_unknown_words_are_not_trusted_in_a_schema_that_abbreviates():
    assert abbreviates(["ORDLINS", "ITMNUM", "CSTMR", "QTY", "PRC"])
    assert not abbreviates(["singer", "song_name", "release_year", "electronegativity"])
    assert not is_readable("ordlins", only_listed=True)
    assert is_readable("woodland_type", only_listed=True)
    assert words_of("LPA Code") == ("LPA", "code")
    assert is_readable("LPA Code", only_listed=True)


@given(st.text(max_size=30))
def test_any_name_gives_a_noun(name):
    for kind in ("", "date", "year", "count", "number"):
        assert column_noun(name, ("table",), kind).many
    assert table_noun(name).many
    assert is_readable(name) in (True, False)
    assert "".join(parts_of(name)).isascii()
    assert all(words_of(name)) or not words_of(name)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *[("France", "France"), ("New York", "New York")],
        *[("University of Oslo", "University of Oslo")],
        *[
            ("on time", "'on time'"),
            ("Any", "'Any'"),
            ("USA", "'USA'"),
            ("M", "'M'"),
            ("it's", '"it\'s"'),
        ],
        *[("Palais d'Été", '"Palais d\'Été"'), ("O'Hara", "O'Hara"), ("St. Anne's", "St. Anne's")],
    ],
)
def test_a_text_is_quoted_unless_it_is_a_name(value, said):
    assert quoted_text(value) == said


def test_dates_and_lists_are_written_out():
    assert english.written_date(date(2014, 5, 3)) == "3 May 2014"
    assert english.join_words(["a", "b", "c"]) == "a, b and c"
    assert english.possessive("stadium") == "stadium's"
