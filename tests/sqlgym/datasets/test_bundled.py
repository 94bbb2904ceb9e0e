"""Building the bundled data sets: every file whole, the same content for all processes."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sqlgym import DATA_SETS, load_tasks
from sqlgym.database.sqlite_file import connect_readonly
from sqlgym.datasets import bundled
from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError, EnvironmentFault

ROOT = Path(bundled.__file__).resolve().parents[2]


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", DATA_SETS)
def test_every_database_is_sound_and_its_references_hold(name):
    files = list(bundled.dataset_folder(name).glob("database/*/*.sqlite"))
    assert len(files) == {"bundled": 22, "tiny": 33}[name]
    for file in files:
        with closing(connect_readonly(file)) as database:
            assert database.execute("PRAGMA foreign_key_check").fetchall() == []
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert database.execute("PRAGMA journal_mode").fetchall() == [("delete",)]


def test_two_builds_have_the_same_bytes_and_what_is_built_is_not_built_again(tmp_path):
    one, two = (bundled.dataset_folder("tiny", tmp_path / name) for name in ("one", "two"))
    before = {path: path.stat().st_mtime_ns for path in one.rglob("*")}

    assert one.name == two.name
    assert contents(one) == contents(two)
    assert bundled.dataset_folder("tiny", tmp_path / "one") == one
    assert {path: path.stat().st_mtime_ns for path in one.rglob("*")} == before


def test_another_content_of_the_sources_has_another_place(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "bundled_dir", lambda: tmp_path)
    for source, text in (("tiny", "CREATE TABLE t (x)"), ("bundled", "CREATE TABLE t (y)")):
        (tmp_path / source / "database" / "a").mkdir(parents=True)
        (tmp_path / source / "database" / "a" / "a.sql").write_text(text)
    folders = [bundled.dataset_folder(name, tmp_path / "cache") for name in DATA_SETS]

    assert len({folder.name.partition("-")[2] for folder in folders}) == 2
    assert all((folder / "database" / "a" / "a.sqlite").is_file() for folder in folders)


def test_files_that_the_cache_lost_are_built_again(tmp_path):
    folder = bundled.dataset_folder("tiny", tmp_path)
    whole = contents(folder)
    for name in ("train.json", "database/shop_0/shop_0.sqlite"):
        (folder / name).unlink()
    bundled.dataset_folder("tiny", tmp_path)
    assert contents(folder) == whole


@pytest.mark.integration
def test_processes_that_start_at_the_same_time_build_the_same_folder(tmp_path):
    code = (
        "import sys, pathlib; from sqlgym.datasets import bundled; "
        "print(flush=True); sys.stdin.readline(); "
        "print(bundled.dataset_folder('bundled', pathlib.Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "cache")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in processes:
        process.stdout.readline()  # it is imported, and waits for the start
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    places = {process.communicate(timeout=600)[0].strip() for process in processes}

    assert [process.returncode for process in processes] == [0] * 2
    (place,) = places
    assert contents(Path(place)) == contents(bundled.dataset_folder("bundled", tmp_path / "alone"))
    assert [path.name for path in Path(place).parent.iterdir()] == [Path(place).name]


def test_a_cache_that_cannot_be_written_is_a_fault_with_the_next_step(tmp_path):
    (tmp_path / "cache").write_text("a file in place of the folder")
    with pytest.raises(
        EnvironmentFault, match=r"cannot be built in .* set TOOLGYM_CACHE to a writable"
    ):
        bundled.dataset_folder("tiny", tmp_path / "cache")


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "mine"))
    assert bundled.dataset_folder("tiny").is_relative_to(tmp_path / "mine")
    if sys.platform == "linux":
        monkeypatch.delenv("TOOLGYM_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache_folder() == tmp_path / "toolgym"


def test_an_installed_package_reads_its_own_data_before_a_checkouts(monkeypatch, tmp_path):
    monkeypatch.setattr(bundled, "__file__", str(tmp_path / "sqlgym" / "datasets" / "bundled.py"))
    with pytest.raises(
        EnvironmentFault, match=r"data set 'tiny' is missing from .*Reinstall toolgym"
    ):
        bundled.dataset_folder("tiny")
    for place in (tmp_path / "data" / "sql", tmp_path / "sqlgym" / "_data" / "sql"):
        place.mkdir(parents=True)
        assert bundled.bundled_dir() == place


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"no data set 'huge'.* one of bundled, tiny"):
        load_tasks("huge", "train")
