"""Invented databases: each by its number, sound, different, and fit for questions."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from sqlgym import load_tasks
from sqlgym.invention import invent_databases
from sqlgym.invention.databases import vocabulary
from tests.toolgym.commands.command_line import run_here
from toolgym import ConfigurationError, EnvironmentFault


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return invent_databases(tmp_path_factory.mktemp("invented"), 60)


def schema(file: Path) -> dict[str, list[str]]:
    """The columns of each table."""
    with closing(sqlite3.connect(file)) as database:
        names = [
            row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE sql > ''")
        ]
        return {
            name: [row[1] for row in database.execute(f'PRAGMA table_info("{name}")')]
            for name in names
        }


def content(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as database:
        return list(database.iterdump())


def test_a_number_is_always_the_same_database(files: tuple[Path, ...], tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    again = invent_databases(tmp_path / "new", 3, 10, lambda done, n: told.append((done, n)))

    assert [file.name for file in again] == ["inv_010.sqlite", "inv_011.sqlite", "inv_012.sqlite"]
    assert [content(file) for file in again] == [content(file) for file in files[10:13]]
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert len({str(content(file)) for file in files}) == len(files)


def test_rows_refer_to_rows_and_columns_differ_in_their_values(files: tuple[Path, ...]) -> None:
    for file in files:
        with closing(sqlite3.connect(file)) as database:
            assert database.execute("PRAGMA foreign_key_check").fetchall() == []
            for table, columns in schema(file).items():
                (rows,) = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()
                assert 12 <= rows < 110
                for column in columns:
                    query = f'SELECT count(DISTINCT "{column}") FROM "{table}"'
                    assert database.execute(query).fetchone()[0] >= 2, (file.name, table, column)


def test_names_are_of_many_things_in_many_styles(files: tuple[Path, ...]) -> None:
    schemas = [schema(file) for file in files]
    tables = Counter(table.lower() for each in schemas for table in each)
    columns = {column for each in schemas for names in each.values() for column in names}

    assert len(tables) > 90
    assert max(tables.values()) < len(files) / 2
    for style in ("city_id", "cityId", "CityId", "City_Id"):
        assert style in columns
    assert {len(each) for each in schemas} >= {2, 3, 4, 5}


def test_no_table_is_one_of_those_that_bundled_sets_measure_on() -> None:
    """One may have the name of a table there, and the columns of another."""
    things, _ = vocabulary()
    plain = {thing.rstrip("s"): thing for thing in things} | {"citie": "city"}
    for task in {task.item: task for task in load_tasks("bundled", "test")}.values():
        for table, columns in schema(Path(task.database)).items():
            thing = plain.get(table.lower().rstrip("s"))
            own = {name for name, _ in things[thing].columns} if thing else set()
            assert not own & set(columns), (task.item, table)


def test_commands_go_from_nothing_to_tasks(tmp_path: Path) -> None:
    made = run_here("tasks", "invent", "--out", tmp_path / "made", "--n", 3, "--first", 7)
    assert (made.returncode, "3 databases, from inv_007.sqlite" in made.stdout) == (0, True)
    synth = run_here(
        *("tasks", "synth", tmp_path / "made", "--out", tmp_path / "tasks", "--n", 4),
        *("--splits", "dev=1"),
    )
    assert synth.returncode == 0, synth.stderr
    assert len(load_tasks(tmp_path / "tasks", "dev")) == 12

    again = run_here("tasks", "invent", "--out", tmp_path / "made", "--n", 3, "--first", 9)
    assert again.returncode == 2
    assert "inv_009.sqlite already exists: choose another folder" in again.stderr
    other = run_here("tasks", "invent", "--out", tmp_path, "--env", "aflowgym/Compose-v0")
    assert (other.returncode, "does not support the invention of items" in other.stderr) == (
        2,
        True,
    )


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        invent_databases(tmp_path / "file" / "in", 1)
    invent_databases(tmp_path / "out", 1)
    with pytest.raises(ConfigurationError, match="choose another folder"):
        invent_databases(tmp_path / "out", 1)
