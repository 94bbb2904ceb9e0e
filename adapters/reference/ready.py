"""The model as it is trained: its number format, no dropout, activations kept or computed again.

The policy that learns has to be the policy that spoke: the same weights, read with the same
positions, with nothing drawn at random on the way. Whether that holds in training mode, which
gradient checkpointing needs, is measured, since models spell dropout in many ways.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from adapters.reference.config import ReferenceConfig
from toolgym.errors import ConfigurationError


def make_ready(model: PreTrainedModel, config: ReferenceConfig) -> None:
    """Make a model ready to be trained, in place.

    Raises:
        ConfigurationError: It does not compute in training mode what it computes in evaluation.
    """
    _set_dtype(model, getattr(torch, config.dtype))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, value in vars(module).items():  # who calls the function keeps a number
            if isinstance(value, float) and "drop" in name:
                setattr(module, name, 0.0)
    model.train(False)
    if config.gradient_checkpointing:
        # transformers 5.23 gave it another name, and warns of the old one.
        enable = getattr(model, "activation_checkpointing_enable", None)
        (enable or model.gradient_checkpointing_enable)()
        _train_like_evaluating(model)


def _set_dtype(model: PreTrainedModel, dtype: torch.dtype) -> None:
    """Convert what a checkpoint holds, as loading it in that format does.

    `model.to(dtype)` would round the rest too: with the frequencies of rotary positions in bfloat16
    a model misreads a context of some hundred tokens, and reads it right when it is loaded again.
    """
    exact = getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if tensor.is_floating_point() and not any(part in name for part in exact):
            tensor.data = tensor.data.to(dtype)


@torch.no_grad()
def _train_like_evaluating(model: PreTrainedModel) -> None:
    """Put it into training mode, in which alone activations are checkpointed."""
    ids = torch.arange(16, device=model.device)[None] % model.config.get_text_config().vocab_size

    def logits() -> Tensor:
        found: Tensor = model(input_ids=ids, use_cache=False).logits
        return found.float()

    expected = logits()
    model.train(True)
    error = float((logits() - expected).abs().max() / expected.std())
    if not error <= 1e-3:
        raise ConfigurationError(
            f"{type(model).__name__} computes something else in training mode (logits differ by"
            f" {error:.2g} of their spread), and gradient_checkpointing needs that mode: set it to"
            " False, or load the model with every dropout of its config at 0."
        )
