"""What things are called: dates and what happened then, flags, shortened names, plain worlds."""

import sqlite3

import pytest

from sqlgym.database.database import open_database
from sqlgym.synthesis import synthesize
from sqlgym.synthesis.language import spelling
from sqlgym.synthesis.language.flags import flag_of
from sqlgym.synthesis.language.nouns import column_noun
from sqlgym.synthesis.language.parts import is_plain, words_of
from sqlgym.synthesis.reading.profiling import profile


@pytest.mark.parametrize(
    ("name", "table", "kind", "said", "event"),
    [
        *[("closed_at", "ticket", "date", "closing date", "were closed")],
        *[("closed_on", "branch", "date", "closing date", "closed")],
        *[("created_at", "ticket", "date", "creation date", "were created")],
        *[("created_at", "user", "date", "creation date", "")],
        *[("ended_on", "agent", "date", "end date", "left")],
        *[("retired_on", "recipe", "date", "retirement date", "were retired")],
        *[("last_cleaned_on", "tank", "date", "last cleaning date", "were last cleaned")],
        *[("contract_until", "player", "date", "contract end date", "")],
        *[("member_since", "member", "date", "joining date", "joined")],
        *[("order_date", "order", "date", "date", "were placed")],
        *[("ordered_at", "order", "date", "order date", "were placed")],
        *[("taken_on", "test", "date", "test date", "were taken")],
        *[("planned_for", "task", "date", "planned-for date", "")],
        *[("scheduled_at", "task", "date", "scheduled date", "")],
        *[("identified_on", "isotope", "date", "identification date", "were identified")],
        *[("last_seen", "boat", "date", "date last seen", "were last seen")],
        *[("next_inspection_due", "truck", "date", "next inspection due date", "")],
        *[("built", "ship", "year", "construction year", "were built")],
        *[("FND_YR", "club", "year", "founding year", "were founded")],
        *[("PD_DT", "fee", "date", "payment date", "were paid")],
        *[("joined_year", "membership", "year", "joining year", "")],
    ],
)
def test_a_date_has_a_noun_and_a_verb(name, table, kind, said, event):
    noun = column_noun(name, (table,), kind=kind)

    assert (noun.one, noun.event) == (said, event)


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        *[("is_active", "active", "not active"), ("paid", "paid", "not paid")],
        *[("has_crane", "a crane", "no crane"), ("has_fuel", "fuel", "no fuel")],
        *[("is_matinee", "matinees", "not matinees"), ("in_service", "in service", None)],
        *[("has_expired", "expired", "not expired"), ("can_fly", "can fly", "cannot fly")],
        *[("signed_yn", "signed", "not signed"), ("is_newly_built", "newly built", None)],
    ],
)
def test_a_flag_is_said_by_its_grammar(name, yes, no):
    flag = flag_of(name)

    assert (flag.yes, flag.no) == (yes, no or f"not {yes}")


@pytest.mark.parametrize("name", ["is_wheelchair", "does_ship", "FLDLT", "requires_visa", "x7"])
def test_a_flag_whose_grammar_is_unknown_is_not_said(name):
    assert flag_of(name) is None


@pytest.mark.parametrize(
    ("part", "word"),
    [
        *[("trng", "training"), ("shpmnt", "shipment"), ("vndr", "vendor"), ("plyr", "player")],
        *[("strt", ""), ("house", ""), ("trail", ""), ("cap", ""), ("surf", ""), ("town", "")],
    ],
)
def test_only_a_part_that_one_word_fits_is_written_out(part, word):
    assert spelling.written_out(part) == word


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        *[("home_club", True), ("KO_TM", False), ("HIRE_HR", False), ("SURF", False)],
        *[("feedURL", True), ("18_49_rating", False), ("one_zero_year", False)],
        *[("booking_ref", True), ("lesson_minutes", True), ("sla_code", False)],
    ],
)
def test_a_name_with_a_part_that_is_no_word_is_not_plain(name, plain):
    assert is_plain(name) is plain


