"""The folder of an exported data set: one file for each split, and a card.

    README.md                          the card: what it is, and its types for `datasets`
    data/train-00000-of-00001.parquet  or .jsonl; one for each split

It is written beside its place, under a name that begins with a dot, and moved there by one rename,
so nobody ever sees half of it. The same order gives the same bytes: no clock is read, and rows come
in the order of the seed.
"""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, get_args

from adapters.export.card import MARK, card_text
from adapters.export.tables import Column, Export, Row, arrow_features, encodable, stored
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.runs.files import line_text, replace_folder

Format = Literal["parquet", "jsonl"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
CARD, DATA = "README.md", "data"
_ROWS: Final = 1000  # of one row group, so that memory does not grow with the data set


def check_format(name: str) -> Format:
    """The format of that name.

    Raises:
        ConfigurationError: There is none, or what it needs is not installed.
    """
    for known in FORMATS:
        if name != known:
            continue
        if name == "parquet" and importlib.util.find_spec("datasets") is None:
            raise ConfigurationError(
                "--format parquet needs the package datasets, not installed here; run: pip install"
                " 'toolgym[train]', or take --format jsonl, which needs nothing more."
            )
        return known
    raise ConfigurationError(f"--format must be {' or '.join(FORMATS)}, got {name!r}.")


def check_place(out: Path, overwrite: bool) -> None:
    """Refuse a place that is taken.

    Raises:
        ConfigurationError: It is no folder, or one with something in it, and `overwrite` is not set
            or it holds other things than an export.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ConfigurationError(f"--out {out} is not a folder: name another place.")
    names = {each.name for each in out.iterdir()} if out.is_dir() else set()
    if not names:
        return
    if not overwrite:
        raise ConfigurationError(
            f"--out {out} is not empty: name another folder, or add --overwrite to replace what an"
            " earlier export wrote there."
        )
    card = out / CARD
    is_ours = card.is_file() and MARK in card.read_text("utf-8", "replace")[: 2 * len(MARK)]
    if not is_ours or names > {CARD, DATA}:
        other = min(names - {CARD, DATA}, default=CARD)
        raise ConfigurationError(
            f"--out {out} holds {other}, which no export wrote, so --overwrite does not remove it:"
            " name another folder."
        )


def write_export(
    export: Export, out: Path, *, format: Format = "parquet", overwrite: bool = False
) -> dict[str, int]:
    """Write the folder.

    Args:
        export: Its rows are gone through here.
        out: The folder; it may be there if it is empty.
        format: `parquet` needs the package datasets.
        overwrite: Replace a folder that an earlier export wrote.

    Returns:
        How many rows each split has.

    Raises:
        ConfigurationError: The place is taken, or a split would have no rows.
        EnvironmentFault: It cannot be written.
    """
    check_place(out, overwrite)
    with put_in_place(out) as built:
        return _write(export, built, format)


@contextmanager
def put_in_place(out: Path) -> Iterator[Path]:
    """A folder to be made beside its place, and moved there when it is whole.

    Raises:
        EnvironmentFault: It cannot be written.
    """
    place = out.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{place.name}-", dir=place.parent, ignore_cleanup_errors=True
        ) as name:
            built = Path(name) / "built"
            yield built
            replace_folder(built, place, Path(name) / "old")
    except OSError as problem:
        raise EnvironmentFault(
            f"{out} cannot be written: {problem.strerror or problem}.",
            "Make room there, or name another folder with --out.",
        ) from problem


def _write(export: Export, built: Path, format: Format) -> dict[str, int]:
    (built / DATA).mkdir(parents=True)
    write = _write_parquet if format == "parquet" else _write_lines
    files = {split: f"{DATA}/{split}-00000-of-00001.{format}" for split in export.splits}
    counts = {}
    for split, rows in export.splits.items():
        ready = (encodable(row) for row in rows)
        counts[split] = write(built / files[split], export.columns, ready)
        if not counts[split]:
            why = sorted({each.code for each in export.left_out if each.split == split})
            raise ConfigurationError(
                f"there are no rows for the split {split}"
                + (f": all were left out ({', '.join(why)})." if why else ".")
            )
    text = card_text(export, counts, files)
    (built / CARD).write_text(text, encoding="utf-8")
    return counts


def _write_lines(file: Path, columns: Sequence[Column], rows: Iterable[Row]) -> int:
    count = 0
    with file.open("wb") as stream:
        for row in rows:
            stream.write(line_text({each.name: row[each.name] for each in columns}))
            count += 1
    return count


def _write_parquet(file: Path, columns: Sequence[Column], rows: Iterable[Row]) -> int:
    from datasets import Dataset
    from pyarrow import parquet

    features = arrow_features(columns)
    count = 0
    with parquet.ParquetWriter(file, features.arrow_schema) as writer:
        for batch in _batches(rows):
            held = {
                each.name: [stored(row[each.name], each.kind) for row in batch] for each in columns
            }
            writer.write_table(Dataset.from_dict(held, features=features).data.table)
            count += len(batch)
    return count


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    stream = iter(rows)
    while batch := list(itertools.islice(stream, _ROWS)):
        yield batch
