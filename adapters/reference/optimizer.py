"""The optimizer: AdamW on float32 weights, whatever the model computes in.

A model in bfloat16 has eight bits for a weight, and an update of a thousandth of it is rounded
away. So the weights that are learnt are kept in float32 beside the model, gradients are added up in
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
    """Makes updates of a model from the gradients that `backward` leaves.

    Args:
        model: Its parameters that require gradients are trained.
        config: Learning rate and all that goes with it.
        processes: Whose gradients are added up; None: there is one.
    """

    def __init__(
        self, model: nn.Module, config: ReferenceConfig, processes: Processes | None = None
    ) -> None:
        self._config, self._processes = config, processes or Processes()
        self._own = [p for p in model.parameters() if p.requires_grad]
        self._learnt = [_master(parameter) for parameter in self._own]
        for own, learnt in zip(self._own, self._learnt, strict=True):
            if own is not learnt:
                hook = _adding_to(learnt)
                own.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
        self._adam = torch.optim.AdamW(
            self._learnt,
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
        """Complete the gradient: its norm, and how many parameters have one that is not finite.

        To be called once, after the last backward pass of a step.
        """
        self._processes.add_up(self._learnt)
        grads = [p.grad for p in self._learnt if p.grad is not None]
        return _norm(grads, self._learnt[0].device)

    def nonfinite_weights(self) -> int:
        """How many parameters hold a nan or an infinity."""
        return _norm([p.detach() for p in self._learnt], self._learnt[0].device)[1]

    def step(self, rate: float, norm: Tensor) -> None:
        """Update the weights.

        Args:
            rate: The learning rate.
            norm: Of the gradient; longer ones are shortened.
        """
        for group in self._adam.param_groups:
            group["lr"] = rate
        with_gradient = [p for p in self._learnt if p.grad is not None]
        clip_grads_with_norm_(with_gradient, self._config.max_grad_norm, norm)
        self._adam.step()
        self._updates += 1
        self._hand_over()
        self.discard()

    def discard(self) -> None:
        """Forget the gradients; nothing moves."""
        for own, learnt in zip(self._own, self._learnt, strict=True):
            own.grad = learnt.grad = None

    def state_dict(self) -> dict[str, Any]:
        """AdamW's state, where the schedule is, and float32 weights where the model has others."""
        apart = [
            None if own is learnt else learnt.detach()
            for own, learnt in zip(self._own, self._learnt, strict=True)
        ]
        return {"adam": self._adam.state_dict(), "updates": self._updates, "weights": apart}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state; the model's own weights have been loaded before."""
        self._adam.load_state_dict(state["adam"])
        self._updates = state["updates"]
        for own, learnt, saved in zip(self._own, self._learnt, state["weights"], strict=True):
            learnt.copy_(own if saved is None else saved)  # None: the model's were the exact ones
        self._hand_over()
        self.discard()

    @torch.no_grad()
    def _hand_over(self) -> None:
        for own, learnt in zip(self._own, self._learnt, strict=True):
            if own is not learnt:
                own.copy_(learnt)


def _master(parameter: nn.Parameter) -> nn.Parameter:
    """The float32 weights behind a parameter: itself, or a copy."""
    if parameter.dtype in (torch.float32, torch.float64):
        return parameter
    return nn.Parameter(parameter.detach().float().clone())


def _adding_to(learnt: nn.Parameter) -> Any:
    """Called whenever the model's parameter has a gradient: moves it to the float32 weights."""

    def add(own: Tensor) -> None:
        if own.grad is not None:
            fresh = own.grad.float()
            learnt.grad = fresh if learnt.grad is None else learnt.grad.add_(fresh)
            own.grad = None

    return add


def _norm(tensors: list[Tensor], device: torch.device) -> tuple[Tensor, int]:
    """The norm of all of them together, and how many have an element that is not finite."""
    if not tensors:
        return torch.zeros((), device=device), 0
    norms = torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors])
    return torch.linalg.vector_norm(norms), int((~norms.isfinite()).sum())


# The model as it is trained: its number format, no dropout, activations kept or computed again.
#
# The policy that learns has to be the policy that spoke: the same weights, read with the same
# positions, with nothing drawn at random on the way. Whether that holds in training mode, which
# gradient checkpointing needs, is measured, since models spell dropout in many ways.


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
