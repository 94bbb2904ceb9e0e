"""AdamW, one piece of one parameter after another, in as few bytes a parameter as is asked for.

    memory   weights             gradient   moments                        sum
    exact    float32 (*)         float32    2 in float32                   16
    half     float32 (*)         bfloat16   2 in bfloat16                  10
    least    float32's upper 24  bfloat16   the second alone, factored      5

(*) A model in bfloat16 has half of each weight itself; the bits that are missing are kept beside it
(`adapters.training.models.exact_weights`), so small updates are not lost. Of a model in float32,
weights and gradients are float32 whatever is asked for, and `exact` is PyTorch's AdamW to the bit.

What does not hold a number in full is rounded by chance, so that many small changes add up. All of
it is computed in float32, for a million numbers at a time: nowhere is there a float32 copy of the
model. Factored moments are those of Adafactor (Shazeer and Stern 2018, algorithm 4): of the squares
of a matrix' gradient, the means of its rows and of its columns; updates are no longer than 1 on the
root of the mean square. There is no first moment then. Rates mean the same in all three.

A step has two phases, since a guard looks at the gradient's norm before weights move: `norm`, then
`step` or `discard`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from adapters.training.models.exact_weights import Chances, divide, join, rounded
from toolgym.errors import ConfigurationError

Memory = Literal["exact", "half", "least"]
PIECE: Final = 2**20  # numbers that are in float32 together: 4 MiB a tensor
_EPSILON: Final = 1e-8
_FACTORED_EPSILON: Final = 1e-30  # added to squares, as in Adafactor
_BYTE: Final = 8
_STATE: Final = ("missing", "first", "second", "rows", "columns")


@dataclass
class Trained:
    """One parameter with what its updates need.

    Attributes:
        parameter: Of the model.
        summed_in: The dtype of its gradient.
        missing: The bits that its weights have beyond bfloat16; None: it holds them all.
        sum: The gradient so far where it is not kept by the parameter itself.
        first: The first moment; None before the first update, and where there is none.
        second: The second moment; None before the first update, and where it is factored.
        rows: Means of its rows, [matrices, rows].
        columns: Means of its columns, [matrices, columns].
        passes: Gradients that were added to the first one of `sum`.
    """

    parameter: nn.Parameter
    summed_in: torch.dtype
    missing: Tensor | None = None
    sum: Tensor | None = None
    first: Tensor | None = None
    second: Tensor | None = None
    rows: Tensor | None = None
    columns: Tensor | None = None
    passes: int = 0

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
        """What it is computed in."""
        return torch.promote_types(self.parameter.dtype, torch.float32)

    def read(self, piece: slice) -> Tensor:
        """Its exact weights of a piece, to be changed and written back."""
        weights = self.parameter.data.view(-1)[piece]
        if self.missing is None:
            return weights
        missing = self.missing.view(-1)[piece].int()
        return join(weights, missing << _BYTE if self.missing.dtype == torch.int8 else missing)

    def write(self, piece: slice, weights: Tensor, chances: Chances) -> None:
        """Set the weights of a piece."""
        if self.missing is None:
            return  # `read` was a view
        if self.missing.dtype == torch.int8:
            weights = rounded(weights, chances, _BYTE)
        near, missing = divide(weights)
        self.parameter.data.view(-1)[piece] = near
        if self.missing.dtype == torch.int8:
            missing = missing >> _BYTE
        self.missing.view(-1)[piece] = missing.to(self.missing.dtype)


class WeightUpdates:
    """The parameters that are trained, with gradients and moments.

    Args:
        parameters: On one device each; contiguous ones are taken as they are.
        memory: See above.
        betas: Shares of the moments that stay from step to step.
        weight_decay: Share of the weights that is taken off, times the rate.
        seed: Of the rounding.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        memory: Memory = "exact",
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._memory, self._betas, self._weight_decay = memory, betas, weight_decay
        self._seed = seed
        self.updates = 0
        self._hooks: list[Any] = []
        self.trained = [self._prepared(parameter) for parameter in parameters]
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
        for index, each in enumerate(self.trained):
            if each.grad is not None:
                chances = self._chances(each, index, 0)
                if self._is_factored(each):
                    self._factored_step(each, rate, shrink, chances)
                else:
                    self._adam_step(each, rate, shrink, chances)
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
        """Set a state of `state`, tensor by tensor, into the memory that is there.

        Raises:
            ConfigurationError: It was kept by another setting of `memory`.
        """
        for index, each in enumerate(self.trained):
            names = {name for name in _STATE if f"{index}.{name}" in state}
            other = "first" if self._is_factored(each) else "rows"
            if other in names:
                raise ConfigurationError(
                    f"the optimizer's state in the checkpoint was not kept with"
                    f" memory={self._memory!r}: go on with the setting it was begun with, or train"
                    " into another folder."
                )
            for name in _STATE:
                self._load(each, name, state.get(f"{index}.{name}"))
        self.updates = updates
        self.discard()

    def _load(self, each: Trained, name: str, saved: Tensor | None) -> None:
        own: Tensor | None = getattr(each, name)
        if name == "missing":
            if own is not None:
                own.zero_() if saved is None else own.copy_(saved)
        elif saved is None:
            setattr(each, name, None)
        elif own is None:
            narrow = torch.bfloat16 if self._is_rounded(each, name) else each.wide
            setattr(each, name, saved.to(each.parameter.device, narrow, copy=True))
        else:
            own.copy_(saved)

    @property
    def _device(self) -> torch.device:
        return self.trained[0].parameter.device

    def _prepared(self, parameter: nn.Parameter) -> Trained:
        parameter.data = parameter.data.contiguous()
        if parameter.dtype in (torch.float32, torch.float64):
            return Trained(parameter, parameter.dtype)
        if parameter.dtype != torch.bfloat16:
            raise ConfigurationError(
                f"weights in {parameter.dtype} cannot be trained: load the model in bfloat16 or"
                " float32."
            )
        kept = torch.int8 if self._memory == "least" else torch.int16
        summed_in = torch.float32 if self._memory == "exact" else torch.bfloat16
        return Trained(parameter, summed_in, torch.zeros_like(parameter, dtype=kept))

    def _chances(self, each: Trained, index: int, number: int) -> Chances:
        """The rounding of one parameter: 0 in an update, from 1 where gradients are added."""
        chances = Chances(self._seed, each.parameter.device)
        return chances.named(self.updates, index, number)

    def _collect(self, index: int) -> None:
        """Add a parameter's gradient to the sum, and take it from the parameter."""
        each = self.trained[index]
        gradient, each.parameter.grad = each.parameter.grad, None
        if gradient is None:
            return
        gradient = gradient.to(each.summed_in)
        if each.sum is None:
            each.sum, each.passes = gradient.contiguous(), 0
        elif each.summed_in == torch.float32:
            each.sum.add_(gradient)
        else:
            each.passes += 1
            _add_rounded(each.sum, gradient, self._chances(each, index, each.passes))

    def _is_factored(self, each: Trained) -> bool:
        """Whether it has a second moment of rows and columns, and no first one."""
        return self._memory == "least" and each.parameter.dim() > 1

    def _is_rounded(self, each: Trained, name: str) -> bool:
        """Whether a moment is in bfloat16."""
        return self._memory == "half" and name in ("first", "second")

    def _moment(self, each: Trained, name: str) -> Tensor:
        found: Tensor | None = getattr(each, name)
        if found is None:
            kind = torch.bfloat16 if self._is_rounded(each, name) else each.wide
            found = torch.zeros_like(each.parameter, dtype=kind)
            setattr(each, name, found)
        return found

    def _adam_step(self, each: Trained, rate: float, shrink: Tensor, chances: Chances) -> None:
        """Move all of a parameter."""
        one, two = self._betas
        first, second = (self._moment(each, name).view(-1) for name in ("first", "second"))
        gradient = _flat(each.grad)
        step_size = rate / (1 - one**self.updates)
        root = (1 - two**self.updates) ** 0.5
        for piece in pieces(len(gradient)):
            wide = gradient[piece].to(each.wide).mul_(shrink)
            mean, square = (each_[piece].to(each.wide) for each_ in (first, second))
            weights = each.read(piece).mul_(1 - rate * self._weight_decay)
            mean.lerp_(wide, 1 - one)
            square.mul_(two).addcmul_(wide, wide, value=1 - two)
            weights.addcdiv_(mean, (square.sqrt() / root).add_(_EPSILON), value=-step_size)
            each.write(piece, weights, chances)
            for kept, moved in ((first, mean), (second, square)):
                if kept.dtype == torch.bfloat16:
                    kept[piece] = rounded(moved, chances).bfloat16()

    def _factored_step(self, each: Trained, rate: float, shrink: Tensor, chances: Chances) -> None:
        """Move all matrices of a parameter, whose last two dimensions are theirs."""
        shape = each.parameter.shape
        gradients = _flat(each.grad).view(-1, *shape[-2:])
        if each.rows is None or each.columns is None:
            device = gradients.device
            each.rows = torch.zeros(gradients.shape[:2], dtype=each.wide, device=device)
            each.columns = torch.zeros(len(gradients), shape[-1], dtype=each.wide, device=device)
        for place, gradient in enumerate(gradients):
            moments = each.rows[place], each.columns[place]
            self._factored_moments(gradient, shrink, *moments)
            length = self._factored_length(gradient, shrink, *moments)
            scale = rate / max(1.0, length)
            for rows in pieces(shape[-2], shape[-1]):
                update = self._factored_update(gradient, shrink, *moments, rows)
                begin = (place * shape[-2] + rows.start) * shape[-1]
                piece = slice(begin, begin + update.numel())
                weights = each.read(piece).mul_(1 - rate * self._weight_decay)
                each.write(piece, weights.add_(update.view(-1), alpha=-scale), chances)

    def _factored_moments(
        self, gradient: Tensor, shrink: Tensor, rows: Tensor, columns: Tensor
    ) -> None:
        """Move the means of rows and columns towards those of a matrix' squares."""
        new = 1 - self._betas[1]
        of_columns = torch.zeros_like(columns)
        for some in pieces(*gradient.shape):
            scaled = gradient[some].to(rows.dtype) * shrink
            squares = scaled.square_().add_(_FACTORED_EPSILON)
            rows[some].lerp_(squares.mean(dim=1), new)
            of_columns += squares.sum(dim=0)
        columns.lerp_(of_columns / len(gradient), new)

    def _factored_update(
        self, gradient: Tensor, shrink: Tensor, rows: Tensor, columns: Tensor, some: slice
    ) -> Tensor:
        """Some rows of the gradient over the root of its expected square."""
        unbiased = 1 - self._betas[1] ** self.updates
        of_rows = (rows[some] / rows.mean()).rsqrt_()[:, None]
        of_columns = (columns / unbiased).rsqrt_()
        scaled = gradient[some].to(rows.dtype) * shrink
        return scaled.mul_(of_rows).mul_(of_columns)

    def _factored_length(
        self, gradient: Tensor, shrink: Tensor, rows: Tensor, columns: Tensor
    ) -> float:
        """The root of the mean square of an update."""
        squares = (
            self._factored_update(gradient, shrink, rows, columns, some).square_().sum()
            for some in pieces(*gradient.shape)
        )
        return float((torch.stack(list(squares)).sum() / gradient.numel()).sqrt())


