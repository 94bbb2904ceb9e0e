"""The reference model of the KL penalty: the policy as it is when training begins.

TRL builds the reference by loading the policy's name once more. For a policy that was warmed up in
memory that name is the base model's, or nothing: the penalty then pulls towards a model that has
never seen a tool. So the policy is written to a folder first, and bears its name while TRL builds
its trainer. With LoRA there is no second model: the reference is the policy without its adapter,
or, where the policy came with a trained one, with a copy of that as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import PartialState
from transformers import PreTrainedModel
from trl import GRPOConfig

from toolgym.errors import ConfigurationError

FOLDER = "reference"


@contextmanager
def named_reference(
    model: Any, config: GRPOConfig, folder: Path | str | None, *, has_adapter: bool
) -> Iterator[None]:
    """A context in which the policy's name leads to its reference model.

    Args:
        model: The policy, or its path, in which case that is the reference too.
        config: Without `beta` there is no reference.
        folder: Path or hub id of the reference; None: the model is saved below the output folder.
        has_adapter: The policy gets a LoRA adapter, or has one.

    Raises:
        ConfigurationError: Another reference is named for a policy that is given by its path.
    """
    if not config.beta or has_adapter:
        yield
        return
    if not isinstance(model, PreTrainedModel):
        if folder is not None and str(folder) != str(model):
            raise ConfigurationError(
                f"TRL loads {model} for policy and reference alike, so reference={str(folder)!r}"
                " would be passed over: load the model yourself and give that instead of its path."
            )
        yield
        return
    own_name = model.config._name_or_path
    model.config._name_or_path = str(folder or _saved(model, config))
    try:
        yield
    finally:
        model.config._name_or_path = own_name


def _saved(model: PreTrainedModel, config: GRPOConfig) -> Path:
    folder = Path(str(config.output_dir)) / FOLDER
    state = PartialState()
    if state.is_main_process:
        model.save_pretrained(folder)
    state.wait_for_everyone()
    return folder
