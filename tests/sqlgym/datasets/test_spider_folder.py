"""What is written as a database is what was given: declarations, keys, and every value."""

import json
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlgym.datasets import bundled, layout
from sqlgym.datasets.layout import ColumnSource, DatabaseSource, FolderSource, TableSource


@pytest.mark.parametrize("name", ["bundled", "tiny"])
def test_a_bundled_database_declares_what_its_schema_file_says(name):
    folder = bundled.dataset_folder(name)
    for tables in json.loads((folder / "tables.json").read_bytes()):
        path = folder / "database" / tables["db_id"] / f"{tables['db_id']}.sqlite"
        database = sqlite3.connect(path)
        declared, columns = 0, []
        for number, table in enumerate(tables["table_names_original"]):
            declared += len(database.execute(f"PRAGMA foreign_key_list('{table}')").fetchall())
            for column in database.execute(f"PRAGMA table_info('{table}')").fetchall():
                columns.append([number, column[1]])
        assert columns == tables["column_names_original"][1:]
        assert declared == len(tables["foreign_keys"])
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
        assert database.execute("PRAGMA page_size").fetchall() == [(4096,)]
        database.close()


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
cells = st.tuples(
    st.none() | st.integers(-(10**18) + 1, 10**18 - 1),
    st.none() | texts,
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)


@settings(max_examples=30)
@given(st.lists(cells, max_size=5))
def test_what_goes_into_a_database_comes_out_again(tmp_path_factory, values):
    columns = (ColumnSource("i", "INTEGER"), ColumnSource("t", "TEXT"), ColumnSource("r", "REAL"))
    table = TableSource("order", columns, rows=tuple(values))  # a keyword: names must be quoted
    place = tmp_path_factory.mktemp("any") / "built"
    farm = DatabaseSource("farm", (table,))
    layout.install(place, lambda: FolderSource((farm,), train=(), dev=()))
    database = sqlite3.connect(place / "database" / "farm" / "farm.sqlite")
    assert database.execute('SELECT * FROM "order"').fetchall() == values
    database.close()
