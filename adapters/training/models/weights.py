"""Weights of a model: data type, dropout, checkpoints and memory.

The trained policy must be identical to the policy that sampled the rollouts, so `make_ready`
disables dropout. Gradient checkpointing requires training mode. `make_ready` therefore compares the
logits of training mode with those of evaluation mode.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from toolgym.errors import ConfigurationError


def read_weights(model: PreTrainedModel, folder: Path) -> None:
    """Load the weights of a model folder into a model of the same kind.

    Raises:
        RuntimeError: If the weights do not fit the model.
        OSError: If the folder has no weights.
    """
    saved = type(model).from_pretrained(str(folder), dtype=model.dtype)
    model.load_state_dict(saved.state_dict())


def multiplies_bfloat16() -> bool:
    """Return whether the GPU of this machine, or else its CPU, has bfloat16 matrix instructions.

    Without such instructions, PyTorch multiplies elements one by one. On a CPU core with AVX2,
    PyTorch 2.13 performs 1.2 billion operations per second in bfloat16 and 63 billion in float32
    (for matrices of 1,024 x 576 and 576 x 1,536).
    """
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # Missing in old versions.
    found: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(found.get("avx512_bf16") or found.get("amx_bf16"))


def fast_dtype() -> Literal["float32", "bfloat16"]:
    """Return the data type in which this machine computes fastest."""
    return "bfloat16" if multiplies_bfloat16() else "float32"


def release_memory() -> None:
    """Return unused memory to the system, which takes a few tenths of a second.

    glibc keeps freed blocks below 32 MB, and PyTorch keeps freed GPU memory. Without this call, the
    memory used by training and by evaluation would add up.
    """
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    with suppress(OSError, AttributeError):  # other C libraries have no malloc_trim
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def set_checkpointing(model: PreTrainedModel, is_on: bool) -> None:
    """Enable or disable gradient checkpointing, which recomputes activations."""
    word = "enable" if is_on else "disable"
    # transformers 5.23 renamed the methods and warns about the old names.
    method = getattr(model, f"activation_checkpointing_{word}", None)
    (method or getattr(model, f"gradient_checkpointing_{word}"))()


@torch.no_grad()
def make_ready(model: PreTrainedModel, dtype: str, gradient_checkpointing: bool) -> None:
    """Prepare a model for reinforcement learning, in place.

    Args:
        model: The model.
        dtype: Data type of the weights: `float32` or `bfloat16`.
        gradient_checkpointing: Whether activations are recomputed in the backward pass instead of
            stored. If True, the model is left in training mode.

    Raises:
        ConfigurationError: If the logits in training mode differ from those in evaluation mode.
    """
    # `model.to(dtype)` would also round buffers that are not saved, such as rotary frequencies.
    exact = getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if tensor.is_floating_point() and not any(part in name for part in exact):
            tensor.data = tensor.data.to(getattr(torch, dtype))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, value in vars(module).items():  # modules that call functional.dropout
            if isinstance(value, float) and "drop" in name:
                setattr(module, name, 0.0)
    model.train(False)
    if not gradient_checkpointing:
        return
    set_checkpointing(model, True)
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
            " their standard deviation), but gradient_checkpointing needs that mode. Set"
            " gradient_checkpointing=False, or load the model with all dropouts of its config at 0."
        )
