"""The data sets that come with the package: `bundled` and `tiny`.

Each is a folder in the Spider layout (`sqlgym.datasets.spider`) with SQL dumps instead of database
files: in the wheel under `sqlgym/_data/sql`, in a checkout under `data/sql`. `dataset_folder`
builds the databases on first use, in a folder of the cache whose name has a hash of the sources.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from sqlgym import DATA_SETS
from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError, EnvironmentFault


def locate(dataset: str | Path) -> Path:
    """Return the absolute path of a data set with a name or path.

    Raises:
        ConfigurationError: There is no such data set.
        EnvironmentFault: A data set of the package cannot be built.
    """
    if dataset in DATA_SETS:
        return dataset_folder(str(dataset))
    with suppress(OSError, ValueError):  # no file can have this name
        path = Path(dataset).expanduser().resolve()
        if path.exists():
            return path
    raise ConfigurationError(
        f"there is no data set {str(dataset)!r}: it is neither a file or folder nor one of"
        f" {', '.join(DATA_SETS)}."
    )


def dataset_folder(name: str, cache: Path | None = None) -> Path:
    """Return the folder of a data set of the package, after building the files that it lacks.

    Several processes may build at the same time: each file is moved to its place as a whole, and
    all processes write the same content.

    Args:
        name: One of `sqlgym.DATA_SETS`.
        cache: The cache folder; None means `cache_folder()`.

    Raises:
        EnvironmentFault: The sources are missing, or the cache cannot be written.
    """
    source = bundled_dir() / name
    if not _sources(source):
        raise EnvironmentFault(
            f"the bundled data set {name!r} is missing: there is none in {source}.",
            "Install toolgym again, or run it from a checkout that has its data/ folder.",
        )
    folder = (cache or cache_folder()) / "sql" / f"{name}-{_content_hash(source)}"
    missing = {}
    for file in _sources(source):
        place = folder / file.relative_to(source)
        if file.suffix == ".sql":
            place = place.with_suffix(".sqlite")
        if not place.exists():
            missing[file] = place
    if not missing:
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=folder.parent) as temporary:
            for file, place in missing.items():
                fresh = Path(temporary) / place.name
                if file.suffix == ".sql":
                    with closing(sqlite3.connect(fresh)) as connection:
                        connection.execute("PRAGMA synchronous = OFF")
                        connection.executescript(file.read_text("utf-8"))
                else:
                    shutil.copyfile(file, fresh)
                place.parent.mkdir(parents=True, exist_ok=True)
                fresh.replace(place)
    except (OSError, sqlite3.Error) as error:
        raise EnvironmentFault(
            f"the data set {name!r} cannot be built in {folder}: {error}.",
            "Make that folder writable, or set TOOLGYM_CACHE to one that is.",
        ) from error
    return folder


def bundled_dir() -> Path:
    """Return the folder with the sources: in the installed package, else in the checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data" / "sql"
    return installed if installed.is_dir() else package.parent / "data" / "sql"


def _sources(source: Path) -> list[Path]:
    """Return the files with questions and the dumps of a data set."""
    return sorted([*source.glob("*.json"), *source.glob("database/*/*.sql")])


@functools.cache
def _content_hash(source: Path) -> str:
    """Return a hash of the names and contents of all source files, computed once per process."""
    digest = hashlib.sha256()
    for file in _sources(source):
        content = file.read_bytes()
        digest.update(f"{file.name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
