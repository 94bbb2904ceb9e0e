"""Prepares a model for reinforcement learning: dtype, no dropout, gradient checkpointing.

The trained policy has to be the one that sampled the rollouts, so dropout is disabled. Gradient
checkpointing needs training mode, so the logits in that mode are compared with those in evaluation
mode.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from toolgym.errors import ConfigurationError


def make_ready(model: PreTrainedModel, dtype: str, gradient_checkpointing: bool) -> None:
    """Prepare a model for training, in place.

    Args:
        dtype: Data type of the weights: `float32` or `bfloat16`.
        gradient_checkpointing: Whether activations are recomputed instead of kept.

    Raises:
        ConfigurationError: The logits in training mode differ from those in evaluation mode.
    """
    _set_dtype(model, getattr(torch, dtype))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, value in vars(module).items():  # modules that call functional.dropout
            if isinstance(value, float) and "drop" in name:
                setattr(module, name, 0.0)
    model.train(False)
    if gradient_checkpointing:
        # transformers 5.23 renamed the method, and warns about the old name.
        enable = getattr(model, "activation_checkpointing_enable", None)
        (enable or model.gradient_checkpointing_enable)()
        _enter_training_mode(model)


def _set_dtype(model: PreTrainedModel, dtype: torch.dtype) -> None:
    """Convert the tensors of the state dict, as loading a checkpoint in that dtype does.

    `model.to(dtype)` would also round buffers that are not saved. With rotary frequencies in
    bfloat16, logits in a context of some hundred tokens are wrong until the model is loaded again.
    """
    exact = getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if tensor.is_floating_point() and not any(part in name for part in exact):
            tensor.data = tensor.data.to(dtype)


@torch.no_grad()
def _enter_training_mode(model: PreTrainedModel) -> None:
    """Put the model into training mode and check its logits in that mode."""
    ids = torch.arange(16, device=model.device)[None] % model.config.get_text_config().vocab_size

    def logits() -> Tensor:
        output: Tensor = model(input_ids=ids, use_cache=False).logits
        return output.float()

    expected = logits()
    model.train(True)
    error = float((logits() - expected).abs().max() / expected.std())
    if not error <= 1e-3:
        raise ConfigurationError(
            f"{type(model).__name__} computes different logits in training mode (by {error:.2g} of"
            " their standard deviation), and gradient_checkpointing needs that mode: set it to"
            " False, or load the model with every dropout of its config at 0."
        )
