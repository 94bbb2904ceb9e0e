"""The data sets that come with the package: finding them, and building them on first use.

"bundled", "bundled-2" and "bundled-3" are kept as text (see `sqlgym.datasets.text_source`), in the
wheel under `sqlgym/_data`, in a checkout under `data`. Each is built into a folder in the Spider
layout (see `sqlgym.datasets.layout`), in the cache, under a name that carries the hash of all its
source files: an edited source is built anew, an unchanged one is there at once. A question keeps
its `id` and `hardness` as extra keys. What was published under a name stays as it was, so that one
seed keeps meaning one task: a set that grows gets a new name.

"tiny" is generated (see `sqlgym.datasets.tiny_worlds`) into a folder of the same kind.
"""

from __future__ import annotations

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
_SOURCES: Final = {
    "bundled": "sql",
    "bundled-2": "sql2",
    "bundled-3": "sql3",
}  # name -> folder under data/, for those kept as text


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
    return build(bundled_dir(name), cache)


def bundled_dir(name: str = "bundled") -> Path:
    """The folder with the text of a data set: in the installed package, else in the checkout.

    Raises:
        ConfigurationError: No text is bundled under that name.
        EnvironmentFault: Neither place has the folder.
    """
    if name not in _SOURCES:
        names = ", ".join(map(repr, DATASETS))
        raise ConfigurationError(f"There is no bundled data set {name!r}; there are {names}.")
    package = Path(__file__).resolve().parents[1]
    places = [package / "_data" / _SOURCES[name], package.parent / "data" / _SOURCES[name]]
    for place in places:
        if place.is_dir():
            return place
    raise EnvironmentFault(
        f"The bundled data set {name!r} is missing: neither {places[0]} nor {places[1]} exists.",
        "Install toolgym again, or run it from a checkout that has its data/ folder.",
    )


def facts_in(name: str) -> list[str]:
    """The databases of a data set that hold facts of the world.

    Args:
        name: One of `DATASETS`.
    """
    source = bundled_dir(name) if name in _SOURCES else None
    folders = (source, *text_source.others(source)) if source is not None else ()
    composed = [folder for folder in folders if text_source.is_composed(folder)]
    return sorted({db_id for folder in composed for db_id in text_source.entry_of(folder).facts})


def build(source: Path, cache: Path | None = None) -> Path:
    """Build the text in a folder into the Spider layout, unless the cache has it already.

    Several processes may call this at once. What is cached costs one hash of the source to find.

    Args:
        source: A folder with one folder per database, and `train.json` and `dev.json`, or a
            `dataset.json`.
        cache: The cache folder; None means `cache_folder()`.

    Raises:
        EnvironmentFault: The source is missing or damaged (the message names file and place), or
            the cache cannot be written.
    """
    return layout.install(_place(source, cache or cache_folder()), lambda: read(source))


def is_text(folder: Path) -> bool:
    """Whether a folder holds a data set as text: a `dataset.json`, or a schema beside CSV files."""
    schemas = (path.parent for path in folder.glob("*/schema.json"))
    return text_source.is_composed(folder) or any(
        True for place in schemas for _ in place.glob("*.csv")
    )


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
            return read(folder)

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


def read(source: Path) -> layout.FolderSource:
    """Read and check the text in a folder, whether or not it is composed of several.

    Raises:
        EnvironmentFault: A file is missing or damaged; the message names it and the place in it.
    """
    if text_source.is_composed(source):
        return text_source.read(source)
    return text_source.read_source(source)


def content_hash(source: Path) -> str:
    """The sha256 over the format version and every JSON and CSV file, names and bytes, sorted.

    The files of the folders that a `dataset.json` refers to count too.
    """
    digest = hashlib.sha256(f"{layout.FORMAT_VERSION}\n".encode())
    for folder in (source, *text_source.others(source)):
        paths = [path for pattern in ("*.json", "*.csv") for path in folder.rglob(pattern)]
        for name in sorted(path.relative_to(folder).as_posix() for path in paths):
            content = text_source.read_bytes(folder / name)
            digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()
