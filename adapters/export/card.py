"""The card of an exported data set: a README with a header that `datasets` and the Hub read.

The header names the files of each split and the types of the columns. Without the types `datasets`
would guess them from the lines of JSON, and guess wrong where rows differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from adapters.export.tables import Export, json_text, kind_text, yaml_features

MARK: Final = "---\n# Written by `toolgym export`.\n"
"""The beginning of every card, by which an export is known."""
LICENCE: Final = "licence"
"""The fact of the card that becomes the licence in its header, if the Hub knows it by that name."""
_OF_THE_HUB: Final = ("apache-2.0", "mit", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "bsd-3-clause")


def card_text(export: Export, counts: Mapping[str, int], files: Mapping[str, str]) -> str:
    """The text of the card.

    Args:
        counts: The rows of each split.
        files: The file of each split, relative to the folder.
    """
    facts = _table(("what", "value"), export.facts.items())
    splits = _table(
        ("split", "file", "rows"), ((name, f"`{files[name]}`", counts[name]) for name in counts)
    )
    columns = _table(
        ("column", "type", "meaning"),
        ((f"`{each.name}`", kind_text(each.kind), each.meaning) for each in export.columns),
    )
    parts = [
        f"# {export.title}",
        export.about,
        facts,
        "## Splits",
        splits,
        *_left_out(export),
        "## Columns",
        columns,
        "## Use",
        "```python\nfrom datasets import load_dataset\n\n"
        'dataset = load_dataset("path/to/this/folder")\n```',
        *export.notes,
    ]
    return _header(export, files) + "\n" + "\n\n".join(parts) + "\n"


def _header(export: Export, files: Mapping[str, str]) -> str:
    lines = [f"pretty_name: {json_text(export.title)}"]
    licence = export.facts.get(LICENCE, "").lower()
    if licence in _OF_THE_HUB:
        lines.append(f"license: {licence}")
    lines += ["tags:", "- toolgym", "configs:", "- config_name: default", "  data_files:"]
    for split, file in files.items():
        lines += [f"  - split: {split}", f"    path: {file}"]
    lines += ["dataset_info:", "  features:"]
    lines += [f"  {line}" for line in yaml_features(export.columns)]
    return MARK + "\n".join([*lines, "---", ""])


def _left_out(export: Export) -> Iterator[str]:
    """How many tasks or episodes became no rows, by split and reason."""
    counted = Counter((each.split, each.code) for each in export.left_out)
    if counted:
        yield "Left out:"
        yield _table(
            ("split", "reason", "number"),
            ((split, f"`{code}`", number) for (split, code), number in sorted(counted.items())),
        )


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
