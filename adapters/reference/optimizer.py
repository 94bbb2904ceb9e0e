"""The optimizer: AdamW on float32 weights, whatever the model computes in.

A model in bfloat16 has eight bits for a weight, and an update of a thousandth of it is rounded
away. So master weights are kept in float32 beside the model, gradients are added up in
float32 as they arrive, and the model gets the rounded result. That is no more memory than a float32
model with gradients and its half-precision copy take. Where the model is float32 itself, both are
the same tensors.

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
from torch.nn.utils import clip_grads_with_norm_
from transformers import PreTrainedModel

from adapters.reference.config import ReferenceConfig
from adapters.reference.distributed import Processes
from toolgym.errors import ConfigurationError


class Optimizer:
    """AdamW on the float32 master weights of a model, with schedule and clipping.

    Args:
        model: Its parameters that require gradients are trained.
        config: Learning rate, schedule, betas, decay and clipping.
        processes: The processes whose gradients are summed; None: there is one.
    """

    def __init__(
        self, model: nn.Module, config: ReferenceConfig, processes: Processes | None = None
    ) -> None:
        self._config, self._processes = config, processes or Processes()
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._masters = [_master_weight(parameter) for parameter in self._parameters]
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            if parameter is not master:
                hook = _gradient_hook(master)
                parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
        self._adam = torch.optim.AdamW(
            self._masters,
            lr=config.learning_rate,
            betas=config.betas,
            weight_decay=config.weight_decay,
        )
        self._updates = 0

    def rate(self) -> float:
        """The schedule's learning rate for the next update."""
        config, step = self._config, self._updates + 1
        rise = min(1.0, step / (config.ramp + 1))
        done = max(0.0, (step - config.ramp - 1) / max(config.steps - config.ramp, 1))
        falls = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
        return config.learning_rate * rise * falls[config.decay]

    def gradient(self) -> tuple[Tensor, int]:
        """Sum the gradient over processes: its norm, and the number of nonfinite gradients.

        To be called once, after the last backward pass of a step.
        """
        self._processes.add_up(self._masters)
        grads = [p.grad for p in self._masters if p.grad is not None]
        return _norm(grads, self._masters[0].device)

    def nonfinite_weights(self) -> int:
        """The number of parameters that hold a nan or an infinity."""
        return _norm([p.detach() for p in self._masters], self._masters[0].device)[1]

    def step(self, rate: float, norm: Tensor) -> None:
        """Update the weights.

        Args:
            rate: The learning rate.
            norm: Of the gradient; longer ones are shortened.
        """
        for group in self._adam.param_groups:
            group["lr"] = rate
        with_gradient = [p for p in self._masters if p.grad is not None]
        clip_grads_with_norm_(with_gradient, self._config.max_grad_norm, norm)
        self._adam.step()
        self._updates += 1
        self._copy_to_model()
        self.discard()

    def discard(self) -> None:
        """Drop the gradients without an update."""
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            parameter.grad = master.grad = None

    def state_dict(self) -> dict[str, Any]:
        """AdamW's state, updates made, and master weights where they are not the model's own."""
        masters = [
            None if parameter is master else master.detach()
            for parameter, master in zip(self._parameters, self._masters, strict=True)
        ]
        return {"adam": self._adam.state_dict(), "updates": self._updates, "weights": masters}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of `state_dict`; the model's own weights have been loaded before."""
        self._adam.load_state_dict(state["adam"])
        self._updates = state["updates"]
        for parameter, master, saved in zip(
            self._parameters, self._masters, state["weights"], strict=True
        ):
            master.copy_(parameter if saved is None else saved)  # None: shared with the model
        self._copy_to_model()
        self.discard()

    @torch.no_grad()
    def _copy_to_model(self) -> None:
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            if parameter is not master:
                parameter.copy_(master)


def _master_weight(parameter: nn.Parameter) -> nn.Parameter:
    """The float32 master weight of a parameter: itself, or a copy."""
    if parameter.dtype in (torch.float32, torch.float64):
        return parameter
    return nn.Parameter(parameter.detach().float().clone())


def _gradient_hook(master: nn.Parameter) -> Any:
    """A hook that moves a parameter's gradient to its master weight as soon as it exists."""

    def add(parameter: Tensor) -> None:
        if parameter.grad is not None:
            gradient = parameter.grad.float()
            master.grad = gradient if master.grad is None else master.grad.add_(gradient)
            parameter.grad = None

    return add


def _norm(tensors: list[Tensor], device: torch.device) -> tuple[Tensor, int]:
    """The global norm, and the number of tensors with a nonfinite element."""
    if not tensors:
        return torch.zeros((), device=device), 0
    norms = torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors])
    return torch.linalg.vector_norm(norms), int((~norms.isfinite()).sum())


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
