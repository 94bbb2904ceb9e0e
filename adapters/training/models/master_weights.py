"""AdamW with float32 master weights for models in bfloat16 or float32.

A bfloat16 weight has eight significant bits, so most updates would be lost to rounding.
`MasterAdamW` keeps a float32 copy of each such parameter and sums the gradients of several backward
passes in float32. After each step, it rounds the float32 copies and writes them into the model.
Training requires 18 bytes per bfloat16 parameter and 16 bytes per float32 parameter. Parameters in
float32 or float64 are trained directly, exactly as by `torch.optim.AdamW`.

A step has two phases, `norm` and then `step` or `discard`, so the gradient can be inspected before
the weights change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

from toolgym.errors import ConfigurationError

_STATE: Final = ("step", "exp_avg", "exp_avg_sq")  # names used by torch.optim.AdamW


class MasterAdamW:
    """AdamW on the float32 weights of a model.

    Other code must not change bfloat16 parameters while the optimizer is in use, because the next
    step overwrites such changes.

    Args:
        parameters: Parameters to train, at least one, on one device.
        betas: Decay rates of the two moments.
        weight_decay: Decoupled weight decay, which is multiplied by the learning rate.

    Raises:
        ConfigurationError: If the data type of a parameter is not bfloat16, float32 or float64.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
    ) -> None:
        self._parameters = list(parameters)
        self._masters = list(self._parameters)
        self._hooks: list[Any] = []
        for index, parameter in enumerate(self._parameters):
            if parameter.dtype == torch.bfloat16:
                master = nn.Parameter(parameter.detach().float())

                def collect(parameter: Tensor, master: nn.Parameter = master) -> None:
                    gradient, parameter.grad = parameter.grad, None
                    if master.grad is None and gradient is not None:
                        master.grad = gradient.float()
                    elif master.grad is not None and gradient is not None:
                        master.grad.add_(gradient)

                self._masters[index] = master
                register: Any = parameter.register_post_accumulate_grad_hook
                self._hooks.append(register(collect))
            elif parameter.dtype not in (torch.float32, torch.float64):
                raise ConfigurationError(
                    f"weights in {parameter.dtype} cannot be trained: load the model in bfloat16 or"
                    " float32."
                )
        self._adam = torch.optim.AdamW(
            self._masters,
            betas=betas,
            weight_decay=weight_decay,
            fused=True if self._masters[0].is_cuda else None,
        )

    def gradients(self) -> list[Tensor]:
        """Return the accumulated gradients, which may be changed in place.

        There is one tensor per parameter, in float32 or float64. Parameters without a gradient get
        zeros.
        """
        for master in self._masters:
            if master.grad is None:
                master.grad = torch.zeros_like(master)
        return self._gradients()

    def norm(self) -> tuple[Tensor, int]:
        """Return the global norm of the gradient and the number of nonfinite gradients."""
        return _norm(self._gradients(), self._masters[0].device)

    def nonfinite_weights(self) -> int:
        """Return the number of parameters that hold a nan or an infinity."""
        return _norm([master.detach() for master in self._masters], self._masters[0].device)[1]

    @torch.no_grad()
    def step(self, rate: float, norm: Tensor, max_norm: float) -> None:
        """Update the weights and clear the gradients.

        Args:
            rate: Learning rate of this step.
            norm: Global norm of the gradient, from `norm`.
            max_norm: Gradients are clipped to this norm.
        """
        gradients = self._gradients()
        if gradients:
            torch._foreach_mul_(gradients, torch.clamp(max_norm / (norm + 1e-6), max=1.0))
        self._adam.param_groups[0]["lr"] = rate
        self._adam.step()
        self._round()
        self.discard()

    def discard(self) -> None:
        """Clear the gradients without an update."""
        for parameter in (*self._masters, *self._parameters):
            parameter.grad = None

    def close(self) -> None:
        """Stop collecting gradients, so that another optimizer can train the parameters."""
        self.discard()
        for hook in self._hooks:
            hook.remove()

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state as tensors by name, without copying them.

        `0.exp_avg`, `0.exp_avg_sq` and `0.step` belong to the first parameter. If the first
        parameter is in bfloat16, `0.master` holds its float32 weights.
        """
        tensors: dict[str, Tensor] = {}
        for index, master in enumerate(self._masters):
            if master is not self._parameters[index]:
                tensors[f"{index}.master"] = master.detach()
            state = self._adam.state.get(master, {})
            tensors |= {f"{index}.{name}": state[name] for name in _STATE if state}
        return tensors

    @torch.no_grad()
    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore a state. Load the weights of the model before calling this method.

        Args:
            tensors: The result of `state_dict`. Tensors are copied.
        """
        self.discard()
        for index, master in enumerate(self._masters):
            if master is not self._parameters[index]:
                master.copy_(tensors.get(f"{index}.master", self._parameters[index]))
        state = {
            index: {name: tensors[f"{index}.{name}"].clone() for name in _STATE}
            for index in range(len(self._masters))
            if f"{index}.step" in tensors
        }
        self._adam.load_state_dict({**self._adam.state_dict(), "state": state})
        self._round()

    def _gradients(self) -> list[Tensor]:
        return [master.grad for master in self._masters if master.grad is not None]

    def _round(self) -> None:
        """Copy the master weights into the bfloat16 parameters."""
        pairs = zip(self._parameters, self._masters, strict=True)
        rounded = [pair for pair in pairs if pair[0] is not pair[1]]
        if rounded:
            parameters, masters = map(list, zip(*rounded, strict=True))
            torch._foreach_copy_(parameters, masters)


def _norm(tensors: list[Tensor], device: torch.device) -> tuple[Tensor, int]:
    """Return the global norm, and the number of tensors with a nonfinite element."""
    if not tensors:
        return torch.zeros((), device=device), 0
    norms = torch.stack(torch._foreach_norm(tensors))
    return torch.linalg.vector_norm(norms), int((~norms.isfinite()).sum())
