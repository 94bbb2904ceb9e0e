"""What a database is taken for: roles of columns, references, labels, what is left out."""

import sqlite3
from pathlib import Path

import pytest

from sqlgym.database.database import open_database
from sqlgym.synthesis.profiling import profile
from sqlgym.synthesis.roles import is_typable, role_of
from sqlgym.synthesis.schema import LARGE, Role


def world_of(path: Path, script: str, **options):
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    return profile(open_database(path), **options)


def rows(table: str, *values: str) -> str:
    return f"INSERT INTO {table} VALUES {', '.join(f'({value})' for value in values)};"


def role(name, values):
    present = [value for value in values if value is not None]
    return role_of(name, present, len(set(present)), len(present), False)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("age", [30, 41, 52, 30], Role.QUANTITY),
        ("age", ["30", "41", "52"], Role.QUANTITY),
        ("mpg", ["18", "null", "15"], Role.OTHER),
        ("year", [1999, 2004, 2010], Role.YEAR),
        ("hire_date", ["1987-06-17", "1989-09-21", "1990-01-03"], Role.DATE),
        ("hire_date", ["1987-13-45", "1989-09-21"], Role.OTHER),
        ("is_male", ["T", "F", "T"], Role.OTHER),
        ("phone", [5551234, 5552345, 5553456], Role.CODE),
        ("floor", [1, 2, 3, 2], Role.CODE),
        ("advisor", [1121, 7712, 1121], Role.CODE),
        ("number_of_rooms", [3, 5, 3], Role.QUANTITY),
        ("name", ["Ann", "Joe", "Bo"], Role.NAME),
        ("country", ["France", "France", "Peru", "Peru"], Role.CATEGORY),
        ("story", ["x" * 200, "y"], Role.TEXT),
        ("place", ["a\nb", "c"], Role.TEXT),
        ("picture", [b"\x00", b"\x01"], Role.OTHER),
        ("anything", [1, "two", 3], Role.OTHER),
        ("nothing", [None, None], Role.OTHER),
        ("huge", [1e400, 1.0], Role.OTHER),
    ],
)
def test_a_column_has_this_role(name, values, expected):
    assert role(name, values) == expected


def test_a_value_is_typed_only_if_it_can_be_found_again():
    typable = [is_typable(value) for value in ("on time", " a", "a  b", "", "N/A", "a\\r", 3)]
    assert typable == [True, False, False, False, False, False, True]


SINGERS = "CREATE TABLE singer (singer_id, name TEXT);" + rows(
    "singer", "1, 'Ann'", "2, 'Bo'", "3, 'Cy'", "4, 'Di'"
)


def test_references_are_inferred_from_names_and_values(tmp_path):
    script = SINGERS + (
        "CREATE TABLE song (id INTEGER PRIMARY KEY, title TEXT, singer_id INT, album_id INT);"
        + rows("song", "1, 'x', 1, 9", "2, 'y', 1, 9", "3, 'z', 2, 8", "4, 'u', 4, 7")
        + "CREATE TABLE album (id INTEGER PRIMARY KEY, name TEXT);"
        + rows("album", "1, 'p'", "2, 'q'")
    )

    world = world_of(tmp_path / "a.db", script)

    (link,) = world.links  # the albums 7 to 9 do not exist
    assert (link.child.name, link.column, link.parent.name) == ("song", "singer_id", "singer")
    assert (link.is_inferred, link.is_plain, link.childless) == (True, True, 1)


@pytest.mark.parametrize(
    ("column", "target"),
    [
        ("singer_id", "singer"),
        ("lead_singer_id", "singer"),
        ("producer_id", None),
        ("name", None),
    ],
)
def test_a_name_proposes_a_reference_or_not(tmp_path, column, target):
    script = SINGERS.replace("singer_id,", "id INT PRIMARY KEY,") + (
        f"CREATE TABLE song (song_no INTEGER PRIMARY KEY, {column} INT);"
        + rows("song", "1, 1", "2, 1", "3, 2")
    )

    world = world_of(tmp_path / "a.db", script)

    assert [link.parent.name for link in world.links] == ([target] if target else [])


