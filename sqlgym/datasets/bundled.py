"""The data sets in the package: `bundled` and `tiny`.

Each data set is a folder in the Spider layout (`sqlgym.datasets.spider`) with SQL dumps instead of
database files. The folders are in `sqlgym/_data/sql` in the wheel and in `data/sql` in a checkout.
`dataset_folder` builds the databases on first use, in a folder of the cache whose name contains a
hash of the sources.
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
    """Return the absolute path of a data set, given its name or path.

    Raises:
        ConfigurationError: The data set does not exist.
        EnvironmentFault: A bundled data set cannot be built.
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
    """Return the folder of a bundled data set, after building its missing files.

    Several processes may build the files at the same time. All processes write the same content,
    and each file appears under its name only when it is complete.

    Args:
        name: One of `sqlgym.DATA_SETS`.
        cache: The cache folder; None means `cache_folder()`.

    Raises:
        EnvironmentFault: The sources are missing, or the cache cannot be written.
    """
    source = bundled_dir() / name
    if not _sources(source):
        raise EnvironmentFault(
            f"the bundled data set {name!r} is missing from {source}.",
            "Reinstall toolgym, or run it from a checkout that contains its data/ folder.",
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
            "Make this folder writable, or set TOOLGYM_CACHE to a writable folder.",
        ) from error
    return folder


def bundled_dir() -> Path:
    """Return the folder with the sources, from the installed package or from the checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data" / "sql"
    return installed if installed.is_dir() else package.parent / "data" / "sql"


def _sources(source: Path) -> list[Path]:
    """Return the question files and the dumps of a data set."""
    return sorted([*source.glob("*.json"), *source.glob("database/*/*.sql")])


@functools.cache
def _content_hash(source: Path) -> str:
    """Return a hash of the names and contents of all source files, computed once per process."""
    digest = hashlib.sha256()
    for file in _sources(source):
        content = file.read_bytes()
        digest.update(f"{file.name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
