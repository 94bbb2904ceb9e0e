"""A GGUF file as a model folder that `from_pretrained` reads: weights, tokenizer, chat template.

The weights are written in float32. What four bits times a half-precision scale gives needs more
bits than bfloat16 has, so in float32 the folder holds what the file says; a run trains and is
measured in the same precision before and after; and every CPU multiplies float32 at full speed,
which of half precision only newer ones do. It takes twice the disk.

transformers reads the file and keeps a note in the model that it is quantised, which refuses to be
saved. So the weights go into a fresh model of the same configuration. Where the file's own names
for parts of the tokenizer are not read (`PublishedModel.single_digits`), they are set here.
"""

from __future__ import annotations

import io
import struct
from contextlib import redirect_stderr
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from adapters.training.models.chat_templates import with_chat_template
from adapters.training.models.published.catalogue import MANIFEST, PublishedModel, facts
from toolgym.errors import EnvironmentFault
from toolgym.runs.files import object_text, replace_file

_OF_THE_FILE: Final = ("quantization_config", "_name_or_path", "gguf_file")
"""Entries of the configuration that tell of the GGUF file."""


def convert(model: PublishedModel, file: Path, folder: Path) -> None:
    """Write the model folder of a GGUF file.

    Args:
        model: What the file is.
        file: The GGUF file.
        folder: A new folder; whoever calls this puts it in its place when it is whole.

    Raises:
        EnvironmentFault: The file cannot be read, or is not the model that it should be.
    """
    disable_progress_bar()
    source: dict[str, Any] = {"gguf_file": file.name}
    try:
        with redirect_stderr(io.StringIO()):  # a bar that transformers has no switch for
            tokenizer = AutoTokenizer.from_pretrained(str(file.parent), **source)
            read = AutoModelForCausalLM.from_pretrained(
                str(file.parent), dtype=torch.float32, **source
            )
    except (OSError, ValueError, LookupError, RuntimeError, ImportError, struct.error) as problem:
        raise EnvironmentFault(
            f"{file.name} of {model.requirement} cannot be read: {type(problem).__name__}:"
            f" {problem}",
            "Install the versions that constraints.txt pins.",
        ) from problem
    fresh = _fresh(read)
    fitted = _fitted(model, tokenizer, fresh)
    _check(model, fresh, fitted)
    folder.mkdir(parents=True)
    fresh.save_pretrained(folder)
    fitted.save_pretrained(folder)
    _write_manifest(model, folder)


def _fresh(read: PreTrainedModel) -> PreTrainedModel:
    """A model with the same weights that knows nothing of the file they came from."""
    values = {k: v for k, v in read.config.to_dict().items() if k not in _OF_THE_FILE}
    config = type(read.config).from_dict(values)
    for name in _OF_THE_FILE:
        if getattr(config, name, None) and name in vars(config):
            delattr(config, name)
    with torch.random.fork_rng():
        fresh: PreTrainedModel = type(read)(config)
    fresh.load_state_dict(read.state_dict())
    if read.generation_config is not None:
        fresh.generation_config = read.generation_config
    return fresh


def _fitted(
    model: PublishedModel, tokenizer: PreTrainedTokenizerBase, weights: PreTrainedModel
) -> PreTrainedTokenizerBase:
    """The tokenizer as the model was trained with, and with a chat template that shows tools."""
    if model.single_digits:
        digits = pre_tokenizers.Digits(individual_digits=True)
        bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner: Any = tokenizer
        inner.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, bytewise])
    tokenizer.model_max_length = model.context
    return with_chat_template(tokenizer, model.chat_template, weights)


def _check(
    model: PublishedModel, weights: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Make sure that it is the model of the catalogue, whole.

    Raises:
        EnvironmentFault: It is not.
    """
    parameters = sum(parameter.numel() for parameter in weights.parameters())
    wrong = []
    if parameters != model.parameters:
        wrong.append(f"{parameters:,} parameters in place of {model.parameters:,}")
    if not all(bool(torch.isfinite(parameter).all()) for parameter in weights.parameters()):
        wrong.append("weights that are not finite")
    embedding: Any = weights.get_input_embeddings()
    if len(tokenizer) > len(embedding.weight):
        wrong.append("tokens without an embedding")
    if wrong:
        raise EnvironmentFault(
            f"what was read of {model.requirement} has {' and '.join(wrong)}.",
            "Install the versions that constraints.txt pins.",
        )


def _write_manifest(model: PublishedModel, folder: Path) -> None:
    """Write down what the folder is made of, and the sizes of its files; last of all."""
    made_with = {name: version(name) for name in ("gguf", "transformers", "torch")}
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    record = {**dict(facts(model)), "made_with": made_with, "files": files}
    replace_file(folder / MANIFEST, [object_text(record)])
