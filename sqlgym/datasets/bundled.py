"""The data sets that come with the package: finding them, and building them on first use.

"bundled" is kept as text (see `sqlgym.datasets.text_source`), in the wheel under
`sqlgym/_data/sql`, in a checkout under `data/sql`. It is built into a folder in the Spider layout
(see `sqlgym.datasets.layout`), in the cache, under a name that carries the hash of all its source
files: an edited source is built anew, an unchanged one is there at once. A question keeps its `id`
and `hardness` as extra keys.

"tiny" is generated (see `sqlgym.datasets.tiny_worlds`) into a folder of the same kind.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlgym import DATA_SETS
from sqlgym.datasets import layout, text_source, tiny_worlds
from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError, EnvironmentFault

DATASETS: Final = DATA_SETS


def unknown_dataset(name: str) -> ConfigurationError:
    """There is neither a data set nor a path of that name."""
    names = ", ".join(sorted(DATASETS))
    return ConfigurationError(
        f"there is no data set {name!r}: it is neither a file or folder nor one of {names}."
    )


def dataset_folder(name: str, cache: Path | None = None) -> Path:
    """The folder, in the Spider layout, of a data set that comes with this package.

    Args:
        name: One of `DATASETS`.
        cache: Where it is built on first use; None means `cache_folder()`.

    Raises:
        ConfigurationError: There is no data set of that name.
        EnvironmentFault: Its source is missing or damaged, or the cache cannot be written.
    """
    if name == "tiny":
        return tiny_worlds.build_tiny(cache)
    if name == "bundled":
        return build(bundled_dir(), cache)
    names = ", ".join(map(repr, DATASETS))
    raise ConfigurationError(f"There is no bundled data set {name!r}; there are {names}.")


def bundled_dir() -> Path:
    """The folder with the text of "bundled": in the installed package, else in the checkout.

    Raises:
        EnvironmentFault: Neither place has the folder.
    """
    package = Path(__file__).resolve().parents[1]
    places = [package / "_data" / "sql", package.parent / "data" / "sql"]
    for place in places:
        if place.is_dir():
            return place
    raise EnvironmentFault(
        f"The bundled data set is missing: neither {places[0]} nor {places[1]} exists.",
        "Install toolgym again, or run it from a checkout that has its data/ folder.",
    )


def databases_of_facts() -> list[str]:
    """The databases of "bundled" that hold facts of the world: a `SOURCE.md` names their source."""
    return sorted(path.parent.name for path in bundled_dir().glob("*/SOURCE.md"))


def build(source: Path, cache: Path | None = None) -> Path:
    """Build the text in a folder into the Spider layout, unless the cache has it already.

    Several processes may call this at once.

    Args:
        source: A folder with one folder per database, and `train.json`, `dev.json` and `test.json`,
            or some of them.
        cache: The cache folder; None means `cache_folder()`.

    Raises:
        EnvironmentFault: The source is missing or damaged (the message names file and place), or
            the cache cannot be written.
    """
    place = _place(source, cache or cache_folder())
    return layout.install(place, lambda: text_source.read_source(source))


def is_text(folder: Path) -> bool:
    """Whether a folder holds a data set as text: JSON schemas and CSV files."""
    schemas = (path.parent for path in folder.glob("*/schema.json"))
    return any(True for place in schemas for _ in place.glob("*.csv"))


def spider_layout(folder: Path) -> Path:
    """The folder itself, or what is built of it if it holds a data set as text.

    Raises:
        ConfigurationError: The text is damaged; the message names the file and the place in it.
        EnvironmentFault: The cache cannot be written.
    """
    if not is_text(folder):
        return folder
    with _faults_of_its_owner():
        place = _place(folder, cache_folder())

    def own() -> layout.FolderSource:
        with _faults_of_its_owner():
            return text_source.read_source(folder)

    return layout.install(place, own)


@contextmanager
def _faults_of_its_owner() -> Iterator[None]:
    """What is wrong in a folder that somebody named is theirs to mend."""
    try:
        yield
    except EnvironmentFault as fault:
        raise ConfigurationError(str(fault)) from fault


def _place(source: Path, cache: Path) -> Path:
    """Where the text in a folder is built: its name carries the hash of the content."""
    return cache / "sql" / f"{source.name}-{content_hash(source)[:16]}"


def content_hash(source: Path) -> str:
    """The sha256 over the format version and every JSON and CSV file, names and bytes, sorted."""
    paths = [path for pattern in ("*.json", "*.csv") for path in source.rglob(pattern)]
    stamps = []
    for path in paths:
        try:
            state = path.stat()
        except OSError as error:
            raise text_source.damaged(path, f"it cannot be read: {error.strerror}") from error
        stamps.append((path.relative_to(source).as_posix(), state.st_size, state.st_mtime_ns))
    return _hash_of(source, tuple(sorted(stamps)))


@functools.lru_cache(maxsize=32)
def _hash_of(source: Path, stamps: tuple[tuple[str, int, int], ...]) -> str:
    """The hash, computed once in a process for files that keep name, size and time of change."""
    digest = hashlib.sha256(f"{layout.FORMAT_VERSION}\n".encode())
    for name, _, _ in stamps:
        content = text_source.read_bytes(source / name)
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()