def test_a_reference_to_a_column_with_repeated_values_is_none(tmp_path):
    script = (
        "CREATE TABLE singer (singer_id INT, name TEXT);"
        + rows("singer", "1, 'Ann'", "1, 'Bo'", "2, 'Cy'")
        + "CREATE TABLE song (id INT, singer_id INT REFERENCES singer (singer_id));"
        + rows("song", "1, 1", "2, 2")
    )

    assert world_of(tmp_path / "a.db", script).links == ()


def test_two_ways_between_two_tables_are_told_by_their_roles(tmp_path):
    script = (
        "CREATE TABLE port (id INTEGER PRIMARY KEY, name TEXT);"
        + rows("port", "1, 'A'", "2, 'B'", "3, 'C'")
        + "CREATE TABLE route (id INTEGER PRIMARY KEY, from_port_id INT REFERENCES port,"
        " to_port_id INT REFERENCES port);" + rows("route", "1, 1, 2", "2, 2, 3")
    )

    world = world_of(tmp_path / "a.db", script)

    assert {(link.role, link.is_plain) for link in world.links} == {
        ("origin port", False),
        ("destination port", False),
    }


def test_a_self_reference_is_a_role(tmp_path):
    script = "CREATE TABLE employee (id INTEGER PRIMARY KEY, name TEXT, manager_id INT);" + rows(
        "employee", "1, 'A', NULL", "2, 'B', 1", "3, 'C', 1", "4, 'D', 2"
    )

    (link,) = world_of(tmp_path / "a.db", script).links

    assert (link.role, link.is_plain, link.is_inferred) == ("manager", False, True)


def test_a_junction_is_a_bridge_both_ways(tmp_path):
    script = SINGERS + (
        "CREATE TABLE concert (concert_id INTEGER PRIMARY KEY, name TEXT);"
        + rows("concert", "1, 'x'", "2, 'y'")
        + "CREATE TABLE singer_in_concert (concert_id INT, singer_id INT);"
        + rows("singer_in_concert", "1, 1", "1, 2", "2, 2")
    )

    world = world_of(tmp_path / "a.db", script)

    ends = {(b.left.parent.name, b.right.parent.name) for b in world.bridges}
    assert ends == {("singer", "concert"), ("concert", "singer")}


@pytest.mark.parametrize(
    ("columns", "values", "label"),
    [
        ("id INTEGER PRIMARY KEY, name TEXT", ["1, 'A'", "2, 'B'"], ["name"]),
        ("id INTEGER PRIMARY KEY, name TEXT", ["1, 'A'", "2, 'A'"], ["id"]),
        ("id INTEGER PRIMARY KEY, name TEXT", ["1, 'A'", "2, NULL"], ["id"]),
        (
            "id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT",
            ["1, 'A', 'X'", "2, 'A', 'Y'"],
            ["first_name", "last_name"],
        ),
        (
            "id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT",
            ["1, 'A', 'X'", "2, 'A', 'X'"],
            ["id"],
        ),
        ("thing TEXT, size INT", ["'A', 1", "'B', 2"], ["thing"]),
        ("size INT", ["1", "2", "2"], None),
    ],
)
def test_rows_are_told_apart_by_a_unique_name_or_key(tmp_path, columns, values, label):
    world = world_of(tmp_path / "a.db", f"CREATE TABLE thing ({columns});{rows('thing', *values)}")

    found = world.entities[0].label
    assert (found and [field.name for field in found.fields]) == label


def test_columns_of_one_noun_are_told_apart(tmp_path):
    script = 'CREATE TABLE t1 (emp_name TEXT, employee_name TEXT, "Name " TEXT);' + rows(
        "t1", "'a', 'b', 'c'", "'d', 'e', 'f'"
    )

    nouns = [field.noun.one for field in world_of(tmp_path / "a.db", script).entities[0].fields]

    assert len(set(nouns)) == 3


def test_what_is_not_used_has_a_reason(tmp_path):
    script = SINGERS + (
        "CREATE TABLE nobody (id INT); CREATE VIEW best AS SELECT * FROM singer;"
        "CREATE VIEW broken AS SELECT * FROM gone;"
    )

    left_out = world_of(tmp_path / "a.db", script).left_out

    assert left_out == {
        "nobody": "It is empty.",
        "best": "It is a view, whose rows are those of tables.",
        "broken": "It is a view, whose rows are those of tables.",
    }


