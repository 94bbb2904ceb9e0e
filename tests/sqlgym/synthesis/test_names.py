"""What is read in names, and the English that is made of it."""

import doctest
import importlib
import pkgutil
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sqlgym.synthesis
from sqlgym.synthesis.language import english
from sqlgym.synthesis.language.nouns import column_noun, table_noun
from sqlgym.synthesis.language.parts import is_readable, parts_of, words_of
from sqlgym.synthesis.reading.spoken_values import quoted_text

MODULES = [
    name for _, name, _ in pkgutil.walk_packages(sqlgym.synthesis.__path__, "sqlgym.synthesis.")
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_are_true(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize(
    ("one", "many"),
    [
        *[("singer", "singers"), ("city", "cities"), ("day", "days"), ("address", "addresses")],
        *[("bus", "buses"), ("campus", "campuses"), ("status", "statuses"), ("virus", "viruses")],
        *[("house", "houses"), ("course", "courses"), ("cause", "causes"), ("clause", "clauses")],
        *[("database", "databases"), ("purchase", "purchases"), ("license", "licenses")],
        *[("box", "boxes"), ("match", "matches"), ("dish", "dishes"), ("quiz", "quizzes")],
        *[("cache", "caches"), ("prize", "prizes"), ("size", "sizes"), ("shoe", "shoes")],
        *[("hero", "heroes"), ("knife", "knives"), ("shelf", "shelves"), ("curve", "curves")],
        *[("movie", "movies"), ("category", "categories"), ("country", "countries")],
        *[("person", "people"), ("child", "children")],
        *[("woman", "women"), ("salesman", "salesmen")],
        *[("analysis", "analyses"), ("diagnosis", "diagnoses"), ("criterion", "criteria")],
        *[("series", "series"), ("species", "species"), ("aircraft", "aircraft")],
        *[("date of birth", "dates of birth"), ("number of cars", "numbers of cars")],
        *[("year opened", "years opened"), ("town or city", "towns or cities"), ("MPG", "MPGs")],
        *[("date when the order was placed", "dates when the order was placed")],
    ],
)
def test_a_noun_has_this_plural(one, many):
    assert english.plural(one) == many


@pytest.mark.parametrize(
    ("many", "one"),
    [
        *[("singers", "singer"), ("cities", "city"), ("addresses", "address"), ("buses", "bus")],
        *[("campuses", "campus"), ("statuses", "status"), ("houses", "house"), ("causes", "cause")],
        *[("courses", "course"), ("nurses", "nurse"), ("releases", "release"), ("prizes", "prize")],
        *[("movies", "movie"), ("caches", "cache"), ("boxes", "box"), ("shoes", "shoe")],
        *[("people", "person"), ("men", "man")],
        *[("analyses", "analysis"), ("criteria", "criterion")],
        *[("bus", "bus"), ("class", "class"), ("status", "status"), ("news", "news")],
        *[("series", "series"), ("species", "species"), ("physics", "physics"), ("gas", "gas")],
        *[("address", "address"), ("staff", "staff"), ("history", "history"), ("axes", "axis")],
        *[("invoice line items", "invoice line item"), ("specimen", "specimen"), ("menus", "menu")],
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
        *[("age", "an age"), ("year", "a year")],
        *[("hour", "an hour"), ("unit price", "a unit price")],
        *[("university", "a university"), ("European", "a European"), ("umbrella", "an umbrella")],
        *[("one-way ticket", "a one-way ticket"), ("h index", "an h index"), ("x", "an x")],
        *[("MPG", "an MPG"), ("URL", "a URL"), ("FTE", "an FTE"), ("VAT rating", "a VAT rating")],
        *[("uninsured car", "an uninsured car"), ("heir", "an heir"), ("ID", "an ID")],
    ],
)
def test_the_article_follows_the_sound(noun, said):
    assert english.a(noun) == said


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        *[("singer", "singer"), ("car_makers", "car maker")],
        *[("Product_Categories", "product category")],
        *[("model_list", "model"), ("cars_data", "car")],
        *[("tbl_emp", "employee"), ("TV_series", "TV series")],
        *[("job_history", "job history record"), ("Staff", "staff member")],
        *[("hiring", "hiring record")],
        *[("ratings", "rating"), ("course_arrange", "course arrangement"), ("stays", "stay")],
        *[("singer_in_concert", 'record in "singer_in_concert"')],
        *[("Has_Pet", 'record in "Has_Pet"')],
        *[("t1", 'record in "t1"'), ("Größen", 'record in "Größen"')],
        *[("order-items", "order item"), ("itm", "item"), ("ord_hdr", "order")],
        *[("stk_mvmt", "stock movement"), ("ord_ln", "order line"), ("tbl_ad_slot", "ad slot")],
        *[('a "b"', 'record in "a ""b"""'), ("x" * 200, f'record in "{"x" * 200}"')],
    ],
)
def test_a_table_is_called_this(name, noun):
    assert table_noun(name).one == noun