def _hook(updates: weakref.ref[WeightUpdates], index: int) -> Callable[[Tensor], None]:
    """What a parameter calls when it has a gradient; it keeps nothing alive."""

    @torch.no_grad()
    def collect(_: Tensor) -> None:
        found = updates()
        if found is not None:
            found._collect(index)

    return collect


def pieces(length: int, width: int = 1) -> Iterator[slice]:
    """The places 0 to `length`, of `width` numbers each, divided into pieces of about `PIECE`."""
    rows = max(1, PIECE // width)
    for start in range(0, length, rows):
        yield slice(start, min(start + rows, length))


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
    parts = [torch.linalg.vector_norm(flat[piece].float()) for piece in pieces(len(flat))]
    length = torch.linalg.vector_norm(torch.stack(parts))
    return length


def _flat(gradient: Tensor | None) -> Tensor:
    """All numbers of a gradient that is there."""
    if gradient is None:
        raise ValueError("a parameter without a gradient has no update")
    return gradient.reshape(-1)


def _add_rounded(total: Tensor, gradient: Tensor, chances: Chances) -> None:
    """Add bfloat16 numbers to others, rounded by chance."""
    into, new = total.view(-1), gradient.reshape(-1)
    for piece in pieces(len(into)):
        into[piece] = rounded(into[piece].float() + new[piece].float(), chances).bfloat16()