def test_a_view_is_used_where_it_is_asked_for(tmp_path):
    script = SINGERS + "CREATE VIEW best AS SELECT * FROM singer WHERE singer_id < 4;"

    world = world_of(tmp_path / "a.db", script, tables=["BEST"])

    assert [entity.name for entity in world.entities] == ["best"]
    assert world.left_out == {"singer": "It is not one of the requested tables."}


def test_values_too_long_to_be_read_spoil_their_column_only(tmp_path):
    script = "CREATE TABLE doc (id INTEGER PRIMARY KEY, name TEXT, body TEXT);" + rows(
        "doc", f"1, 'A', '{'x' * 200_000}'", "2, 'B', 'y'", "3, 'C', 'z'"
    )

    (entity,) = world_of(tmp_path / "a.db", script).entities

    assert [field.name for field in entity.fields] == ["id", "name"]


def test_a_large_table_is_sampled_and_still_counted(tmp_path):
    count = LARGE + 1_000
    script = (
        "CREATE TABLE sale (id INTEGER PRIMARY KEY, amount INT, kind TEXT, sold TEXT);"
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        " INSERT INTO sale SELECT i, i % 977, CASE WHEN i % 3 THEN 'a' ELSE 'b' END,"
        " CASE WHEN i % 5 THEN '2020-01-01' END FROM n;"
    )

    (entity,) = world_of(tmp_path / "a.db", script).entities

    fields = {field.name: field for field in entity.fields}
    assert entity.rows == count
    assert fields["sold"].nulls == count // 5
    assert fields["amount"].distinct == 977
    assert fields["kind"].role == Role.CATEGORY
    assert min(fields["amount"].values) < 50
    assert max(fields["amount"].values) > 900


def test_a_number_that_is_always_a_key_of_another_table_is_no_quantity(tmp_path):
    cities = rows("city", *(f"{i}, 'City {i}'" for i in range(40)))
    script = (
        "CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT);"
        + cities
        + "CREATE TABLE country (id INTEGER PRIMARY KEY, name TEXT, seat INT, area INT);"
        + rows("country", *(f"{i}, 'C{i}', {i * 7 % 40}, {i * 5 % 40}" for i in range(9)))
        + "CREATE TABLE street (id INTEGER PRIMARY KEY, city_id INT REFERENCES city);"
        + rows("street", "1, 3", "2, 4")
    )

    country = world_of(tmp_path / "a.db", script).entities[1]

    assert [field.role for field in country.fields[2:]] == [Role.CODE, Role.QUANTITY]


def test_rows_of_a_junction_are_no_things(tmp_path):
    script = (
        "CREATE TABLE happy_hour (id INTEGER PRIMARY KEY, day TEXT);"
        + rows("happy_hour", "1, 'Monday'", "2, 'Friday'")
        + "CREATE TABLE member (member_id INTEGER PRIMARY KEY, name TEXT);"
        + rows("member", "1, 'Ann'", "2, 'Bo'")
        + "CREATE TABLE happy_hour_member (hour_id INT, member_id INT REFERENCES member,"
        " total_amount REAL, PRIMARY KEY (hour_id, member_id));"
        + rows("happy_hour_member", "1, 1, 2.5", "2, 1, 3.5")
    )

    world = world_of(tmp_path / "a.db", script)

    assert [entity.is_link for entity in world.entities] == [False, False, True]


def test_names_that_are_no_words_are_left_out_where_others_are_enough(tmp_path):
    script = (
        "CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT, city TEXT, area REAL, opened TEXT,"
        " est_low REAL, sales REAL, staff_cnt INT, x7 INT);"
        + rows(
            "shop", *(f"{i}, 'S{i}', 'Rome', {i}.5, '2020-01-0{i}', 1, {i}, {i}, 3" for i in (1, 2))
        )
        + "CREATE TABLE zzqp (id INTEGER PRIMARY KEY, name TEXT);"
        + rows("zzqp", "1, 'A'")
    )

    world = world_of(tmp_path / "a.db", script)

    (shop,) = world.entities
    assert not {"est_low", "x7"} & {field.name for field in shop.fields}
    assert world.left_out == {"zzqp": "Its name cannot be read as words."}