def test_staff_with_names_are_members():
    assert table_noun("staff", has_names=True).many == "staff members"


@pytest.mark.parametrize(
    ("name", "table", "said", "unit"),
    [
        *[("emp_hire_dt", ("employee",), "hire date", "")],
        *[("emp_hire_dt", (), "employee hire date", "")],
        *[("customerFirstName", ("customer",), "first name", ""), ("LName", (), "last name", "")],
        *[("qty", (), "quantity", ""), ("no_of_floors", (), "number of floors", "")],
        *[("Number_products", (), "number of products", "")],
        *[("Cylinders", (), "number of cylinders", "")],
        *[("view_count", (), "number of views", ""), ("length_km", (), "length", "km")],
        *[("price_eur", (), "price", "euros"), ("delay_min", (), "delay", "minutes")],
        *[("temp_min", (), "minimum temperature", "")],
        *[("temperature_c", (), "temperature", "degrees Celsius")],
        *[("altitude_m", (), "altitude", "m"), ("cloudy_pct", (), "cloudy percentage", "")],
        *[("date_order_placed", ("order",), "order date", "")],
        *[("joined_on", (), "joining date", "")],
        *[("date_order_placed", (), "order placement date", "")],
        *[("opened_year", (), "opening year", "")],
        *[("birth_date", (), "date of birth", ""), ("state_county", (), "state or county", "")],
        *[("Directed_by", (), "director", ""), ("starts_on", (), "start date", "")],
        *[("18_49_Rating", (), "18-49 rating", ""), ("budget_m", (), "budget", "million")],
        *[("currency_2024", (), "currency in 2024", ""), ("Edispl", (), "engine displacement", "")],
        *[("kg_per_hour", (), "number of kg per hour", ""), ("E-Mail", (), "e-mail address", "")],
        *[("boiling_c", (), "boiling point", "degrees Celsius"), ("rid", (), "ID", "")],
        *[("Umsatz_EUR", (), "turnover", "euros"), ("größe", (), "size", "")],
        *[("max_kg", (), "maximum weight", "kg"), ("KmDriven", (), "distance driven", "km")],
        *[("lesson_minutes", (), "lesson duration", "minutes"), ("due_on", (), "due date", "")],
        *[("response_min", (), "response time", "minutes"), ("hired_on", (), "hire date", "")],
        *[("hrs_wk", (), "hours per week", ""), ("TV_Channel", (), "TV channel", "")],
    ],
)
def test_a_column_is_called_this(name, table, said, unit):
    noun = column_noun(name, table, is_number=True)

    assert (noun.one, noun.unit, noun.is_readable) == (said, unit, True)


@pytest.mark.parametrize(
    "name",
    ["x7", "fld_03", "col12", "line_2", "qqz", "größte", "名前", "q3_resp", "size_m2_x", ""],
)
def test_a_name_that_cannot_be_read_is_quoted(name):
    noun = column_noun(name, (), is_number=True)

    assert (noun.one, noun.is_readable) == (f'value in column "{name}"', False)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        *[("hired", "date", "hire date"), ("paid", "figure", "amount paid")],
        *[("germinated", "figure", "number germinated"), ("returned", "value", "returned value")],
        *[("highest", "figure", "highest figure"), ("drives_on", "value", "drives-on value")],
        *[("since", "date", "start date"), ("field", "value", "field")],
        *[("first_response_at", "date", "first response date")],
        *[("last_cleaned_on", "date", "last cleaning date")],
        *[("date_supplied_from", "date", "supplied-from date"), ("total", "figure", "total")],
    ],
)
def test_a_name_that_is_no_noun_is_one_of_what_it_holds(name, kind, said):
    assert column_noun(name, (), kind == "figure", kind=kind).one == said


def test_letters_before_the_words_of_a_tables_name_are_an_acronym():
    assert table_noun("csu_fees").many == "CSU fees"


def test_what_is_counted_is_said_as_counted():
    assert column_noun("no_of_cars", (), is_number=True).counts == "cars"
    assert column_noun("no_of_cars").counts == ""


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
