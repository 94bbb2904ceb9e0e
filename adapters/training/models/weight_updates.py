"""AdamW on float32 weights, whatever the model computes in.

Weights, gradients and the two moments are float32: 16 bytes a parameter. A model in bfloat16 holds
the upper half of each weight itself; the missing bits are stored separately
(`adapters.training.models.exact_weights`), so small updates are not lost, and the gradients of
several passes are summed in float32. For a model in float32 it is PyTorch's AdamW to the bit.

A parameter is updated a million numbers at a time: nowhere is there a second copy of a bfloat16
model in float32.

A step has two phases, since a guard looks at the gradient's norm before weights move: `norm`, then
`step` or `discard`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from adapters.training.models.exact_weights import divide, join
from toolgym.errors import ConfigurationError

PIECE: Final = 2**20  # numbers that are updated together: 4 MiB a tensor
_EPSILON: Final = 1e-8
_STATE: Final = ("missing", "first", "second")


@dataclass
class Trained:
    """One parameter with what its updates need.

    Attributes:
        parameter: Of the model.
        missing: The bits that its weights have beyond bfloat16; None: it holds them all.
        sum: The gradient so far where it is not kept by the parameter itself.
        first: The first moment; None before the first update.
        second: The second moment; None before the first update.
    """

    parameter: nn.Parameter
    missing: Tensor | None = None
    sum: Tensor | None = None
    first: Tensor | None = None
    second: Tensor | None = None

    @property
    def grad(self) -> Tensor | None:
        """The gradient of all passes since the last update."""
        return self.sum if self.missing is not None else self.parameter.grad

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        if self.missing is not None:
            self.sum, self.parameter.grad = gradient, None
        else:
            self.parameter.grad = gradient

    @property
    def wide(self) -> torch.dtype:
        """The dtype of gradient and moments."""
        return torch.promote_types(self.parameter.dtype, torch.float32)

    def read(self, piece: slice) -> Tensor:
        """Its exact weights of a piece, to be changed and written back."""
        weights = self.parameter.data.view(-1)[piece]
        return weights if self.missing is None else join(weights, self.missing.view(-1)[piece])

    def write(self, piece: slice, weights: Tensor) -> None:
        """Set the weights of a piece."""
        if self.missing is None:
            return  # `read` was a view
        near, missing = divide(weights)
        self.parameter.data.view(-1)[piece] = near
        self.missing.view(-1)[piece] = missing


class WeightUpdates:
    """The parameters that are trained, with gradients and moments.

    Args:
        parameters: On one device each; contiguous ones are taken as they are.
        betas: Shares of the moments that stay from step to step.
        weight_decay: Share of the weights that is taken off, times the rate.

    Raises:
        ConfigurationError: A parameter is in another format than bfloat16, float32 or float64.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
    ) -> None:
        self._betas, self._weight_decay = betas, weight_decay
        self.updates = 0
        self._hooks: list[Any] = []
        self.trained = [_prepared(parameter) for parameter in parameters]
        for index, each in enumerate(self.trained):
            if each.missing is not None:
                hook = _hook(weakref.ref(self), index)
                register: Any = each.parameter.register_post_accumulate_grad_hook
                self._hooks.append(register(hook))

    def norm(self) -> tuple[Tensor, int]:
        """The gradient's norm, and the number of parameters whose gradient is not finite."""
        return norm([each.grad for each in self.trained if each.grad is not None], self._device)

    def nonfinite_weights(self) -> int:
        """The number of parameters that hold a nan or an infinity."""
        return norm([each.parameter.detach() for each in self.trained], self._device)[1]

    @torch.no_grad()
    def step(self, rate: float, norm: Tensor, longest: float) -> None:
        """Move the weights by their gradients, and forget those.

        Args:
            rate: The learning rate.
            norm: Of the gradient, as `norm` found it.
            longest: Longer gradients are shortened to this norm.
        """
        self.updates += 1
        shrink = torch.clamp(longest / (norm + 1e-6), max=1.0)
        for each in self.trained:
            if each.grad is not None:
                self._update(each, each.grad.reshape(-1), rate, shrink)
            each.grad = None

    def discard(self) -> None:
        """Forget the gradients."""
        for each in self.trained:
            each.grad = None

    def close(self) -> None:
        """Leave the parameters' gradients to whoever trains them next."""
        self.discard()
        for hook in self._hooks:
            hook.remove()

    def state(self) -> dict[str, Tensor]:
        """What the next update needs besides weights and count; the tensors themselves."""
        return {
            f"{index}.{name}": tensor
            for index, each in enumerate(self.trained)
            for name in _STATE
            if (tensor := getattr(each, name)) is not None
        }

    @torch.no_grad()
    def load(self, state: Mapping[str, Tensor], updates: int) -> None:
        """Set a state of `state`, tensor by tensor, into the memory that is there."""
        for index, each in enumerate(self.trained):
            for name in _STATE:
                _load(each, name, state.get(f"{index}.{name}"))
        self.updates = updates
        self.discard()

    @property
    def _device(self) -> torch.device:
        return self.trained[0].parameter.device

    def _collect(self, index: int) -> None:
        """Add a parameter's gradient to the sum, and take it from the parameter."""
        each = self.trained[index]
        gradient, each.parameter.grad = each.parameter.grad, None
        if gradient is None:
            return
        gradient = gradient.to(each.wide)
        if each.sum is None:
            each.sum = gradient.contiguous()
        else:
            each.sum.add_(gradient)

    def _update(self, each: Trained, gradient: Tensor, rate: float, shrink: Tensor) -> None:
        """Move a parameter by its flat gradient, which is changed."""
        one, two = self._betas
        first, second = (_moment(each, name).view(-1) for name in ("first", "second"))
        step_size = rate / (1 - one**self.updates)
        root = (1 - two**self.updates) ** 0.5
        for piece in _pieces(len(gradient)):
            shortened = gradient[piece].mul_(shrink)
            mean, square = first[piece], second[piece]
            weights = each.read(piece).mul_(1 - rate * self._weight_decay)
            mean.lerp_(shortened, 1 - one)
            square.mul_(two).addcmul_(shortened, shortened, value=1 - two)
            weights.addcdiv_(mean, (square.sqrt() / root).add_(_EPSILON), value=-step_size)
            each.write(piece, weights)