@pytest.mark.parametrize(
    ("name", "table", "said", "unit", "counts"),
    [
        *[("minutes_spent", "ticket", "number of minutes", "", "minutes")],
        *[("parts_replaced", "visit", "number of parts replaced", "", "parts replaced")],
        *[("RemoteDays", "employee", "number of remote days", "", "remote days")],
        *[("capacity_pallets", "depot", "capacity", "pallets", "")],
        *[("density_kg_m3", "element", "density", "kg per cubic metre", "")],
        *[("drop_rate_pct", "item", "drop rate", "percent", "")],
        *[("outstanding_fines", "borrower", "amount of outstanding fines", "", "")],
        *[
            ("CAP", "venue", "capacity", "", ""),
            ("MOD_CREDITS", "module", "number of credits", "", "credits"),
        ],
    ],
)
def test_a_quantity_is_called_this(name, table, said, unit, counts):
    noun = column_noun(name, (table,), True, kind="figure")

    assert (noun.one, noun.unit, noun.counts) == (said, unit, counts)


@pytest.mark.parametrize(("name", "words"), [("booking_ref", ("booking", "reference"))])
def test_an_ending_is_written_out(name, words):
    assert words_of(name) == words


@pytest.fixture
def club(tmp_path):
    path = tmp_path / "club.db"
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE venue (venue_id INTEGER PRIMARY KEY, name TEXT, town TEXT, SURF TEXT,
            hire_hr REAL, capacity INTEGER, opened_year INTEGER, is_wheelchair INTEGER);
        CREATE TABLE game (game_id INTEGER PRIMARY KEY, venue_id INTEGER REFERENCES venue,
            KO_TM TEXT, game_date TEXT, status TEXT, duration_min INTEGER, posted_at TEXT);
    """)
    towns, kinds = ("Leeds", "Cork", "Turin"), ("clay", "grass")
    database.executemany(
        "INSERT INTO venue VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                n,
                f"{a} {b}",
                towns[n * 7 % 3],
                kinds[n % 2],
                n * 1.5 % 40,
                n * 37 % 900,
                1950 + n,
                n % 2,
            )
            for n, (a, b) in enumerate(
                (a, b) for a in ("Old", "New", "Long") for b in ("Hall", "Park", "Court", "Field")
            )
        ],
    )
    database.executemany(
        "INSERT INTO game VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                n,
                n % 11,
                f"{n % 9 + 10}:00",
                f"202{n % 3}-0{n % 8 + 1}-1{n % 7}",
                ("played", "off", "moved")[n * 5 % 3],
                n * 13 % 120,
                f"202{n % 3}-0{n % 8 + 1}-1{n % 7} 1{n % 9}:30:00",
            )
            for n in range(80)
        ],
    )
    database.commit()
    database.close()
    return path


def test_what_nobody_would_say_is_left_out_of_the_plain_world(club):
    world = profile(open_database(club))
    kept = {field.name for entity in world.plain.entities for field in entity.fields}
    every = {field.name for entity in world.entities for field in entity.fields}

    assert every - kept == {"SURF", "hire_hr", "is_wheelchair", "KO_TM"}


def test_cryptic_columns_are_hardly_ever_asked_about(club):
    tasks = synthesize(club, n=120, seed=2).tasks

    assert sum(any(c in t.sql for c in ("SURF", "hire_hr", "KO_TM")) for t in tasks) <= 4


def test_a_world_of_nothing_but_cryptic_names_is_used_as_it_is(tmp_path):
    path = tmp_path / "cryptic.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE qqz (x7 TEXT, fld_3 INTEGER, zzqp INTEGER)")
    rows = [(f"v{n % 5}", n * 7 % 50, n * 11 % 30) for n in range(60)]
    database.executemany("INSERT INTO qqz VALUES (?, ?, ?)", rows)
    database.commit()
    database.close()
    world = profile(open_database(path))

    assert world.plain is world
    assert len(synthesize(path, n=20).tasks) == 20


def test_a_date_with_a_time_of_day_is_asked_for_with_it(club):
    questions = [task.question for task in synthesize(club, n=300, seed=1).tasks]

    assert any("posting date and time" in question for question in questions)
    assert not any("game date and time" in question for question in questions)
