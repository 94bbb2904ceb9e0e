"""The optimizer: AdamW on float32 weights, whatever the model computes in.

A model in bfloat16 has eight bits for a weight, and an update of a thousandth of it is rounded
away. So what a weight has beyond these is kept beside the model, and an update is computed on both
together (`adapters.training.models.weight_updates`).

A step that is left out must leave no trace: neither weights nor the optimizer's momentum move, the
learning rate's schedule waits (it counts updates, and is part of the state), and `discard` forgets
the gradients as if they had never been (zeros would let momentum move weights).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from adapters.reference.config import ReferenceConfig
from adapters.reference.distributed import Processes
from adapters.training.models.weight_updates import WeightUpdates
from toolgym.errors import ConfigurationError


class Optimizer:
    """AdamW on the float32 weights of a model, with schedule and clipping.

    Args:
        model: Its parameters that require gradients are trained.
        config: Learning rate, schedule, betas, decay and clipping.
        processes: The processes whose gradients are summed; None: there is one.
    """

    def __init__(
        self, model: nn.Module, config: ReferenceConfig, processes: Processes | None = None
    ) -> None:
        self._config, self._processes = config, processes or Processes()
        self._weights = WeightUpdates(
            (parameter for parameter in model.parameters() if parameter.requires_grad),
            config.betas,
            config.weight_decay,
        )

    def rate(self) -> float:
        """The schedule's learning rate for the next update."""
        config, step = self._config, self._weights.updates + 1
        rise = min(1.0, step / (config.ramp + 1))
        done = max(0.0, (step - config.ramp - 1) / max(config.steps - config.ramp, 1))
        falls = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
        return config.learning_rate * rise * falls[config.decay]

    def gradient(self) -> tuple[Tensor, int]:
        """Sum the gradient over processes: its norm, and the number of nonfinite gradients.

        To be called once, after the last backward pass of a step.
        """
        self._processes.add_up(self._weights.trained)
        return self._weights.norm()

    def nonfinite_weights(self) -> int:
        """The number of parameters that hold a nan or an infinity."""
        return self._weights.nonfinite_weights()

    def step(self, rate: float, norm: Tensor) -> None:
        """Update the weights.

        Args:
            rate: The learning rate.
            norm: Of the gradient; longer ones are shortened.
        """
        self._weights.step(rate, norm, self._config.max_grad_norm)

    def discard(self) -> None:
        """Drop the gradients without an update."""
        self._weights.discard()

    def close(self) -> None:
        """Leave the model's gradients to whoever trains it next."""
        self._weights.close()

    def state_dict(self) -> dict[str, Any]:
        """Updates made, and by name the tensors that the next one needs; not copied."""
        return {"updates": self._weights.updates, "tensors": self._weights.state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of `state_dict`; the model's own weights have been loaded before."""
        self._weights.load(state["tensors"], state["updates"])


# Preparation of the model: dtype, no dropout, gradient checkpointing.
#
# The policy that learns has to be the policy that generated the rollouts: the same weights, read
# with the same positions, without dropout. Whether that holds in training mode, which gradient
# checkpointing needs, is measured, since models spell dropout in many ways.


def make_ready(model: PreTrainedModel, config: ReferenceConfig) -> None:
    """Prepare a model for training, in place.

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
        _enter_training_mode(model)


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
def _enter_training_mode(model: PreTrainedModel) -> None:
    """Put the model into training mode, which checkpointing needs, and check its logits there."""
    ids = torch.arange(16, device=model.device)[None] % model.config.get_text_config().vocab_size

    def logits() -> Tensor:
        output: Tensor = model(input_ids=ids, use_cache=False).logits
        return output.float()

    expected = logits()
    model.train(True)
    error = float((logits() - expected).abs().max() / expected.std())
    if not error <= 1e-3:
        raise ConfigurationError(
            f"{type(model).__name__} computes something else in training mode (logits differ by"
            f" {error:.2g} of their spread), and gradient_checkpointing needs that mode: set it to"
            " False, or load the model with every dropout of its config at 0."
        )
