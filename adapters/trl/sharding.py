"""Weights, gradients and optimizer states of which each process holds a shard, as with FSDP2.

    a norm    of each parameter's shard here, gathered, and put together alike in every process
    a state   is written as the shards of this process, and read again by it

No process ever has a whole tensor. What is called here is called by all processes together, also by
one whose shards are empty: of a tensor with fewer rows than processes some hold none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

Gather = Callable[[Tensor], Tensor]
"""Puts the tensors of all processes together along the first dimension, alike in each."""


def is_sharded(tensors: Iterable[Tensor]) -> bool:
    """Whether one of them is held in shards."""
    return any(isinstance(tensor, DTensor) for tensor in tensors)


def own_part(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor; of one that is not sharded, all of it."""
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).detach()


def shards(tensor: Tensor) -> int:
    """Into how many shards a tensor is cut; 1 where every process holds all of it.

    With fewer shards than processes (HSDP) several hold the same one.
    """
    if not isinstance(tensor, DTensor):
        return 1
    cuts = zip(tensor.device_mesh.shape, tensor.placements, strict=True)
    return math.prod(size for size, placement in cuts if not placement.is_replicate())


def gathered_gradient(parameters: Sequence[nn.Parameter], gather: Gather) -> tuple[float, int, int]:
    """The norm of the whole gradient, and how many gradients and weights are not finite.

    One exchange, of two numbers for each parameter. The list has to be the same in all processes,
    so a parameter without a gradient counts as 0 instead of being left out.

    Args:
        parameters: Those that are trained, some of them sharded.
        gather: Of the accelerator.
    """
    device = own_part(parameters[0]).device
    norms, broken = [], []
    for parameter in parameters:
        gradient, weight = parameter.grad, own_part(parameter)
        norm = weight.new_zeros((), dtype=torch.float32)
        if gradient is not None:
            norm = torch.linalg.vector_norm(own_part(gradient).float())
        norms.append(norm.to(device))
        broken.append((~weight.isfinite()).any().float().to(device))
    both = gather(torch.stack([torch.stack(norms), torch.stack(broken)]).unsqueeze(0))
    norms_of, broken_of = both.cpu().double().unbind(dim=1)  # (processes, parameters) each
    cut = torch.tensor([shards(parameter) for parameter in parameters], dtype=torch.float64)
    copies = len(both) / cut  # processes that hold the same shard, and so report the same norm
    squares = (norms_of.square() / copies).sum(dim=0)
    total = squares.sum().sqrt().item()
    return total, int((~squares.isfinite()).sum()), int(broken_of.any(dim=0).sum())


# The state of an optimizer, whose moments are cut as its weights are.
#
# A pickled DTensor names the process groups of its own run, which a resumed run does not have. So a
# shard is written as a plain tensor beside its layout, and read into the mesh of its parameter.

_SHARD = "shard"


def own_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """An optimizer's `state_dict` with the shards of this process, to be written to a file."""
    held = {
        index: {name: _packed(value) for name, value in values.items()}
        for index, values in state["state"].items()
    }
    return {**state, "state": held}


def joined_state(state: Mapping[str, Any], optimizer: Any) -> dict[str, Any]:
    """The `state_dict` that `own_state` made such a file of, for the optimizer to load."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    joined = {
        index: {name: _unpacked(value, parameters[index]) for name, value in values.items()}
        for index, values in state["state"].items()
    }
    return {**state, "state": joined}


def _packed(value: Any) -> Any:
    if not isinstance(value, DTensor):
        return value
    layout = {"placements": value.placements, "shape": value.shape, "stride": value.stride()}
    return {_SHARD: own_part(value).cpu(), **layout}


def _unpacked(value: Any, parameter: nn.Parameter) -> Any:
    if not (isinstance(value, dict) and _SHARD in value and isinstance(parameter, DTensor)):
        return value
    layout = {name: each for name, each in value.items() if name != _SHARD}
    return DTensor.from_local(value[_SHARD], parameter.device_mesh, run_check=False, **layout)