def _prepared(parameter: nn.Parameter) -> Trained:
    parameter.data = parameter.data.contiguous()
    if parameter.dtype in (torch.float32, torch.float64):
        return Trained(parameter)
    if parameter.dtype != torch.bfloat16:
        raise ConfigurationError(
            f"weights in {parameter.dtype} cannot be trained: load the model in bfloat16 or"
            " float32."
        )
    return Trained(parameter, torch.zeros_like(parameter, dtype=torch.int16))


def _load(each: Trained, name: str, saved: Tensor | None) -> None:
    own: Tensor | None = getattr(each, name)
    if name == "missing":
        if own is not None:
            own.zero_() if saved is None else own.copy_(saved)
    elif saved is None:
        setattr(each, name, None)
    elif own is None:
        setattr(each, name, saved.to(each.parameter.device, each.wide, copy=True))
    else:
        own.copy_(saved)


def _moment(each: Trained, name: str) -> Tensor:
    found: Tensor | None = getattr(each, name)
    if found is None:
        found = torch.zeros_like(each.parameter, dtype=each.wide)
        setattr(each, name, found)
    return found


def _hook(updates: weakref.ref[WeightUpdates], index: int) -> Callable[[Tensor], None]:
    """What a parameter calls when it has a gradient; it keeps nothing alive."""

    @torch.no_grad()
    def collect(_: Tensor) -> None:
        found = updates()
        if found is not None:
            found._collect(index)

    return collect


def _pieces(length: int) -> Iterator[slice]:
    """The places 0 to `length`, divided into pieces."""
    for start in range(0, length, PIECE):
        yield slice(start, min(start + PIECE, length))


def norm(tensors: list[Tensor], device: torch.device) -> tuple[Tensor, int]:
    """The global norm, and the number of tensors with a nonfinite element."""
    if not tensors:
        return torch.zeros((), device=device), 0
    norms = torch.stack([_norm(tensor) for tensor in tensors])
    return torch.linalg.vector_norm(norms), int((~norms.isfinite()).sum())


def _norm(tensor: Tensor) -> Tensor:
    length: Tensor
    if tensor.dtype != torch.bfloat16:
        length = torch.linalg.vector_norm(tensor)
        return length
    flat = tensor.reshape(-1)
    parts = [torch.linalg.vector_norm(flat[piece].float()) for piece in _pieces(len(flat))]
    length = torch.linalg.vector_norm(torch.stack(parts))
    return length
