"""One of two processes with a model in shards, started by `torchrun`; see `test_sharding`."""

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState
from accelerate.utils import gather
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from adapters.trl.callbacks import Snapshots
from adapters.trl.sharding import gathered_gradient, own_part
from adapters.trl.step_metrics import gradient_norm
from tests.adapters.trl.scripted_trl import same

HALVES, COPIES = (2,), (2, 1)  # all weights cut in two, or whole in both processes


def whole() -> nn.Sequential:
    """Of the second layer, with one row, the second process has nothing."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))


def cut(model: nn.Sequential, shape: tuple[int, ...]) -> nn.Sequential:
    names = ("replicate", "shard")[-len(shape) :]
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def loss(model: nn.Module, step: int, rank: int) -> torch.Tensor:
    inputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(2 * step + rank))
    squared: torch.Tensor = model(inputs).square().mean()
    return squared


def told(parameters: Any) -> list[float]:
    return list(gathered_gradient(list(parameters), gather))


def gradients(rank: int) -> Iterator[tuple[str, Any]]:
    """Norms of whole and of cut models, and what each process sees of a shard that is broken."""
    model = whole()
    ((loss(model, 0, 0) + loss(model, 0, 1)) / 2).backward()  # type: ignore[no-untyped-call]
    yield "whole", list(gradient_norm(model.parameters()))
    for name, shape in (("halves", HALVES), ("copies", COPIES)):
        model = cut(whole(), shape)
        loss(model, 0, rank).backward()  # type: ignore[no-untyped-call]
        yield name, told(model.parameters())
    model = cut(whole(), HALVES)
    loss(model, 0, rank).backward()  # type: ignore[no-untyped-call]
    beside = nn.Parameter(torch.ones(3))  # not cut, as an adapter on a cut model
    beside.grad = torch.full((3,), 2.0)
    yield "beside", told([*model.parameters(), beside])
    beside.grad = None if rank == 0 else beside.grad
    yield "in one process", told([*model.parameters(), beside])
    layer: Any = model[0]
    if rank == 1:
        own_part(layer.weight.grad)[0, 0] = torch.nan
    yield "broken gradient", told(model.parameters())
    if rank == 0:
        own_part(layer.bias)[0] = torch.inf
    yield "broken weight", told(model.parameters())


def held(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
    """What this process has of weights and moments."""
    weights = [own_part(parameter).clone() for parameter in model.parameters()]
    moments = [
        {name: own_part(value).clone() for name, value in values.items()}
        for values in optimizer.state.values()
    ]
    return weights, moments


def snapshots(rank: int, folder: Path) -> Iterator[tuple[str, Any]]:
    """States before and after roll-backs, compared to the last bit, and the files."""
    model = cut(whole(), HALVES)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    files = Snapshots(folder, model, optimizer, scheduler, writes=rank == 0, wait=dist.barrier)
    states = [held(model, optimizer)]
    files.take(0)

    def advance(step: int) -> None:
        loss(model, step, rank).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()

    for step in (1, 2, 3):
        advance(step)
        states.append(held(model, optimizer))
        files.take(step)
    schedule = copy.deepcopy(scheduler.state_dict())
    yield "steps", files.steps()
    yield "moved", all(not same(states[step], states[step - 1]) for step in (1, 2, 3))
    files.restore(1)
    yield "back after a step", same(held(model, optimizer), states[1])
    yield "schedule back", (scheduler.last_epoch, optimizer.param_groups[0]["lr"])
    for step in (2, 3):
        advance(step)
    yield "on as before", same(held(model, optimizer), states[3])
    yield "schedule on", same(scheduler.state_dict(), schedule)
    files.restore(0)
    yield "back to the first", same(held(model, optimizer), states[0])
    dist.barrier()
    if rank == 0:
        (folder / "step-2.1-of-2.pt").unlink()  # as where one process was killed before the other
        for other in ("step-4.pt", "step-4.0-of-3.pt"):
            (folder / other).touch()
    dist.barrier()
    yield "those that are whole", files.steps()
    dist.barrier()
    files.prune(1)
    yield "files", sorted(path.name for path in folder.iterdir())


def main(folder: Path) -> None:
    """Leave behind what this process saw."""
    torch.set_num_threads(1)
    rank = PartialState(cpu=True, backend="gloo").process_index
    seen = dict(gradients(rank)) | dict(snapshots(rank, folder / "snapshots"))
    (folder / f"told-{rank}.json").write_text(json.dumps(seen))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
