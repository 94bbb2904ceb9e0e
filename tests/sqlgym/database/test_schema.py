"""What a schema tells, and how forgiving it is about names."""

import sqlite3

import pytest

from sqlgym.database.database import open_database
from sqlgym.database.description import describe_table
from sqlgym.database.schema import ForeignKey, bare_name
from toolgym.errors import ToolError

SCRIPT = """
CREATE TABLE stadium (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE "Order Items" (
    "order" INT, product INT DEFAULT 1, stadium_id INT NOT NULL REFERENCES stadium,
    double_id INT AS (product * 2), PRIMARY KEY ("order", product),
    FOREIGN KEY (product) REFERENCES STADIUM (ID));
CREATE TABLE child (a INT, b INT, FOREIGN KEY (a, b) REFERENCES "Order Items");
CREATE VIEW names AS SELECT name FROM stadium;
CREATE VIEW broken AS SELECT x FROM gone;
CREATE VIRTUAL TABLE docs USING fts5(body);
INSERT INTO stadium VALUES (1, 'Rome');
"""


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "s.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCRIPT)
    connection.close()
    return open_database(path)


@pytest.fixture
def schema(database):
    return database.schema


def test_views_and_virtual_tables_count_and_their_shadows_do_not(schema):
    assert schema.names == ("stadium", "Order Items", "child", "names", "broken", "docs")
    assert [table.is_view for table in schema.tables] == [False] * 3 + [True, True, False]


def test_a_description_is_one_line_per_column_with_keys_marked(database, schema):
    assert describe_table(schema.find("order items"), schema, database).splitlines() == [
        "Order Items (0 rows)",
        "order INT primary key <- child.a",
        "product INT primary key -> stadium.id <- child.b",
        "stadium_id INT -> stadium.id",
        "double_id INT",
    ]
    names = describe_table(schema.find("names"), schema, database)
    assert names == "names view (1 row)\nname TEXT"
    assert describe_table(schema.find("broken"), schema, database) == "broken view"
    assert describe_table(schema.find("stadium"), schema) == (
        "stadium\nid INTEGER primary key <- Order Items.stadium_id, Order Items.product\nname TEXT"
    )


def test_a_description_is_made_once_for_each_schema_of_a_database(database, schema):
    more = schema.with_references([ForeignKey("child", "a", "stadium", "id")])
    own, other = (describe_table(s.find("stadium"), s, database) for s in (schema, more))

    assert "child.a" in other
    assert "child.a" not in own
    assert describe_table(schema.find("stadium"), schema, database) is own


def test_a_composite_reference_without_columns_means_the_primary_key(schema):
    assert schema.find("child").foreign_keys == (
        ForeignKey("child", "a", "Order Items", "order"),
        ForeignKey("child", "b", "Order Items", "product"),
    )


@pytest.mark.parametrize(
    "name", ["STADIUM", ' "stadium" ', "[Stadium]", "`stadium`", "main.stadium", "'stadium';"]
)
def test_a_table_is_found_whatever_its_case_quotes_or_qualifier(schema, name):
    assert schema.find(name).name == "stadium"


def test_an_unknown_table_is_told_with_the_nearest_or_with_all(schema):
    with pytest.raises(ToolError, match=r"no table 'stadum'\. Did you mean 'stadium'\?"):
        schema.find("stadum")
    with pytest.raises(ToolError, match=r"The tables are: stadium, Order Items, child"):
        schema.find("zzz")
    with pytest.raises(ToolError, match=r"unknown_table"):
        schema.find("x" * 100_000)


def test_the_nearest_column_prefers_the_tables_that_were_named(schema):
    found = schema.nearest_column("t1.Name", ["names"])
    assert found is not None
    assert (found[0].name, found[1].name) == ("names", "name")
    assert schema.nearest_column("qqqqqqqq") is None


def test_further_references_complement_the_declared_ones(schema):
    extra = [
        ForeignKey("CHILD", "A", "Stadium", "ID"),
        ForeignKey("order items", "product", "stadium", "id"),
        ForeignKey("child", "a", "nowhere", "id"),
    ]
    richer = schema.with_references(extra)
    assert ForeignKey("child", "a", "stadium", "id") in richer.find("child").foreign_keys
    assert len(richer.find("child").foreign_keys) == 3
    assert richer.find("order items") == schema.find("order items")


def test_a_bare_name_keeps_what_is_inside_its_quotes():
    assert bare_name('main."a.b"') == "a.b"
    assert bare_name("t.[x y]") == "x y"
    assert bare_name("") == ""
