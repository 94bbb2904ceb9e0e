"""Copies a folder of tasks with questions rephrased by a chat model: `toolgym tasks rephrase`.

Each rephrased entry keeps its original question as `original`. All other keys, files and databases
are copied unchanged. `REPHRASING.md` lists the counts. See `sqlgym.synthesis.rephrasing` for the
checks.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

from sqlgym.datasets.spider import (
    DatabaseFiles,
    foreign_keys_of,
    read_entries,
    read_entry,
    splits_of,
)
from sqlgym.datasets.writing import check_place, replacing, write_json
from sqlgym.synthesis.rephrasing import rephrase
from toolgym.errors import ConfigurationError, TaskRefused
from toolgym.family import Ask
from toolgym.runs.files import line_text
from toolgym.workers import Progress

NOTE: Final = "REPHRASING.md"


def rephrase_folder(
    source: Path, out: Path, ask: Ask, overwrite: bool = False, progress: Progress | None = None
) -> dict[str, Any]:
    """Write a copy of a folder in the Spider layout with rephrased questions.

    Args:
        source: The folder, with `.json` or `.jsonl` files.
        out: The folder to write.
        ask: Function that sends requests to the chat model and returns the replies.
        overwrite: Whether to replace an existing folder that this function has written.
        progress: Called with the number of finished questions and the total.

    Returns:
        A dict with `out`, `questions`, `rephrased`, `refused` (number of rejected replies by
        reason) and `unusable` (entries that cannot be tasks and are copied unchanged).

    Raises:
        ConfigurationError: `source` has no questions, or `out` already exists.
        EnvironmentFault: The chat model does not reply, or the folder cannot be written.
    """
    folder, place = source.expanduser().resolve(), out.expanduser().absolute()
    splits = splits_of(folder) if folder.is_dir() else {}
    if not splits:
        raise ConfigurationError(f"{source} is not a folder with questions in the Spider layout.")
    if place.is_relative_to(folder):
        raise ConfigurationError(f"{out} is inside {source}: choose another folder.")
    check_place(place, NOTE, overwrite)  # fail before the work starts
    contents: dict[Path, list[Any]] = {}
    entries, tasks, unusable = [], [], 0
    for split, files in splits.items():
        found, keys = DatabaseFiles(files[0].parent, split), foreign_keys_of(files[0].parent)
        for file in files:
            contents[file] = read_entries(file)
            for entry in contents[file]:
                try:
                    tasks.append(read_entry(entry, "", found, keys, str(file)))
                    entries.append(entry)
                except TaskRefused:
                    unusable += 1
    questions, refused = rephrase(tasks, ask, progress)
    for entry, question in zip(entries, questions, strict=True):
        if question is not None:
            entry |= {"original": entry["question"], "question": question}
    result = {
        "out": str(out),
        "questions": len(tasks),
        "rephrased": sum(question is not None for question in questions),
        "refused": dict(sorted(refused.items())),
        "unusable": unusable,
    }
    note = f"# Rephrased tasks\n\nWritten by `toolgym tasks rephrase`: {json.dumps(result)}\n"
    with replacing(place, NOTE, note, overwrite) as built:
        shutil.copytree(folder, built, symlinks=True, dirs_exist_ok=True)
        for file, content in contents.items():
            copy = built / file.relative_to(folder)
            if file.suffix == ".jsonl":
                copy.write_bytes(b"".join(map(line_text, content)))
            else:
                write_json(copy, content)
    return result
