"""The folder of an exported data set, which `datasets.load_dataset` loads.

The card, `README.md`, declares the files and the column types. Each split is one file, such as
`data/train-00000-of-00001.parquet`, or the same name with the extension `.jsonl`.

Repeating an export produces identical bytes: no time is recorded, and the seed determines the order
of the rows.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from adapters.export.tables import Column, Export, Kind, json_text
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.runs.files import encode

Format = Literal["parquet", "jsonl"]
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def check_place(out: Path, format: Format = "jsonl") -> None:
    """Check that an export can be written.

    Raises:
        ConfigurationError: If `out` is a file or a non-empty folder, or the format needs a package
            that is not installed.
    """
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise ConfigurationError(f"{out} is not an empty folder. Choose another one.")
    if format == "parquet" and importlib.util.find_spec("datasets") is None:
        raise ConfigurationError(
            "--format parquet needs the package datasets; run: pip install 'toolgym[train]', or"
            " use --format jsonl, which needs no other package."
        )


@contextmanager
def put_in_place(out: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `out` when the `with` block ends without an exception.

    Raises:
        ConfigurationError: If `out` is a file or a non-empty folder.
        EnvironmentFault: If a file cannot be written.
    """
    check_place(out)
    place = out.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as name:
            built = Path(name, "built")
            built.mkdir()
            yield built
            built.rename(place)  # replaces an empty folder
    except OSError as problem:
        raise EnvironmentFault(
            f"{out} cannot be written: {problem.strerror or problem}.",
            "Free some disk space, or choose another folder.",
        ) from problem


def write_texts(texts: Mapping[str, str], folder: Path) -> None:
    """Write text files, which are given as a mapping from their paths in the folder."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(encode(text))


def write_export(export: Export, out: Path, *, format: Format = "parquet") -> dict[str, int]:
    """Write a data set. The folder is created atomically.

    Args:
        export: The data set. Its rows are consumed.
        out: The folder, which must not exist or must be empty.
        format: `parquet` requires the package datasets.

    Returns:
        The number of rows of each split.

    Raises:
        ConfigurationError: If the folder or the format cannot be used, or a split has no rows.
        EnvironmentFault: If a file cannot be written.
    """
    check_place(out, format)
    counts: dict[str, int] = {}
    files = {split: f"data/{split}-00000-of-00001.{format}" for split in export.splits}
    with put_in_place(out) as built:
        (built / "data").mkdir()
        for split, rows in export.splits.items():
            counts[split] = 0
            lines = (built / files[split]).with_suffix(".jsonl")
            with lines.open("w", encoding="utf-8") as stream:
                for row in rows:
                    line = json_text({each.name: row[each.name] for each in export.columns})
                    # UTF-8 has no lone surrogates, so a text gets the six characters of their
                    # escape.
                    line = _SURROGATE.sub(lambda found: rf"\\u{ord(found[0]):x}", line)
                    stream.write(f"{line}\n")
                    counts[split] += 1
            if not counts[split]:
                why = sorted({each.code for each in export.left_out if each.split == split})
                raise ConfigurationError(
                    f"there are no rows for the split {split}"
                    + (f": all were left out ({', '.join(why)})." if why else ".")
                )
            if format == "parquet":
                _to_parquet(lines, built / files[split], export.columns)
        (built / "README.md").write_bytes(encode(_card(export, files)))
    return counts


def _to_parquet(lines: Path, file: Path, columns: Iterable[Column]) -> None:
    """Convert JSON lines to Parquet and remove them."""
    import datasets

    def feature(kind: Kind) -> Any:
        if isinstance(kind, list):
            return datasets.List(feature(kind[0]))
        if isinstance(kind, dict):
            return {key: feature(each) for key, each in kind.items()}
        return datasets.Json() if kind == "json" else datasets.Value(kind)

    features = datasets.Features({each.name: feature(each.kind) for each in columns})
    with tempfile.TemporaryDirectory(dir=lines.parent) as cache:
        datasets.disable_progress_bars()
        try:
            data = datasets.Dataset.from_json(str(lines), features=features, cache_dir=cache)
            data.to_parquet(file)
        except datasets.exceptions.DatasetGenerationError as problem:
            raise OSError(f"{problem.__cause__ or problem}") from problem
        finally:
            datasets.enable_progress_bars()
    lines.unlink()


def _card(export: Export, files: Mapping[str, str]) -> str:
    """Return the text of the card: a header for `datasets` and the hub, then text for readers.

    The header declares the types of the columns. Without it, `datasets` would infer them from the
    JSON lines, incorrectly if rows differ. The values in the header are JSON, which is valid YAML.
    """

    def entry(name: str, kind: Kind) -> dict[str, Any]:
        if isinstance(kind, str):
            return {"name": name, "dtype": kind}
        inner = kind[0] if isinstance(kind, list) else kind
        inside = [entry(*each) for each in inner.items()] if isinstance(inner, dict) else inner
        return {"name": name, "list" if isinstance(kind, list) else "struct": inside}

    data_files = [{"split": split, "path": file} for split, file in files.items()]
    header = {
        "pretty_name": export.title,
        "tags": ["toolgym"],
        "configs": [{"config_name": "default", "data_files": data_files}],
        "dataset_info": {"features": [entry(each.name, each.kind) for each in export.columns]},
    }
    left_out = Counter((each.split, each.code) for each in export.left_out)
    facts = {
        **export.facts,
        **{f"left out of {split} as {code}": count for (split, code), count in left_out.items()},
    }
    load = 'from datasets import load_dataset\n\ndataset = load_dataset("path/to/this/folder")'
    return "\n".join(
        [
            "---",
            *(f"{key}: {json_text(value)}" for key, value in header.items()),
            "---",
            f"\n# {export.title}\n\n{export.about}\n",
            *(f"- {name}: {value}" for name, value in facts.items()),
            "\n## Columns\n",
            *(f"- `{each.name}`: {each.meaning}" for each in export.columns),
            f"\n## Use\n\n```python\n{load}\n```\n",
            *(f"{note}\n" for note in export.notes),
        ]
    )
